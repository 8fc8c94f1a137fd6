//! What one process may do in a step. Each step ends by itself, in virtual time; a process that dies in it does not come
//! back from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thought_authority::decide::Submission;
use thought_authority::follow::follow;
use thought_authority::project::{Scope, Status};
use thought_contract::payload::{Disposition, Surface};
use thought_contract::run::RunState;
use thought_protocol::{Sensitive, Sha256Hex};
use thought_runtime::changeover::{self, Readiness, RoleState, Roles};
use thought_runtime::consumer::{Consumer, Ended, stop_switch};
use thought_runtime::mail::{Desk as MailDesk, Errand, Outgoing, Response};
use thought_runtime::operator;
use thought_runtime::port::TokioSleeper;
use thought_store::BoxFuture;
use thought_store::row::{DeliveryState, ProposalFilter, ProposalState, RunFilter};
use thought_telegram::dispatcher::{Reminder, ReminderPorts};
use thought_telegram::ids::ChatId;
use thought_telegram::spool::Freeze;
use thought_telegram::stop::Stop;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::dice::Dice;
use crate::world::{AGENT, CHATS, DECLARATIONS, Life, TELEGRAM, package, source};

/// What a step came to.
pub(crate) type Done = Result<(), String>;

/// Steps of a process, by name.
pub(crate) const NAMES: [&str; 17] = [
    "ingress",
    "consume",
    "dispatch",
    "everything",
    "decide",
    "decide-again",
    "project",
    "follow",
    "correct",
    "mail",
    "scan",
    "activate",
    "activate-at-work",
    "repropose",
    "retry-run",
    "abandon-run",
    "settle-delivery",
];

/// Roles at work, and the word that ends them.
struct Crew {
    say: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
    consumers: Vec<JoinHandle<Result<Ended, thought_runtime::consumer::Error>>>,
    stop: thought_runtime::consumer::StopSwitch,
    signal: thought_runtime::consumer::StopSignal,
}

impl Crew {
    fn new() -> Self {
        let (say, _) = watch::channel(false);
        let (stop, signal) = stop_switch();
        Self { say, tasks: Vec::new(), consumers: Vec::new(), stop, signal }
    }

    fn word(&self) -> Stop {
        Stop::new(self.say.subscribe())
    }

    fn spawn(&mut self, role: impl Future<Output = ()> + Send + 'static) {
        self.tasks.push(tokio::spawn(role));
    }

    async fn consume(&mut self, life: &Life, declaration: &str) -> Done {
        let opened = Consumer::open(life.parts(declaration), self.signal.clone()).await;
        let consumer = opened.map_err(|error| error.to_string())?;
        self.consumers.push(tokio::spawn(consumer.run()));
        Ok(())
    }

    /// Lets them work for so long, and ends them in good order.
    async fn work(self, seconds: u64) -> Done {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        self.stop.stop();
        let mut failed = None;
        for consumer in self.consumers {
            match consumer.await.map_err(|_broke| "a consumer broke".to_owned())? {
                Ok(_) => {}
                Err(thought_runtime::consumer::Error::Broken(_)) => return Err("!a run broke".to_owned()),
                // What it could not put away at its end, the next one does.
                Err(error) => failed = Some(error.to_string()),
            }
        }
        self.say.send_replace(true);
        for task in self.tasks {
            task.await.map_err(|_broke| "!a role broke".to_owned())?;
        }
        failed.map_or(Ok(()), Err)
    }
}

/// How many things of a kind were made in a world: each has a name of its own.
#[derive(Default)]
pub(crate) struct Numbers {
    pub(crate) versions: [AtomicU64; 2],
    mails: AtomicU64,
    edits: AtomicU64,
    tokens: AtomicU64,
    pub(crate) resent: AtomicU64,
}

/// Carries out a step.
pub(crate) async fn carry_out(life: &Life, name: &str, dice: &mut Dice, numbers: &Numbers) -> Done {
    match name {
        "ingress" => ingress(life).await,
        "consume" => consume(life, dice).await,
        "dispatch" => dispatch(life, 90).await,
        "everything" => everything(life, 200).await,
        "decide" => decide(life, dice, numbers).await,
        "decide-again" => decide_again(life, dice).await,
        "project" => project(life).await,
        "follow" => follow_for(life, 5).await,
        "correct" => life.corrections().catch_up().await.map(drop).map_err(|error| error.to_string()),
        "mail" => mail(life, dice, numbers).await,
        "scan" => life.connector.refresh().await.map(drop).map_err(|error| error.to_string()),
        "activate" => activate(life, dice, numbers).await,
        "activate-at-work" => activate_at_work(life, dice, numbers).await,
        "repropose" => repropose(life, dice).await,
        "retry-run" => retry_run(life, dice).await,
        "abandon-run" => abandon_run(life, dice).await,
        "settle-delivery" => settle_delivery(life, dice, numbers).await,
        _ => Err(format!("!no step is called {name}")),
    }
}

async fn ingress(life: &Life) -> Done {
    let mut crew = Crew::new();
    let poller = life.poller();
    let spooler = life.spooler(&poller, Freeze::never());
    crew.spawn(poller.run(crew.word()));
    crew.spawn(spooler.run(crew.word()));
    crew.work(60).await
}

async fn consume(life: &Life, dice: &mut Dice) -> Done {
    let mut crew = Crew::new();
    let declaration = DECLARATIONS[usize::from(dice.percent(25))];
    crew.consume(life, declaration).await?;
    crew.work(dice.pick(&[1, 20, 100])).await
}

async fn dispatch(life: &Life, seconds: u64) -> Done {
    let mut crew = Crew::new();
    crew.spawn(life.dispatcher().run(crew.word()));
    crew.work(seconds).await
}

/// All roles side by side, as `serve` has them.
pub(crate) async fn everything(life: &Life, seconds: u64) -> Done {
    let mut crew = Crew::new();
    let poller = life.poller();
    let spooler = life.spooler(&poller, Freeze::never());
    crew.spawn(poller.run(crew.word()));
    crew.spawn(spooler.run(crew.word()));
    crew.spawn(life.dispatcher().run(crew.word()));
    let ports = ReminderPorts {
        reader: life.reader(),
        notices: life.store.notices("telegram"),
        clock: life.calendar.clone(),
    };
    let reminder = Reminder::new(ports, source(), CHATS.map(ChatId).into());
    let told = crew.word();
    crew.spawn(async move { reminder.run(told).await });
    let (reader, projector, corrections) = (life.reader(), life.projector(), life.corrections());
    let told = crew.word();
    crew.spawn(async move { follow(&reader, &projector, &corrections, told.said()).await });
    for declaration in DECLARATIONS {
        crew.consume(life, declaration).await?;
    }
    crew.work(seconds).await
}

async fn follow_for(life: &Life, seconds: u64) -> Done {
    let mut crew = Crew::new();
    let (reader, projector, corrections) = (life.reader(), life.projector(), life.corrections());
    let told = crew.word();
    crew.spawn(async move { follow(&reader, &projector, &corrections, told.said()).await });
    crew.work(seconds).await
}

async fn proposals(life: &Life, states: &[ProposalState]) -> Result<Vec<thought_protocol::EventId>, String> {
    let filter = ProposalFilter { states: states.to_vec(), limit: 100, ..ProposalFilter::default() };
    let rows = life.reader().proposals(filter).await.map_err(|error| error.to_string())?;
    Ok(rows.into_iter().map(|row| row.proposal).collect())
}

fn submission(disposition: Disposition, replacement: Option<String>) -> Submission {
    Submission {
        disposition,
        replacement: replacement.map(|text| Sensitive::new(text.into_bytes())),
        submission_id: "a-submission".to_owned(),
        actor: Some("alex".to_owned()),
        expect_sha256: None,
        expect_base: None,
        surface: Surface::Cli,
        uid: 1_000,
    }
}

/// Decides on what waits; often twice, as two surfaces do.
async fn decide(life: &Life, dice: &mut Dice, numbers: &Numbers) -> Done {
    let waiting = proposals(life, &[ProposalState::Undecided]).await?;
    if waiting.is_empty() {
        return Err("nothing waits".to_owned());
    }
    // The newest is the one whose document is most often still as it was.
    let newest = waiting[waiting.len() - 1].clone();
    let proposal = if dice.percent(65) { newest } else { dice.pick(&waiting) };
    let disposition =
        dice.pick(&[Disposition::Accept, Disposition::Accept, Disposition::Edit, Disposition::Reject]);
    let edit = numbers.edits.fetch_add(1, Ordering::SeqCst);
    let replacement = (disposition == Disposition::Edit).then(|| format!("kanari-e{edit} in my own words"));
    let desk = life.desk();
    let word = submission(disposition, replacement);
    let decided = desk.decide(&proposal, &word).await;
    if dice.percent(30) {
        // A repetition meets the first, or says why it cannot.
        let _again = desk.decide(&proposal, &word).await;
    }
    decided.map(drop).map_err(|error| error.to_string())
}

/// Another word on what is decided: it must be refused.
async fn decide_again(life: &Life, dice: &mut Dice) -> Done {
    let decided = proposals(life, &[ProposalState::Decided, ProposalState::Projected]).await?;
    if decided.is_empty() {
        return Err("nothing is decided".to_owned());
    }
    let word = submission(Disposition::Edit, Some("kanari-e other words".to_owned()));
    match life.desk().decide(&dice.pick(&decided), &word).await {
        Ok(_) => Err("!a second word was taken".to_owned()),
        Err(thought_authority::decide::DecideError::Conflict) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

async fn project(life: &Life) -> Done {
    let done = life.projector().reconcile(Scope::All).await.map_err(|error| error.to_string())?;
    if done.is_empty() {
        return Err("nothing to project".to_owned());
    }
    for one in done {
        let outcome = one.outcome.map_err(|error| error.to_string())?;
        match outcome.status {
            Status::Materialized => life.chaos.count("materialized"),
            Status::Projected => life.chaos.count("judged"),
            Status::MaterializationFailed(reason) => {
                life.chaos.count(&format!("unwritten-{}", reason.as_str()))
            }
            _ => {}
        }
    }
    Ok(())
}

async fn mail(life: &Life, dice: &mut Dice, numbers: &Numbers) -> Done {
    let number = 100_000 + numbers.mails.fetch_add(1, Ordering::SeqCst);
    let thread = format!("t{}", dice.below(2));
    let text = format!("kanari-m{number} a private word");
    let message = Outgoing::new("co", AGENT, &thread, &format!("m{number}"), text.as_bytes())
        .map_err(|error| format!("!{error}"))?;
    let desk = MailDesk::new(
        "co",
        life.store.agent_mail("co"),
        life.reader(),
        life.calendar.clone(),
        Arc::new(TokioSleeper),
    );
    let errand = Errand { message, wait_seconds: None, response: Response::Dark };
    let sent = desk.serve(&errand).await;
    if dice.percent(40) {
        let _again = desk.serve(&errand).await;
    }
    sent.map(drop).map_err(|error| error.to_string())
}

struct Nobody;

impl Roles for Nobody {
    fn take(&self, _role: &str) -> Result<RoleState, &'static str> {
        Ok(RoleState::Taken)
    }
    fn consumer(&self, declaration: &str) -> String {
        format!("consumer-{declaration}")
    }
}

/// A consumer is at work, and nobody spools.
struct ConsumerAtWork;

impl Roles for ConsumerAtWork {
    fn take(&self, role: &str) -> Result<RoleState, &'static str> {
        Ok(if role == changeover::INGRESS { RoleState::Taken } else { RoleState::AtWork })
    }
    fn consumer(&self, declaration: &str) -> String {
        Nobody.consumer(declaration)
    }
}

struct Ready(bool);

impl Readiness for Ready {
    fn prove(&self) -> BoxFuture<'_, Result<Sha256Hex, &'static str>> {
        let proved = if self.0 { Ok(Sha256Hex::of(b"worker")) } else { Err("sandbox-unavailable") };
        Box::pin(std::future::ready(proved))
    }
}

/// Makes a version the active one; the first ones too.
pub(crate) async fn change(
    life: &Life,
    which: usize,
    roles: &dyn Roles,
    ready: bool,
    numbers: &Numbers,
) -> Done {
    let version = numbers.versions[which].load(Ordering::SeqCst) + 1;
    let package = package(DECLARATIONS[which], u32::try_from(version).unwrap());
    let token = numbers.tokens.fetch_add(1, Ordering::SeqCst);
    let parts = changeover::Parts {
        reader: life.reader(),
        activator: life.store.activator(),
        roles,
        readiness: &Ready(ready),
        clock: &*life.calendar,
        sleeper: &TokioSleeper,
        crash: &*life.chaos,
        token: format!("{token:032x}"),
    };
    let changed = changeover::change(&parts, &package, &|_step| {}).await;
    changed.map_err(|error| error.to_string())?;
    Ok(())
}

async fn activate(life: &Life, dice: &mut Dice, numbers: &Numbers) -> Done {
    let which = usize::from(dice.percent(30));
    change(life, which, &Nobody, dice.percent(85), numbers).await
}

async fn activate_at_work(life: &Life, dice: &mut Dice, numbers: &Numbers) -> Done {
    let which = usize::from(dice.percent(30));
    let declaration = DECLARATIONS[which];
    let (follower, asked) = changeover::follower(life.reader(), life.store.activator());
    let (stop, signal) = stop_switch();
    let following = tokio::spawn(async move {
        follower.run(&TokioSleeper, || true, std::future::pending()).await;
    });
    let opened = Consumer::open(life.parts(declaration), signal).await.map_err(|error| error.to_string());
    let outcome = match opened {
        Ok(consumer) => {
            let consumer = consumer.asked(asked.clone());
            let (activator, heard) = (life.store.activator(), asked.clone());
            let consuming = tokio::spawn(async move {
                let ended = consumer.run().await;
                if matches!(ended, Ok(Ended::Drained))
                    && let Some(row) = heard.change_of(declaration)
                {
                    let role = Nobody.consumer(declaration);
                    // One that is not taken is waited for in vain, and the change is given up.
                    let _answered = activator.acknowledge(declaration, &row.token, &role).await;
                }
                ended
            });
            let changed = change(life, which, &ConsumerAtWork, true, numbers).await;
            stop.stop();
            match consuming.await {
                Ok(Err(thought_runtime::consumer::Error::Broken(_))) | Err(_) => {
                    Err("!a run broke".to_owned())
                }
                Ok(_) => changed,
            }
        }
        Err(error) => Err(error),
    };
    following.abort();
    outcome
}

async fn repropose(life: &Life, dice: &mut Dice) -> Done {
    let done = proposals(life, &[ProposalState::Undecided, ProposalState::Projected, ProposalState::Decided])
        .await?;
    if done.is_empty() {
        return Err("nothing to propose again".to_owned());
    }
    let origin = dice.pick(&done);
    let desk = life.operator_desk();
    let proposed = if dice.percent(50) {
        desk.repropose(&origin, Some("alex")).await
    } else {
        desk.revert(&origin, Some("sam")).await
    };
    proposed.map(drop).map_err(|error| error.to_string())
}

async fn some_run(
    life: &Life,
    dice: &mut Dice,
    states: &[RunState],
) -> Result<thought_store::row::RunRow, String> {
    let filter = RunFilter { states: states.to_vec(), limit: 200, ..RunFilter::default() };
    let rows = life.reader().runs(filter).await.map_err(|error| error.to_string())?;
    if rows.is_empty() { Err("no such run".to_owned()) } else { Ok(dice.pick(&rows)) }
}

async fn retry_run(life: &Life, dice: &mut Dice) -> Done {
    let run = some_run(life, dice, &[RunState::Failed, RunState::Blocked, RunState::Abandoned]).await?;
    let runs = life.store.consumer(&run.declaration);
    operator::retry(&life.reader(), &runs, &run.id).await.map(drop).map_err(|error| error.to_string())
}

async fn abandon_run(life: &Life, dice: &mut Dice) -> Done {
    let run = some_run(life, dice, &[RunState::Admitted, RunState::Running, RunState::Held]).await?;
    let runs = life.store.consumer(&run.declaration);
    let done = operator::abandon(&life.reader(), &runs, &*life.calendar, &run.id).await;
    done.map_err(|error| error.to_string())
}

/// A person's word on an uncertain delivery: it is seen, or is sent again.
async fn settle_delivery(life: &Life, dice: &mut Dice, numbers: &Numbers) -> Done {
    let rows = life.reader().unfinished_deliveries(source(), vec![DeliveryState::Uncertain], 100).await;
    let rows = rows.map_err(|error| error.to_string())?;
    if rows.is_empty() {
        return Err("nothing is uncertain".to_owned());
    }
    let cause = dice.pick(&rows).cause.clone();
    let (_say, told) = watch::channel(false);
    let dispatcher = life.dispatcher();
    let settled = if dice.percent(50) {
        numbers.resent.fetch_add(1, Ordering::SeqCst);
        dispatcher.retry(&cause, &Stop::new(told)).await
    } else {
        dispatcher.confirm(&cause, "alex", &Stop::new(told)).await
    };
    settled.map(drop).map_err(|error| error.to_string())
}

/// Installs both declarations and scans what is there: what `serve` does before its first role starts.
pub(crate) async fn begin(life: &Life, numbers: &Numbers) -> Done {
    life.connector.refresh().await.map_err(|error| error.to_string())?;
    for which in 0..DECLARATIONS.len() {
        change(life, which, &Nobody, true, numbers).await?;
        numbers.versions[which].store(1, Ordering::SeqCst);
    }
    debug_assert_eq!(DECLARATIONS[0], TELEGRAM);
    Ok(())
}
