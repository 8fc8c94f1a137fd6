//! The engine as the port sees it: hands commits to the writer, reads to the readers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

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
use thought_store::{BoxFuture, Engine, Herald, News, Reads, StoreError};
use tokio::sync::{mpsc, oneshot};

use crate::counters::{Totals, bytes_read_by_this_thread};
use crate::limits::{COMMIT_QUEUE_MAX, READ_QUEUE_MAX, READERS_MAX, THREAD_STACK_BYTES};
use crate::open::{self, OpenOptions, PageCounting, Purpose};
use crate::queue::Queue;
use crate::reader::{Reader, Request};
use crate::session::Session;
use crate::writer::{Job, Task, Writer};
use crate::{failure, news, read};

type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// An open store. Its threads end, and its connections close, when it is dropped.
pub struct SqliteStore {
    commits: Option<mpsc::Sender<Task>>,
    reads: Arc<Queue<Request>>,
    totals: Arc<Totals>,
    news: Herald,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SqliteStore")
    }
}

impl SqliteStore {
    /// Opens a store, making or migrating it where that is due and allowed. Blocks: call it before the runtime is busy.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`] for a missing file (unless it may be made), a link, anything that is no store of this
    /// product, a file that cannot be written, or one that another process keeps open while a migration is due;
    /// [`StoreError::Newer`] for a store of a newer schema; [`StoreError::NoSpace`] on a full disk.
    pub fn open(path: &Path, options: OpenOptions) -> Result<Arc<Self>, StoreError> {
        if options.page_counting == PageCounting::On && bytes_read_by_this_thread().is_none() {
            return Err(failure::unreachable("pages cannot be counted here"));
        }
        let path = open::prepare(path, &options)?;
        let mut store = Self {
            commits: None,
            reads: Arc::new(Queue::new(READ_QUEUE_MAX)),
            totals: Arc::new(Totals::default()),
            news: Herald::default(),
            stop: Arc::new(AtomicBool::new(false)),
            threads: Vec::new(),
        };
        store.start_writer(&path, &options)?;
        store.start_readers(&path, &options)?;
        store.start_news(&path, &options)?;
        Ok(Arc::new(store))
    }

    #[cfg(test)]
    pub(crate) fn totals(&self) -> &Totals {
        &self.totals
    }

    fn start_writer(&mut self, path: &Path, options: &OpenOptions) -> Result<(), StoreError> {
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        let connection = open::connect(path, Purpose::Write, options)?;
        let version = news::version(&connection).map_err(failure::during("look for news"))?;
        let writer = Writer {
            connection,
            totals: self.totals.clone(),
            news: self.news.clone(),
            faults: options.faults.clone(),
            page_counting: options.page_counting,
            busy_timeout_ms: options.busy_timeout_ms,
            log: log.into(),
            transactions: 0,
            log_restart_due: 0,
            data_version: Some(version),
        };
        let (sender, queue) = mpsc::channel(COMMIT_QUEUE_MAX);
        self.commits = Some(sender);
        self.spawn("store-writer", move || writer.run(queue))
    }

    fn start_readers(&mut self, path: &Path, options: &OpenOptions) -> Result<(), StoreError> {
        for _ in 0..options.readers.clamp(1, READERS_MAX) {
            let reader = Reader {
                connection: open::connect(path, Purpose::Read, options)?,
                totals: self.totals.clone(),
                page_counting: options.page_counting,
            };
            let queue = self.reads.clone();
            self.spawn("store-reader", move || reader.run(&queue))?;
        }
        Ok(())
    }

    fn start_news(&mut self, path: &Path, options: &OpenOptions) -> Result<(), StoreError> {
        let watch = news::Watch {
            connection: open::connect(path, Purpose::News, options)?,
            totals: self.totals.clone(),
            news: self.news.clone(),
            writer: self.commits.clone(),
            stop: self.stop.clone(),
        };
        self.spawn("store-news", move || watch.run())
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(THREAD_STACK_BYTES)
            .spawn(work)
            .map_err(|error| StoreError::Engine {
                operation: "start a thread",
                what: error.kind().to_string(),
            })?;
        self.threads.push(thread);
        Ok(())
    }

    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(Session<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<'_, T> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let request: Request = Box::new(move |reader| {
                // Whoever asked may have gone.
                let _gone = answer.send(reader.answer(read));
            });
            self.reads.put(request).await;
            match answered.await {
                Ok(value) => value,
                Err(_dropped) => Err(failure::engine("read", "the readers have stopped")),
            }
        })
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.reads.close();
        // The writer was started first and closes last: only it can move the log into the database.
        while let Some(thread) = self.threads.pop() {
            if self.threads.is_empty() {
                self.commits = None;
            }
            if thread.join().is_err() {
                tracing::error!("a thread of the store panicked");
            }
        }
    }
}

impl Engine for SqliteStore {
    fn commit(&self, commit: Commit) -> Answer<'_, Committed> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let job = Task::Commit(Job { commit, answer });
            let sent = match &self.commits {
                Some(commits) => commits.send(job).await.is_ok(),
                None => false,
            };
            match answered.await {
                Ok(outcome) if sent => outcome,
                _ => Err(failure::engine("commit", "the writer has stopped")),
            }
        })
    }
}

impl Reads for SqliteStore {
    fn news(&self) -> News {
        self.news.news()
    }
    fn counters(&self) -> Counters {
        self.totals.snapshot()
    }

    fn audit(&self) -> Answer<'_, Audit> {
        self.read(crate::audit::audit)
    }

    fn event(&self, id: EventId) -> Answer<'_, Option<StoredEvent>> {
        self.read(move |s| read::event::event(s, &id))
    }
    fn events(&self, filter: EventFilter) -> Answer<'_, Vec<StoredEvent>> {
        self.read(move |s| read::event::events(s, &filter))
    }
    fn source_events(&self, source: SourceName, after: u64, limit: u32) -> Answer<'_, Vec<StoredEvent>> {
        self.read(move |s| read::event::source_events(s, &source, after, limit))
    }
    fn children(&self, parent: EventId, limit: u32) -> Answer<'_, Vec<StoredEvent>> {
        self.read(move |s| read::event::children(s, &parent, limit))
    }
    fn ids_with_prefix(&self, prefix: String, limit: u32) -> Answer<'_, Vec<String>> {
        self.read(move |s| read::event::ids_with_prefix(s, &prefix, limit))
    }
    fn event_count(&self) -> Answer<'_, u64> {
        self.read(read::event::count)
    }
    fn event_count_of(&self, event_type: EventType, at_most: u64) -> Answer<'_, u64> {
        self.read(move |s| read::event::count_of(s, event_type, at_most))
    }
    fn sources(&self) -> Answer<'_, Vec<SourceRow>> {
        self.read(read::event::sources)
    }
    fn source(&self, source: SourceName) -> Answer<'_, SourceRow> {
        self.read(move |s| read::event::source(s, &source))
    }

    fn turn_ordinal(&self, event: EventId) -> Answer<'_, Option<(String, u64)>> {
        self.read(move |s| read::event::turn_ordinal(s, &event))
    }
    fn history(&self, query: HistoryQuery) -> Answer<'_, Vec<HistoryTurn>> {
        self.read(move |s| read::history::history(s, &query))
    }
    fn turn_ids(
        &self,
        source: SourceName,
        conversation: String,
        from: u64,
        to: u64,
        limit: u32,
    ) -> Answer<'_, Vec<EventId>> {
        self.read(move |s| read::event::turn_ids(s, &source, &conversation, (from, to), limit))
    }

    fn context(&self, query: ContextQuery) -> Answer<'_, Option<ContextRows>> {
        self.read(move |s| read::context::context(s, &query))
    }

    fn run(&self, id: RunId) -> Answer<'_, Option<RunRow>> {
        self.read(move |s| read::run::run(s, &id))
    }
    fn runs(&self, filter: RunFilter) -> Answer<'_, Vec<RunRow>> {
        self.read(move |s| read::run::runs(s, &filter))
    }
    fn open_runs(&self, declaration: String) -> Answer<'_, Vec<RunRow>> {
        self.read(move |s| read::run::open_runs(s, &declaration))
    }
    fn run_counts(&self) -> Answer<'_, Vec<(RunState, u64)>> {
        self.read(read::run::counts)
    }
    fn attempts(&self, run: RunId) -> Answer<'_, Vec<AttemptRow>> {
        self.read(move |s| read::run::attempts(s, &run))
    }
    fn snapshot(&self, run: RunId) -> Answer<'_, Option<SnapshotRow>> {
        self.read(move |s| read::run::snapshot(s, &run))
    }

    fn proposals(&self, filter: ProposalFilter) -> Answer<'_, Vec<ProposalRow>> {
        self.read(move |s| read::proposal::proposals(s, &filter))
    }
    fn proposal(&self, id: EventId) -> Answer<'_, Option<ProposalRow>> {
        self.read(move |s| read::proposal::proposal(s, &id))
    }
    fn proposal_counts(&self) -> Answer<'_, ProposalCounts> {
        self.read(read::proposal::counts)
    }

    fn active_judgment(&self, output: EventId) -> Answer<'_, Option<EventId>> {
        self.read(move |s| read::history::active_judgment(s, &output))
    }
    fn correction(&self, command: EventId) -> Answer<'_, Option<CorrectionRow>> {
        self.read(move |s| read::review::correction(s, &command))
    }
    fn refused_corrections(&self, after_ordinal: u64, limit: u32) -> Answer<'_, Vec<CorrectionRow>> {
        self.read(move |s| read::review::refused_corrections(s, after_ordinal, limit))
    }
    fn reply_with_message(
        &self,
        channel: SourceName,
        chat: i64,
        message: i64,
    ) -> Answer<'_, Option<EventId>> {
        self.read(move |s| read::review::reply_with_message(s, &channel, chat, message))
    }
    fn newest_reply(
        &self,
        channel: SourceName,
        chat: i64,
        thread: Option<i64>,
        before_position: u64,
    ) -> Answer<'_, Option<EventId>> {
        self.read(move |s| read::review::newest_reply(s, &channel, (chat, thread), before_position))
    }
    fn intent(&self, decision: EventId) -> Answer<'_, Option<IntentRow>> {
        self.read(move |s| read::review::intent(s, &decision))
    }
    fn intents(&self, limit: u32) -> Answer<'_, Vec<IntentRow>> {
        self.read(move |s| read::review::intents(s, limit))
    }

    fn declaration(&self, id: String) -> Answer<'_, Option<DeclarationRow>> {
        self.read(move |s| read::run::declaration(s, &id))
    }
    fn declarations(&self) -> Answer<'_, Vec<DeclarationRow>> {
        self.read(read::run::declarations)
    }
    fn changeovers(&self) -> Answer<'_, Vec<ChangeoverRow>> {
        self.read(read::run::changeovers)
    }
    fn consumers(&self) -> Answer<'_, Vec<ConsumerRow>> {
        self.read(read::run::consumers)
    }

    fn documents(&self, source: SourceName) -> Answer<'_, Vec<DocumentRow>> {
        self.read(move |s| read::document::documents(s, &source))
    }
    fn document(&self, id: DocumentId) -> Answer<'_, Option<DocumentRow>> {
        self.read(move |s| read::document::document(s, &id))
    }
    fn version(&self, id: VersionId) -> Answer<'_, Option<VersionRow>> {
        self.read(move |s| read::document::version(s, &id))
    }

    fn spool(&self, channel: SourceName, limit: u32) -> Answer<'_, Vec<SpoolRow>> {
        self.read(move |s| read::channel::spool(s, &channel, limit))
    }
    fn spool_counts(&self, channel: SourceName) -> Answer<'_, SpoolCounts> {
        self.read(move |s| read::channel::spool_counts(s, &channel))
    }
    fn refused_chats(&self, channel: SourceName) -> Answer<'_, Vec<RefusedChatRow>> {
        self.read(move |s| read::channel::refused_chats(s, &channel))
    }

    fn cursor(&self, name: String) -> Answer<'_, u64> {
        self.read(move |s| read::channel::cursor(s, &name))
    }
    fn delivery(&self, cause: EventId, kind: DeliveryKind) -> Answer<'_, Option<DeliveryRow>> {
        self.read(move |s| read::channel::delivery(s, &cause, kind))
    }
    fn unfinished_deliveries(
        &self,
        channel: SourceName,
        states: Vec<DeliveryState>,
        limit: u32,
    ) -> Answer<'_, Vec<DeliveryRow>> {
        self.read(move |s| read::channel::unfinished(s, &channel, &states, limit))
    }
    fn reply_state(&self, output: EventId) -> Answer<'_, ReplyState> {
        self.read(move |s| read::channel::reply_state(s, &output))
    }
    fn usage(&self, days: u32) -> Answer<'_, Vec<UsageRow>> {
        self.read(move |s| read::run::usage(s, days))
    }
    fn requests_on(&self, declaration: String, day: String) -> Answer<'_, u64> {
        self.read(move |s| read::run::requests_on(s, &declaration, &day))
    }
}
