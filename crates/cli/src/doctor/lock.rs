//! `doctor --clear-lock`: empties evidence in the root lock that no process can have written, after a person's yes.
//!
//! It never takes a lock from a live owner, and never touches a file that is not the lock's own.

use serde_json::json;
use thought_authority::lock::{self, LOCK_FILE, LockError, LockState, OwnEvidence};
use thought_authority::root::ContextRoot;

use crate::exit::{Exit, Failure, chain};
use crate::home::Home;
use crate::print::{self, Printer};
use crate::word::token;

/// Whether the yes stands on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Yes {
    /// `--yes`.
    Said,
    /// It is asked for.
    ToBeAsked,
}

/// `doctor --clear-lock`.
///
/// # Errors
/// [`Failure`]: a live owner (4); no yes, or a lock file that is none (3).
pub fn clear(home: &Home, printer: Printer, yes: Yes) -> Result<(), Failure> {
    let root = ContextRoot::open(&home.path, &home.config.context.root)
        .map_err(|error| Failure::refused(error.reason(), chain(&error)))?;
    let own = OwnEvidence::of_this_process(token()?).map_err(|error| Failure::internal(&error))?;
    let why = match lock::state(&root, &own).map_err(|error| failure(&error))? {
        LockState::Free => {
            let free = json!({"lock": "free"});
            return printer.either(&free, || vec!["the lock is free: there is nothing to clear".to_owned()]);
        }
        LockState::Held => return Err(failure(&LockError::Held)),
        LockState::Invalid { why } => why,
    };
    // Nobody is asked about what would be refused after the yes.
    if why != lock::EVIDENCE_MALFORMED {
        return Err(failure(&LockError::Invalid { why }));
    }
    let file = home.path.join(&home.config.context.root).join(LOCK_FILE);
    let question = format!(
        "{}: {why}. Nobody holds it now, but whoever wrote it may still write documents. Empty it?",
        file.display()
    );
    if yes == Yes::ToBeAsked && !printer.agrees(&question) {
        return Err(Failure::refused("not-confirmed", "clear the root lock: nobody said yes")
            .hint("look who wrote it, then answer yes, or add --yes"));
    }
    lock::clear(&root).map_err(|error| failure(&error))?;
    tracing::warn!(target: "thought::doctor", "the evidence of the root lock was emptied by hand");
    printer.either(&json!({"lock": "cleared"}), || vec![format!("cleared: {}", print::path(&file))])
}

fn failure(error: &LockError) -> Failure {
    let message = chain(error);
    match error {
        LockError::Held => Failure::new(Exit::Conflict, "lock-held", message)
            .hint("its owner is at work; wait for it, or end it"),
        LockError::Invalid { .. } => Failure::refused("lock-invalid", message)
            .hint(format!("{LOCK_FILE} is not the file that thought makes; remove it by hand")),
        LockError::CannotWrite(_) => Failure::new(Exit::Machine, "cannot-write", message)
            .hint("see that the disk that holds the home can be written"),
        _ => Failure::internal(error),
    }
}
