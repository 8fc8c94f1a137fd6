//! The way of a spooled update into the log.
//!
//! Owns the order of arrival, the tries of an update that fails, and the collecting of albums. It never lets one chat
//! wait for another, never skips an update without setting it aside for a person to see, and never writes an event in
//! more than one commit with the forgetting of its update.

mod event;
mod foresee;
mod lane;
mod photos;
mod wave;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use thought_contract::draft::{self, DraftError};
use thought_contract::payload::{Incident, TelegramMessage};
use thought_contract::time::Clock;
use thought_store::handle::{Incidents, Reader, TelegramIngress};
use thought_store::{StoreError, Topics};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::admit::Policy;
use crate::limits::{
    ALBUM_QUIET_MS, BACKOFF_FIRST_MS, BACKOFF_LONGEST_MS, PHOTO_PATIENCE_MS, SPOOL_PAGE, SPOOL_PAGE_MAX,
    SPOOL_RETRY_FIRST_MS, SPOOL_TRIES_MAX,
};
use crate::notices::Switches;
use crate::stop::{Backoff, Next, Stop};
use event::{Step, StepError};
use lane::{Album, Item, Lane, Unit};
use photos::Photos;

pub use foresee::{Foreseen, foresee};
pub use photos::{BlobError, Blobs, PhotoPorts};

/// How updates become events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpoolOptions {
    /// What is said about messages that cannot be read.
    pub switches: Switches,
    /// First pause of a chat after a failed try, milliseconds; it doubles.
    pub retry_first_ms: u64,
    /// How long an album is collected after its newest part, milliseconds.
    pub album_quiet_ms: u64,
    /// How long a photo is tried to be fetched, milliseconds.
    pub photo_patience_ms: u64,
}

impl SpoolOptions {
    /// The usual pauses.
    pub const fn new(switches: Switches) -> Self {
        Self {
            switches,
            retry_first_ms: SPOOL_RETRY_FIRST_MS,
            album_quiet_ms: ALBUM_QUIET_MS,
            photo_patience_ms: PHOTO_PATIENCE_MS,
        }
    }
}

/// What the spooler works with.
#[derive(Clone)]
pub struct SpoolPorts {
    /// Reads the spool.
    pub reader: Reader,
    /// Writes the events.
    pub ingress: TelegramIngress,
    /// Tells of updates that were set aside.
    pub incidents: Incidents,
    /// Fetches photos and keeps them.
    pub photos: PhotoPorts,
    /// Who may speak, once it is known who the bot is.
    pub policy: watch::Receiver<Option<Arc<Policy>>>,
    /// The present moment.
    pub clock: Arc<dyn Clock>,
    /// Whether nothing may become an event now.
    pub freeze: Freeze,
}

/// What is asked of a spooler while a declaration is changed, and what it says of itself.
#[derive(Debug, Clone)]
pub struct Freeze {
    /// Whether it is to be still.
    asked: watch::Receiver<bool>,
    /// Whether it is.
    still: Arc<watch::Sender<bool>>,
}

/// Asks a spooler to be still.
#[derive(Debug)]
pub struct FreezeSwitch {
    asked: watch::Sender<bool>,
    still: watch::Receiver<bool>,
}

/// A switch, and what a spooler takes of it. As long as no spooler took it, all is still.
pub fn freeze() -> (FreezeSwitch, Freeze) {
    let (ask, asked) = watch::channel(false);
    let (say, still) = watch::channel(true);
    (FreezeSwitch { asked: ask, still }, Freeze { asked, still: Arc::new(say) })
}

impl FreezeSwitch {
    /// Asks for stillness, or for its end.
    pub fn ask(&self, is_frozen: bool) {
        self.asked.send_if_modified(|asked| std::mem::replace(asked, is_frozen) != is_frozen);
    }

    /// Comes back when nothing becomes an event; at once where nobody spools.
    pub async fn still(&mut self) {
        // A spooler that is gone makes no event any more.
        let _gone = self.still.wait_for(|still| *still).await;
    }
}

impl Freeze {
    /// Nobody ever asks.
    pub fn never() -> Self {
        freeze().1
    }

    fn is_asked(&self) -> bool {
        *self.asked.borrow()
    }

    /// Comes back when something else is asked; never where nobody is left who could.
    async fn changed(&mut self) {
        if self.asked.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Is still until nobody asks for it any more.
    async fn hold(&mut self) {
        self.still.send_replace(true);
        // Nobody is left who asks: it goes on.
        let _gone = self.asked.wait_for(|asked| !*asked).await;
        self.still.send_replace(false);
    }
}

/// Turns spooled updates into events.
pub struct Spooler {
    ports: SpoolPorts,
    options: SpoolOptions,
}

impl std::fmt::Debug for Spooler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spooler").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Why a unit did not become an event.
#[derive(Debug, thiserror::Error)]
enum Fault {
    /// It is the update's own fault, and counted as a try of it.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The store refused this event.
    #[error(transparent)]
    Refused(StoreError),
    /// The store does not work; nothing is counted.
    #[error(transparent)]
    Store(StoreError),
    /// An incident has no canonical form.
    #[error(transparent)]
    Draft(#[from] DraftError),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict { .. } | StoreError::Role { .. } | StoreError::Precondition(_) => {
                Self::Refused(error)
            }
            _ => Self::Store(error),
        }
    }
}

impl Fault {
    const fn code(&self) -> &'static str {
        match self {
            Self::Step(StepError::Unreadable) => "unreadable",
            Self::Step(StepError::Draft(_)) | Self::Draft(_) => "no-canonical-form",
            Self::Refused(_) => "refused-by-store",
            Self::Store(_) => "store",
        }
    }
}

/// What became of a unit that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// It waits, and its chat with it.
    TriedAgain,
    /// It is out of the way.
    SetAside,
}

/// What is remembered between looks; nothing of it has to survive.
struct Memory {
    /// Photos on their way.
    photos: Photos,
    /// Until when a chat waits after a failed try.
    blocked: HashMap<Lane, Instant>,
    /// How many parts of an album were there, and when the last one came.
    albums: HashMap<Album, (usize, Instant)>,
    /// When was last looked: what was due by then is worked off, or waits for something that is due later.
    looked_at: Option<Instant>,
}

impl Spooler {
    /// Prepares; nothing is read.
    pub const fn new(ports: SpoolPorts, options: SpoolOptions) -> Self {
        Self { ports, options }
    }

    /// Works until told to stop. What is being committed then is finished.
    pub async fn run(mut self, stop: Stop) {
        let Some(policy) = self.policy(&stop).await else { return };
        let mut news = self.ports.reader.news().about(Topics::SPOOLED);
        let patience = Duration::from_millis(self.options.photo_patience_ms);
        let mut memory = Memory {
            photos: Photos::new(self.ports.photos.clone(), patience),
            blocked: HashMap::new(),
            albums: HashMap::new(),
            looked_at: None,
        };
        let mut backoff = Backoff::new(BACKOFF_FIRST_MS, BACKOFF_LONGEST_MS);
        let mut freeze = self.ports.freeze.clone();
        freeze.still.send_replace(false);
        while !stop.is_said() {
            if freeze.is_asked() && stop.unless(freeze.hold()).await.is_none() {
                return;
            }
            news.mark_unchanged();
            if let Err(error) = self.look(&policy, &mut memory, &stop).await {
                tracing::error!(error = %error, "spooled updates wait for the store");
                if stop.pause(backoff.next_pause()).await == Next::Stop {
                    return;
                }
                continue;
            }
            backoff.reset();
            let due = self.due(&memory);
            tokio::select! {
                () = stop.said() => return,
                changed = news.changed() => if changed.is_err() { return },
                () = memory.photos.wait() => {}
                () = freeze.changed() => {}
                () = sleep_until(due) => {}
            }
        }
    }

    async fn policy(&mut self, stop: &Stop) -> Option<Arc<Policy>> {
        match stop.unless(self.ports.policy.wait_for(Option::is_some)).await? {
            Ok(policy) => policy.clone(),
            Err(_nobody_will_know) => None,
        }
    }

    /// When something is due that no news will tell of.
    fn due(&self, memory: &Memory) -> Option<Instant> {
        let quiet = Duration::from_millis(self.options.album_quiet_ms);
        let albums = memory.albums.values().map(|(_, since)| *since + quiet);
        let dues = memory.blocked.values().copied().chain(albums);
        dues.filter(|due| memory.looked_at.is_none_or(|looked_at| *due > looked_at)).min()
    }

    /// Works off what waits, page by page, until nothing may go on.
    async fn look(&self, policy: &Policy, memory: &mut Memory, stop: &Stop) -> Result<(), StoreError> {
        let mut limit = SPOOL_PAGE;
        while !stop.is_said() && !self.ports.freeze.is_asked() {
            let channel = self.ports.ingress.source().clone();
            let rows = self.ports.reader.spool(channel, limit).await?;
            let is_full = rows.len() as u64 >= u64::from(limit);
            let mut items: VecDeque<Item> = rows.iter().map(|row| lane::read(row, policy)).collect();
            drop(rows);
            let progress = self.page(&mut items, memory, stop).await?;
            match (progress, is_full) {
                (_, false) => return Ok(()),
                (true, true) => {}
                // All of a page waits: what is behind it must not wait too.
                (false, true) if limit < SPOOL_PAGE_MAX => limit = (limit * 4).min(SPOOL_PAGE_MAX),
                (false, true) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Works off one page. Whether anything went on.
    async fn page(
        &self,
        items: &mut VecDeque<Item>,
        memory: &mut Memory,
        stop: &Stop,
    ) -> Result<bool, StoreError> {
        let now = Instant::now();
        memory.looked_at = Some(now);
        memory.blocked.retain(|_, until| *until > now);
        self.note_albums(items, memory, now);
        memory.photos.look(items);
        let incomplete: HashSet<Album> =
            items.iter().filter(|item| !memory.photos.has_all_of(item)).filter_map(Item::album).collect();
        let quiet = Duration::from_millis(self.options.album_quiet_ms);
        let mut waits: HashSet<Lane> = memory.blocked.keys().copied().collect();
        let mut progress = false;
        while !stop.is_said() && !self.ports.freeze.is_asked() {
            let is_ready = |item: &Item, album: Option<&Album>| match album {
                None => memory.photos.has_all_of(item),
                Some(album) => {
                    let collected = memory.albums.get(album);
                    !incomplete.contains(album)
                        && collected.is_some_and(|(_, since)| now.duration_since(*since) >= quiet)
                }
            };
            let wave = lane::take_wave(items, &mut waits, is_ready);
            if wave.is_empty() {
                break;
            }
            progress = true;
            let outcomes = wave::all(wave.iter().map(|unit| self.settle(unit, &memory.photos))).await;
            for (unit, outcome) in wave.iter().zip(outcomes) {
                match outcome {
                    Ok(()) => memory.photos.forget(&unit.updates()),
                    Err(fault) => {
                        // Behind what was set aside, its chat goes on at once: no news would tell of it.
                        if self.failed(unit, fault, memory).await? == After::TriedAgain {
                            waits.insert(unit.lane);
                        }
                    }
                }
            }
        }
        Ok(progress)
    }

    /// Remembers how many parts of each album wait, and since when there are no more.
    fn note_albums(&self, items: &VecDeque<Item>, memory: &mut Memory, now: Instant) {
        let counts = lane::albums(items);
        memory.albums.retain(|album, _| counts.contains_key(album));
        for (album, count) in counts {
            let seen = memory.albums.entry(album).or_insert((count, now));
            if seen.0 != count {
                *seen = (count, now);
            }
        }
    }

    /// One unit becomes what it becomes, in one commit. What came too late for its album becomes a message of its own: the
    /// album is an event by now, and events do not change.
    async fn settle(&self, unit: &Unit, photos: &Photos) -> Result<(), Fault> {
        let SpoolPorts { ingress, clock, .. } = &self.ports;
        let step =
            |unit: &Unit| event::step(unit, photos, ingress.source(), self.options.switches, clock.now());
        let whole = step(unit)?;
        let Some(album) = self.album_before(unit, &whole).await? else {
            return self.carry_out(&unit.updates(), whole).await;
        };
        for part in unit.parts() {
            let alone = if event::holds(&album, &part, photos) { Step::Forget } else { step(&part)? };
            self.carry_out(&part.updates(), alone).await?;
        }
        Ok(())
    }

    /// The event that the album of this unit has become already, where it has.
    async fn album_before(&self, unit: &Unit, step: &Step) -> Result<Option<TelegramMessage>, Fault> {
        let (Step::Event(draft, _), true) = (step, unit.is_album()) else { return Ok(None) };
        let Some(known) = self.ports.reader.event(draft.id().clone()).await? else { return Ok(None) };
        // One that does not read back has its fault told by whoever answers it; its parts are not heard twice.
        Ok(known.payload::<TelegramMessage>().ok())
    }

    async fn carry_out(&self, updates: &[i64], step: Step) -> Result<(), Fault> {
        let SpoolPorts { ingress, incidents, clock, .. } = &self.ports;
        match step {
            Step::Event(draft, notice) => {
                let appended = match notice {
                    Some(notice) => ingress.admit_in_part(updates, *draft, *notice).await?,
                    None => ingress.admit(updates, *draft).await?,
                };
                tracing::debug!(event = %appended.id, novelty = ?appended.novelty, "an update became an event");
            }
            Step::Refuse(chat) => {
                ingress.spool(Vec::new(), vec![chat]).await?;
                ingress.forget(updates).await?;
            }
            Step::Migrated { from, to } => {
                let incident =
                    Incident { kind: "chat-migrated".to_owned(), subject: format!("{from}:{to}"), count: 1 };
                incidents.record(draft::incident(incidents.role(), &incident, clock.now())?).await?;
                ingress.forget(updates).await?;
                tracing::warn!(%from, %to, "a group became another chat, which has to be allowed anew");
            }
            Step::Forget => ingress.forget(updates).await?,
        }
        Ok(())
    }

    /// Counts a try, or sets the updates aside after the last one.
    async fn failed(&self, unit: &Unit, fault: Fault, memory: &mut Memory) -> Result<After, StoreError> {
        if let Fault::Store(error) = fault {
            return Err(error);
        }
        let tries = unit.tries() + 1;
        let code = fault.code();
        if tries >= SPOOL_TRIES_MAX {
            memory.photos.forget(&unit.updates());
            self.park(unit, code).await?;
            return Ok(After::SetAside);
        }
        for update in unit.updates() {
            self.ports.ingress.failed(update).await?;
            tracing::warn!(update, tries, code, "an update could not become an event and is tried again");
        }
        let pause = self.options.retry_first_ms << (tries - 1).min(SPOOL_TRIES_MAX);
        memory.blocked.insert(unit.lane, Instant::now() + Duration::from_millis(pause));
        Ok(After::TriedAgain)
    }

    /// The incident comes first: what is set aside is always told of.
    async fn park(&self, unit: &Unit, code: &'static str) -> Result<(), StoreError> {
        let SpoolPorts { ingress, incidents, clock, .. } = &self.ports;
        for update in unit.updates() {
            let incident =
                Incident { kind: "update-parked".to_owned(), subject: update.to_string(), count: 1 };
            match draft::incident(incidents.role(), &incident, clock.now()) {
                Ok(draft) => drop(incidents.record(draft).await?),
                Err(error) => tracing::error!(update, error = %error, "no incident could be written"),
            }
            ingress.park(update).await?;
            tracing::error!(update, code, "an update was set aside after its tries");
        }
        Ok(())
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
