//! The projectors at work: at the start everything that is left, then each decision and command as it comes.
//!
//! What fails for a passing reason is tried once a process: a person, or the next start, tries it again. A projector needs
//! no lock of its own; whoever else projects comes to the same.

use std::collections::HashSet;

use thought_contract::event::EventType;
use thought_protocol::EventId;
use thought_store::handle::Reader;
use thought_store::{StoreError, Topics};

use crate::correct::Corrections;
use crate::limits::LOCKED_RETRY_PAUSE;
use crate::project::{Projector, Status};

/// Whether something waits for the root lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Nothing,
    ForTheLock,
}

/// Projects until `stop` is ready. An attempt under way is finished first.
pub async fn follow(
    reader: &Reader,
    projector: &Projector,
    corrections: &Corrections,
    stop: impl Future<Output = ()>,
) {
    let about = Topics::PROPOSALS.and(Topics::event(EventType::TelegramCommand));
    let mut news = reader.news().about(about);
    let mut tried = HashSet::new();
    tokio::pin!(stop);
    loop {
        // Seen before the look, so that what comes in between wakes the wait.
        news.mark_unchanged();
        if let Err(error) = corrections.catch_up().await {
            tracing::warn!(%error, "corrections not looked at");
        }
        let waiting = match take_up(projector, &mut tried).await {
            Ok(waiting) => waiting,
            Err(error) => {
                tracing::warn!(%error, "decisions not looked at");
                Waiting::ForTheLock
            }
        };
        let again = async {
            match waiting {
                Waiting::ForTheLock => tokio::time::sleep(LOCKED_RETRY_PAUSE).await,
                Waiting::Nothing => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = &mut stop => return,
            changed = news.changed() => if changed.is_err() { return },
            () = again => {}
        }
    }
}

async fn take_up(projector: &Projector, tried: &mut HashSet<EventId>) -> Result<Waiting, StoreError> {
    let left = projector.left().await?;
    // What is resolved needs no memory.
    tried.retain(|proposal| left.contains(proposal));
    let mut waiting = Waiting::Nothing;
    for proposal in left {
        if tried.contains(&proposal) {
            continue;
        }
        match projector.project(&proposal).await {
            Ok(outcome) if matches!(outcome.status, Status::Pending(_)) => waiting = Waiting::ForTheLock,
            Ok(_) => {
                tried.insert(proposal);
            }
            Err(error) => {
                tracing::warn!(proposal = %proposal, %error, "decision not projected");
                tried.insert(proposal);
            }
        }
    }
    Ok(waiting)
}
