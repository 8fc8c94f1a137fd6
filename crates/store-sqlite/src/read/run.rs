//! Runs, attempts, snapshots, declarations, consumers, usage.

use rusqlite::types::Value;
use rusqlite::{Row, params, params_from_iter};
use thought_contract::event::SourceName;
use thought_contract::run::{AttemptState, RunState};
use thought_protocol::{EventId, RunId};
use thought_store::StoreError;
use thought_store::row::{
    Activity, AttemptRow, ChangeoverRow, ChangeoverStage, ConsumerRow, DeclarationRow, RunFilter, RunRow,
    SnapshotRow, UsageRow,
};

use crate::fields::Fields;
use crate::session::Session;

const SELECT: &str = "SELECT runs.id, runs.declaration, runs.version, runs.trigger_id, sources.name, runs.sequence,
        runs.conversation, runs.retry, runs.state, runs.reason, runs.attempts, runs.snapshot_id, runs.output_id,
        runs.terminal_id, runs.admitted_ms, runs.ended_ms, runs.ordinal, runs.output_position,
        runs.terminal_position, runs.reply_position
    FROM runs JOIN sources ON sources.id = runs.source";

/// A run, and where the events stand that it left.
pub(super) struct Placed {
    pub(super) run: RunRow,
    pub(super) output_position: Option<u64>,
    pub(super) terminal_position: Option<u64>,
    /// Where the receipt of its reply stands, once it was delivered.
    pub(super) reply_position: Option<u64>,
}

fn decode(row: &Row<'_>) -> Result<RunRow, StoreError> {
    decode_placed(row).map(|placed| placed.run)
}

fn decode_placed(row: &Row<'_>) -> Result<Placed, StoreError> {
    let mut fields = Fields::of("runs", row);
    let run = RunRow {
        id: fields.parse()?,
        declaration: fields.get()?,
        version: fields.get()?,
        trigger: fields.parse()?,
        source: SourceName::new(fields.get::<String>()?),
        sequence: fields.get()?,
        conversation: fields.get()?,
        retry: fields.get()?,
        state: fields.word(RunState::from_code)?,
        reason: fields.get()?,
        attempts: fields.get()?,
        snapshot: fields.parse_optional()?,
        output: fields.parse_optional()?,
        terminal: fields.parse_optional()?,
        admitted_at: fields.time()?,
        ended_at: fields.time_optional()?,
        ordinal: fields.get()?,
    };
    Ok(Placed {
        run,
        output_position: fields.get()?,
        terminal_position: fields.get()?,
        reply_position: fields.get()?,
    })
}

pub(crate) fn run(s: Session<'_>, id: &RunId) -> Result<Option<RunRow>, StoreError> {
    s.first(&format!("{SELECT} WHERE runs.id = ?1"), [id.as_str()], decode)
}

/// The runs on the turns of a conversation with ordinals in `from..before`, those of one turn in order of admission.
pub(super) fn on_turns(
    s: Session<'_>,
    source: &SourceName,
    conversation: &str,
    from: u64,
    before: u64,
) -> Result<Vec<Placed>, StoreError> {
    let select = SELECT.replacen("FROM runs JOIN", "FROM events CROSS JOIN runs JOIN", 1);
    let sql = format!(
        "{select} WHERE events.source = (SELECT id FROM sources WHERE name = ?1) AND events.conversation = ?2
           AND events.conversation_ordinal >= ?3 AND events.conversation_ordinal < ?4
           AND events.conversation_ordinal IS NOT NULL
           AND runs.source = events.source AND runs.sequence = events.sequence AND runs.trigger_id = events.id
         ORDER BY events.conversation_ordinal, runs.ordinal"
    );
    s.all(&sql, params![source.as_str(), conversation, from, before], decode_placed)
}

/// The run that left an output.
pub(super) fn of_output(s: Session<'_>, output: &EventId) -> Result<Option<RunRow>, StoreError> {
    let sql = format!(
        "{SELECT} WHERE runs.output_position = (SELECT position FROM events WHERE id = ?1) AND runs.output_id = ?1"
    );
    s.first(&sql, [output.as_str()], decode)
}

/// Runs by filter. A trigger or states are walked by their index; the walks of several states are merged.
pub(crate) fn runs(s: Session<'_>, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
    let after = i64::try_from(filter.after_ordinal).unwrap_or(i64::MAX);
    let mut values = vec![Value::Integer(after), Value::Integer(i64::from(filter.limit))];
    let mut shared = vec!["runs.ordinal > ?1".to_owned()];
    if let Some(declaration) = &filter.declaration {
        values.push(Value::Text(declaration.clone()));
        shared.push(format!("runs.declaration = ?{}", values.len()));
    }
    let states = filter.states.iter().map(|state| Value::Text(state.as_str().to_owned()));
    if let Some(trigger) = &filter.trigger {
        values.push(Value::Text(trigger.as_str().to_owned()));
        let id = format!("?{}", values.len());
        shared.push(format!(
            "runs.trigger_id = {id} AND runs.source = (SELECT source FROM events WHERE id = {id})
             AND runs.sequence = (SELECT sequence FROM events WHERE id = {id})"
        ));
        if !filter.states.is_empty() {
            let list = super::placeholders(values.len() + 1, filter.states.len());
            shared.push(format!("+runs.state IN ({list})"));
            values.extend(states);
        }
    } else if filter.declaration.is_some() && is_open(&filter.states) {
        let select = SELECT.replacen("FROM runs", "FROM runs INDEXED BY runs_open", 1);
        let shared = shared.join(" AND ");
        let sql = format!("{select} WHERE {shared} AND runs.ended_ms IS NULL ORDER BY runs.ordinal LIMIT ?2");
        return s.all(&sql, params_from_iter(values), decode);
    } else if let [state] = &filter.states[..] {
        values.push(Value::Text(state.as_str().to_owned()));
        shared.push(format!("runs.state = ?{}", values.len()));
    } else if !filter.states.is_empty() {
        let shared = shared.join(" AND ");
        let walks: Vec<String> = (values.len() + 1..=values.len() + filter.states.len())
            .map(|number| {
                format!(
                    "SELECT * FROM (SELECT ordinal FROM runs WHERE runs.state = ?{number} AND {shared}
                     ORDER BY ordinal LIMIT ?2)"
                )
            })
            .collect();
        values.extend(states);
        let walks = walks.join(" UNION ALL ");
        let sql = format!(
            "{SELECT} WHERE runs.ordinal IN (SELECT ordinal FROM ({walks}) ORDER BY ordinal LIMIT ?2)
             ORDER BY runs.ordinal"
        );
        return s.all(&sql, params_from_iter(values), decode);
    }
    let sql = format!("{SELECT} WHERE {} ORDER BY runs.ordinal LIMIT ?2", shared.join(" AND "));
    s.all(&sql, params_from_iter(values), decode)
}

/// Whether these are all the states of a run that has not ended.
fn is_open(states: &[RunState]) -> bool {
    RunState::ALL.iter().all(|state| states.contains(state) == state.is_open())
}

pub(crate) fn open_runs(s: Session<'_>, declaration: &str) -> Result<Vec<RunRow>, StoreError> {
    let sql = format!(
        "{SELECT} WHERE runs.declaration = ?1 AND runs.ended_ms IS NULL
         ORDER BY sources.name, runs.sequence, runs.ordinal"
    );
    s.all(&sql, [declaration], decode)
}

pub(crate) fn counts(s: Session<'_>) -> Result<Vec<(RunState, u64)>, StoreError> {
    s.all("SELECT state, runs FROM run_counts WHERE runs > 0 ORDER BY state", [], |row| {
        let mut fields = Fields::of("run_counts", row);
        Ok((fields.word(RunState::from_code)?, fields.get()?))
    })
}

pub(crate) fn attempts(s: Session<'_>, run: &RunId) -> Result<Vec<AttemptRow>, StoreError> {
    let sql =
        "SELECT id, run, ordinal, state, reason, sandbox, started_ms, ended_ms, input_tokens, output_tokens
        FROM attempts WHERE run_ordinal = (SELECT ordinal FROM runs WHERE id = ?1) AND run = ?1 ORDER BY ordinal";
    s.all(sql, [run.as_str()], |row| {
        let mut fields = Fields::of("attempts", row);
        Ok(AttemptRow {
            id: fields.parse()?,
            run: fields.parse()?,
            ordinal: fields.get()?,
            state: fields.word(AttemptState::from_code)?,
            reason: fields.get()?,
            sandbox: fields.get()?,
            started_at: fields.time()?,
            ended_at: fields.time_optional()?,
            input_tokens: fields.get()?,
            output_tokens: fields.get()?,
        })
    })
}

pub(crate) fn snapshot(s: Session<'_>, run: &RunId) -> Result<Option<SnapshotRow>, StoreError> {
    let sql = "SELECT id, run, sha256, packet_sha256, bytes FROM snapshots
        WHERE run_ordinal = (SELECT ordinal FROM runs WHERE id = ?1) AND run = ?1";
    s.first(sql, [run.as_str()], |row| {
        let mut fields = Fields::of("snapshots", row);
        Ok(SnapshotRow {
            id: fields.parse()?,
            run: fields.parse()?,
            sha256: fields.parse()?,
            packet_sha256: fields.parse()?,
            bytes: fields.content()?,
        })
    })
}

const SELECT_DECLARATION: &str =
    "SELECT id, version, active, fingerprint, declaration_content, prompt_content,
        manifest_content, activated_ms FROM declarations";

fn decode_declaration(row: &Row<'_>) -> Result<DeclarationRow, StoreError> {
    let mut fields = Fields::of("declarations", row);
    Ok(DeclarationRow {
        id: fields.get()?,
        version: fields.get()?,
        activity: if fields.get()? { Activity::Active } else { Activity::Superseded },
        fingerprint: fields.parse()?,
        declaration: fields.content()?,
        prompt: fields.content()?,
        manifest: fields.content()?,
        activated_at: fields.time()?,
    })
}

pub(crate) fn declaration(s: Session<'_>, id: &str) -> Result<Option<DeclarationRow>, StoreError> {
    s.first(&format!("{SELECT_DECLARATION} WHERE id = ?1 AND active = 1"), [id], decode_declaration)
}

pub(crate) fn declarations(s: Session<'_>) -> Result<Vec<DeclarationRow>, StoreError> {
    s.all(&format!("{SELECT_DECLARATION} ORDER BY id, version"), [], decode_declaration)
}

pub(crate) fn changeovers(s: Session<'_>) -> Result<Vec<ChangeoverRow>, StoreError> {
    let mut rows = s.all(
        "SELECT declaration, version, token, stage FROM changeovers ORDER BY declaration",
        [],
        |row| {
            let mut fields = Fields::of("changeovers", row);
            Ok(ChangeoverRow {
                declaration: fields.get()?,
                version: fields.get()?,
                token: fields.get()?,
                stage: fields.word(ChangeoverStage::from_word)?,
                heads: Vec::new(),
                acknowledged: Vec::new(),
            })
        },
    )?;
    for row in &mut rows {
        let sql = "SELECT sources.name, changeover_heads.head FROM changeover_heads
            JOIN sources ON sources.id = changeover_heads.source WHERE changeover_heads.declaration = ?1
            ORDER BY sources.name";
        row.heads = s.all(sql, [&row.declaration], |row| {
            let mut fields = Fields::of("changeover_heads", row);
            Ok((SourceName::new(fields.get::<String>()?), fields.get()?))
        })?;
        let sql = "SELECT role FROM changeover_acks WHERE declaration = ?1 ORDER BY role";
        row.acknowledged = s.all(sql, [&row.declaration], |row| Fields::of("changeover_acks", row).get())?;
    }
    Ok(rows)
}

pub(crate) fn consumers(s: Session<'_>) -> Result<Vec<ConsumerRow>, StoreError> {
    let sql =
        "SELECT consumers.declaration, consumers.version, sources.name, consumers.scanned, consumers.progress
        FROM consumers JOIN sources ON sources.id = consumers.source
        ORDER BY consumers.declaration, sources.name";
    s.all(sql, [], |row| {
        let mut fields = Fields::of("consumers", row);
        Ok(ConsumerRow {
            declaration: fields.get()?,
            version: fields.get()?,
            source: SourceName::new(fields.get::<String>()?),
            scanned: fields.get()?,
            progress: fields.get()?,
        })
    })
}

pub(crate) fn usage(s: Session<'_>, days: u32) -> Result<Vec<UsageRow>, StoreError> {
    let sql = "SELECT day, declaration, requests, input_tokens, output_tokens FROM usage
        WHERE day IN (SELECT DISTINCT day FROM usage ORDER BY day DESC LIMIT ?1)
        ORDER BY day DESC, declaration";
    s.all(sql, [days], |row| {
        let mut fields = Fields::of("usage", row);
        Ok(UsageRow {
            day: fields.get()?,
            declaration: fields.get()?,
            requests: fields.get()?,
            input_tokens: fields.get()?,
            output_tokens: fields.get()?,
        })
    })
}

pub(crate) fn requests_on(s: Session<'_>, declaration: &str, day: &str) -> Result<u64, StoreError> {
    let sql = "SELECT requests FROM usage WHERE day = ?1 AND declaration = ?2";
    let requests = s.first(sql, params![day, declaration], |row| Fields::of("usage", row).get::<u64>())?;
    Ok(requests.unwrap_or(0))
}
