//! An agent's socket, as both of its ends know it: the frames, what is said in them, and the agent's own end.
//!
//! The server speaks first, so that an account that is not admitted hears so before it has said a word. Then one errand
//! goes one way and one answer the other, and the connection ends. A frame is four bytes of length, then that many bytes
//! of JSON; the length is checked before memory is taken. There is no word here for anything but an errand of
//! [`thought_runtime::mail::Desk`].

use std::path::Path;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thought_protocol::{EventId, RunId, Sensitive};
use thought_runtime::mail::{Errand, Outgoing, Receipt, Response, SendStatus};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::command::mail;
use crate::exit::{Exit, Failure};

/// Version of what is said; both ends must speak the same.
pub const PROTOCOL: u32 = 1;
/// Longest frame, bytes: the longest text with every character escaped, and the ids around it.
pub const FRAME_BYTES_MAX: usize = 128 * 1024;
/// Longest wait that an errand may ask for, seconds.
pub const WAIT_SECONDS_MAX: u64 = 86_400;
/// How long either end may take to say its part, once it is its turn.
pub const TURN_MAX: Duration = Duration::from_secs(10);
/// What the answer may take beyond the wait that was asked for.
const ANSWER_MARGIN: Duration = Duration::from_secs(60);

/// What the server says.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Said {
    /// The account is admitted, as this agent.
    Welcome {
        /// See [`PROTOCOL`].
        protocol: u32,
        /// The agent whose socket it is.
        agent: String,
    },
    /// What came of the errand.
    Receipt(ReceiptText),
    /// It did not come about.
    Error(FailureText),
}

/// What the agent asks for.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Asked {
    from: String,
    to: String,
    thread: String,
    message_id: String,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_seconds: Option<u64>,
    show_response: bool,
}

/// A receipt, written.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReceiptText {
    message: String,
    event: EventId,
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<String>,
}

/// A failure, written: as the other end will tell it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FailureText {
    exit: u8,
    code: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// A frame that did not come or go. Content-dark.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The other end is gone or cannot be read or written.
    #[error("exchange a frame: {0}")]
    Io(std::io::ErrorKind),
    /// A length beyond the bound.
    #[error("read a frame: it announces {bytes} bytes, at most {FRAME_BYTES_MAX} are read")]
    TooLarge {
        /// What was announced.
        bytes: usize,
    },
    /// The bytes are not what stands here at this point.
    #[error("read a frame: its {bytes} bytes are not what this protocol says here")]
    Malformed {
        /// How many there are.
        bytes: usize,
    },
    /// A value that has no frame.
    #[error("write a frame: {bytes} bytes, at most {FRAME_BYTES_MAX} are written")]
    TooLong {
        /// How many there would be.
        bytes: usize,
    },
    /// The other end took too long.
    #[error("exchange a frame: the other end took too long")]
    Late,
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error.kind())
    }
}

/// The bytes of a frame.
///
/// # Errors
/// [`Error::TooLong`].
pub fn frame(value: &impl Serialize) -> Result<Sensitive<Vec<u8>>, Error> {
    let body = match serde_json::to_vec(value) {
        Ok(body) => body,
        Err(_content_dark) => return Err(Error::Malformed { bytes: 0 }),
    };
    if body.len() > FRAME_BYTES_MAX {
        return Err(Error::TooLong { bytes: body.len() });
    }
    let length = u32::try_from(body.len()).or(Err(Error::TooLong { bytes: body.len() }))?;
    Ok(Sensitive::new([&length.to_be_bytes()[..], &body].concat()))
}

/// Writes a frame, within [`TURN_MAX`].
///
/// # Errors
/// [`Error`].
pub async fn write(stream: &mut (impl AsyncWrite + Unpin), value: &impl Serialize) -> Result<(), Error> {
    let bytes = frame(value)?;
    let written = tokio::time::timeout(TURN_MAX, async {
        stream.write_all(bytes.expose()).await?;
        stream.flush().await
    });
    Ok(written.await.or(Err(Error::Late))??)
}

/// Reads a frame, within a time.
///
/// # Errors
/// [`Error`].
pub async fn read<T: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
    within: Duration,
) -> Result<T, Error> {
    let whole = tokio::time::timeout(within, async {
        let mut length = [0; 4];
        stream.read_exact(&mut length).await?;
        let bytes = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if bytes > FRAME_BYTES_MAX {
            return Err(Error::TooLarge { bytes });
        }
        let mut body = vec![0; bytes];
        stream.read_exact(&mut body).await?;
        Ok(Sensitive::new(body))
    });
    let body = whole.await.or(Err(Error::Late))??;
    match serde_json::from_slice(body.expose()) {
        Ok(value) => Ok(value),
        Err(_content_dark) => Err(Error::Malformed { bytes: body.expose().len() }),
    }
}

impl Asked {
    fn of(errand: &Errand) -> Self {
        let payload = errand.message.payload();
        Self {
            from: payload.sender_agent_id.clone(),
            to: payload.recipient_agent_id.clone(),
            thread: payload.thread_id.clone(),
            message_id: payload.message_id.clone(),
            text: payload.text.clone(),
            wait_seconds: errand.wait_seconds,
            show_response: errand.response == Response::Asked,
        }
    }

    /// The errand, checked as one of the owner's own.
    ///
    /// # Errors
    /// [`Failure`] with the reason.
    pub fn errand(&self) -> Result<Errand, Failure> {
        if self.wait_seconds.is_some_and(|seconds| seconds > WAIT_SECONDS_MAX) {
            let message = format!("an errand waits {WAIT_SECONDS_MAX} seconds at most");
            return Err(Failure::refused("wait", message));
        }
        let text = self.text.as_bytes();
        let message = Outgoing::new(&self.from, &self.to, &self.thread, &self.message_id, text);
        let message = message.map_err(mail::failure)?;
        let response = if self.show_response { Response::Asked } else { Response::Dark };
        Ok(Errand { message, wait_seconds: self.wait_seconds, response })
    }
}

impl ReceiptText {
    /// A receipt as it is written.
    pub fn of(receipt: Receipt) -> Self {
        Self {
            message: receipt.message,
            event: receipt.event,
            status: receipt.status.as_str().to_owned(),
            run: receipt.run,
            response: receipt.response.map(Sensitive::into_inner),
        }
    }

    fn receipt(self) -> Option<Receipt> {
        Some(Receipt {
            message: self.message,
            event: self.event,
            status: SendStatus::from_word(&self.status)?,
            run: self.run,
            response: self.response.map(Sensitive::new),
        })
    }
}

impl FailureText {
    /// A failure as it is written.
    pub fn of(failure: Failure) -> Self {
        let Failure { exit, code, message, hint } = failure;
        Self { exit: exit as u8, code: code.to_owned(), message, hint }
    }

    fn failure(self) -> Failure {
        let exit = Exit::from_code(self.exit).unwrap_or(Exit::Internal);
        let failure = Failure::new(exit, mail::known_code(&self.code), self.message);
        match self.hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// Runs an errand over a socket, as the agent.
///
/// # Errors
/// [`Failure`]: what the desk refused, as it refused it; 8 when nobody answers or the connection breaks.
pub async fn ask(path: &Path, errand: &Errand) -> Result<Receipt, Failure> {
    let shown = path.display();
    let connecting = tokio::time::timeout(TURN_MAX, UnixStream::connect(path)).await;
    let connected = connecting.unwrap_or_else(|_late| Err(std::io::ErrorKind::TimedOut.into()));
    let mut stream = connected.map_err(|error| {
        Failure::new(Exit::Machine, "no-socket", format!("reach the socket {shown}: {}", error.kind()))
            .hint("thought serve of the home's owner keeps it; is it running?")
    })?;
    let broken = |error: Error| {
        Failure::new(Exit::Machine, "socket-broken", format!("talk through the socket {shown}: {error}"))
            .hint("run the same command again: a message that was accepted is not accepted twice")
    };
    match read(&mut stream, TURN_MAX).await.map_err(broken)? {
        Said::Welcome { protocol: PROTOCOL, .. } => {}
        Said::Welcome { .. } => {
            let message = format!("the socket {shown} is kept by another version of thought");
            return Err(Failure::new(Exit::Machine, "socket-version", message)
                .hint("install the version that thought serve runs"));
        }
        Said::Error(failure) => return Err(failure.failure()),
        Said::Receipt(_) => return Err(broken(Error::Malformed { bytes: 0 })),
    }
    write(&mut stream, &Asked::of(errand)).await.map_err(broken)?;
    let wait = Duration::from_secs(errand.wait_seconds.unwrap_or(0)) + ANSWER_MARGIN;
    match read(&mut stream, wait).await.map_err(broken)? {
        Said::Receipt(receipt) => receipt.receipt().ok_or_else(|| broken(Error::Malformed { bytes: 0 })),
        Said::Error(failure) => Err(failure.failure()),
        Said::Welcome { .. } => Err(broken(Error::Malformed { bytes: 0 })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    fn errand(text: &str) -> Errand {
        let message = Outgoing::new("co", "stream-agent-conversation", "t", "m", text.as_bytes()).unwrap();
        Errand { message, wait_seconds: Some(3), response: Response::Asked }
    }

    #[test]
    fn the_longest_text_fits_a_frame_however_it_is_escaped() {
        for character in ["\u{1}", "\"", "ä", "\u{1F600}"] {
            let text = format!("x{}", character.repeat(16_383));
            let bytes = frame(&Asked::of(&errand(&text))).unwrap();
            let read: Asked = block_on(read(&mut &bytes.expose()[..], TURN_MAX)).unwrap();
            assert!(read.errand().is_ok() && read.text == text);
        }
    }

    #[test]
    fn a_length_beyond_the_bound_is_refused_before_its_bytes_come() {
        let announced = u32::MAX.to_be_bytes();
        let refused = block_on(read::<Said>(&mut &announced[..], TURN_MAX)).err().unwrap();
        assert!(matches!(refused, Error::TooLarge { .. }));
    }

    #[test]
    fn what_is_not_said_here_is_malformed_and_never_repeated() {
        let texts = [
            "{}",
            "canary",
            "{\"from\":\"co\"}",
            "{\"receipt\":{}}",
            "{\"welcome\":{\"protocol\":1,\"agent\":\"co\",\"canary\":1}}",
        ];
        for text in texts {
            let bytes = [&u32::try_from(text.len()).unwrap().to_be_bytes()[..], text.as_bytes()].concat();
            let error = block_on(read::<Said>(&mut &bytes[..], TURN_MAX)).err().unwrap();
            assert!(matches!(error, Error::Malformed { .. }), "{text}");
            assert!(!format!("{error} {error:?}").contains("canary"));
        }
    }

    #[test]
    fn an_errand_that_waits_for_ever_is_refused() {
        let mut asked = Asked::of(&errand("hello"));
        asked.wait_seconds = Some(WAIT_SECONDS_MAX + 1);
        assert_eq!(asked.errand().unwrap_err().code, "wait");
    }

    #[test]
    fn a_failure_crosses_the_socket_as_it_is() {
        let failure = Failure::refused("route-refused", "no route").hint("none");
        let back = FailureText::of(failure).failure();
        assert_eq!(
            (back.exit, back.code, back.message.as_str()),
            (Exit::Refused, "route-refused", "no route")
        );
        let odd = FailureText { exit: 77, code: "odd".to_owned(), message: String::new(), hint: None };
        assert_eq!((odd.failure().exit), Exit::Internal);
    }
}
