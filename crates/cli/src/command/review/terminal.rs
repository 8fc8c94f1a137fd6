//! The terminal of a review: keys one at a time, without echo, and its own mode again whatever happens.
//!
//! The only place that changes how a terminal behaves. It knows nothing of suggestions.

use std::io::{self, IsTerminal};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcgetwinsize,
    tcsetattr,
};
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
        let terminal = Self { before };
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
            key = typed() => key,
        }
    }
}

/// Waits for a key on a thread of its own, since a descriptor that others share is not made non-blocking.
///
/// Whoever stops waiting drops the guard, and the thread ends with the pipe.
async fn typed() -> Result<Key, Failure> {
    let (gone, guard) = pipe_with(PipeFlags::CLOEXEC).map_err(|errno| Failure::internal(&errno))?;
    let key = tokio::task::spawn_blocking(move || wait_and_read(&gone)).await;
    drop(guard);
    key.map_err(|error| Failure::internal(&error))
}

/// The next key of stdin; the end of input when the terminal, or whoever asked, is gone.
fn wait_and_read(gone: &OwnedFd) -> Key {
    let stdin = io::stdin();
    loop {
        let mut asked = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(gone, PollFlags::IN)];
        match poll(&mut asked, None) {
            Ok(_) if !asked[1].revents().is_empty() => return Key::EndOfInput,
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return Key::EndOfInput,
        }
        let mut bytes = [0_u8; KEY_BYTES_MAX];
        match rustix::io::read(&stdin, &mut bytes) {
            Ok(length) => return key_of(&bytes[..length]),
            Err(Errno::INTR) => {}
            Err(_) => return Key::EndOfInput,
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
