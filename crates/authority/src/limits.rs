//! Bounds of this room that no contract names. Those that do stand in the protocol's limits.

use std::time::Duration;

/// Levels of folders that are looked into, the root counted.
pub const DEPTH_MAX: usize = 4;
/// Documents of one root.
pub const DOCUMENTS_MAX: usize = 256;
/// Names of any kind that one walk of a root reads.
pub const ENTRIES_MAX: usize = 16_384;
/// Folders that are watched, the root counted.
pub(crate) const FOLDERS_WATCHED_MAX: usize = 64;
/// Content that a scan holds in memory before it is stored, bytes; one document may go beyond it.
pub(crate) const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Tries of reading a file that somebody writes meanwhile.
pub(crate) const READ_TRIES_MAX: u32 = 3;
/// Tries of one document whose pointer another process moves meanwhile.
pub(crate) const POINTER_TRIES_MAX: u32 = 4;
/// Pause before a document that seems gone or emptied is believed to be: a save may be under way.
pub(crate) const SECOND_LOOK_PAUSE: Duration = Duration::from_millis(30);

/// Bytes of lock evidence that are read.
pub(crate) const EVIDENCE_BYTES_MAX: usize = 1_024;
/// Highest process id that Linux gives.
pub(crate) const PID_MAX: u32 = 4_194_304;
/// Pause between two tries of a lock that is held.
pub(crate) const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(20);

/// How long two changes of a file may bear the same time, nanoseconds: two ticks of the slowest kernel clock.
pub(crate) const TICK_NS: i128 = 20_000_000;
/// The same where the file system keeps whole seconds.
pub(crate) const COARSE_TICK_NS: i128 = 2_000_000_000;

/// How long a root must be quiet before its watch tells, milliseconds: one save is several steps.
pub(crate) const QUIET_MS: i64 = 25;
/// Rounds of that before it tells all the same.
pub(crate) const QUIET_ROUNDS_MAX: u32 = 10;
/// Pause between two looks for a root that went away, milliseconds.
pub(crate) const REARM_PAUSE_MS: i64 = 1_000;

/// Operators' proposals that may go back to one another before a model's is reached.
pub(crate) const LINEAGE_DEPTH_MAX: usize = 64;
/// Exchanges with somebody who saves again and again, before it is left for the next try.
pub(crate) const EXCHANGES_MAX: u32 = 1_000;
/// How long a projector waits for the root lock.
pub const PROJECTION_LOCK_WAIT: Duration = Duration::from_secs(10);
/// What a submission may call itself, characters.
pub const SUBMISSION_ID_CHARACTERS_MAX: usize = 128;
/// What follows a decision: a judgment, a receipt, or one failure of each reason.
pub(crate) const RECORDED_MAX: u32 = 32;
/// Tries of a judgment whose predecessor another one takes the place of meanwhile.
pub(crate) const JUDGMENT_TRIES_MAX: u32 = 16;
/// Decided proposals that one page of a reconciliation reads.
pub(crate) const RECONCILE_PAGE: u32 = 256;
/// Commands that one page of the projector of corrections reads.
pub(crate) const COMMANDS_PAGE: u32 = 64;
/// Judgments that one page of an export reads.
pub(crate) const JUDGMENTS_PAGE: u32 = 64;
/// Declaration versions that an export keeps at hand.
pub(crate) const DECLARATIONS_KEPT_MAX: usize = 16;
/// What an example takes beside its words, at the least: its ids and the names of its members, bytes.
pub(crate) const EXAMPLE_BYTES_MIN: u64 = 640;
/// What an export leaves free on its file system, bytes.
pub(crate) const SPARE_BYTES: u64 = 64 * 1024;
/// Names of an export's folder that are looked at for leftovers.
pub(crate) const LEFTOVERS_LOOKED_AT_MAX: usize = 65_536;
/// A manifest, bytes.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 1024 * 1024;
/// Folders above an export that are looked at for a git work tree.
pub(crate) const ANCESTORS_MAX: usize = 256;
/// Pause before a projector that found the root lock held tries again, while nothing else happens.
pub(crate) const LOCKED_RETRY_PAUSE: Duration = Duration::from_secs(5);

/// A name of a file, bytes: what file systems of Linux take.
pub(crate) const NAME_BYTES_MAX: usize = 255;
