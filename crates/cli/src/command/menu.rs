//! `telegram-menu-register`: the commands that Telegram offers, and one help notice a chat.
//!
//! It reads, compares and sets, and asks for the same notices again: a second time changes and says nothing. The notices are
//! deliveries like any other, sent by whoever is the dispatcher; where nobody is, by this process for as long as that takes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use thought_contract::draft::{self, NoticeSubject};
use thought_contract::payload::{DeliveryKind, NoticeName, NoticeRequested};
use thought_contract::time::Clock;
use thought_protocol::{EventId, Sha256Hex};
use thought_store::Store;
use thought_store::handle::Reader;
use thought_store::row::DeliveryState;
use thought_telegram::client::BotClient;
use thought_telegram::commands::MENU;
use thought_telegram::stop::Stop;
use thought_telegram::wire::BotCommand;
use tokio::sync::watch;

use crate::channel::{self, call_failure};
use crate::claim;
use crate::compose::SystemClock;
use crate::config::Telegram;
use crate::exit::Failure;
use crate::home::Home;
use crate::lock::{self, Taken};
use crate::print::Printer;

/// The role that asks for the notices.
const ROLE: &str = "menu";
/// How long the notices are waited for.
const DELIVERY_WAIT: Duration = Duration::from_secs(20);

/// Whether the chats are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelpNotice {
    /// One help notice each.
    Send,
    /// `--skip-help-notice`.
    Skip,
}

/// `telegram-menu-register`.
///
/// # Errors
/// [`Failure`]: no channel or token (3); Telegram refuses (3) or cannot be reached (8).
pub async fn register(home: &Home, store: &Store, printer: Printer, help: HelpNotice) -> Result<(), Failure> {
    let telegram = channel::configured(home)?;
    let client = channel::client(home)?;
    let menu = set(&client).await?;
    let chats: BTreeSet<i64> = match help {
        HelpNotice::Send if telegram.notices => telegram.allowed_chats.iter().copied().collect(),
        HelpNotice::Send | HelpNotice::Skip => BTreeSet::new(),
    };
    if help == HelpNotice::Send && !telegram.notices {
        printer.remark("telegram.notices is off: no chat is told");
    }
    let requested = request(store, &chats).await?;
    let delivered = deliver(home, telegram, store, client, &requested).await?;
    let value = json!({
        "menu": menu, "commands": MENU.map(|entry| entry.command),
        "notices": {"requested": requested.len(), "delivered": delivered},
    });
    printer.either(&value, || {
        let told = match requested.len() {
            0 => "no chat is told".to_owned(),
            count => format!("{delivered} of {count} chats are told"),
        };
        vec![format!("the menu is {menu}; {told}")]
    })?;
    if delivered < requested.len() {
        printer.remark("the rest is sent as soon as it can be: thought status tells what waits, and why");
    }
    Ok(())
}

/// Sets the menu where it is another. What it is then.
async fn set(client: &BotClient) -> Result<&'static str, Failure> {
    let wanted: Vec<BotCommand> = MENU
        .iter()
        .map(|entry| BotCommand {
            command: entry.command.to_owned(),
            description: entry.description.to_owned(),
        })
        .collect();
    let known = client.get_my_commands().await.map_err(|error| call_failure(&error))?;
    if known == wanted {
        return Ok("unchanged");
    }
    client.set_my_commands(&wanted).await.map_err(|error| call_failure(&error))?;
    Ok("set")
}

/// Asks for a help notice a chat: once for each menu there ever was.
async fn request(store: &Store, chats: &BTreeSet<i64>) -> Result<Vec<EventId>, Failure> {
    let words: Vec<String> =
        MENU.iter().map(|entry| format!("{}={}", entry.command, entry.description)).collect();
    let menu = Sha256Hex::of(words.join("\n").as_bytes());
    let notices = store.notices(ROLE);
    let mut requested = Vec::new();
    for chat in chats {
        let payload = NoticeRequested { name: NoticeName::Help, chat_id: *chat, thread_id: None };
        let about = NoticeSubject { subject: format!("menu:{chat}:{menu}"), day: None, cause: None };
        let draft = draft::notice_requested(notices.role(), &about, &payload, SystemClock.now())
            .map_err(|error| Failure::internal(&error))?;
        requested.push(notices.request(draft).await?.id);
    }
    Ok(requested)
}

/// Sees to it that the notices are sent, and counts those that are.
async fn deliver(
    home: &Home,
    telegram: &Telegram,
    store: &Store,
    client: Arc<BotClient>,
    notices: &[EventId],
) -> Result<usize, Failure> {
    if notices.is_empty() {
        return Ok(0);
    }
    let reader = store.reader();
    let settled = tokio::time::timeout(DELIVERY_WAIT, settled(&reader, notices));
    match lock::take(home, lock::DISPATCH)? {
        // A serve is at work: it sends them.
        Taken::Held => drop(settled.await),
        Taken::Ours(_lock) => {
            claim::take_over(home);
            let (say, word) = watch::channel(false);
            let dispatcher = channel::dispatcher(home, telegram, store, client);
            let work = dispatcher.run(Stop::new(word));
            let until = async {
                drop(settled.await);
                say.send_replace(true);
            };
            tokio::join!(work, until);
        }
    }
    count(&reader, notices, |state| state == DeliveryState::Delivered).await
}

/// Waits until each is sent, or will not be.
async fn settled(reader: &Reader, notices: &[EventId]) -> Result<(), Failure> {
    let mut news = reader.news();
    loop {
        news.mark_unchanged();
        if count(reader, notices, |state| state != DeliveryState::Sending).await? == notices.len() {
            return Ok(());
        }
        if news.changed().await.is_err() {
            return Ok(());
        }
    }
}

async fn count(
    reader: &Reader,
    notices: &[EventId],
    wanted: impl Fn(DeliveryState) -> bool,
) -> Result<usize, Failure> {
    let mut count = 0;
    for notice in notices {
        let row = reader.delivery(notice.clone(), DeliveryKind::Help).await?;
        count += usize::from(row.is_some_and(|row| wanted(row.state)));
    }
    Ok(count)
}
