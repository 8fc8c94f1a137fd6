//! What holds between the rows beside the log and the events that they were made from. Each rule is a query for the rows
//! that break it; the first column names such a row.

/// One rule.
pub(super) struct Rule {
    /// The table whose rows break it.
    pub(super) table: &'static str,
    /// What is wrong with them.
    pub(super) fault: &'static str,
    /// Which do.
    pub(super) sql: &'static str,
}

macro_rules! rules {
    ($($table:literal, $fault:literal, $sql:expr;)*) => {
        &[$(Rule { table: $table, fault: $fault, sql: $sql },)*]
    };
}

/// What stands in a rule for the size that a payload has at most, bytes.
pub(super) const PAYLOAD_BYTES_MAX: &str = "PAYLOAD_BYTES_MAX";

/// An event's payload as text. Of one that is too large, or no JSON, it is nothing: the walk of the log names such an event,
/// and a function that met it would end the whole audit.
macro_rules! payload {
    ($event:literal) => {
        concat!(
            "(CASE WHEN length(",
            $event,
            ".payload) <= PAYLOAD_BYTES_MAX AND json_valid(CAST(",
            $event,
            ".payload AS TEXT)) THEN CAST(",
            $event,
            ".payload AS TEXT) END)"
        )
    };
}

/// A member of an event's payload.
macro_rules! member {
    ($event:literal, $path:literal) => {
        concat!("json_extract(", payload!($event), ", '$.", $path, "')")
    };
}

/// The rows of a table whose event is not there, not of that type, or says something else.
macro_rules! unlike {
    ($select:literal, $type:literal, $($same:expr),+) => {
        concat!($select, " WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.type = 'stream.thought.", $type, "'",
            $(" AND ", $same,)+ ")")
    };
}

/// The events of a type that a table has no row for.
macro_rules! unkept {
    ($type:literal, $row:expr) => {
        concat!(
            "SELECT e.id FROM events e WHERE e.type = 'stream.thought.",
            $type,
            "' AND NOT EXISTS (",
            $row,
            ")"
        )
    };
}

/// Every rule.
pub(super) const RULES: &[Rule] = rules! {
    "sources", "head", "SELECT name FROM sources WHERE head <> (SELECT count(*) FROM events WHERE source = sources.id)";
    "sources", "head-hash", "SELECT name FROM sources WHERE head_sha256 IS NOT coalesce(
        (SELECT chain_sha256 FROM events WHERE source = sources.id AND sequence = head),
        '0000000000000000000000000000000000000000000000000000000000000000')";
    "sources", "unused", "SELECT name FROM sources WHERE head = 0
        AND id NOT IN (SELECT source FROM consumers) AND id NOT IN (SELECT channel FROM spool)
        AND id NOT IN (SELECT source FROM channels) AND id NOT IN (SELECT channel FROM refused_chats)
        AND id NOT IN (SELECT channel FROM deliveries) AND id NOT IN (SELECT source FROM runs)
        AND name NOT LIKE 'telegram:%' AND name NOT LIKE 'agent-message:%'";
    "conversations", "last-ordinal", "SELECT name FROM conversations c WHERE last_ordinal IS NOT
        (SELECT max(conversation_ordinal) FROM events WHERE source = c.source AND conversation = c.name)";
    "events", "conversation-unknown", "SELECT id FROM events e WHERE conversation IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM conversations c WHERE c.source = e.source AND c.name = e.conversation)";
    "events", "place-of-root", "SELECT id FROM events e WHERE root_position IS NOT
        (SELECT position FROM events WHERE id = e.root_id)";
    "events", "place-of-parent", "SELECT id FROM events e WHERE parent_position IS NOT
        (SELECT position FROM events WHERE id = e.parent_id)";

    "judgments", "event", unlike!("SELECT event FROM judgments j", "judgment.recorded@2", "e.id = j.event",
        "e.position = j.position", concat!(member!("e", "target.output"), " = j.output"),
        concat!(member!("e", "supersedes"), " IS j.supersedes"));
    "events", "judgment-unkept", unkept!("judgment.recorded@2", "SELECT 1 FROM judgments j WHERE j.event = e.id");
    "judgments", "two-active", "SELECT output FROM judgments j WHERE NOT EXISTS
        (SELECT 1 FROM judgments s WHERE s.supersedes = j.event) GROUP BY output HAVING count(*) > 1";

    "proposals", "event", concat!("SELECT p.event FROM proposals p WHERE NOT EXISTS (SELECT 1 FROM events e
        WHERE e.id = p.event AND e.position = p.position AND e.recorded_ms = p.proposed_ms
        AND ", member!("e", "proposer.run"), " IS p.run
        AND CASE p.kind
            WHEN 'memory-change' THEN e.type IN ('stream.thought.agent.memory-change.proposed@1',
                'stream.thought.operator.memory-change.proposed@1')
                AND ", member!("e", "target.documentId"), " IS p.document
                AND ", member!("e", "target.versionId"), " IS p.base_version
            WHEN 'self-correction' THEN e.type = 'stream.thought.agent.correction.proposed@1'
                AND p.document IS NULL AND p.base_version IS NULL
            ELSE e.type = 'stream.thought.focus.declaration.proposed@1'
                AND p.document IS NULL AND p.base_version IS NULL END)");
    "events", "proposal-unkept", "SELECT e.id FROM events e WHERE e.type IN (
        'stream.thought.agent.memory-change.proposed@1', 'stream.thought.operator.memory-change.proposed@1',
        'stream.thought.agent.correction.proposed@1', 'stream.thought.focus.declaration.proposed@1')
        AND NOT EXISTS (SELECT 1 FROM proposals p WHERE p.event = e.id)";
    "proposals", "state", concat!("SELECT p.event FROM proposals p LEFT JOIN events d ON d.parent_position = p.position
            AND d.type = 'stream.thought.agent.proposal.decision@1'
        WHERE CASE
            WHEN p.kind = 'focus-declaration' THEN p.state <> 'inert'
            WHEN d.id IS NULL THEN p.state <> 'undecided'
            WHEN ", member!("d", "disposition"), " = 'reject' THEN p.state <> 'projected'
            WHEN EXISTS (SELECT 1 FROM events r WHERE r.parent_position = d.position AND r.type IN (
                'stream.thought.judgment.recorded@2', 'stream.thought.agent.memory-change.materialized@1'))
                THEN p.state <> 'projected'
            WHEN EXISTS (SELECT 1 FROM events r WHERE r.parent_position = d.position
                AND r.type = 'stream.thought.agent.memory-change.materialization.failed@1')
                THEN p.state NOT IN ('decided', 'failed')
            ELSE p.state <> 'decided' END");
    "proposal_counts", "count", "SELECT coalesce(c.state, p.state) FROM proposal_counts c FULL JOIN
        (SELECT state, count(*) AS n FROM proposals GROUP BY state) p ON p.state = c.state
        WHERE coalesce(c.proposals, 0) <> coalesce(p.n, 0)
            OR c.state NOT IN ('undecided', 'decided', 'projected', 'failed', 'inert')";

    "runs", "trigger", "SELECT r.id FROM runs r WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.id = r.trigger_id
        AND e.source = r.source AND e.sequence = r.sequence
        AND (e.conversation IS NULL OR e.conversation = r.conversation))";
    "runs", "ending", "SELECT id FROM runs WHERE (ended_ms IS NULL) <> (terminal_id IS NULL)
        OR (ended_ms IS NULL) <> (state IN ('admitted', 'running', 'held'))
        OR (output_id IS NULL) <> (output_position IS NULL) OR (terminal_id IS NULL) <> (terminal_position IS NULL)
        OR (state = 'completed') <> (output_id IS NOT NULL)";
    "runs", "terminal", concat!("SELECT r.id FROM runs r WHERE r.terminal_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM events e JOIN sources s ON s.id = e.source WHERE e.id = r.terminal_id
        AND e.position = r.terminal_position AND e.type = 'stream.thought.run.' || r.state || '@1'
        AND s.name = 'agent:' || r.declaration AND ", member!("e", "run"), " = r.id
        AND CASE r.state WHEN 'completed' THEN ", member!("e", "output"), " = r.output_id AND r.reason IS NULL
                AND ", member!("e", "contextSnapshot"), " = r.snapshot_id
            ELSE ", member!("e", "reason"), " = r.reason AND ", member!("e", "attempts"), " = r.attempts END)");
    "runs", "output", concat!("SELECT r.id FROM runs r WHERE r.output_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM events e
        WHERE e.id = r.output_id AND e.position = r.output_position AND ", member!("e", "run"), " = r.id
        AND ", member!("e", "agent.id"), " = r.declaration AND ", member!("e", "agent.version"), " = r.version)");
    "runs", "reply", "SELECT r.id FROM runs r WHERE r.reply_position IS NOT (SELECT d.receipt_position FROM deliveries d
        WHERE d.cause_position = r.output_position AND d.kind = 'reply' AND d.state = 'delivered')";
    "events", "run-unkept", concat!("SELECT e.id FROM events e WHERE e.type IN ('stream.thought.run.completed@1',
        'stream.thought.run.failed@1', 'stream.thought.run.blocked@1', 'stream.thought.run.abandoned@1')
        AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = ", member!("e", "run"), " AND r.terminal_id = e.id)");
    "events", "output-unkept", concat!("SELECT e.id FROM events e WHERE e.type IN (
        'stream.thought.derived.message.observation@1', 'stream.thought.derived.agent.message@1')
        AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = ", member!("e", "run"), " AND r.output_id = e.id)");
    "runs", "declaration", "SELECT r.id FROM runs r WHERE NOT EXISTS
        (SELECT 1 FROM declarations d WHERE d.id = r.declaration AND d.version = r.version)";
    "runs", "attempts", "SELECT id FROM runs WHERE attempts <> (SELECT count(*) FROM attempts WHERE run_ordinal = runs.ordinal)
        OR attempts <> (SELECT coalesce(max(ordinal), 0) FROM attempts WHERE run_ordinal = runs.ordinal)";
    "runs", "snapshot", "SELECT id FROM runs WHERE snapshot_id IS NOT (SELECT id FROM snapshots
            WHERE run_ordinal = runs.ordinal)
        OR (attempts > 0 AND snapshot_id IS NULL)";
    "snapshots", "run", "SELECT id FROM snapshots s WHERE NOT EXISTS
        (SELECT 1 FROM runs WHERE id = s.run AND ordinal = s.run_ordinal AND snapshot_id = s.id)";
    "run_counts", "count", "SELECT coalesce(c.state, r.state) FROM run_counts c FULL JOIN
        (SELECT state, count(*) AS n FROM runs GROUP BY state) r ON r.state = c.state
        WHERE coalesce(c.runs, 0) <> coalesce(r.n, 0)
            OR c.state NOT IN ('admitted', 'running', 'held', 'completed', 'failed', 'blocked', 'abandoned')";
    "attempts", "run", "SELECT a.id FROM attempts a WHERE NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = a.run
        AND r.ordinal = a.run_ordinal AND a.ordinal BETWEEN 1 AND r.attempts
        AND (a.state <> 'started' OR (r.ended_ms IS NULL AND a.ordinal = r.attempts)))";
    "attempts", "state", "SELECT id FROM attempts WHERE (state = 'started') <> (ended_ms IS NULL)
        OR state NOT IN ('started', 'answered', 'refused-before-request', 'transient', 'permanent', 'unknown',
            'abandoned')";
    "attempts", "answer", concat!("SELECT a.id FROM attempts a JOIN runs r ON r.id = a.run JOIN events e
            ON e.id = r.terminal_id
        WHERE r.state = 'completed' AND a.ordinal = r.attempts AND (a.state <> 'answered'
            OR ", member!("e", "attempt"), " IS NOT a.id
            OR ", member!("e", "usage.inputTokens"), " IS NOT a.input_tokens
            OR ", member!("e", "usage.outputTokens"), " IS NOT a.output_tokens)");
    "usage", "count", "SELECT coalesce(u.day, a.day) || ' ' || coalesce(u.declaration, a.declaration) FROM usage u FULL JOIN
        (SELECT attempts.day, runs.declaration, count(*) AS n, coalesce(sum(input_tokens), 0) AS i,
            coalesce(sum(output_tokens), 0) AS o
         FROM attempts JOIN runs ON runs.id = attempts.run GROUP BY 1, 2) a
        ON a.day = u.day AND a.declaration = u.declaration
        WHERE u.requests IS NOT a.n OR u.input_tokens IS NOT a.i OR u.output_tokens IS NOT a.o";

    "versions", "event", unlike!("SELECT v.id FROM versions v", "source.file.version@1", "e.id = v.event",
        "e.source = v.source", concat!(member!("e", "versionId"), " = v.id"),
        concat!(member!("e", "documentId"), " = v.document"),
        concat!(member!("e", "previousVersionId"), " IS v.previous"), concat!(member!("e", "path"), " = v.path"),
        concat!(member!("e", "sha256"), " = v.sha256"), concat!(member!("e", "byteCount"), " = v.byte_count"),
        concat!(member!("e", "contentType"), " = v.content_type"),
        concat!(member!("e", "frontmatterId"), " IS v.frontmatter_id"));
    "events", "version-unkept", unkept!("source.file.version@1", "SELECT 1 FROM versions v WHERE v.event = e.id");
    "documents", "pointer", concat!("SELECT d.id FROM documents d WHERE d.version IS NOT (
        SELECT coalesce(", member!("e", "versionId"), ", ", member!("e", "previousVersionId"), ") FROM events e
        WHERE e.type IN ('stream.thought.source.file.version@1', 'stream.thought.source.file.removed@1')
            AND ", member!("e", "documentId"), " = d.id ORDER BY e.position DESC LIMIT 1)");
    "documents", "presence", concat!("SELECT d.id FROM documents d WHERE d.present IS NOT (
        SELECT e.type = 'stream.thought.source.file.version@1' FROM events e
        WHERE e.type IN ('stream.thought.source.file.version@1', 'stream.thought.source.file.removed@1')
            AND ", member!("e", "documentId"), " = d.id ORDER BY e.position DESC LIMIT 1)");
    "documents", "version", "SELECT d.id FROM documents d WHERE NOT EXISTS (SELECT 1 FROM versions v
        WHERE v.id = d.version AND v.document = d.id AND v.path = d.path AND v.source = d.source)";
    "events", "document-unkept", unkept!("source.file.version@1", concat!("SELECT 1 FROM documents d WHERE d.id = ",
        member!("e", "documentId")));

    "declarations", "event", unlike!("SELECT d.id || ' v' || d.version FROM declarations d", "declaration.activated@1",
        concat!(member!("e", "declaration"), " = d.id"), concat!(member!("e", "version"), " = d.version"),
        concat!(member!("e", "fingerprint"), " = d.fingerprint"));
    "events", "declaration-unkept", unkept!("declaration.activated@1", concat!("SELECT 1 FROM declarations d WHERE d.id = ",
        member!("e", "declaration"), " AND d.version = ", member!("e", "version")));
    "declarations", "active", "SELECT id FROM declarations GROUP BY id
        HAVING max(version) IS NOT max(CASE active WHEN 1 THEN version END) OR sum(active) <> 1";
    "consumers", "version", "SELECT declaration FROM consumers c WHERE NOT EXISTS (SELECT 1 FROM declarations d
        WHERE d.id = c.declaration AND d.version = c.version AND d.active = 1)";
    "consumers", "source", concat!("SELECT c.declaration FROM consumers c JOIN sources s ON s.id = c.source
        WHERE NOT EXISTS (SELECT 1 FROM events e, json_each(", payload!("e"), ", '$.sources') j
            WHERE e.type = 'stream.thought.declaration.activated@1' AND ", member!("e", "declaration"), " = c.declaration
            AND ", member!("e", "version"), " = c.version AND json_extract(j.value, '$.source') = s.name
            AND json_extract(j.value, '$.head') <= c.scanned)");
    "consumers", "missing", concat!("SELECT d.id FROM declarations d JOIN events e, json_each(", payload!("e"), ", '$.sources') j
        WHERE d.active = 1 AND e.type = 'stream.thought.declaration.activated@1'
        AND ", member!("e", "declaration"), " = d.id AND ", member!("e", "version"), " = d.version
        AND NOT EXISTS (SELECT 1 FROM consumers c JOIN sources s ON s.id = c.source
            WHERE c.declaration = d.id AND s.name = json_extract(j.value, '$.source'))");
    "consumers", "progress", "SELECT declaration FROM consumers c WHERE progress > scanned
        OR scanned > (SELECT head FROM sources WHERE id = c.source)
        OR progress < coalesce((SELECT min(sequence) - 1 FROM runs WHERE declaration = c.declaration
            AND source = c.source AND ended_ms IS NULL AND sequence > c.progress), scanned)";
    "consumers", "scanned", "SELECT c.declaration FROM consumers c JOIN runs r ON r.declaration = c.declaration
        AND r.source = c.source AND r.version = c.version WHERE r.retry = 0 AND r.sequence > c.scanned";

    "deliveries", "cause", "SELECT d.cause FROM deliveries d WHERE NOT EXISTS (SELECT 1 FROM events e
        WHERE e.id = d.cause AND e.position = d.cause_position)";
    "deliveries", "receipt", concat!("SELECT d.cause FROM deliveries d WHERE (d.state = 'delivered') <> (d.receipt IS NOT NULL)
        OR (d.receipt IS NULL) <> (d.receipt_position IS NULL)
        OR d.receipt IS NOT NULL AND NOT EXISTS (SELECT 1 FROM events e JOIN sources s ON s.id = e.source
            JOIN sources c ON c.id = d.channel
            WHERE e.id = d.receipt AND e.position = d.receipt_position AND e.parent_id = d.cause
            AND e.type = 'stream.thought.delivery.telegram@1' AND s.name = 'delivery:' || c.name
            AND ", member!("e", "kind"), " = d.kind AND ", member!("e", "chatId"), " = d.chat
            AND ", member!("e", "threadId"), " IS d.thread)");
    "events", "receipt-unkept", unkept!("delivery.telegram@1", concat!("SELECT 1 FROM deliveries d
        WHERE d.cause_position = e.parent_position AND d.kind = ", member!("e", "kind"), " AND d.receipt = e.id"));
    "chunks", "delivery", "SELECT delivery FROM chunks c WHERE NOT EXISTS
        (SELECT 1 FROM deliveries d WHERE d.ordinal = c.delivery)";
    "deliveries", "chunks", concat!("SELECT d.cause FROM deliveries d
        WHERE (SELECT count(*) FROM chunks c WHERE c.delivery = d.ordinal)
            <> (SELECT coalesce(max(ordinal), -1) + 1 FROM chunks c WHERE c.delivery = d.ordinal)
        OR NOT EXISTS (SELECT 1 FROM chunks c WHERE c.delivery = d.ordinal)
        OR d.receipt IS NOT NULL AND (SELECT count(*) FROM chunks c WHERE c.delivery = d.ordinal)
            IS NOT (SELECT json_array_length(", payload!("e"), ", '$.chunks') FROM events e WHERE e.id = d.receipt)");
    "chunks", "receipt", concat!("SELECT d.cause FROM chunks c JOIN deliveries d ON d.ordinal = c.delivery
            JOIN events e ON e.id = d.receipt
        WHERE c.state <> 'sent'
        OR json_extract(", payload!("e"), ", '$.chunks[' || c.ordinal || '].messageId') IS NOT c.message
        OR json_extract(", payload!("e"), ", '$.chunks[' || c.ordinal || '].utf16Length') IS NOT c.utf16_length
        OR json_extract(", payload!("e"), ", '$.chunks[' || c.ordinal || '].confirmedBy') IS NOT c.confirmed_by");

    "corrections", "command", "SELECT c.command FROM corrections c WHERE (c.judgment IS NULL) = (c.reason IS NULL)
        OR NOT EXISTS (SELECT 1 FROM events e WHERE e.id = c.command
            AND e.type = 'stream.thought.source.telegram.command@1')
        OR c.judgment IS NOT NULL AND NOT EXISTS (SELECT 1 FROM events j WHERE j.id = c.judgment
            AND j.type = 'stream.thought.judgment.recorded@2' AND j.parent_id = c.command)";
    "events", "correction-unkept", "SELECT j.id FROM events j JOIN events e ON e.id = j.parent_id
        WHERE j.type = 'stream.thought.judgment.recorded@2' AND e.type = 'stream.thought.source.telegram.command@1'
        AND NOT EXISTS (SELECT 1 FROM corrections c WHERE c.command = e.id)";
    "intents", "decision", "SELECT i.decision FROM intents i WHERE NOT EXISTS (SELECT 1 FROM events e
        WHERE e.id = i.decision AND e.type = 'stream.thought.agent.proposal.decision@1' AND e.parent_id = i.proposal)";
    "spool", "form", "SELECT ordinal FROM spool WHERE NOT json_valid(CAST(body AS TEXT)) OR tries < 0
        OR parked NOT IN (0, 1)";
    "cursors", "ahead", "SELECT name FROM cursors WHERE position < 0
        OR name NOT LIKE '%notices%' AND position > (SELECT coalesce(max(position), 0) FROM events)";
    "roles", "form", "SELECT role FROM roles WHERE at_work NOT IN (0, 1)";
};
