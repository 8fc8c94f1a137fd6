//! What `doctor` says of the context root: its documents, who may open its files, its lock, what its file system can do,
//! and what was left half-done.

use std::os::unix::fs::PermissionsExt;

use thought_authority::lock::{self, LockError, OwnEvidence};
use thought_authority::materialize::{Exchange, TEMPORARY_PREFIX, TEMPORARY_SUFFIX, can_exchange};
use thought_authority::root::ContextRoot;
use thought_authority::walk;
use thought_store::handle::Reader;
use thought_store::row::ProposalState;

use super::{Report, State};
use crate::exit::{Failure, chain};
use crate::home::{self, Home};
use crate::print::quoted;
use crate::word::{LOCK_HINT, token, walk_hint};

/// The documents that a home must have.
const DOCUMENTS: [&str; 2] = ["identity.md", "memory.md"];
/// Permissions of anybody but the owner.
const OTHERS: u32 = 0o077;

/// Looks at the documents, the modes, the lock and the file system.
pub(super) fn check(home: &Home, report: &mut Report) {
    let most = usize::try_from(home.config.context.max_file_bytes).unwrap_or(usize::MAX);
    for file in DOCUMENTS {
        let path = home.config.context.root.join(file);
        match home::read_below(&home.path, &path, most) {
            Ok(bytes) => match thought_contract::frontmatter::read(&bytes) {
                Ok(_) => report.add("context", State::Ok, format!("{file}, {} bytes", bytes.len()), None),
                Err(error) => {
                    let text = format!("{file} is no memory target: {}", error.reason());
                    let hint = Some("it begins with --- and a line id: …, then ---".to_owned());
                    report.add("context", State::Warn, text, hint);
                }
            },
            Err(failure) => report.failure("context", failure),
        }
    }
    check_modes(home, report);
    if let Err(failure) = check_root(home, report) {
        report.failure("context", failure);
    }
}

/// Files that somebody else could open, if the home's own mode did not keep them out.
fn check_modes(home: &Home, report: &mut Report) {
    let documents = DOCUMENTS.map(|file| home.config.context.root.join(file));
    let own = [home::CONFIGURATION, "thought.db"].map(std::path::PathBuf::from);
    for relative in documents.iter().chain(&own) {
        let Ok(found) = home.path.join(relative).symlink_metadata() else { continue };
        let mode = found.permissions().mode() & 0o7777;
        if found.is_file() && mode & OTHERS != 0 {
            let text = format!("{} has the mode {mode:04o}, and 0600 would do", relative.display());
            let hint = Some(format!("chmod 600 {}", quoted(&home.path.join(relative))));
            report.add("modes", State::Warn, text, hint);
        }
    }
}

/// The lock of the root, and under it whether two names can be exchanged. It leaves nothing behind.
fn check_root(home: &Home, report: &mut Report) -> Result<(), Failure> {
    let root = ContextRoot::open(&home.path, &home.config.context.root)
        .map_err(|error| Failure::refused(error.reason(), chain(&error)))?;
    let own = OwnEvidence::of_this_process(token()?).map_err(|error| Failure::internal(&error))?;
    let guard = match lock::acquire(&root, &own, std::time::Duration::ZERO) {
        Ok(guard) => guard,
        Err(LockError::Held) => {
            report.add("lock", State::Ok, "held by a process that is at work", None);
            return Ok(());
        }
        Err(error @ LockError::Invalid { .. }) => {
            report.add("lock", State::Fail, chain(&error), Some(LOCK_HINT.to_owned()));
            return Ok(());
        }
        Err(error) => {
            report.add("lock", State::Fail, chain(&error), None);
            return Ok(());
        }
    };
    report.add("lock", State::Ok, "free", None);
    if let Err(error) = walk::listable(guard.folder()) {
        report.add("context", State::Fail, chain(&error), Some(walk_hint(&error).to_owned()));
    }
    match can_exchange(&guard) {
        Ok(Exchange::Able) => report.add("exchange", State::Ok, "the file system exchanges two names", None),
        Ok(Exchange::Unable) => {
            let text =
                "the file system cannot exchange two names: a document is looked at twice, then renamed over";
            let hint = "close memory.md in your editor before you accept a change, or put the home on another file \
                        system (ext4, xfs, btrfs, tmpfs)";
            report.add("exchange", State::Warn, text, Some(hint.to_owned()));
        }
        Err(errno) => {
            let text = format!("the file system does not say whether it exchanges two names: {errno}");
            report.add("exchange", State::Warn, text, None);
        }
    }
    Ok(())
}

/// What waits for somebody: decisions that nothing followed from, and writes that were cut.
pub(super) async fn check_waiting(home: &Home, reader: &Reader, report: &mut Report) {
    match reader.proposal_counts().await {
        Ok(counts) => match counts.of(ProposalState::Decided) {
            0 => report.add("decisions", State::Ok, "none waits", None),
            count => {
                let text = format!("{count} decided, and nothing followed yet");
                let hint = Some("thought proposal-project, or leave it to thought serve".to_owned());
                report.add("decisions", State::Warn, text, hint);
            }
        },
        Err(error) => report.failure("decisions", error.into()),
    }
    // A root that cannot be listed has been told of above.
    let Ok(entries) = std::fs::read_dir(home.path.join(&home.config.context.root)) else { return };
    let is_temporary = |name: &str| name.starts_with(TEMPORARY_PREFIX) && name.ends_with(TEMPORARY_SUFFIX);
    let left = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_temporary)).count();
    if left > 0 {
        let text = format!("{left} temporary files of writes that were cut lie in the context root");
        let hint = Some("the next write looks at each and clears it: thought proposal-project".to_owned());
        report.add("decisions", State::Warn, text, hint);
    }
}
