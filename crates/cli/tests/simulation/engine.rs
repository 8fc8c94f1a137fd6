//! The store under faults. Every operation is over when it is first asked for: while the threads of the engine work, no task
//! moves and no time passes. Of a process that died, nothing comes back.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use thought_contract::event::{EventType, SourceName, StoredEvent};
use thought_contract::payload::DeliveryKind;
use thought_contract::run::RunState;
use thought_protocol::{DocumentId, EventId, RunId, VersionId};
use thought_store::audit::Audit;
use thought_store::command::Commit;
use thought_store::engine::Committed;
use thought_store::row::{
    AttemptRow, ChangeoverRow, ConsumerRow, ContextQuery, ContextRows, CorrectionRow, Counters,
    DeclarationRow, DeliveryRow, DeliveryState, DocumentRow, EventFilter, HistoryQuery, HistoryTurn,
    IntentRow, ProposalCounts, ProposalFilter, ProposalRow, RefusedChatRow, ReplyState, RunFilter, RunRow,
    SnapshotRow, SourceRow, SpoolCounts, SpoolRow, UsageRow, VersionRow,
};
use thought_store::{BoxFuture, Engine, Herald, News, Reads, StoreError, Topics};
use thought_store_sqlite::SqliteStore;

use crate::chaos::{Chaos, Fate};

type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits on this thread, whatever else it carries.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(tokio::task::unconstrained(future));
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// The engine of one process.
pub(crate) struct Chaotic {
    inner: Arc<SqliteStore>,
    chaos: Arc<Chaos>,
    herald: Herald,
}

impl fmt::Debug for Chaotic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chaotic")
    }
}

impl Chaotic {
    pub(crate) fn new(inner: Arc<SqliteStore>, chaos: Arc<Chaos>) -> Arc<Self> {
        Arc::new(Self { inner, chaos, herald: Herald::default() })
    }

    fn read<'a, T: Send + 'a>(&'a self, asked: Answer<'a, T>) -> Answer<'a, T> {
        Box::pin(async move {
            if self.chaos.is_dead() {
                std::future::pending::<()>().await;
            }
            if self.chaos.read_fails() {
                return Err(StoreError::Engine { operation: "read", what: "simulated".to_owned() });
            }
            now(asked)
        })
    }
}

impl Engine for Chaotic {
    fn commit(&self, commit: Commit) -> Answer<'_, Committed> {
        Box::pin(async move {
            let fate = if self.chaos.is_dead() { Fate::DiesBefore } else { self.chaos.on_commit() };
            if fate == Fate::DiesBefore {
                self.chaos.die();
                std::future::pending::<()>().await;
            }
            let topics = Topics::of(&commit);
            let outcome = now(self.inner.commit(commit));
            // One that is told as failed may have happened, and its news goes round all the same.
            self.herald.tell(topics);
            if fate == Fate::DiesAfter {
                self.chaos.die();
                std::future::pending::<()>().await;
            }
            outcome
        })
    }
}

/// Reads that are handed on, each with its own name.
macro_rules! handed_on {
    ($($name:ident($($argument:ident: $of:ty),*) -> $answer:ty;)*) => {
        impl Reads for Chaotic {
            fn news(&self) -> News {
                self.herald.news()
            }
            fn counters(&self) -> Counters {
                self.inner.counters()
            }
            $(fn $name(&self, $($argument: $of),*) -> Answer<'_, $answer> {
                self.read(self.inner.$name($($argument),*))
            })*
        }
    };
}

handed_on! {
    audit() -> Audit;
    event(id: EventId) -> Option<StoredEvent>;
    events(filter: EventFilter) -> Vec<StoredEvent>;
    source_events(source: SourceName, after: u64, limit: u32) -> Vec<StoredEvent>;
    children(parent: EventId, limit: u32) -> Vec<StoredEvent>;
    ids_with_prefix(prefix: String, limit: u32) -> Vec<String>;
    event_count() -> u64;
    event_count_of(event_type: EventType, at_most: u64) -> u64;
    sources() -> Vec<SourceRow>;
    source(source: SourceName) -> SourceRow;
    turn_ordinal(event: EventId) -> Option<(String, u64)>;
    history(query: HistoryQuery) -> Vec<HistoryTurn>;
    turn_ids(source: SourceName, conversation: String, from: u64, to: u64, limit: u32) -> Vec<EventId>;
    context(query: ContextQuery) -> Option<ContextRows>;
    run(id: RunId) -> Option<RunRow>;
    runs(filter: RunFilter) -> Vec<RunRow>;
    open_runs(declaration: String) -> Vec<RunRow>;
    run_counts() -> Vec<(RunState, u64)>;
    attempts(run: RunId) -> Vec<AttemptRow>;
    snapshot(run: RunId) -> Option<SnapshotRow>;
    proposals(filter: ProposalFilter) -> Vec<ProposalRow>;
    proposal(id: EventId) -> Option<ProposalRow>;
    proposal_counts() -> ProposalCounts;
    active_judgment(output: EventId) -> Option<EventId>;
    correction(command: EventId) -> Option<CorrectionRow>;
    refused_corrections(after_ordinal: u64, limit: u32) -> Vec<CorrectionRow>;
    reply_with_message(channel: SourceName, chat: i64, message: i64) -> Option<EventId>;
    newest_reply(channel: SourceName, chat: i64, thread: Option<i64>, before_position: u64) -> Option<EventId>;
    intent(decision: EventId) -> Option<IntentRow>;
    intents(limit: u32) -> Vec<IntentRow>;
    declaration(id: String) -> Option<DeclarationRow>;
    declarations() -> Vec<DeclarationRow>;
    changeovers() -> Vec<ChangeoverRow>;
    consumers() -> Vec<ConsumerRow>;
    documents(source: SourceName) -> Vec<DocumentRow>;
    document(id: DocumentId) -> Option<DocumentRow>;
    version(id: VersionId) -> Option<VersionRow>;
    spool(channel: SourceName, limit: u32) -> Vec<SpoolRow>;
    spool_counts(channel: SourceName) -> SpoolCounts;
    refused_chats(channel: SourceName) -> Vec<RefusedChatRow>;
    cursor(name: String) -> u64;
    delivery(cause: EventId, kind: DeliveryKind) -> Option<DeliveryRow>;
    unfinished_deliveries(channel: SourceName, states: Vec<DeliveryState>, limit: u32) -> Vec<DeliveryRow>;
    reply_state(output: EventId) -> ReplyState;
    usage(days: u32) -> Vec<UsageRow>;
    requests_on(declaration: String, day: String) -> u64;
}
