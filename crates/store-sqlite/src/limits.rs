//! Every bound of this engine, once.

/// Commits that may wait for the writer; a producer beyond them waits to hand its own over.
pub(crate) const COMMIT_QUEUE_MAX: usize = 256;
/// Commits that share one transaction.
pub(crate) const COMMITS_PER_TRANSACTION_MAX: usize = 128;
/// Reads that may wait for a reader.
pub(crate) const READ_QUEUE_MAX: usize = 256;
/// Reader threads.
pub(crate) const READERS_MAX: usize = 4;
/// Prepared statements that a connection keeps.
pub(crate) const STATEMENTS_KEPT: usize = 96;
/// Page cache of the writer, KiB.
pub(crate) const WRITER_CACHE_KIB: i64 = 512;
/// Page cache of a reader, KiB: all that the context of a turn reads, so that no page of it is read twice.
pub(crate) const READER_CACHE_KIB: i64 = 256;
/// Page cache of the connection that only looks for news, KiB.
pub(crate) const NEWS_CACHE_KIB: i64 = 16;
/// Time between two looks for news, milliseconds.
pub(crate) const NEWS_INTERVAL_MS: u64 = 5;
/// What the write-ahead log is cut to when it starts over, bytes.
pub(crate) const LOG_BYTES_KEPT: i64 = 64 * 1024 * 1024;
/// Pages in the write-ahead log at which each commit tries to move them into the database.
pub(crate) const CHECKPOINT_PAGES: i64 = 1000;
/// Length of the write-ahead log above which the writer itself asks for a fresh start, bytes.
pub(crate) const LOG_RESTART_BYTES: u64 = 32 * 1024 * 1024;
/// Commits between two such asks.
pub(crate) const LOG_RESTART_COMMITS: u64 = 64;
/// Stack of each thread, bytes; only what is used is resident.
pub(crate) const THREAD_STACK_BYTES: usize = 1024 * 1024;
/// Refused chats that are kept for a channel.
pub(crate) const REFUSED_CHATS_KEPT: u32 = 8;
/// Wait between two tries to open a store that another process is opening, milliseconds.
pub(crate) const OPEN_RETRY_MS: u64 = 10;
