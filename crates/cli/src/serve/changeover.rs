//! The roles' side of a declaration that is changed while they work: following what is asked, being still, letting go.

use std::sync::Arc;

use thought_runtime::changeover::{self, Asked, INGRESS};
use thought_runtime::consumer::{Consumer, Ended, Parts, StopSignal};
use thought_runtime::port::TokioSleeper;
use thought_store::handle::Activator;
use thought_store::row::ChangeoverStage;
use thought_store::{Store, StoreError};
use thought_telegram::spool::FreezeSwitch;
use thought_telegram::stop::Stop;
use tokio::task::JoinSet;

use crate::exit::{Failure, chain};
use crate::home::Home;
use crate::lock::{self, ACTIVATE};

/// Follows what is asked of this process's roles. With `switch`, the ingress is its own, and is still when it is asked to.
pub(super) fn follow(
    (home, store): (&Arc<Home>, &Store),
    tasks: &mut JoinSet<Result<(), Failure>>,
    stop: &Stop,
    switch: Option<FreezeSwitch>,
) -> Asked {
    let (follower, asked) = changeover::follower(store.reader(), store.activator());
    let (home, told) = (home.clone(), stop.clone());
    tasks.spawn(async move {
        let is_alive = || lock::is_held(&home, ACTIVATE);
        follower.run(&TokioSleeper, is_alive, told.said()).await;
        Ok(())
    });
    if let Some(switch) = switch {
        let (asked, activator, stop) = (asked.clone(), store.activator(), stop.clone());
        tasks.spawn(async move {
            // An acknowledgment that the store does not take is made again at the next look.
            stop.unless(be_still(asked, activator, switch)).await;
            Ok(())
        });
    }
    asked
}

async fn be_still(mut asked: Asked, activator: Activator, mut switch: FreezeSwitch) {
    loop {
        switch.ask(asked.is_frozen());
        for row in asked.now().into_iter().filter(|row| row.stage == ChangeoverStage::Freeze) {
            switch.still().await;
            acknowledge(&activator, &row.declaration, &row.token, INGRESS).await;
        }
        asked.changed().await;
    }
}

/// Says that a role did what was asked. A change that is over by then wants no answer.
async fn acknowledge(activator: &Activator, declaration: &str, token: &str, role: &str) {
    match activator.acknowledge(declaration, token, role).await {
        Ok(()) | Err(StoreError::Precondition(_)) => {
            tracing::info!(target: "thought::serve", declaration, role, "a change of the declaration was answered");
        }
        Err(error) => {
            tracing::warn!(target: "thought::serve", declaration, role, error = %chain(&error), "not answered");
        }
    }
}

/// Carries on one declaration's consumer over its changes, until it is stopped.
///
/// # Errors
/// [`Failure`] when a version cannot be opened, or a consumer broke.
pub(super) async fn consume(
    first: Consumer,
    parts: impl Fn() -> Parts + Send,
    activator: Activator,
    (stop, mut asked): (StopSignal, Asked),
) -> Result<(), Failure> {
    let declaration = first.active().declaration.id().to_string();
    let mut consumer = first.asked(asked.clone());
    loop {
        match consumer.run().await.map_err(|error| Failure::internal(&error))? {
            Ended::Stopped => return Ok(()),
            Ended::Drained => {}
        }
        if let Some(row) = asked.change_of(&declaration) {
            acknowledge(&activator, &declaration, &row.token, &lock::consumer(&declaration)).await;
            while asked.change_of(&declaration).is_some_and(|now| now.token == row.token) {
                tokio::select! {
                    () = stop.stopping() => return Ok(()),
                    () = asked.changed() => {}
                }
            }
        }
        let next = Consumer::open(parts(), stop.clone()).await;
        let next = next.map_err(|error| Failure::refused("declaration", chain(&error)))?;
        tracing::info!(
            target: "thought::serve", declaration, version = next.active().declaration.version(), "goes on",
        );
        consumer = next.asked(asked.clone());
    }
}
