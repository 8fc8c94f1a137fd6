//! `delivery-retry`, `delivery-confirm`: a person's word on a delivery of which nobody can tell whether it arrived.

use serde_json::json;
use thought_protocol::EventId;
use thought_store::Store;
use thought_store::row::DeliveryState;
use thought_telegram::dispatcher::{DeliverError, Dispatcher, OperatorError};
use thought_telegram::stop::Stop;
use tokio::sync::watch;

use super::resolve::resolve;
use crate::channel;
use crate::claim::Claim;
use crate::exit::{Exit, Failure, chain};
use crate::home::Home;
use crate::lock;
use crate::print::Printer;

/// What a person says of an uncertain delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// Send it again.
    Again,
    /// It arrived: this operator, or the single configured one, saw it.
    Seen {
        /// `--actor`.
        actor: Option<String>,
    },
}

/// Says the word, and tells where the delivery stands then.
///
/// # Errors
/// [`Failure`]: no such delivery (5), one that is not uncertain (3), one that somebody else moves (4), or one that did
/// not arrive after all (3, and 8 where it is uncertain again).
pub async fn say(home: &Home, store: &Store, printer: Printer, id: &str, word: Word) -> Result<(), Failure> {
    let telegram = channel::configured(home)?;
    let cause: EventId = resolve(&store.reader(), id, "evt", "delivery").await?;
    let operator = match &word {
        Word::Again => None,
        Word::Seen { actor } => Some(operator(home, actor.as_deref())?),
    };
    let client = channel::client(home)?;
    let Some(mut claim) = Claim::take(home, &cause)? else {
        return Err(Failure::new(
            Exit::Conflict,
            "claimed",
            format!("another command is at work on {cause}"),
        )
        .hint("look at thought status again"));
    };
    let is_abandoned = abandonment(home, &claim);
    let dispatcher = channel::dispatcher(home, telegram, store, client).asking(is_abandoned.clone());
    let stands = dispatcher.stands(&cause).await.map_err(|error| refusal(error, &cause))?;
    // What is uncertain is moved by a person's word alone, and so by this process alone.
    if stands == DeliveryState::Uncertain || is_abandoned() {
        claim.mark()?;
    }
    let outcome = carry_out(&dispatcher, &cause, operator.as_deref()).await;
    if is_over(&outcome) {
        claim.settle();
    }
    let state = outcome.map_err(|error| refusal(error, &cause))?;
    let status = status_of(state);
    printer.either(&json!({"delivery": cause, "status": status}), || vec![format!("{cause} is {status}")])?;
    match state {
        DeliveryState::Delivered => Ok(()),
        DeliveryState::Sending => {
            Err(Failure::new(Exit::Machine, "not-sent", "the delivery still waits to be sent")
                .hint("say it again, or the next thought serve goes on with it"))
        }
        DeliveryState::Uncertain => {
            Err(Failure::new(Exit::Machine, "uncertain", "nobody can tell whether it arrived this time"))
        }
        DeliveryState::Refused => {
            Err(Failure::refused("undelivered", "it was not delivered, and will not be")
                .hint("thought status says why"))
        }
    }
}

/// Whether whoever began to send what is claimed is gone. One that lives holds the claim, or dispatches: a left claim that
/// still stands is of a delivery that no dispatcher took over, and where none was left, nobody but a dispatcher can be at it.
fn abandonment(home: &Home, claim: &Claim) -> impl Fn() -> bool + Clone + Send + Sync + use<> {
    let (home, standing) = (home.clone(), claim.was_left().then(|| claim.standing()));
    move || match &standing {
        Some(standing) => standing.is_there(),
        None => !lock::is_held(&home, lock::DISPATCH),
    }
}

/// Whether nothing is left in the middle: else the claim stays, and the next word, or the next dispatcher, goes on.
fn is_over(outcome: &Result<DeliveryState, OperatorError>) -> bool {
    match outcome {
        Ok(state) | Err(OperatorError::NotUncertain { state }) => !matches!(state, DeliveryState::Sending),
        Err(OperatorError::Deliver(DeliverError::Elsewhere | DeliverError::CutOtherwise)) => true,
        Err(error) => matches!(error, OperatorError::NotFound),
    }
}

/// Where a delivery stands, as `status` calls it.
pub const fn status_of(state: DeliveryState) -> &'static str {
    match state {
        DeliveryState::Sending => "sending",
        DeliveryState::Delivered => "delivered",
        DeliveryState::Uncertain => "uncertain",
        DeliveryState::Refused => "undelivered",
    }
}

fn operator(home: &Home, actor: Option<&str>) -> Result<String, Failure> {
    let names = &home.config.operator.names;
    let chosen = match (actor, names.as_slice()) {
        (Some(actor), names) => names.iter().find(|name| *name == actor).ok_or("is none of the operators"),
        (None, [single]) => Ok(single),
        (None, _) => Err("has to be named: several operators are configured"),
    };
    chosen.cloned().map_err(|problem| {
        Failure::refused("actor", format!("who saw it {problem}"))
            .hint("name one of [operator] names: --actor NAME")
    })
}

/// Does it; a signal ends a pause that Telegram asked for, and no send that was begun.
async fn carry_out(
    dispatcher: &Dispatcher,
    cause: &EventId,
    operator: Option<&str>,
) -> Result<DeliveryState, OperatorError> {
    let (say, word) = watch::channel(false);
    let stop = Stop::new(word);
    let work = async {
        match operator {
            None => dispatcher.retry(cause, &stop).await,
            Some(operator) => dispatcher.confirm(cause, operator, &stop).await,
        }
    };
    tokio::pin!(work);
    tokio::select! {
        state = &mut work => state,
        // A signal that cannot be listened for ends the process by itself.
        Ok(()) = tokio::signal::ctrl_c() => {
            say.send_replace(true);
            work.await
        }
    }
}

fn refusal(error: OperatorError, cause: &EventId) -> Failure {
    match error {
        OperatorError::NotFound => Failure::not_found("delivery", cause.as_str())
            .hint("deliveries are named by their output event: thought status"),
        OperatorError::NotUncertain { state } => {
            let status = status_of(state);
            Failure::refused(
                "not-uncertain",
                format!("{cause} is {status}: only an uncertain delivery takes a word"),
            )
            .hint("thought status tells what waits, and why")
        }
        OperatorError::Deliver(DeliverError::Elsewhere) => {
            Failure::new(Exit::Conflict, "changed-meanwhile", chain(&error))
                .hint("look at thought status again; another process goes on with it")
        }
        OperatorError::Deliver(DeliverError::CutOtherwise) => {
            Failure::refused("cut-otherwise", chain(&error)).hint("another version of thought began it")
        }
        OperatorError::Store(error) | OperatorError::Deliver(DeliverError::Store(error)) => {
            Failure::from(error)
        }
        other => Failure::internal(&other),
    }
}
