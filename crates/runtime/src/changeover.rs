//! Changing a declaration while it is at work: freeze, drain, prove readiness, install, resume.
//!
//! Whoever changes a declaration asks the roles through the store, and each says there what it did; no role is told what to
//! do by another process. The version before goes on until the one commit that installs the next: whatever fails earlier,
//! the death of the one who changes included, is as if nobody had asked. It must never stop a run, move progress past an
//! event that nobody answered, or make a proposal.

use thought_contract::draft::{self, Ending};
use thought_contract::event::{EventType, SourceName};
use thought_contract::payload::RunEnded;
use thought_contract::run::{BlockedReason, RunState, run_id};
use thought_contract::time::Clock;
use thought_protocol::Sha256Hex;
use thought_store::command::NewRun;
use thought_store::handle::{Activator, Reader, Superseded};
use thought_store::row::{ChangeoverRow, ChangeoverStage};
use thought_store::{BoxFuture, StoreError, Topics};
use tokio::sync::watch;

use crate::declarations::{self, Before, Installed, Package, Standing};
use crate::limits::{CHANGEOVER_LOOK_MS, DRAIN_WAIT_MS, FREEZE_WAIT_MS};
use crate::port::{CrashPoints, Sleeper};

/// The role that turns what is spooled into events.
pub const INGRESS: &str = "ingress";

/// Whether a role is somebody's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleState {
    /// Nobody's; it was taken, and stays with the one who asked until the change is over.
    Taken,
    /// A process is at work in it, and will answer.
    AtWork,
}

/// The roles of the home.
pub trait Roles: Send + Sync {
    /// Takes a role if it is nobody's.
    ///
    /// # Errors
    /// A stable code.
    fn take(&self, role: &str) -> Result<RoleState, &'static str>;
    /// The name of the role that consumes a declaration.
    fn consumer(&self, declaration: &str) -> String;
}

/// What must hold before a version may take over: the context root, the binary that will be jailed, a sealed worker.
pub trait Readiness: Send + Sync {
    /// Proves it, and gives the hash of the binary.
    ///
    /// # Errors
    /// A stable code.
    fn prove(&self) -> BoxFuture<'_, Result<Sha256Hex, &'static str>>;
}

/// A change that did not come about. The version before is at work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The declaration.
    #[error(transparent)]
    Declaration(#[from] declarations::Error),
    /// A role could not be asked.
    #[error("change a declaration at work: take the role {role} ({code})")]
    Role {
        /// Which.
        role: String,
        /// Why.
        code: &'static str,
    },
    /// A role did not answer in time.
    #[error("change a declaration at work: {role} did not {asked} in {seconds} s")]
    NoAnswer {
        /// Which.
        role: String,
        /// What it was asked for.
        asked: &'static str,
        /// How long it was waited for, seconds.
        seconds: u64,
    },
    /// It is not ready to take over.
    #[error("change a declaration at work: the new version is not ready ({code})")]
    NotReady {
        /// Why.
        code: &'static str,
    },
    /// The store.
    #[error("change a declaration at work: reach the store")]
    Store(#[from] StoreError),
}

/// Everything that a change is made of.
pub struct Parts<'a> {
    /// Reads.
    pub reader: Reader,
    /// Asks, and installs.
    pub activator: Activator,
    /// The roles.
    pub roles: &'a dyn Roles,
    /// What is proved before.
    pub readiness: &'a dyn Readiness,
    /// The present moment.
    pub clock: &'a dyn Clock,
    /// Waiting.
    pub sleeper: &'a dyn Sleeper,
    /// Named moments of a test.
    pub crash: &'a dyn CrashPoints,
    /// 32 hex digits that nobody else has.
    pub token: String,
}

/// Every point that a change passes, in order.
pub const CRASH_POINTS: [&str; 5] =
    ["change.asked", "change.frozen", "change.drained", "change.ready", "change.installed"];

/// Makes a package the active version, whoever is at work. `told` hears of each step.
///
/// # Errors
/// [`Error`]; then nothing is frozen any more, and the version before goes on.
pub async fn change(
    parts: &Parts<'_>,
    package: &Package,
    told: &(dyn Fn(&str) + Sync),
) -> Result<Installed, Error> {
    match declarations::standing(&parts.reader, package).await? {
        // What was never at work needs no change, and the same content is there already.
        Standing::NotInstalled | Standing::Active => {
            let worker = ready(parts).await?;
            let done = declarations::install(&parts.reader, &parts.activator, parts.clock, package, &worker);
            return Ok(done.await?);
        }
        Standing::Newer { .. } | Standing::Changed { .. } | Standing::Older { .. } => {}
    }
    declarations::may_follow(&parts.reader, package).await?;
    let declaration = package.declaration().id().to_string();
    let outcome = steps(parts, package, told).await;
    if outcome.is_err() {
        parts.activator.withdraw(&declaration, &parts.token).await?;
    }
    outcome
}

async fn ready(parts: &Parts<'_>) -> Result<Sha256Hex, Error> {
    parts.readiness.prove().await.map_err(|code| Error::NotReady { code })
}

async fn steps(
    parts: &Parts<'_>,
    package: &Package,
    told: &(dyn Fn(&str) + Sync),
) -> Result<Installed, Error> {
    let declaration = package.declaration().id().to_string();
    let mut row = ChangeoverRow {
        declaration: declaration.clone(),
        version: package.declaration().version(),
        token: parts.token.clone(),
        stage: ChangeoverStage::Freeze,
        heads: Vec::new(),
        acknowledged: Vec::new(),
    };
    // Messages between agents want no freeze: what comes behind the head is the new version's.
    let is_channel = |event_type| event_type == EventType::TelegramMessage;
    if package.declaration().subscriptions().iter().any(|subscription| is_channel(subscription.event_type)) {
        parts.activator.ask(row.clone()).await?;
        parts.crash.reach("change.asked");
        await_role(parts, &declaration, INGRESS, ("freeze", FREEZE_WAIT_MS)).await?;
        told("frozen: what comes in is kept, and waits");
    }
    parts.crash.reach("change.frozen");
    for consumer in parts.reader.consumers().await? {
        if consumer.declaration == declaration {
            let head = parts.reader.source(consumer.source.clone()).await?.head;
            row.heads.push((consumer.source, head));
        }
    }
    row.stage = ChangeoverStage::Drain;
    parts.activator.ask(row.clone()).await?;
    let consumer = parts.roles.consumer(&declaration);
    await_role(parts, &declaration, &consumer, ("drain", DRAIN_WAIT_MS)).await?;
    told("drained: the version before has settled everything up to the head, and stopped");
    parts.crash.reach("change.drained");
    let worker = ready(parts).await?;
    told("ready: context root, binary and a sealed worker");
    parts.crash.reach("change.ready");
    let before = Before { superseded: superseded(parts, package).await?, token: Some(parts.token.clone()) };
    let handles = (&parts.reader, &parts.activator);
    let installed = declarations::install_after(handles, parts.clock, package, &worker, before).await?;
    parts.crash.reach("change.installed");
    Ok(installed)
}

/// Waits until a role did what is asked; one that is nobody's needs no asking.
async fn await_role(
    parts: &Parts<'_>,
    declaration: &str,
    role: &str,
    (asked, wait_ms): (&'static str, u64),
) -> Result<(), Error> {
    let mut news = parts.reader.news();
    let mut over = parts.sleeper.sleep_ms(wait_ms);
    loop {
        news.mark_unchanged();
        let state = parts.roles.take(role).map_err(|code| Error::Role { role: role.to_owned(), code })?;
        if state == RoleState::Taken {
            return Ok(());
        }
        let rows = parts.reader.changeovers().await?;
        let ours = rows.iter().find(|row| row.declaration == declaration && row.token == parts.token);
        match ours {
            Some(row) if row.acknowledged.iter().any(|acknowledged| acknowledged == role) => return Ok(()),
            Some(_) => {}
            None => return Err(StoreError::Precondition(thought_store::Precondition::Changeover).into()),
        }
        tokio::select! {
            () = &mut over => {
                return Err(Error::NoAnswer { role: role.to_owned(), asked, seconds: wait_ms / 1_000 });
            }
            () = parts.sleeper.sleep_ms(CHANGEOVER_LOOK_MS) => {}
            _ = news.changed() => {}
        }
    }
}

/// The runs that the version before leaves open (it held them), each with a run of the new version on its trigger.
async fn superseded(parts: &Parts<'_>, package: &Package) -> Result<Vec<Superseded>, Error> {
    let declaration = package.declaration().id().to_string();
    let version = package.declaration().version();
    let mut all = Vec::new();
    for run in parts.reader.open_runs(declaration.clone()).await? {
        // One that was begun is finished or given up by the consumer of the next version, which knows what became of it.
        if run.state == RunState::Running {
            continue;
        }
        let Some(trigger) = parts.reader.event(run.trigger.clone()).await? else {
            return Err(StoreError::Corrupt { what: format!("trigger of {}", run.id) }.into());
        };
        let reason = BlockedReason::Superseded.as_str().to_owned();
        let payload = RunEnded { run: run.id.clone(), attempts: run.attempts, reason };
        let at = parts.clock.now();
        let terminal = draft::run_ended(Ending::Blocked, &declaration, &trigger, &payload, at)
            .map_err(declarations::Error::Draft)?;
        all.push(Superseded {
            run: run.id,
            terminal,
            anew: NewRun {
                id: run_id(&declaration, version, &run.trigger, run.retry),
                declaration: declaration.clone(),
                version,
                trigger: run.trigger,
                source: run.source,
                sequence: run.sequence,
                conversation: run.conversation,
                retry: run.retry,
            },
        });
    }
    Ok(all)
}

/// How far a consumer works before it lets go, by source; none as long as nobody asks.
pub type DrainTo = Vec<(SourceName, u64)>;

/// What is asked of the roles of a process, as they follow it.
#[derive(Debug, Clone)]
pub struct Asked(watch::Receiver<Vec<ChangeoverRow>>);

impl Asked {
    /// What is asked now.
    pub fn now(&self) -> Vec<ChangeoverRow> {
        self.0.borrow().clone()
    }

    /// The drain that is asked of a declaration's consumer.
    pub fn drain_of(&self, declaration: &str) -> Option<DrainTo> {
        let rows = self.0.borrow();
        let row = rows.iter().find(|row| row.declaration == declaration)?;
        (row.stage == ChangeoverStage::Drain).then(|| row.heads.clone())
    }

    /// The change of a declaration.
    pub fn change_of(&self, declaration: &str) -> Option<ChangeoverRow> {
        self.0.borrow().iter().find(|row| row.declaration == declaration).cloned()
    }

    /// Whether somebody asks that nothing spooled becomes an event, or relies on it.
    pub fn is_frozen(&self) -> bool {
        let relies = |row: &ChangeoverRow| {
            row.stage == ChangeoverStage::Freeze || row.acknowledged.iter().any(|role| role == INGRESS)
        };
        self.0.borrow().iter().any(relies)
    }

    /// Comes back when something else is asked. It never does where nobody follows any more.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Nobody asks for anything, ever.
    pub fn nothing() -> Self {
        let (_gone, asked) = watch::channel(Vec::new());
        Self(asked)
    }
}

/// Who follows what is asked, and gives up what a dead process asked.
pub struct Follower {
    reader: Reader,
    activator: Activator,
    tell: watch::Sender<Vec<ChangeoverRow>>,
}

/// A follower and what the roles hear of it.
pub fn follower(reader: Reader, activator: Activator) -> (Follower, Asked) {
    let (tell, asked) = watch::channel(Vec::new());
    (Follower { reader, activator, tell }, Asked(asked))
}

impl Follower {
    /// Looks once, and follows until `stop`; `is_alive` says whether the one who changes is at work.
    pub async fn run(
        self,
        sleeper: &dyn Sleeper,
        is_alive: impl Fn() -> bool + Send + Sync,
        stop: impl Future<Output = ()> + Send,
    ) {
        let mut news = self.reader.news().about(Topics::CHANGEOVERS);
        tokio::pin!(stop);
        loop {
            news.mark_unchanged();
            let pause_ms = match self.look(&is_alive).await {
                Ok(rows) => {
                    let any = !rows.is_empty();
                    self.tell.send_if_modified(|told| {
                        let is_other = *told != rows;
                        *told = rows;
                        is_other
                    });
                    any.then_some(CHANGEOVER_LOOK_MS)
                }
                Err(error) => {
                    tracing::warn!(%error, "changes of declarations not looked at");
                    Some(CHANGEOVER_LOOK_MS)
                }
            };
            let again = async {
                match pause_ms {
                    Some(pause_ms) => sleeper.sleep_ms(pause_ms).await,
                    None => std::future::pending().await,
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

    async fn look(&self, is_alive: &(impl Fn() -> bool + Sync)) -> Result<Vec<ChangeoverRow>, StoreError> {
        let rows = self.reader.changeovers().await?;
        if rows.is_empty() || is_alive() {
            return Ok(rows);
        }
        for row in rows {
            tracing::warn!(declaration = row.declaration, "a change was given up: who asked for it is gone");
            self.activator.withdraw(&row.declaration, &row.token).await?;
        }
        Ok(Vec::new())
    }
}
