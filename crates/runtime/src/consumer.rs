//! A consumer: the active version of one declaration, from its events to its settled runs.
//!
//! It owns admission, the order of runs, and what of a backlog is kept in mind. Runs of one conversation follow one
//! another in source order; different conversations run side by side. It must never start a run out of that order, pass
//! an event without a run for it, or hold more of a backlog than its window.

pub(crate) mod lanes;
mod scan;

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;

use thought_contract::draft::DraftError;
use thought_contract::event::{EventType, SourceName};
use thought_contract::time::Clock;
use thought_store::handle::{ConsumerRuns, Incidents, Notices, Reader};
use thought_store::{BoxFuture, News, StoreError, Topics};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use crate::changeover::Asked;
use crate::context::Images;
use crate::declarations::{self, Active, load_active};
use crate::limits::{HELD_RECHECK_MS, STORE_BACKOFF_MS_MAX};
use crate::port::{Corrections, CrashPoints, Documents, Jail, Model, Sleeper};
use crate::run::{self, Finish, Shared};
use lanes::{LaneKey, Lanes};
use scan::Source;

/// Whether a held run is told in its chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldNotice {
    /// One notice a chat and day is requested.
    On,
    /// It is not.
    Off,
}

/// What of a consumer is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// See [`HeldNotice`].
    pub held_notice: HeldNotice,
    /// How long a stop waits for runs in flight, milliseconds. What is not done by then is an abandoned attempt at the
    /// next start.
    pub stop_grace_ms: u64,
}

/// Everything that a consumer is made of.
pub struct Parts {
    /// Reads.
    pub reader: Reader,
    /// The runs of its declaration.
    pub runs: ConsumerRuns,
    /// Requests notices; its role is `runtime`.
    pub notices: Notices,
    /// Records incidents; its role is `runtime`.
    pub incidents: Incidents,
    /// The jail.
    pub jail: Arc<dyn Jail>,
    /// The provider.
    pub model: Arc<dyn Model>,
    /// The context root.
    pub documents: Arc<dyn Documents>,
    /// A person's own corrections of earlier answers.
    pub corrections: Arc<dyn Corrections>,
    /// The images of messages.
    pub images: Arc<dyn Images>,
    /// The present moment.
    pub clock: Arc<dyn Clock>,
    /// Waiting.
    pub sleeper: Arc<dyn Sleeper>,
    /// Named moments of a test.
    pub crash: Arc<dyn CrashPoints>,
    /// See [`Settings`].
    pub settings: Settings,
}

/// A consumer that ended by itself. The store holds all that is known of its runs.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its declaration cannot be loaded.
    #[error("open a consumer")]
    Declaration(#[from] declarations::Error),
    /// The store.
    #[error("consume: reach the store")]
    Store(#[from] StoreError),
    /// A draft failed.
    #[error("consume: draft an event")]
    Draft(#[from] DraftError),
    /// The declaration has no consumer row for a source that it follows.
    #[error("open a consumer: {source_name} has no row in the store")]
    NoRow {
        /// The source.
        source_name: SourceName,
    },
    /// A run's task broke: a defect.
    #[error("carry on a run: its task broke")]
    Broken(#[source] JoinError),
}

/// Tells consumers to stop.
#[derive(Debug)]
pub struct StopSwitch(watch::Sender<Phase>);

/// What a consumer listens to.
#[derive(Debug, Clone)]
pub struct StopSignal(watch::Receiver<Phase>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    AtWork,
    Stopping,
}

/// A switch and the signal that it gives.
pub fn stop_switch() -> (StopSwitch, StopSignal) {
    let (sender, receiver) = watch::channel(Phase::AtWork);
    (StopSwitch(sender), StopSignal(receiver))
}

impl StopSwitch {
    /// Asks every listener to stop. Dropping the switch does the same.
    pub fn stop(&self) {
        self.0.send_replace(Phase::Stopping);
    }
}

impl StopSignal {
    /// Whether to stop.
    pub fn is_stopping(&self) -> bool {
        *self.0.borrow() == Phase::Stopping || self.0.has_changed().is_err()
    }

    /// Ends when it is time to stop.
    pub async fn stopping(&self) {
        let mut receiver = self.0.clone();
        // An error means that the switch is gone.
        let _ = receiver.wait_for(|phase| *phase == Phase::Stopping).await;
    }
}

/// A consumer, ready to run.
pub struct Consumer {
    shared: Arc<Shared>,
    /// News of what it is made for; of everything while a run is held, whose cause may be anything.
    news: News,
    topics: Topics,
    lanes: Lanes,
    sources: Vec<Source>,
    rows_after: u64,
    rows_more: bool,
    tasks: JoinSet<(LaneKey, Result<Finish, run::Error>)>,
    failures: u32,
    stop: StopSignal,
    asked: Asked,
}

/// Why a consumer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was told to.
    Stopped,
    /// It settled everything up to the heads of a change, and let go.
    Drained,
}

type Timer = Option<BoxFuture<'static, ()>>;

impl Consumer {
    /// Loads the active version of the declaration that `parts.runs` belongs to, and where it stands.
    ///
    /// # Errors
    /// [`Error`] when it is not installed, or its stored bytes are not for this build.
    pub async fn open(parts: Parts, stop: StopSignal) -> Result<Self, Error> {
        let active = load_active(&parts.reader, parts.runs.declaration()).await?;
        let mut types: BTreeMap<SourceName, Vec<EventType>> = BTreeMap::new();
        for subscription in active.declaration.subscriptions() {
            types.entry(subscription.source.clone()).or_default().push(subscription.event_type);
        }
        let rows = parts.reader.consumers().await?;
        let mut sources = Vec::with_capacity(types.len());
        for (source_name, types) in types {
            let row = rows
                .iter()
                .find(|row| row.declaration == parts.runs.declaration() && row.source == source_name)
                .ok_or_else(|| Error::NoRow { source_name: source_name.clone() })?;
            sources.push(Source::new(source_name, types, row.scanned));
        }
        let topics = sources.iter().fold(Topics::RUN_ADMITTED, |topics, source| topics.and(source.topics));
        Ok(Self {
            news: parts.reader.news().about(topics),
            topics,
            shared: Arc::new(Shared::new(parts, active)),
            lanes: Lanes::default(),
            sources,
            rows_after: 0,
            rows_more: true,
            tasks: JoinSet::new(),
            failures: 0,
            stop,
            asked: Asked::nothing(),
        })
    }

    /// The same consumer, that drains when a change of its declaration asks for it.
    #[must_use]
    pub fn asked(self, asked: Asked) -> Self {
        Self { asked, ..self }
    }

    /// What is consumed: the stored bytes of the active version.
    pub fn active(&self) -> &Active {
        &self.shared.active
    }

    /// Consumes until the stop signal, or until a change of its declaration is drained. What is in flight at a stop is
    /// finished within the grace, or left so that the next start takes it up.
    ///
    /// # Errors
    /// [`Error::Broken`] when a task broke: everything else is tried again, after a rest.
    pub async fn run(mut self) -> Result<Ended, Error> {
        let declaration = self.shared.parts.runs.declaration().to_owned();
        let version = self.shared.active.declaration.version();
        tracing::info!(declaration, version, "consumer at work");
        let (mut recheck, mut rest): (Timer, Timer) = (None, None);
        let mut ended = Ended::Stopped;
        while !self.stop.is_stopping() {
            if let Err(error) = self.fill().await {
                tracing::warn!(declaration, error = %error, "look again after a rest");
                self.failures = self.failures.saturating_add(1);
                rest = rest.or_else(|| Some(self.rest()));
            }
            if self.is_drained() {
                ended = Ended::Drained;
                break;
            }
            self.set_timers(&mut recheck, &mut rest);
            self.news.listen_for(if self.lanes.any_held() { Topics::ALL } else { self.topics });
            let stop = self.stop.clone();
            tokio::select! {
                biased;
                () = stop.stopping() => break,
                Some(joined) = self.tasks.join_next(), if !self.tasks.is_empty() => self.joined(joined)?,
                () = self.asked.changed() => self.expect_more(),
                told = self.news.changed() => {
                    // Without an engine every look fails, and rests.
                    self.expect(told.unwrap_or(Topics::ALL));
                    self.lanes.look_again();
                }
                () = elapsed(&mut recheck) => {
                    recheck = None;
                    self.lanes.look_again();
                }
                () = elapsed(&mut rest) => {
                    rest = None;
                    self.lanes.rested();
                    self.expect_more();
                }
            }
        }
        let stopped = self.finish().await;
        tracing::info!(declaration, version, ?ended, "consumer stopped");
        stopped.map(|()| ended)
    }

    /// Whether everything up to the heads of a change is settled; what is held is not waited for.
    fn is_drained(&self) -> bool {
        let Some(heads) = self.asked.drain_of(self.shared.parts.runs.declaration()) else { return false };
        let looked = |(name, head): &(SourceName, u64)| {
            self.sources
                .iter()
                .find(|source| source.name == *name)
                .is_none_or(|source| source.looked >= *head)
        };
        self.tasks.is_empty() && !self.rows_more && self.lanes.is_quiet() && heads.iter().all(looked)
    }

    fn set_timers(&self, recheck: &mut Timer, rest: &mut Timer) {
        if !self.lanes.any_held() {
            *recheck = None;
        } else if recheck.is_none() {
            let now = self.shared.now();
            // A day's budget is whole again at midnight.
            let midnight_ms = u64::try_from(now.next_day().since_ms(now)).unwrap_or(HELD_RECHECK_MS);
            let wait_ms = HELD_RECHECK_MS.min(midnight_ms.max(1));
            *recheck = Some(self.shared.parts.sleeper.sleep_ms(wait_ms));
        }
        if rest.is_none() && self.lanes.any_resting() {
            *rest = Some(self.rest());
        }
    }

    fn rest(&self) -> BoxFuture<'static, ()> {
        let wait_ms = run::verdict::wait_ms(self.failures, None).min(STORE_BACKOFF_MS_MAX);
        self.shared.parts.sleeper.sleep_ms(wait_ms)
    }

    fn has_free_place(&self) -> bool {
        self.lanes.active() < self.shared.active.declaration.concurrency() as usize
    }

    fn launch(&mut self) {
        while self.has_free_place() && !self.stop.is_stopping() {
            let Some((key, ticket)) = self.lanes.take() else { break };
            let (shared, stop) = (self.shared.clone(), self.stop.clone());
            self.tasks.spawn(async move {
                let finish = run::take(&shared, &ticket, &stop).await;
                (key, finish)
            });
        }
    }

    fn joined(
        &mut self,
        joined: Result<(LaneKey, Result<Finish, run::Error>), JoinError>,
    ) -> Result<(), Error> {
        let (key, finish) = joined.map_err(Error::Broken)?;
        match finish {
            Ok(Finish::Done) => {
                self.failures = 0;
                self.lanes.done(&key);
            }
            Ok(Finish::Held(_)) => {
                self.failures = 0;
                self.lanes.held(&key);
            }
            Ok(Finish::Left) => self.lanes.rest(&key),
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                tracing::warn!(error = %error, failures = self.failures, "run taken again after a rest");
                self.lanes.rest(&key);
            }
        }
        Ok(())
    }

    /// Ends what is in flight, and remembers how far the sources were looked at.
    async fn finish(&mut self) -> Result<(), Error> {
        let mut over = self.shared.parts.sleeper.sleep_ms(self.shared.parts.settings.stop_grace_ms);
        loop {
            tokio::select! {
                biased;
                joined = self.tasks.join_next() => match joined {
                    Some(joined) => self.joined(joined)?,
                    None => break,
                },
                () = &mut over => {
                    tracing::warn!(runs = self.tasks.len(), "stop leaves runs in flight");
                    self.tasks.shutdown().await;
                    break;
                }
            }
        }
        // Sorted by sequence within each source, so that `scanned` never passes a run that is not there.
        for admissions in self.lanes.admissions() {
            self.commit_admission(&admissions).await?;
        }
        for source in self.sources.iter().filter(|source| source.looked > source.admitted) {
            self.shared.reach("scanned.before");
            self.shared.parts.runs.scanned(source.name.clone(), source.looked).await?;
            self.shared.reach("scanned.after");
        }
        Ok(())
    }
}

async fn elapsed(timer: &mut Timer) {
    match timer {
        Some(timer) => timer.await,
        None => pending().await,
    }
}
