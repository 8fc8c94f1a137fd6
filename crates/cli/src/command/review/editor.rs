//! The person's editor over a private copy of a suggestion's text, read once and removed whatever happens.
//!
//! The copy lies in a folder of its own in `run/`, for the owner alone, so that what an editor keeps beside a file goes with
//! it. The folder is held by a lock as long as its review lives; what a killed one left is swept by the next. Content is in
//! the file and nowhere else: no name, argument or variable holds any.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use thought_authority::replacement::read_replacement;
use thought_protocol::Sensitive;

use super::terminal::{Asked, Signals};
use crate::env;
use crate::exit::{Exit, Failure};
use crate::home::{self, Home};
use crate::word::token;

/// Begins the name of every such folder.
const FOLDER_PREFIX: &str = "review-";
/// The copy.
const FILE: &str = "suggestion.md";
/// The shell that takes an editor's name apart, as everybody's `$EDITOR` expects.
const SHELL: &str = "/bin/sh";
/// Where nothing is named.
const FALLBACK: &str = "vi";

/// What came of editing.
#[derive(Debug, PartialEq, Eq)]
pub enum Edited {
    /// Another text.
    Text(Sensitive<String>),
    /// The same text.
    Unchanged,
    /// Nothing that could be decided with, and why.
    Nothing(&'static str),
    /// The review was asked to end meanwhile.
    Ended,
}

/// A folder of its own, gone with its guard.
#[derive(Debug)]
struct Private {
    path: PathBuf,
    /// Held as long as the folder is in use.
    _lock: File,
}

impl Private {
    fn make(home: &Home) -> Result<Self, Failure> {
        let path = home.run_folder()?.join(format!("{FOLDER_PREFIX}{}", token()?));
        home::make_folder(&path)?;
        let lock = File::open(&path).and_then(|folder| {
            flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
            Ok(folder)
        });
        match lock {
            Ok(lock) => Ok(Self { path, _lock: lock }),
            Err(error) => {
                remove(&path);
                Err(Failure::new(
                    Exit::Machine,
                    "cannot-write",
                    format!("hold a folder of run: {}", error.kind()),
                ))
            }
        }
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_dir_all(path) {
        tracing::warn!(folder = %path.display(), kind = %error.kind(), "folder of a review not removed");
    }
}

/// Removes what killed reviews left; a folder that a living one holds stays.
///
/// # Errors
/// [`Failure`] when `run/` is not the owner's.
pub fn sweep(home: &Home) -> Result<(), Failure> {
    let folder = home.run_folder()?;
    let entries = std::fs::read_dir(&folder).map_err(|error| Failure::internal(&error))?;
    for entry in entries {
        let entry = entry.map_err(|error| Failure::internal(&error))?;
        let is_ours = entry.file_name().as_encoded_bytes().starts_with(FOLDER_PREFIX.as_bytes());
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_ours || !is_folder {
            continue;
        }
        let path = entry.path();
        let left = File::open(&path)
            .is_ok_and(|folder| flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok());
        if left {
            remove(&path);
        }
    }
    Ok(())
}

/// Lets the person edit a text. The terminal is in its own mode already.
///
/// # Errors
/// [`Failure`] when the copy cannot be made, or no editor be started.
pub async fn edit(home: &Home, signals: &mut Signals, text: &str, bytes_max: u64) -> Result<Edited, Failure> {
    let private = Private::make(home)?;
    let file = private.path.join(FILE);
    let offered = whole_lines(text);
    home::write_new(&file, offered.as_bytes())?;
    let child = start(&file)?;
    let Some(status) = wait(child, signals).await? else { return Ok(Edited::Ended) };
    if !status.success() {
        return Ok(Edited::Nothing("the editor ended with a failure"));
    }
    let bytes = match read_replacement(&file, bytes_max.saturating_add(1)) {
        Ok(bytes) => bytes,
        Err(error) => {
            tracing::debug!(%error, "edited text not taken");
            return Ok(Edited::Nothing("the edited file is not there, is no regular file, or is too large"));
        }
    };
    Ok(match String::from_utf8(bytes.into_inner()) {
        Ok(edited) => outcome(text, &edited),
        Err(_content_dark) => Edited::Nothing("the edited text is not UTF-8"),
    })
}

/// A text as an editor wants it: its last line is ended.
fn whole_lines(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

/// What an edited file says. The line end that was added for the editor, or by it, is none of the person's.
fn outcome(before: &str, edited: &str) -> Edited {
    let own = match edited.strip_suffix('\n') {
        Some(without) if !before.ends_with('\n') => without,
        _ => edited,
    };
    if own.trim().is_empty() {
        Edited::Nothing("the edited text is empty")
    } else if own == before || edited == before {
        Edited::Unchanged
    } else {
        Edited::Text(Sensitive::new(own.to_owned()))
    }
}

fn start(file: &Path) -> Result<Child, Failure> {
    let editor = env::text("VISUAL").or_else(|| env::text("EDITOR")).unwrap_or_else(|| FALLBACK.to_owned());
    #[expect(clippy::disallowed_methods, reason = "the person's own editor, at the person's own terminal")]
    let mut command = Command::new(SHELL);
    command.arg("-c").arg(format!("{editor} \"$1\"")).arg("thought-review").arg(file);
    command.spawn().map_err(|error| {
        Failure::new(Exit::Machine, "no-editor", format!("start the editor: {}", error.kind()))
            .hint("set VISUAL or EDITOR to an editor that is installed")
    })
}

/// How the editor ended; none when this process was asked to end first, and then the editor was as well.
async fn wait(mut child: Child, signals: &mut Signals) -> Result<Option<ExitStatus>, Failure> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let mut ended = tokio::task::spawn_blocking(move || child.wait());
    let mut asked_to_end = false;
    loop {
        tokio::select! {
            status = &mut ended => {
                let status = status.map_err(|error| Failure::internal(&error))?;
                let status = status.map_err(|error| Failure::internal(&error))?;
                return Ok((!asked_to_end).then_some(status));
            }
            asked = signals.next() => {
                // An interrupt by key is the editor's to understand.
                if asked == Asked::ToEnd {
                    asked_to_end = true;
                    end(pid);
                }
            }
        }
    }
}

fn end(pid: Option<Pid>) {
    let Some(pid) = pid else { return };
    if let Err(errno) = kill_process(pid, Signal::TERM) {
        tracing::debug!(%errno, "editor not ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(own: &str) -> Edited {
        Edited::Text(Sensitive::new(own.to_owned()))
    }

    #[test]
    fn the_line_end_that_editors_add_is_no_change() {
        for (before, edited, expected) in [
            ("a", "a\n", Edited::Unchanged),
            ("a", "a", Edited::Unchanged),
            ("a\n", "a\n", Edited::Unchanged),
            ("a", "b\n", text("b")),
            ("a", "a\n\n", text("a\n")),
            ("a\n", "b\n", text("b\n")),
            ("a\n", "b", text("b")),
            ("a\r\n", "a\r\n", Edited::Unchanged),
            ("a", " a\n", text(" a")),
        ] {
            assert_eq!(outcome(before, edited), expected, "{before:?} {edited:?}");
        }
        for nothing in ["", "\n", " \n\t\n"] {
            assert!(matches!(outcome("a", nothing), Edited::Nothing(_)), "{nothing:?}");
        }
    }
}
