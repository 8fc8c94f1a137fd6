//! `consume`: one declaration's consumer as a process of its own. A `serve` on the same home leaves that consumer to it,
//! and runs the others.

use std::sync::Arc;

use serde_json::json;
use thought_contract::declaration::agent_id;
use thought_runtime::consumer;
use thought_telegram::stop::Stop;
use tokio::task::JoinSet;

use super::{Ready, Signals, documents, hardening};
use crate::blobs::HomeBlobs;
use crate::compose::open_store;
use crate::exit::{Exit, Failure};
use crate::home::Home;
use crate::jail::{self, Jailer};
use crate::lock::{self, RoleLock, Taken};
use crate::model::Models;
use crate::print::Printer;

/// `consume`.
///
/// # Errors
/// [`Failure`]: no agent id (3), the consumer is at work elsewhere (4), not installed (5), no jail or store (8).
pub fn run(home: Home, printer: Printer, agent: &str) -> Result<(), Failure> {
    hardening::apply()?;
    super::runtime()?.block_on(async {
        let began = tokio::time::Instant::now();
        let (ready, version) = prepare(home, printer, agent).await?;
        let mut signals = Signals::listen()?;
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let value = json!({
            "ready": true, "home": ready.home.path, "agent": agent, "version": version,
            "sandbox": jail::tier(ready.home.config.sandbox.mode).name(), "milliseconds": took_ms,
        });
        printer.either(&value, || vec![format!("ready in {took_ms} ms · {agent} v{version}")])?;
        let (stop, signal) = consumer::stop_switch();
        let mut tasks = JoinSet::new();
        let (stop_following, told) = tokio::sync::watch::channel(false);
        let mut following = JoinSet::new();
        let told = Stop::new(told);
        let asked = super::changeover::follow((&ready.home, &ready.store), &mut following, &told, None);
        super::consume(&ready, agent, (signal, asked), &mut tasks).await?;
        let ended = tokio::select! {
            () = signals.received() => Ok(()),
            joined = tasks.join_next() => Err(super::ended_by_itself(joined)),
        };
        stop.stop();
        super::end("consumer", &mut tasks).await;
        stop_following.send_replace(true);
        super::end("follower", &mut following).await;
        tracing::info!(target: "thought::serve", agent, locks = ready.locks.len(), "stopped");
        ended
    })
}

/// Takes what the consumer needs, in the order in which it is cheap to fail.
async fn prepare(home: Home, printer: Printer, agent: &str) -> Result<(Ready, u32), Failure> {
    // The id becomes part of a file's name.
    if agent_id(agent).is_err() {
        return Err(Failure::refused("agent-id", "--agent wants the id of a declaration"));
    }
    let locks = vec![role_lock(&home, agent)?];
    let store = open_store(&home)?;
    let Some(row) = store.reader().declaration(agent.to_owned()).await? else {
        return Err(Failure::new(Exit::NotFound, "not-installed", format!("{agent} is not installed here"))
            .hint("thought serve installs it, or thought declaration-activate FILE"));
    };
    let jail = Arc::new(Jailer::start(jail::launcher(jail::tier(home.config.sandbox.mode))?)?);
    let models = Arc::new(Models::open(&home)?);
    for problem in models.problems() {
        printer.remark(&format!("{problem}: its runs wait"));
    }
    let seal = jail.warm_up()?;
    let documents = Arc::new(documents::ScannedDocuments::open(&home, &store)?);
    documents.first_scan(printer).await?;
    let blobs = HomeBlobs::open(&home)?;
    let ready = Ready {
        home: Arc::new(home),
        store,
        seal,
        jail,
        models,
        documents,
        blobs,
        agents: vec![agent.to_owned()],
        locks,
        held_elsewhere: Vec::new(),
        sockets: Vec::new(),
    };
    Ok((ready, row.version))
}

fn role_lock(home: &Home, agent: &str) -> Result<RoleLock, Failure> {
    match lock::patiently(|| lock::take(home, &lock::consumer(agent)))? {
        Taken::Ours(lock) => Ok(lock),
        Taken::Held => {
            let message = format!("another process consumes {agent} on {}", home.path.display());
            Err(Failure::new(Exit::Conflict, "role-held", message)
                .hint("stop it first: it is a thought serve or a thought consume"))
        }
    }
}
