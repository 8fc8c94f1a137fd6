//! What goes out: outputs and notices, each delivered once, and the evidence of it.
//!
//! Follows the log by a cursor of its own, and by another the corrections that matched nothing. It never sends what is not
//! recorded as being sent, never sends again what may have arrived, never sends to a chat that is not admitted, and lets no
//! chat wait for another.

mod board;
mod deliver;
mod letter;
mod operator;
mod refusals;
mod reminder;
mod send;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use thought_contract::draft;
use thought_contract::event::StoredEvent;
use thought_contract::payload::Incident;
use thought_contract::time::Clock;
use thought_protocol::EventId;
use thought_store::command::Presence;
use thought_store::handle::{Dispatcher as Ledger, Incidents, Reader};
use thought_store::row::{ChunkState, DeliveryRow, DeliveryState, EventFilter};
use thought_store::{StoreError, Topics};
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};

use crate::client::BotClient;
use crate::ids::ChatId;
use crate::ingress::ChannelState;
use crate::limits::{
    BACKOFF_FIRST_MS, BACKOFF_LONGEST_MS, DISPATCH_PAGE, SKIPPED_BEFORE_ADVANCE, STOP_GRACE_MS,
    UNFINISHED_MAX,
};
use crate::notices::Switches;
use crate::stop::{Backoff, Next, Stop};
use board::{Begin, Board, Job, Progress};
use deliver::{Desk, INTERRUPTED, chunk_ref};
use letter::{FOLLOWED, letter_of, letters_of};

pub use deliver::DeliverError;
pub use letter::LetterError;
pub use operator::OperatorError;
pub use reminder::{Reminder, ReminderPorts};

/// What the dispatcher works with.
pub struct DispatcherPorts {
    /// Reads the log and the deliveries.
    pub reader: Reader,
    /// Records deliveries. Whoever runs a dispatcher holds the role lock of its name.
    pub deliveries: Ledger,
    /// Tells of events that cannot be delivered because they cannot be read.
    pub incidents: Incidents,
    /// Sends.
    pub client: Arc<BotClient>,
    /// The present moment.
    pub clock: Arc<dyn Clock>,
}

/// How is dispatched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchOptions {
    /// `telegram.allowed_chats`: to no other chat is anything sent.
    pub allowed_chats: BTreeSet<ChatId>,
    /// Which notices are said.
    pub switches: Switches,
    /// First and longest pause after a failure, milliseconds.
    pub backoff_ms: (u64, u64),
    /// How long sends on their way are waited for at the end, milliseconds.
    pub stop_grace_ms: u64,
}

impl DispatchOptions {
    /// The usual pauses.
    pub const fn new(allowed_chats: BTreeSet<ChatId>, switches: Switches) -> Self {
        Self {
            allowed_chats,
            switches,
            backoff_ms: (BACKOFF_FIRST_MS, BACKOFF_LONGEST_MS),
            stop_grace_ms: STOP_GRACE_MS,
        }
    }
}

/// Delivers what the log brings to the chats of one channel.
pub struct Dispatcher {
    desk: Arc<Desk>,
    stop_grace_ms: u64,
    is_abandoned: IsAbandoned,
}

/// Whether whoever began to send the delivery that a person says a word of is gone.
type IsAbandoned = Box<dyn Fn() -> bool + Send + Sync>;

impl std::fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatcher").field("channel", self.desk.ledger.channel()).finish_non_exhaustive()
    }
}

/// Deliveries under way.
#[derive(Default)]
struct Crew {
    tasks: JoinSet<()>,
    chats: HashMap<Id, ChatId>,
}

/// What the loop knows.
#[derive(Default)]
struct Shift {
    board: Board,
    progress: Progress,
    /// How far the corrections that matched nothing are worked off.
    refusals: Progress,
    crew: Crew,
    skipped: usize,
}

/// Whether more of the log can be read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Log {
    More,
    AllRead,
}

impl Dispatcher {
    /// Prepares; nothing is read or sent.
    pub fn new(ports: DispatcherPorts, options: DispatchOptions) -> Self {
        let desk = Desk {
            reader: ports.reader,
            ledger: ports.deliveries,
            incidents: ports.incidents,
            client: ports.client,
            clock: ports.clock,
            allowed_chats: options.allowed_chats,
            switches: options.switches,
            backoff_ms: options.backoff_ms,
            state: watch::Sender::new(ChannelState::Starting),
        };
        Self { desk: Arc::new(desk), stop_grace_ms: options.stop_grace_ms, is_abandoned: Box::new(|| false) }
    }

    /// The same dispatcher, whose caller can tell whether whoever began to send the delivery that a word is said of is gone.
    /// It is asked after the delivery was read: what was read is then no work of somebody who came in between. Without it,
    /// what stands as being sent is left to another process.
    #[must_use]
    pub fn asking(self, is_abandoned: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { is_abandoned: Box::new(is_abandoned), ..self }
    }

    /// How sending stands.
    pub fn state(&self) -> watch::Receiver<ChannelState> {
        self.desk.state.subscribe()
    }

    /// Works until told to stop; then begins nothing more, waits for sends on their way, and says that nobody is at
    /// work.
    pub async fn run(self, stop: Stop) {
        let desk = &self.desk;
        let mut shift = Shift::default();
        if !self.begin(&mut shift, &stop).await {
            return;
        }
        self.work(&mut shift, &stop).await;
        let drained = tokio::time::timeout(Duration::from_millis(self.stop_grace_ms), async {
            while shift.crew.tasks.join_next().await.is_some() {}
        });
        if drained.await.is_err() {
            tracing::warn!(left = shift.crew.tasks.len(), "sends on their way are given up");
            shift.crew.tasks.shutdown().await;
        }
        if let Err(error) = desk.ledger.set_presence(Presence::Away).await {
            tracing::error!(error = %error, "the dispatcher could not say that it is away");
        }
    }

    /// Says that it is at work and looks at what another process left. False when told to stop before.
    async fn begin(&self, shift: &mut Shift, stop: &Stop) -> bool {
        let mut backoff = Backoff::new(self.desk.backoff_ms.0, self.desk.backoff_ms.1);
        loop {
            match self.try_begin(shift).await {
                Ok(()) => return true,
                Err(error) => tracing::error!(error = %error, "the dispatcher waits for the store"),
            }
            if stop.pause(backoff.next_pause()).await == Next::Stop {
                return false;
            }
        }
    }

    async fn try_begin(&self, shift: &mut Shift) -> Result<(), StoreError> {
        let desk = &self.desk;
        desk.ledger.set_presence(Presence::AtWork).await?;
        shift.board = Board::default();
        shift.progress.begin_at(desk.reader.cursor(desk.ledger.name()).await?);
        shift.refusals.begin_at(desk.reader.cursor(desk.ledger.refusals_name()).await?);
        let channel = desk.ledger.channel().clone();
        let begun = vec![DeliveryState::Sending];
        for row in desk.reader.unfinished_deliveries(channel, begun, UNFINISHED_MAX).await? {
            if let Some(job) = self.left_over(&row).await? {
                shift.board.push(job);
            }
        }
        Ok(())
    }

    /// What follows from a delivery that an earlier process did not finish: a send whose outcome nobody recorded is
    /// uncertain; what was certainly not sent goes on.
    async fn left_over(&self, row: &DeliveryRow) -> Result<Option<Job>, StoreError> {
        let stands = |state| row.chunks.iter().position(|chunk| chunk.state == state);
        if let Some(ordinal) = stands(ChunkState::Sending) {
            self.interrupted(row, ordinal).await?;
            return Ok(None);
        }
        let ordinal = stands(ChunkState::Pending).and_then(|ordinal| u32::try_from(ordinal).ok());
        let (Some(ordinal), from) = (ordinal, ChunkState::Pending) else { return Ok(None) };
        let Some(event) = self.desk.reader.event(row.cause.clone()).await? else { return Ok(None) };
        let channel = self.desk.ledger.channel();
        match letters_of(&self.desk.reader, channel, &event).await {
            Ok(letters) => {
                let begin = Begin::Chunk { ordinal, from };
                let letter = letters.into_iter().find(|letter| letter.kind == row.kind);
                Ok(letter.map(|letter| Job { letter, begin, event: None }))
            }
            Err(LetterError::Store(error)) => Err(error),
            Err(LetterError::Payload(error)) => {
                tracing::error!(cause = %row.cause, error = %error, "a delivery cannot go on");
                Ok(None)
            }
        }
    }

    async fn interrupted(&self, row: &DeliveryRow, ordinal: usize) -> Result<(), StoreError> {
        let chunk = chunk_ref(&row.cause, row.kind, ordinal);
        match self.desk.ledger.uncertain(chunk, INTERRUPTED).await {
            // An operator's command went on with it meanwhile.
            Ok(()) | Err(StoreError::Precondition(_)) => {}
            Err(error) => return Err(error),
        }
        tracing::warn!(cause = %row.cause, chunk = ordinal, "a send was interrupted: the delivery is uncertain");
        Ok(())
    }

    async fn work(&self, shift: &mut Shift, stop: &Stop) {
        let followed = Topics::events(&FOLLOWED).and(Topics::CORRECTIONS);
        let mut news = self.desk.reader.news().about(followed);
        let mut backoff = Backoff::new(self.desk.backoff_ms.0, self.desk.backoff_ms.1);
        // What may have more than was read.
        let mut due = followed;
        while !stop.is_said() {
            let mut pause = None;
            if due.meets(followed) && !shift.board.is_full() {
                due = due.and(news.take());
                match self.read_on(shift, due).await {
                    Ok(left) => {
                        due = left;
                        backoff.reset();
                    }
                    Err(error) => {
                        tracing::error!(error = %error, "the dispatcher waits for the store");
                        pause = Some(backoff.next_pause());
                    }
                }
            }
            while let Some(job) = shift.board.next() {
                self.start(shift, job, stop);
            }
            let is_behind = due.meets(followed);
            let goes_on = is_behind && pause.is_none() && !shift.board.is_full();
            tokio::select! {
                biased;
                () = stop.said() => return,
                Some(ended) = shift.crew.tasks.join_next_with_id() => shift.ended(ended),
                () = std::future::ready(()), if goes_on => {}
                () = pause_of(pause) => {}
                told = news.changed(), if !is_behind => match told {
                    Ok(touched) => due = touched,
                    Err(_) => return,
                },
            }
        }
    }

    fn start(&self, shift: &mut Shift, job: Job, stop: &Stop) {
        let progress = match job.begin {
            Begin::Refusal { .. } => shift.refusals.clone(),
            Begin::Event { .. } | Begin::Chunk { .. } => shift.progress.clone(),
        };
        let (desk, stop) = (Arc::clone(&self.desk), stop.clone());
        let chat = job.letter.to.chat;
        let task = shift.crew.tasks.spawn(async move {
            let (cause, begin) = (job.letter.cause.clone(), job.begin);
            match desk.deliver(job, &progress, &stop).await {
                Ok(end) => tracing::debug!(%cause, ?end, "work on a delivery ended"),
                Err(error) => {
                    tracing::error!(%cause, error = %error, "work on a delivery ended early");
                    if let (Begin::Event { position }, DeliverError::Letter(LetterError::Payload(_))) =
                        (begin, &error)
                    {
                        desk.unreadable(&cause).await;
                        progress.done(position);
                    }
                }
            }
        });
        shift.crew.chats.insert(task.id(), chat);
    }

    /// Reads one page of the log, and one of the corrections that matched nothing, as far as they may have more. Answers
    /// which of them still may.
    async fn read_on(&self, shift: &mut Shift, due: Topics) -> Result<Topics, StoreError> {
        let mut left = Topics::NONE;
        let log = Topics::events(&FOLLOWED);
        if due.meets(log) && self.read_page(shift).await? == Log::More {
            left = left.and(log);
        }
        if due.meets(Topics::CORRECTIONS) && self.read_refusals(shift).await? == Log::More {
            left = left.and(Topics::CORRECTIONS);
        }
        Ok(left)
    }

    /// Reads one page of the log.
    async fn read_page(&self, shift: &mut Shift) -> Result<Log, StoreError> {
        let filter = EventFilter {
            types: FOLLOWED.to_vec(),
            after_position: shift.progress.read(),
            limit: DISPATCH_PAGE,
            ..EventFilter::default()
        };
        let events = self.desk.reader.events(filter).await?;
        let log = if events.len() as u64 >= u64::from(DISPATCH_PAGE) { Log::More } else { Log::AllRead };
        for event in events {
            self.take_on(shift, event).await?;
        }
        if shift.skipped >= SKIPPED_BEFORE_ADVANCE {
            self.desk.ledger.advance(shift.progress.cursor()).await?;
            shift.skipped = 0;
        }
        Ok(log)
    }

    async fn take_on(&self, shift: &mut Shift, event: StoredEvent) -> Result<(), StoreError> {
        let desk = &self.desk;
        let position = event.envelope.position;
        match letter_of(&desk.reader, desk.ledger.channel(), desk.switches, &event).await {
            Ok(Some(letter)) => {
                shift.progress.add(position);
                let begin = Begin::Event { position };
                shift.board.push(Job { letter, begin, event: Some(event) });
            }
            Ok(None) => shift.skip(position),
            Err(LetterError::Store(error)) => return Err(error),
            Err(LetterError::Payload(error)) => {
                tracing::error!(event = %event.envelope.id, error = %error, "an event cannot be delivered");
                desk.unreadable(&event.envelope.id).await;
                shift.skip(position);
            }
        }
        Ok(())
    }
}

impl Shift {
    fn skip(&mut self, position: u64) {
        self.progress.skip(position);
        self.skipped += 1;
    }

    fn ended(&mut self, ended: Result<(Id, ()), tokio::task::JoinError>) {
        let id = match ended {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!("work on a delivery broke off");
                error.id()
            }
        };
        if let Some(chat) = self.crew.chats.remove(&id) {
            self.board.finished(chat);
        }
    }
}

impl Desk {
    /// Tells of an event that cannot be read: the store was changed by something else.
    async fn unreadable(&self, event: &EventId) {
        let incident =
            Incident { kind: "delivery-unreadable".to_owned(), subject: event.to_string(), count: 1 };
        let recorded = match draft::incident(self.incidents.role(), &incident, self.clock.now()) {
            Ok(draft) => self.incidents.record(draft).await.map(drop).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = recorded {
            tracing::error!(%event, error, "no incident could be written");
        }
    }
}

async fn pause_of(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}
