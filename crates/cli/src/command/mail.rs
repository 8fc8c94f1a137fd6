//! `agent-send`: the bounded producer of private messages and the reader of their one response.
//!
//! It reads one file once, and appends through the desk of one sender or asks an agent's socket to. It reads no key, no
//! token and no channel, reaches nothing but the store or that socket, and runs no model.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use thought_protocol::Sensitive;
use thought_protocol::limits::AGENT_MESSAGE_CHARACTERS_MAX;
use thought_runtime::mail::{Desk, Errand, Error, Outgoing, Receipt, Response, SendStatus};
use thought_runtime::port::TokioSleeper;
use thought_store::{Store, StoreError};

use crate::args::AgentSend;
use crate::compose::SystemClock;
use crate::exit::{Exit, Failure, chain};
use crate::home::{Home, ReadProblem, uid};
use crate::print::Printer;
use crate::socket;

/// Longest file, bytes: the longest text in UTF-8.
const FILE_BYTES_MAX: usize = 4 * AGENT_MESSAGE_CHARACTERS_MAX;

/// Every code word that a socket may hand on; another is told as `refused`.
const CODES: [&str; 18] = [
    "agent-id",
    "mail-id",
    "route-refused",
    "other-sender",
    "text",
    "not-utf8",
    "wait",
    "response-invalid",
    "not-found",
    "conflict",
    "changed-meanwhile",
    "no-space",
    "store-unreachable",
    "store",
    "internal",
    "wrong-account",
    "socket-busy",
    "stopping",
];

/// The same word, as this binary has it.
pub fn known_code(code: &str) -> &'static str {
    CODES.into_iter().find(|known| *known == code).unwrap_or("refused")
}

/// The failure that tells of a message that was not sent or not read.
pub fn failure(error: Error) -> Failure {
    match error {
        Error::AgentId { .. } => {
            Failure::refused("agent-id", chain(&error)).hint("an id, not a display name")
        }
        Error::Id { .. } => Failure::refused("mail-id", chain(&error)),
        Error::Route { .. } => Failure::refused("route-refused", chain(&error))
            .hint("the one route of this version is from co to stream-agent-conversation"),
        Error::Sender { .. } => Failure::refused("other-sender", chain(&error)),
        Error::Blank | Error::Nul | Error::Text { .. } => Failure::refused("text", chain(&error)),
        Error::Utf8 { .. } => Failure::refused("not-utf8", chain(&error)),
        Error::Response { .. } => Failure::refused("response-invalid", chain(&error)),
        Error::NotFound { .. } => Failure::new(Exit::NotFound, "not-found", chain(&error)),
        Error::Store(ref conflict @ StoreError::Conflict { .. }) => {
            Failure::new(Exit::Conflict, "conflict", chain(conflict))
                .hint("another text stands under this identity; a new message wants a new --message-id")
        }
        Error::Store(store) => store.into(),
        Error::Payload(_) | Error::Draft(_) => Failure::internal(&error),
    }
}

/// What was asked for, checked as far as that goes without a store: privacy gate, ids, route, file and text.
///
/// # Errors
/// [`Failure`] (3, or 5 for a file that is not there) with the reason.
pub fn errand(options: &AgentSend) -> Result<Errand, Failure> {
    if options.text.is_some() || !options.words.is_empty() {
        return Err(Failure::refused(
            "text-as-argument",
            "a message's text is never taken from the command line",
        )
        .hint("write it to a file of your own and give --file"));
    }
    let response = match (options.show_response, options.acknowledge.acknowledged) {
        (false, _) => Response::Dark,
        (true, true) => Response::Asked,
        (true, false) => {
            return Err(Failure::refused("not-acknowledged", "the response is private")
                .hint("give --acknowledge-sensitive-private beside --show-response"));
        }
    };
    // The address is looked at before the file, so that a wrong one reads nothing.
    Outgoing::check_address(&options.from, &options.to, &options.thread, &options.message_id)
        .map_err(failure)?;
    let text = read_text(&options.file)?;
    let message =
        Outgoing::new(&options.from, &options.to, &options.thread, &options.message_id, text.expose())
            .map_err(failure)?;
    Ok(Errand { message, wait_seconds: options.wait_seconds, response })
}

/// Reads the text, once, from a regular file of the caller that nobody else can write.
fn read_text(path: &Path) -> Result<Sensitive<Vec<u8>>, Failure> {
    use rustix::fs::{Mode, OFlags, open};
    let shown = path.display();
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = open(path, flags, Mode::empty()).map_err(|errno| match errno {
        rustix::io::Errno::NOENT => ReadProblem::Absent,
        rustix::io::Errno::LOOP | rustix::io::Errno::NXIO => ReadProblem::NotRegular,
        other => ReadProblem::Io(std::io::Error::from(other).kind()),
    });
    let file: std::fs::File = opened.map_err(|problem| problem.failure(path))?.into();
    let io = |error: std::io::Error| ReadProblem::Io(error.kind()).failure(path);
    // Looked at through the descriptor that is read: nothing can be swapped in between.
    let found = file.metadata().map_err(io)?;
    if !found.is_file() {
        return Err(ReadProblem::NotRegular.failure(path));
    }
    if found.uid() != uid() {
        return Err(Failure::refused("not-yours", format!("{shown} belongs to another account")));
    }
    if found.mode() & 0o022 != 0 {
        let mode = found.mode() & 0o7777;
        return Err(Failure::refused(
            "open-to-others",
            format!("{shown} can be written by others (mode {mode:o})"),
        )
        .hint(format!("chmod go-w {shown}")));
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX);
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(ReadProblem::TooLarge(FILE_BYTES_MAX).failure(path));
    }
    Ok(Sensitive::new(bytes))
}

/// Refuses the owner's own message in the name of an agent that has an account.
///
/// # Errors
/// [`Failure`] (3).
pub fn check_owner(home: &Home, errand: &Errand) -> Result<(), Failure> {
    let sender = errand.message.sender();
    match home.config.agents.get(sender) {
        None => Ok(()),
        Some(account) => {
            let message = format!("{sender} has an account of its own, and speaks through its socket alone");
            Err(Failure::refused("agent-has-account", message)
                .hint(format!("as that account: thought agent-send --socket {} …", account.socket.display())))
        }
    }
}

/// The desk of a sender, over a store.
pub fn desk(store: &Store, sender: &str) -> Desk {
    let mail = store.agent_mail(sender);
    Desk::new(sender, mail, store.reader(), Arc::new(SystemClock), Arc::new(TokioSleeper))
}

/// `agent-send` on a home.
///
/// # Errors
/// [`Failure`]: refused (3), another text under the same identity (4), the wait ran out (7), the run ended without an
/// answer (9).
pub async fn send(store: &Store, printer: Printer, errand: &Errand) -> Result<(), Failure> {
    let recipient = errand.message.payload().recipient_agent_id.clone();
    if store.reader().declaration(recipient.clone()).await?.is_none() {
        printer.remark(&format!(
            "{recipient} is not installed on this home yet; it answers what comes after thought serve installs it"
        ));
    }
    let receipt = desk(store, errand.message.sender()).serve(errand).await;
    tell(printer, errand, receipt.map_err(failure)?)
}

/// `agent-send --socket`: no home is looked for.
///
/// # Errors
/// As [`send`], and 8 when nobody answers at the socket.
pub async fn send_through(path: &Path, printer: Printer, errand: &Errand) -> Result<(), Failure> {
    tell(printer, errand, socket::ask(path, errand).await?)
}

/// Prints a receipt; the exit code says how a wait ended.
fn tell(printer: Printer, errand: &Errand, receipt: Receipt) -> Result<(), Failure> {
    let Receipt { message, event, status, run, response } = receipt;
    let mut value = json!({"message": message, "event": event, "status": status.as_str()});
    if let Some(run) = &run {
        value["run"] = json!(run);
    }
    let response = response.filter(|_| errand.response == Response::Asked);
    if let Some(response) = &response {
        value["response"] = json!(response.expose());
    }
    printer.either(&value, || {
        let of_run = run.as_ref().map_or(String::new(), |run| format!("  {run}"));
        let mut lines = vec![format!("{}  {message}  {event}{of_run}", status.as_str())];
        lines.extend(response.as_ref().map(|response| response.expose().clone()));
        lines
    })?;
    match status {
        SendStatus::Accepted | SendStatus::AlreadyAccepted | SendStatus::Completed => Ok(()),
        SendStatus::Pending => {
            let waited = errand.wait_seconds.unwrap_or(0);
            let message = format!("the run on {event} did not end within {waited} s");
            Err(Failure::new(Exit::WaitRanOut, "wait-ran-out", message)
                .hint("run the same command again: it waits on, and sends nothing twice"))
        }
        SendStatus::Failed | SendStatus::Blocked | SendStatus::Abandoned => {
            let message = format!("the run on {event} ended {} and left no response", status.as_str());
            Err(Failure::new(Exit::NoAnswer, "no-answer", message))
        }
    }
}
