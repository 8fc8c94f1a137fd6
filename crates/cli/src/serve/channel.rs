//! The Telegram channel's roles: ingress, spool, dispatcher, typing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use thought_contract::event::SourceName;
use thought_contract::run::RunState;
use thought_store::Topics;
use thought_store::handle::{Reader, TelegramIngress};
use thought_store::row::{RunFilter, RunRow};
use thought_telegram::admit::Policy;
use thought_telegram::client::BotClient;
use thought_telegram::dispatcher::{DispatchOptions, Dispatcher, DispatcherPorts};
use thought_telegram::ids::{ChatId, ThreadId, UserId};
use thought_telegram::ingress::{
    Allowed, ChannelState, PollOptions, Poller, Reception, Webhook, WebhookPorts,
};
use thought_telegram::notices::Switches;
use thought_telegram::spool::{Freeze, PhotoPorts, SpoolOptions, SpoolPorts, Spooler};
use thought_telegram::stop::{Next, Stop};
use thought_telegram::typing::{Place, Typing};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Ready;
use crate::claim;
use crate::command::status::{CHANNEL_PROBLEM, channel_source};
use crate::command::webhook;
use crate::compose::SystemClock;
use crate::config::{Ingress, Telegram};
use crate::doctor;
use crate::exit::Failure;
use crate::home::Home;
use crate::secrets::{self, Secret};

/// How long news is gathered before it is looked which runs are on: nobody sees a typing hint that is shorter.
const TYPING_LOOK: Duration = Duration::from_millis(250);
/// Conversations that show a typing hint at once.
const TYPING_MAX: u32 = 64;

type Tasks = JoinSet<Result<(), Failure>>;

/// Which roles are this process's own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Own {
    /// Ingress and spool.
    pub(super) ingress: bool,
    /// The dispatcher.
    pub(super) dispatch: bool,
}

/// Starts the roles of the channel.
///
/// # Errors
/// [`Failure`] for a token or root that cannot be one, or a missing token where a message should come in.
pub(super) fn start(
    ready: &Ready,
    tasks: &mut Tasks,
    stop: &Stop,
    own: Own,
    freeze: Freeze,
) -> Result<(), Failure> {
    let Some(telegram) = &ready.home.config.telegram else { return Ok(()) };
    let token = match secrets::telegram_token(&ready.home, telegram)? {
        Secret::Found(token) => token,
        Secret::Missing(problem) if telegram.ingress != Ingress::Off => {
            return Err(Failure::refused("no-token", format!("telegram: {problem}"))
                .hint("export it, set token_file, or set ingress = \"off\""));
        }
        Secret::NotNamed if telegram.ingress != Ingress::Off => {
            return Err(Failure::refused("no-token", "telegram: no token is named")
                .hint("set token_env or token_file in [telegram], or set ingress = \"off\""));
        }
        // Without a token nothing comes in and nothing can go out.
        Secret::Missing(_) | Secret::NotNamed => return Ok(()),
    };
    let client = Arc::new(doctor::client(&telegram.api_url, token.into_inner())?);
    let channel = Channel {
        ready,
        telegram,
        source: channel_source(&ready.home),
        switches: Switches { failure_notice: telegram.failure_notice, notices: telegram.notices },
        client,
        freeze,
    };
    if own.ingress && telegram.ingress != Ingress::Off {
        ready.blobs.sweep()?;
    }
    if own.ingress {
        match telegram.ingress {
            Ingress::Poll => channel.poll(tasks, stop),
            Ingress::Webhook => channel.webhook(tasks, stop)?,
            Ingress::Off => {}
        }
    }
    if own.dispatch {
        channel.dispatch(tasks, stop);
    }
    Ok(())
}

struct Channel<'a> {
    ready: &'a Ready,
    telegram: &'a Telegram,
    source: SourceName,
    switches: Switches,
    client: Arc<BotClient>,
    freeze: Freeze,
}

impl Channel<'_> {
    fn poll(&self, tasks: &mut Tasks, stop: &Stop) {
        let options = PollOptions::default();
        let poller = Poller::new(self.client.clone(), self.handle(), self.allowed(), options);
        self.spool(tasks, stop, poller.policy(), poller.state());
        spawn(tasks, poller.run(stop.clone()));
    }

    /// Listens for Telegram's posts; without a secret nobody is listened to, and it says so.
    fn webhook(&self, tasks: &mut Tasks, stop: &Stop) -> Result<(), Failure> {
        let reception = webhook::reception(&self.ready.home, self.telegram)?;
        if let Reception::Off(off) = &reception {
            tracing::warn!(
                target: "thought::serve",
                code = off.code(),
                "serve goes on without the webhook: set secret_env or secret_file in [telegram.webhook], then restart"
            );
        }
        let ports =
            WebhookPorts { client: self.client.clone(), ingress: self.handle(), allowed: self.allowed() };
        let webhook = Webhook::new(ports, reception);
        self.spool(tasks, stop, webhook.policy(), webhook.state());
        spawn(tasks, webhook.run(stop.clone()));
        Ok(())
    }

    fn handle(&self) -> TelegramIngress {
        self.ready.store.telegram_ingress(self.source.clone())
    }

    fn allowed(&self) -> Allowed {
        Allowed {
            chats: self.telegram.allowed_chats.iter().copied().map(ChatId).collect(),
            users: self.telegram.allowed_users.iter().copied().map(UserId).collect(),
        }
    }

    /// Turns what is spooled into events, however it came, and tells `status` of the channel's state.
    fn spool(
        &self,
        tasks: &mut Tasks,
        stop: &Stop,
        policy: watch::Receiver<Option<Arc<Policy>>>,
        state: watch::Receiver<ChannelState>,
    ) {
        let store = &self.ready.store;
        let ports = SpoolPorts {
            reader: store.reader(),
            ingress: self.handle(),
            incidents: store.incidents("telegram"),
            photos: PhotoPorts { client: self.client.clone(), blobs: Arc::new(self.ready.blobs.clone()) },
            policy,
            clock: Arc::new(SystemClock),
            freeze: self.freeze.clone(),
        };
        let spooler = Spooler::new(ports, SpoolOptions::new(self.switches));
        spawn(tasks, tell_problem(self.ready.home.clone(), state, stop.clone()));
        spawn(tasks, spooler.run(stop.clone()));
    }

    fn dispatch(&self, tasks: &mut Tasks, stop: &Stop) {
        // What commands were at is taken up by the dispatcher itself.
        claim::take_over(&self.ready.home);
        let store = &self.ready.store;
        let ports = DispatcherPorts {
            reader: store.reader(),
            deliveries: store.dispatcher(self.source.clone()),
            incidents: store.incidents("dispatcher"),
            client: self.client.clone(),
            clock: Arc::new(SystemClock),
        };
        let chats = self.telegram.allowed_chats.iter().copied().map(ChatId).collect();
        let dispatcher = Dispatcher::new(ports, DispatchOptions::new(chats, self.switches));
        let (running, shown) = watch::channel(BTreeSet::new());
        let typing = Typing::new(self.client.clone(), shown);
        spawn(tasks, follow_runs(store.reader(), self.source.clone(), running, stop.clone()));
        spawn(tasks, typing.run(stop.clone()));
        spawn(tasks, dispatcher.run(stop.clone()));
    }
}

/// Spawns a role; one that ends before it was told to counts as ended by itself.
fn spawn(tasks: &mut Tasks, role: impl Future<Output = ()> + Send + 'static) {
    tasks.spawn(async move {
        role.await;
        Ok(())
    });
}

/// Keeps the file that `status` reads: the code of the channel's present problem, or nothing.
async fn tell_problem(home: Arc<Home>, mut state: watch::Receiver<ChannelState>, stop: Stop) {
    let file = home.below(CHANNEL_PROBLEM);
    loop {
        let problem = state.borrow_and_update().problem();
        let told = match problem {
            Some(code) => std::fs::write(&file, code),
            None => std::fs::remove_file(&file),
        };
        if let Err(error) = told
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(target: "thought::serve", kind = %error.kind(), "status cannot be told of the channel");
        }
        match stop.unless(state.changed()).await {
            Some(Ok(())) => {}
            Some(Err(_)) => return stop.said().await,
            None => return,
        }
    }
}

/// Follows which conversations of the channel have a run on.
async fn follow_runs(
    reader: Reader,
    source: SourceName,
    running: watch::Sender<BTreeSet<Place>>,
    stop: Stop,
) {
    let mut news = reader.news().about(Topics::RUN_MOVED);
    loop {
        news.mark_unchanged();
        let filter = RunFilter { states: vec![RunState::Running], limit: TYPING_MAX, ..RunFilter::default() };
        // A look that fails shows nothing; the next news looks again.
        let rows = reader.runs(filter).await.unwrap_or_else(|_unreadable| Vec::new());
        let places = rows.iter().filter(|run| run.source == source).filter_map(place).collect();
        running.send_if_modified(|shown| {
            let is_other = *shown != places;
            *shown = places;
            is_other
        });
        match stop.unless(news.changed()).await {
            Some(Ok(_)) if stop.pause(TYPING_LOOK).await == Next::GoOn => {}
            _ => return,
        }
    }
}

/// The chat and topic of a run's conversation.
fn place(run: &RunRow) -> Option<Place> {
    let (chat, thread) = run.conversation.split_once(':')?;
    let (chat, thread): (i64, i64) = (chat.parse().ok()?, thread.parse().ok()?);
    Some((ChatId(chat), (thread != 0).then_some(ThreadId(thread))))
}
