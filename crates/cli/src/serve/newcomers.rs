//! Declarations that become active while `serve` is at work and were never at work before: their consumers join it.
//!
//! What replaces a version is the affair of the consumer that works on it. This ends no role and takes none from its
//! holder.

use std::collections::BTreeSet;

use thought_contract::event::EventType;
use thought_store::row::Activity;
use thought_store::{News, Topics};

use super::{Ready, Roles, consume};
use crate::exit::Failure;
use crate::lock::{self, Taken};

/// What tells that something was activated; the process that activates is another one.
pub(super) fn news(ready: &Ready) -> News {
    ready.store.reader().news().about(Topics::event(EventType::DeclarationActivated))
}

/// Comes back when something may have been activated; never where nobody is left who could tell.
pub(super) async fn told(news: &mut News) {
    if news.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
    news.mark_unchanged();
}

/// Begins to consume what is active and is nobody's. What cannot be begun is told, and left to the next `serve`: the roles
/// that are at work go on.
pub(super) async fn join(ready: &mut Ready, roles: &mut Roles) {
    if let Err(failure) = look(ready, roles).await {
        let (code, message) = (failure.code, &failure.message);
        tracing::error!(target: "thought::serve", code, message, "what was activated is not looked at");
    }
}

async fn look(ready: &mut Ready, roles: &mut Roles) -> Result<(), Failure> {
    let rows = ready.store.reader().declarations().await?;
    let active = rows.into_iter().filter(|row| row.activity == Activity::Active).map(|row| row.id);
    let known: BTreeSet<String> = ready.agents.iter().cloned().collect();
    for agent in active.filter(|agent| !known.contains(agent)) {
        let role = lock::consumer(&agent);
        match lock::take(&ready.home, &role)? {
            Taken::Ours(lock) => ready.locks.push(lock),
            // As at the start: it is its holder's.
            Taken::Held => ready.held_elsewhere.push(role.clone()),
        }
        ready.agents.push(agent.clone());
        if ready.held_elsewhere.contains(&role) {
            tracing::info!(target: "thought::serve", agent, "what was activated is consumed by another process");
            continue;
        }
        consume(ready, &agent, roles.consumers_told.clone(), &mut roles.consumers).await?;
        tracing::info!(target: "thought::serve", agent, "what was activated is consumed from now on");
    }
    Ok(())
}
