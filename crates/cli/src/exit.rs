//! Failures as a person and a script see them: one exit code, one stable code word, one sentence, and a hint where
//! there is something to do. The one place that knows exit codes.

use std::fmt;

/// The exit codes of the binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Something that should not happen.
    Internal = 1,
    /// The command line is wrong.
    Usage = 2,
    /// Validation, authority, privacy gate or configuration.
    Refused = 3,
    /// Other content under the same identity, or a lock that is held.
    Conflict = 4,
    /// No such thing.
    NotFound = 5,
    /// The decision stands, and what should follow from it failed.
    Decided = 6,
    /// A wait ran out.
    WaitRanOut = 7,
    /// This machine cannot do it.
    Machine = 8,
    /// The run that was waited for ended without an answer.
    NoAnswer = 9,
}

impl Exit {
    /// The exit of a code that another process of this binary gave; success and unknown codes are none.
    pub fn from_code(code: u8) -> Option<Self> {
        let all = [
            Self::Internal,
            Self::Usage,
            Self::Refused,
            Self::Conflict,
            Self::NotFound,
            Self::Decided,
            Self::WaitRanOut,
            Self::Machine,
            Self::NoAnswer,
        ];
        all.into_iter().find(|exit| *exit as u8 == code)
    }
}

/// A command that did not come about.
#[derive(Debug)]
pub struct Failure {
    /// What a script tests for.
    pub exit: Exit,
    /// Stable kebab-case word.
    pub code: &'static str,
    /// What happened, content-dark.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Self { exit, code, message: message.into(), hint: None }
    }

    /// A refusal: validation, authority or configuration.
    pub fn refused(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Exit::Refused, code, message)
    }

    /// Something that is not there.
    pub fn not_found(what: &str, id: &str) -> Self {
        Self::new(Exit::NotFound, "not-found", format!("there is no {what} {id}"))
    }

    /// The same failure with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Something that should not happen, with the chain of causes (content-dark by construction of every error).
    pub fn internal(error: &(dyn std::error::Error + 'static)) -> Self {
        Self::new(Exit::Internal, "internal", chain(error))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// An error and its causes on one line.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

impl From<thought_store::StoreError> for Failure {
    fn from(error: thought_store::StoreError) -> Self {
        use thought_store::StoreError as E;
        let message = chain(&error);
        match &error {
            E::Conflict { .. } => Self::new(Exit::Conflict, "conflict", message),
            E::Precondition(_) => Self::new(Exit::Conflict, "changed-meanwhile", message)
                .hint("look at its state again; another process was first"),
            E::NoSpace => Self::new(Exit::Machine, "no-space", message)
                .hint("free some space on the disk that holds the home, then run the command again"),
            E::Newer { .. } => Self::refused("store-newer", message)
                .hint("this home was used by a newer thought; install that version"),
            E::Unreachable { .. } => Self::new(Exit::Machine, "store-unreachable", message)
                .hint("see that the home lies on a disk that can be written, and what thought doctor says"),
            E::Role { .. } | E::Corrupt { .. } | E::Engine { .. } => {
                Self::new(Exit::Internal, "store", message)
            }
        }
    }
}
