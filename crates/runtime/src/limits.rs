//! The bounds of this room that no other room shares.

/// Events of a source that one look reads.
pub const SCAN_PAGE: u32 = 32;
/// Admitted runs that a consumer keeps in mind; the rest of a backlog waits in the store or in the log.
pub const WINDOW_RUNS_MAX: usize = 256;
/// Runs that one look for new rows reads.
pub const ROW_PAGE: u32 = 64;
/// Wait between looks at a held run when nothing else tells of a change, milliseconds.
pub const HELD_RECHECK_MS: u64 = 30_000;
/// Longest wait after a store failure before a run is taken again, milliseconds; the wait doubles from
/// [`thought_protocol::limits::BACKOFF_FIRST_MS`].
pub const STORE_BACKOFF_MS_MAX: u64 = 30_000;
/// Tries of a settlement whose commit failed for a reason of the machine, the first included.
pub const SETTLE_TRIES_MAX: u32 = 5;
/// Runs of one trigger that an operator's retry looks at.
pub const RUNS_PER_TRIGGER_MAX: u32 = 1_000;
/// How often `run-abandon` reads again when the run moved under it.
pub const ABANDON_TRIES_MAX: u32 = 8;
/// A wait for a private message's run looks again after this many milliseconds, also without news.
pub const WAIT_LOOK_MS: u64 = 1_000;
/// Longest id of a thread or message between agents, characters.
pub const MAIL_ID_CHARACTERS_MAX: usize = 128;
/// How long news is gathered while a request is on, before it is looked whether its run was ended elsewhere,
/// milliseconds.
pub const ENDED_LOOK_MS: u64 = 250;

/// How long it is waited until nothing spooled becomes an event, milliseconds.
pub(crate) const FREEZE_WAIT_MS: u64 = 30_000;
/// How long it is waited until a version has settled what came before its change, milliseconds.
pub(crate) const DRAIN_WAIT_MS: u64 = 15 * 60_000;
/// How often it is looked where a change stands, and whether who asked for it is there, milliseconds.
pub(crate) const CHANGEOVER_LOOK_MS: u64 = 250;
