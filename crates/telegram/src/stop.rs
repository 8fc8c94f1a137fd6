//! How the loops of this room are told to end, and how long they pause after a failure.
//!
//! Owns no task and no clock: a loop asks before it begins anything, and every wait ends at once when the word comes.

use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;

/// The word to end. Every clone hears it; a sender that is gone says it too.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

/// Whether a loop goes on after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It goes on.
    GoOn,
    /// It ends.
    Stop,
}

impl Stop {
    /// Hears `true` as the word to end.
    pub const fn new(word: watch::Receiver<bool>) -> Self {
        Self(word)
    }

    /// Whether the word was said.
    pub fn is_said(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Waits for the word.
    pub async fn said(&self) {
        // An error means that nobody is left who could say it.
        match self.0.clone().wait_for(|said| *said).await {
            Ok(_) | Err(_) => {}
        }
    }

    /// Pauses, at most until the word is said.
    pub async fn pause(&self, pause: Duration) -> Next {
        match self.unless(tokio::time::sleep(pause)).await {
            Some(()) => Next::GoOn,
            None => Next::Stop,
        }
    }

    /// What the future comes to, or `None` when the word is said before; the future is dropped then.
    pub async fn unless<F: Future>(&self, future: F) -> Option<F::Output> {
        tokio::select! {
            biased;
            () = self.said() => None,
            output = future => Some(output),
        }
    }
}

/// Pauses that double from a first one up to a longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    first_ms: u64,
    longest_ms: u64,
    next_ms: u64,
}

impl Backoff {
    /// Begins with the first pause.
    pub const fn new(first_ms: u64, longest_ms: u64) -> Self {
        Self { first_ms, longest_ms, next_ms: first_ms }
    }

    /// The next pause.
    pub fn next_pause(&mut self) -> Duration {
        let pause = Duration::from_millis(self.next_ms);
        self.next_ms = (self.next_ms * 2).min(self.longest_ms);
        pause
    }

    /// Begins again: something went well.
    pub const fn reset(&mut self) {
        self.next_ms = self.first_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_again() {
        let mut backoff = Backoff::new(100, 350);
        let pauses: Vec<_> = (0..4).map(|_| backoff.next_pause().as_millis()).collect();
        assert_eq!(pauses, [100, 200, 350, 350]);
        backoff.reset();
        assert_eq!(backoff.next_pause().as_millis(), 100);
    }

    #[tokio::test]
    async fn the_word_ends_every_wait_and_so_does_a_sender_that_is_gone() {
        let (say, word) = watch::channel(false);
        let stop = Stop::new(word);
        assert!(!stop.is_said());
        assert_eq!(stop.pause(Duration::from_millis(1)).await, Next::GoOn);
        say.send(true).unwrap();
        assert!(stop.is_said());
        assert_eq!(stop.pause(Duration::from_secs(3_600)).await, Next::Stop);
        assert_eq!(stop.unless(std::future::pending::<()>()).await, None);

        let (say, word) = watch::channel(false);
        drop(say);
        let stop = Stop::new(word);
        assert!(stop.is_said());
        stop.said().await;
    }
}
