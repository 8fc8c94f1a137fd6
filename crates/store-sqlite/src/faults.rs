//! Faults on purpose: tests decide what happens at every commit boundary.
//!
//! Production hands no faults in; nothing here runs then.

/// What becomes of a commit boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing happens.
    Proceed,
    /// Input or output fails.
    Fail,
    /// No space is left.
    NoSpace,
}

/// Decides at every commit boundary. `transaction` counts the durable transactions of this store from 1; an
/// implementation may also end the process or block, and whatever was acknowledged by then is on disk.
pub trait Faults: Send + Sync + 'static {
    /// Before the transaction is made durable. Anything but [`Verdict::Proceed`] undoes it.
    fn before_commit(&self, transaction: u64) -> Verdict {
        let _ = transaction;
        Verdict::Proceed
    }

    /// After it is durable and before anyone is told. Anything but [`Verdict::Proceed`] is what its commands are told:
    /// they happened, and their callers cannot know.
    fn after_commit(&self, transaction: u64) -> Verdict {
        let _ = transaction;
        Verdict::Proceed
    }
}
