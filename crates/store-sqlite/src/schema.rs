//! The schema: strict tables, and the steps that lead from one version to the next.
//!
//! A step is never edited once it was released; a new version adds one. Columns that may hold content are named
//! `payload`, `content`, `bytes`, `body`, or end in `_content`; no other column may hold any.
//!
//! Where a row names an event or a run, its position or ordinal stands beside its id, and the index is over that: ids are
//! hashes, so each lands on a page of its own somewhere in a large index, while what came together lies together by
//! position. A turn touches few pages however long the log is. The id is what counts; that the two agree is audited.

use rusqlite::{Connection, TransactionBehavior};
use thought_store::StoreError;

use crate::failure;

/// The schema that this binary writes.
pub const SCHEMA_VERSION: i64 = STEPS.len() as i64;

/// `thgt`: what tells this store from any other SQLite file.
pub(crate) const APPLICATION_ID: i64 = 0x7468_6774;

const STEPS: &[&str] = &[FIRST, PROPOSALS, INTENTS, CORRECTIONS, CHANGEOVERS, TURN_IDS, POSITIONS];

const FIRST: &str = "
-- One row per source, with the head of its hash chain.
CREATE TABLE sources (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    head INTEGER NOT NULL,
    head_sha256 TEXT NOT NULL
) STRICT;

-- The log. Rows are added and never changed; the position is the order of commit.
CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    source INTEGER NOT NULL REFERENCES sources (id),
    sequence INTEGER NOT NULL,
    actor TEXT NOT NULL,
    root_id TEXT NOT NULL,
    parent_id TEXT,
    correlation_id TEXT,
    external_id TEXT,
    occurred_ms INTEGER NOT NULL,
    recorded_ms INTEGER NOT NULL,
    payload_sha256 TEXT NOT NULL,
    previous_sha256 TEXT NOT NULL,
    chain_sha256 TEXT NOT NULL,
    equality_sha256 TEXT NOT NULL,
    conversation TEXT,
    conversation_ordinal INTEGER,
    payload BLOB NOT NULL,
    UNIQUE (source, sequence)
) STRICT;
CREATE INDEX events_by_type ON events (type, position);
CREATE INDEX events_by_root ON events (root_id, position);
CREATE INDEX events_by_parent ON events (parent_id, position) WHERE parent_id IS NOT NULL;
CREATE UNIQUE INDEX events_by_conversation ON events (source, conversation, conversation_ordinal)
    WHERE conversation_ordinal IS NOT NULL;

CREATE TABLE conversations (
    source INTEGER NOT NULL REFERENCES sources (id),
    name TEXT NOT NULL,
    last_ordinal INTEGER NOT NULL,
    PRIMARY KEY (source, name)
) STRICT, WITHOUT ROWID;

-- What each judgment is about, so that the active one of an output is found without reading payloads.
CREATE TABLE judgments (
    position INTEGER PRIMARY KEY,
    event TEXT NOT NULL UNIQUE,
    output TEXT NOT NULL,
    supersedes TEXT
) STRICT;
CREATE INDEX judgments_by_output ON judgments (output, position);
CREATE INDEX judgments_by_superseded ON judgments (supersedes) WHERE supersedes IS NOT NULL;

CREATE TABLE spool (
    ordinal INTEGER PRIMARY KEY,
    channel INTEGER NOT NULL REFERENCES sources (id),
    update_id INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    parked INTEGER NOT NULL,
    arrived_ms INTEGER NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (channel, update_id)
) STRICT;

CREATE TABLE channels (
    source INTEGER PRIMARY KEY REFERENCES sources (id),
    dropped INTEGER NOT NULL
) STRICT;

CREATE TABLE refused_chats (
    channel INTEGER NOT NULL REFERENCES sources (id),
    chat INTEGER NOT NULL,
    kind TEXT NOT NULL,
    updates INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    last_ms INTEGER NOT NULL,
    PRIMARY KEY (channel, chat)
) STRICT, WITHOUT ROWID;

CREATE TABLE declarations (
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    active INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    activated_ms INTEGER NOT NULL,
    declaration_content BLOB NOT NULL,
    prompt_content BLOB NOT NULL,
    manifest_content BLOB NOT NULL,
    PRIMARY KEY (id, version)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX declarations_active ON declarations (id) WHERE active = 1;

CREATE TABLE consumers (
    declaration TEXT NOT NULL,
    source INTEGER NOT NULL REFERENCES sources (id),
    version INTEGER NOT NULL,
    scanned INTEGER NOT NULL,
    progress INTEGER NOT NULL,
    PRIMARY KEY (declaration, source)
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
    ordinal INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    declaration TEXT NOT NULL,
    version INTEGER NOT NULL,
    trigger_id TEXT NOT NULL,
    source INTEGER NOT NULL REFERENCES sources (id),
    sequence INTEGER NOT NULL,
    conversation TEXT NOT NULL,
    retry INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    attempts INTEGER NOT NULL,
    snapshot_id TEXT,
    output_id TEXT,
    output_position INTEGER,
    terminal_id TEXT,
    terminal_position INTEGER,
    admitted_ms INTEGER NOT NULL,
    ended_ms INTEGER
) STRICT;
-- By the trigger's place instead of its id: what belongs to one conversation lies together.
CREATE INDEX runs_by_trigger ON runs (source, sequence, ordinal);
CREATE INDEX runs_by_state ON runs (state, ordinal);
CREATE INDEX runs_by_output ON runs (output_id) WHERE output_id IS NOT NULL;
CREATE INDEX runs_open ON runs (declaration, source, sequence) WHERE ended_ms IS NULL;

-- Kept beside the runs, so that a count costs nothing.
CREATE TABLE run_counts (
    state TEXT PRIMARY KEY,
    runs INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE attempts (
    id TEXT PRIMARY KEY,
    run TEXT NOT NULL REFERENCES runs (id),
    ordinal INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    sandbox TEXT NOT NULL,
    day TEXT NOT NULL,
    started_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    input_tokens INTEGER,
    output_tokens INTEGER,
    UNIQUE (run, ordinal)
) STRICT;

CREATE TABLE snapshots (
    id TEXT PRIMARY KEY,
    run TEXT NOT NULL UNIQUE REFERENCES runs (id),
    sha256 TEXT NOT NULL,
    packet_sha256 TEXT NOT NULL,
    bytes BLOB NOT NULL
) STRICT;

CREATE TABLE usage (
    day TEXT NOT NULL,
    declaration TEXT NOT NULL,
    requests INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    PRIMARY KEY (day, declaration)
) STRICT, WITHOUT ROWID;

CREATE TABLE versions (
    id TEXT PRIMARY KEY,
    document TEXT NOT NULL,
    previous TEXT,
    source INTEGER NOT NULL REFERENCES sources (id),
    path TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    byte_count INTEGER NOT NULL,
    content_type TEXT NOT NULL,
    frontmatter_id TEXT,
    event TEXT NOT NULL,
    content BLOB NOT NULL
) STRICT;

-- The pointer of each document; a removed one keeps naming its last version.
CREATE TABLE documents (
    id TEXT PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES sources (id),
    path TEXT NOT NULL,
    version TEXT NOT NULL REFERENCES versions (id),
    present INTEGER NOT NULL,
    UNIQUE (source, path)
) STRICT;

CREATE TABLE deliveries (
    ordinal INTEGER PRIMARY KEY,
    cause TEXT NOT NULL,
    cause_position INTEGER,
    kind TEXT NOT NULL,
    channel INTEGER NOT NULL REFERENCES sources (id),
    chat INTEGER NOT NULL,
    thread INTEGER,
    state TEXT NOT NULL,
    reason TEXT,
    receipt TEXT,
    receipt_position INTEGER,
    opened_ms INTEGER NOT NULL,
    UNIQUE (cause, kind)
) STRICT;
CREATE INDEX deliveries_by_cause ON deliveries (cause_position, kind) WHERE cause_position IS NOT NULL;
CREATE INDEX deliveries_unfinished ON deliveries (channel, ordinal) WHERE state <> 'delivered';

CREATE TABLE chunks (
    delivery INTEGER NOT NULL REFERENCES deliveries (ordinal),
    ordinal INTEGER NOT NULL,
    state TEXT NOT NULL,
    utf16_length INTEGER NOT NULL,
    message INTEGER,
    confirmed_by TEXT,
    PRIMARY KEY (delivery, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE cursors (
    name TEXT PRIMARY KEY,
    position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE roles (
    role TEXT PRIMARY KEY,
    at_work INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// The index of proposals, filled from the events that are there. Reading payloads is for this step alone: afterwards
/// whoever appends a proposal says what the index must know.
const PROPOSALS: &str = "
CREATE TABLE proposals (
    position INTEGER PRIMARY KEY,
    event TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    run TEXT,
    document TEXT,
    base_version TEXT,
    state TEXT NOT NULL,
    proposed_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX proposals_by_state ON proposals (state, kind, position);
-- The oldest of a state is found without its kind.
CREATE INDEX proposals_by_age ON proposals (state, position);

-- Kept beside the proposals, so that a count costs nothing.
CREATE TABLE proposal_counts (
    state TEXT PRIMARY KEY,
    proposals INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO proposals (position, event, kind, run, document, base_version, state, proposed_ms)
SELECT position, id,
    CASE type
        WHEN 'stream.thought.agent.memory-change.proposed@1' THEN 'memory-change'
        WHEN 'stream.thought.agent.correction.proposed@1' THEN 'self-correction'
        ELSE 'focus-declaration'
    END,
    json_extract(CAST(payload AS TEXT), '$.proposer.run'),
    json_extract(CAST(payload AS TEXT), '$.target.documentId'),
    json_extract(CAST(payload AS TEXT), '$.target.versionId'),
    CASE type WHEN 'stream.thought.focus.declaration.proposed@1' THEN 'inert' ELSE 'undecided' END,
    recorded_ms
FROM events
WHERE type IN ('stream.thought.agent.memory-change.proposed@1', 'stream.thought.agent.correction.proposed@1',
    'stream.thought.focus.declaration.proposed@1')
ORDER BY position;
INSERT INTO proposal_counts (state, proposals) SELECT state, count(*) FROM proposals GROUP BY state;
";

/// What is about to be written into a document, so that a dead process's work is taken up.
const INTENTS: &str = "
CREATE TABLE intents (
    decision TEXT PRIMARY KEY,
    proposal TEXT NOT NULL,
    expected_sha256 TEXT NOT NULL,
    temporary TEXT NOT NULL,
    made_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// What became of people's own corrections, and the ways from a message or a chat to the reply that is meant.
const CORRECTIONS: &str = "
CREATE TABLE corrections (
    ordinal INTEGER PRIMARY KEY,
    command TEXT NOT NULL UNIQUE,
    judgment TEXT,
    reason TEXT
) STRICT;
CREATE INDEX corrections_refused ON corrections (ordinal) WHERE reason IS NOT NULL;
CREATE INDEX chunks_by_message ON chunks (message) WHERE message IS NOT NULL;
CREATE INDEX deliveries_by_chat ON deliveries (channel, chat, thread, receipt_position) WHERE kind = 'reply';
";

/// The ids of a conversation's turns stand in its index: the ids of older turns, which a context names and does not read,
/// came from one page each. The ordinals are handed out by `conversations`, one after the other.
const TURN_IDS: &str = "
DROP INDEX events_by_conversation;
CREATE UNIQUE INDEX events_by_conversation ON events (source, conversation, conversation_ordinal, id)
    WHERE conversation_ordinal IS NOT NULL;
";

/// What hung on ids alone hangs on positions and ordinals: the one index over ids that a table keeps is the one that
/// makes them unique, and the tables that a run leads to need none.
const POSITIONS: &str = "
ALTER TABLE events ADD COLUMN root_position INTEGER;
ALTER TABLE events ADD COLUMN parent_position INTEGER;
UPDATE events SET root_position = (SELECT named.position FROM events AS named WHERE named.id = events.root_id),
    parent_position = (SELECT named.position FROM events AS named WHERE named.id = events.parent_id);
DROP INDEX events_by_root;
DROP INDEX events_by_parent;
CREATE INDEX events_by_root ON events (root_position, position);
CREATE INDEX events_by_parent ON events (parent_position, position) WHERE parent_position IS NOT NULL;

DROP INDEX runs_by_output;
CREATE INDEX runs_by_output ON runs (output_position) WHERE output_position IS NOT NULL;

CREATE TABLE attempts_by_run (
    run_ordinal INTEGER NOT NULL REFERENCES runs (ordinal),
    ordinal INTEGER NOT NULL,
    id TEXT NOT NULL,
    run TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    sandbox TEXT NOT NULL,
    day TEXT NOT NULL,
    started_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    input_tokens INTEGER,
    output_tokens INTEGER,
    UNIQUE (run_ordinal, ordinal)
) STRICT;
INSERT INTO attempts_by_run
SELECT runs.ordinal, attempts.ordinal, attempts.id, attempts.run, attempts.state, attempts.reason, attempts.sandbox,
    attempts.day, attempts.started_ms, attempts.ended_ms, attempts.input_tokens, attempts.output_tokens
FROM attempts JOIN runs ON runs.id = attempts.run ORDER BY runs.ordinal, attempts.ordinal;
DROP TABLE attempts;
ALTER TABLE attempts_by_run RENAME TO attempts;
-- Those that are open, which are few: an attempt is ended by its id.
CREATE UNIQUE INDEX attempts_started ON attempts (id) WHERE state = 'started';

CREATE TABLE snapshots_by_run (
    run_ordinal INTEGER PRIMARY KEY REFERENCES runs (ordinal),
    id TEXT NOT NULL,
    run TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    packet_sha256 TEXT NOT NULL,
    bytes BLOB NOT NULL
) STRICT;
INSERT INTO snapshots_by_run
SELECT runs.ordinal, snapshots.id, snapshots.run, snapshots.sha256, snapshots.packet_sha256, snapshots.bytes
FROM snapshots JOIN runs ON runs.id = snapshots.run ORDER BY runs.ordinal;
DROP TABLE snapshots;
ALTER TABLE snapshots_by_run RENAME TO snapshots;

CREATE TABLE deliveries_by_position (
    ordinal INTEGER PRIMARY KEY,
    cause TEXT NOT NULL,
    cause_position INTEGER NOT NULL,
    kind TEXT NOT NULL,
    channel INTEGER NOT NULL REFERENCES sources (id),
    chat INTEGER NOT NULL,
    thread INTEGER,
    state TEXT NOT NULL,
    reason TEXT,
    receipt TEXT,
    receipt_position INTEGER,
    opened_ms INTEGER NOT NULL
) STRICT;
INSERT INTO deliveries_by_position
SELECT deliveries.ordinal, cause, events.position, kind, channel, chat, thread, state, reason, receipt,
    receipt_position, opened_ms
FROM deliveries LEFT JOIN events ON events.id = deliveries.cause ORDER BY deliveries.ordinal;
DROP TABLE deliveries;
ALTER TABLE deliveries_by_position RENAME TO deliveries;
CREATE UNIQUE INDEX deliveries_by_cause ON deliveries (cause_position, kind);
CREATE INDEX deliveries_unfinished ON deliveries (channel, ordinal) WHERE state <> 'delivered';
CREATE INDEX deliveries_by_chat ON deliveries (channel, chat, thread, receipt_position) WHERE kind = 'reply';

-- Where the receipt of a run's reply stands: a history needs no delivery for a turn that was delivered.
ALTER TABLE runs ADD COLUMN reply_position INTEGER;
UPDATE runs SET reply_position = (SELECT receipt_position FROM deliveries
    WHERE cause_position = runs.output_position AND kind = 'reply' AND state = 'delivered');
";

/// Declarations that are changed while they are at work: what is asked of the roles, and which did it.
const CHANGEOVERS: &str = "
CREATE TABLE changeovers (
    declaration TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    token TEXT NOT NULL,
    stage TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE changeover_heads (
    declaration TEXT NOT NULL REFERENCES changeovers (declaration) ON DELETE CASCADE,
    source INTEGER NOT NULL REFERENCES sources (id),
    head INTEGER NOT NULL,
    PRIMARY KEY (declaration, source)
) STRICT, WITHOUT ROWID;
CREATE TABLE changeover_acks (
    declaration TEXT NOT NULL REFERENCES changeovers (declaration) ON DELETE CASCADE,
    role TEXT NOT NULL,
    PRIMARY KEY (declaration, role)
) STRICT, WITHOUT ROWID;
";

/// What a file says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing was written yet.
    Empty,
    /// A store of this schema version.
    Store(i64),
    /// A database of something else.
    Foreign,
}

/// Looks at the marks of a file.
pub(crate) fn look(connection: &Connection) -> Result<Found, rusqlite::Error> {
    // One state for all three looks: another process may be making the store at this moment.
    let state = connection.unchecked_transaction()?;
    let read = |pragma| state.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let (application, version) = (read("application_id")?, read("user_version")?);
    let objects: i64 = state.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    state.finish()?;
    if application == APPLICATION_ID {
        return Ok(Found::Store(version));
    }
    Ok(if application == 0 && version == 0 && objects == 0 { Found::Empty } else { Found::Foreign })
}

/// What a migration came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Migration {
    /// The schema is current now.
    Done,
    /// Another connection was in the way.
    Busy,
}

/// Brings the schema up to date, if nobody else has the store open. The connection keeps the file to itself until it is
/// closed.
pub(crate) fn migrate(connection: &mut Connection) -> Result<Migration, StoreError> {
    match steps(connection) {
        Ok(()) => Ok(Migration::Done),
        Err(error) if failure::is_busy(&error) => Ok(Migration::Busy),
        Err(error) => Err(failure::of("migrate the schema", &error)),
    }
}

fn steps(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    // Exclusive also in write-ahead mode: there it is refused as long as anyone else has the file open.
    connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))?;
    // A step may make a table anew that others name; none of them may follow it when it goes.
    connection.pragma_update(None, "foreign_keys", false)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let done = usize::try_from(version).unwrap_or(usize::MAX);
    for step in STEPS.iter().skip(done) {
        transaction.execute_batch(step)?;
    }
    if done < STEPS.len() {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    }
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        assert_eq!(look(&connection).unwrap(), Found::Empty);
        assert_eq!(migrate(&mut connection).unwrap(), Migration::Done);
        connection
    }

    #[test]
    fn a_fresh_store_is_current_and_migrating_again_changes_nothing() {
        let mut connection = fresh();
        assert_eq!(look(&connection).unwrap(), Found::Store(SCHEMA_VERSION));
        assert_eq!(migrate(&mut connection).unwrap(), Migration::Done);
    }

    #[test]
    fn a_store_of_the_first_version_is_indexed_from_its_events() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(FIRST).unwrap();
        connection.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        connection.execute_batch("INSERT INTO sources VALUES (1, 'agent:a', 4, '00')").unwrap();
        let target = r#"{"documentId":"doc_1","path":"memory.md","versionId":"ver_1"}"#;
        for (position, event_type, target) in [
            (1, "stream.thought.derived.message.observation@1", "null"),
            (2, "stream.thought.agent.memory-change.proposed@1", target),
            (3, "stream.thought.focus.declaration.proposed@1", "null"),
            (4, "stream.thought.agent.correction.proposed@1", r#"{"output":"evt_0"}"#),
        ] {
            let payload = format!(r#"{{"proposer":{{"run":"run_1"}},"target":{target}}}"#).into_bytes();
            connection
                .execute(
                    "INSERT INTO events (position, id, type, source, sequence, actor, root_id, occurred_ms, recorded_ms,
                        payload_sha256, previous_sha256, chain_sha256, equality_sha256, payload)
                     VALUES (?1, 'evt_' || ?1, ?2, 1, ?1, 'a', 'r', 5, 70 + ?1, '', '', '', '', ?3)",
                    rusqlite::params![position, event_type, payload],
                )
                .unwrap();
        }
        assert_eq!(look(&connection).unwrap(), Found::Store(1));
        assert_eq!(migrate(&mut connection).unwrap(), Migration::Done);
        assert_eq!(look(&connection).unwrap(), Found::Store(SCHEMA_VERSION));
        let mut rows = connection
            .prepare(
                "SELECT concat_ws(' ', position, event, kind, run, document, base_version, state, proposed_ms)
                 FROM proposals ORDER BY position",
            )
            .unwrap();
        let rows: Vec<String> = rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(
            rows,
            [
                "2 evt_2 memory-change run_1 doc_1 ver_1 undecided 72",
                "3 evt_3 focus-declaration run_1 inert 73",
                "4 evt_4 self-correction run_1 undecided 74",
            ]
        );
        let counted = "SELECT group_concat(state || proposals) FROM proposal_counts ORDER BY state";
        let counted: String = connection.query_row(counted, [], |row| row.get(0)).unwrap();
        assert_eq!(counted, "inert1,undecided2");
    }

    #[test]
    fn another_database_is_told_apart() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE theirs (a)").unwrap();
        assert_eq!(look(&connection).unwrap(), Found::Foreign);
    }

    #[test]
    fn every_table_is_strict_and_only_named_columns_can_hold_bytes() {
        let connection = fresh();
        let mut tables =
            connection.prepare("SELECT name, strict FROM pragma_table_list WHERE schema = 'main'").unwrap();
        let names: Vec<(String, bool)> = tables
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .map(Result::unwrap)
            .filter(|(name, _): &(String, bool)| !name.starts_with("sqlite_"))
            .collect();
        assert!(names.len() > 15);
        for (table, strict) in names {
            assert!(strict, "{table}");
            let mut columns = connection.prepare("SELECT name, type FROM pragma_table_info(?1)").unwrap();
            let columns = columns.query_map([&table], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            for (column, kind) in columns.map(Result::<(String, String), _>::unwrap) {
                let may_hold_content = ["payload", "content", "bytes", "body"].contains(&column.as_str())
                    || column.ends_with("_content");
                assert_eq!(kind == "BLOB", may_hold_content, "{table}.{column}");
            }
        }
    }
}
