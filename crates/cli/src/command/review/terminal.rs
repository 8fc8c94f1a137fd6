//! The terminal of a review: keys one at a time, without echo, and its own mode again whatever happens.
//!
//! The only place that changes how a terminal behaves. It knows nothing of suggestions.

use std::io::{self, IsTerminal, Stdin};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcgetwinsize,
    tcsetattr,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::pager::Window;
use super::walk::Key;
use crate::exit::Failure;

/// Most bytes that are taken for one key.
const KEY_BYTES_MAX: usize = 256;
const INTERRUPT: u8 = 0x03;
const END_OF_INPUT: u8 = 0x04;

/// Signals that this process hears instead of dying of them, so that nothing is left behind.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    quit: Signal,
    terminate: Signal,
    hang_up: Signal,
}

/// Something that wants this process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// By a key that goes to everything in the foreground.
    ByKey,
    /// By somebody else.
    ToEnd,
}

impl Signals {
    /// Hears them from now on.
    ///
    /// # Errors
    /// [`Failure`] when the system refuses.
    pub fn hear() -> Result<Self, Failure> {
        let hear = |kind| signal(kind).map_err(|error| Failure::internal(&error));
        Ok(Self {
            interrupt: hear(SignalKind::interrupt())?,
            quit: hear(SignalKind::quit())?,
            terminate: hear(SignalKind::terminate())?,
            hang_up: hear(SignalKind::hangup())?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::ByKey,
            _ = self.quit.recv() => Asked::ByKey,
            _ = self.terminate.recv() => Asked::ToEnd,
            _ = self.hang_up.recv() => Asked::ToEnd,
        }
    }
}

/// A terminal that gives keys.
#[derive(Debug)]
pub struct Terminal {
    stdin: AsyncFd<Stdin>,
    before: Termios,
}

/// Whether somebody sits there, and sees what is printed.
pub fn is_attended() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

impl Terminal {
    /// Takes the terminal on stdin.
    ///
    /// # Errors
    /// [`Failure`] when it is none, or does not take the mode.
    pub fn open() -> Result<Self, Failure> {
        let before = tcgetattr(io::stdin()).map_err(|errno| Failure::internal(&errno))?;
        let stdin = AsyncFd::with_interest(io::stdin(), Interest::READABLE);
        let terminal = Self { stdin: stdin.map_err(|error| Failure::internal(&error))?, before };
        terminal.take_keys()?;
        Ok(terminal)
    }

    /// Keys one at a time, without echo; Ctrl-C is a key.
    ///
    /// # Errors
    /// [`Failure`] when the terminal does not take the mode.
    pub fn take_keys(&self) -> Result<(), Failure> {
        let mut mode = self.before.clone();
        mode.local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN);
        mode.special_codes[SpecialCodeIndex::VMIN] = 1;
        mode.special_codes[SpecialCodeIndex::VTIME] = 0;
        self.set(&mode)
    }

    /// The mode that was found, for whoever is given the terminal meanwhile.
    ///
    /// # Errors
    /// As [`Terminal::take_keys`].
    pub fn give_back(&self) -> Result<(), Failure> {
        self.set(&self.before)
    }

    fn set(&self, mode: &Termios) -> Result<(), Failure> {
        tcsetattr(io::stdin(), OptionalActions::Now, mode).map_err(|errno| Failure::internal(&errno))
    }

    /// Forgets what was typed before something is shown that it cannot have been meant for.
    pub fn forget_typed(&self) {
        if let Err(errno) = tcflush(io::stdin(), QueueSelector::IFlush) {
            tracing::debug!(%errno, "typed keys not forgotten");
        }
    }

    /// The size of the window.
    pub fn window(&self) -> Window {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_row > 0 && size.ws_col > 0 => {
                Window { rows: usize::from(size.ws_row), columns: usize::from(size.ws_col) }
            }
            Ok(_) | Err(_) => Window::UNKNOWN,
        }
    }

    /// The next key.
    ///
    /// # Errors
    /// [`Failure`] when the terminal cannot be waited for.
    pub async fn key(&self, signals: &mut Signals) -> Result<Key, Failure> {
        tokio::select! {
            _ = signals.next() => Ok(Key::Interrupt),
            key = self.typed() => key,
        }
    }

    async fn typed(&self) -> Result<Key, Failure> {
        loop {
            let mut ready = self.stdin.readable().await.map_err(|error| Failure::internal(&error))?;
            // A descriptor that others share is not made non-blocking: it is asked before it is read.
            if !is_readable(ready.get_inner()) {
                ready.clear_ready();
                continue;
            }
            let mut bytes = [0_u8; KEY_BYTES_MAX];
            return match rustix::io::read(ready.get_inner(), &mut bytes) {
                Ok(length) => Ok(key_of(&bytes[..length])),
                Err(Errno::INTR) => continue,
                // The terminal is gone.
                Err(_) => Ok(Key::EndOfInput),
            };
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Err(failure) = self.give_back() {
            tracing::debug!(%failure, "terminal mode not given back");
        }
    }
}

fn is_readable(stdin: &Stdin) -> bool {
    let mut asked = [PollFd::new(stdin, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // What cannot be asked is read, and says by itself what is wrong.
    poll(&mut asked, Some(&now)).map_or(true, |ready| ready > 0)
}

/// What came in one piece, as a key. Only a character alone is one: arrows come as several, and so does a pasted text.
fn key_of(bytes: &[u8]) -> Key {
    match bytes {
        [] | [END_OF_INPUT] => Key::EndOfInput,
        [INTERRUPT, ..] => Key::Interrupt,
        [b'\r' | b'\n'] => Key::Return,
        [byte @ b' '..=b'~'] => Key::Char(char::from(*byte)),
        _ => Key::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_character_alone_is_a_letter() {
        for (bytes, key) in [
            (&b"a"[..], Key::Char('a')),
            (b" ", Key::Char(' ')),
            (b"\r", Key::Return),
            (b"\n", Key::Return),
            (b"", Key::EndOfInput),
            (b"\x04", Key::EndOfInput),
            (b"\x03", Key::Interrupt),
            (b"\x03aaa", Key::Interrupt),
            (b"\x1b[A", Key::Other),
            (b"\x1b", Key::Other),
            (b"aa", Key::Other),
            (b"a\n", Key::Other),
            ("\u{e9}".as_bytes(), Key::Other),
            (b"\x7f", Key::Other),
        ] {
            assert_eq!(key_of(bytes), key, "{bytes:?}");
        }
    }
}
