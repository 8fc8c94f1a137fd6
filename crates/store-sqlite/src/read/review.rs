//! Intents of writes.

use rusqlite::Row;
use thought_protocol::EventId;
use thought_store::StoreError;
use thought_store::row::IntentRow;

use crate::fields::Fields;
use crate::session::Session;

fn decode(row: &Row<'_>) -> Result<IntentRow, StoreError> {
    let mut fields = Fields::of("intents", row);
    Ok(IntentRow {
        decision: fields.parse()?,
        proposal: fields.parse()?,
        expected_sha256: fields.parse()?,
        temporary: fields.get()?,
        made_at: fields.time()?,
    })
}

const SELECT: &str = "SELECT decision, proposal, expected_sha256, temporary, made_ms FROM intents";

pub(crate) fn intent(s: Session<'_>, decision: &EventId) -> Result<Option<IntentRow>, StoreError> {
    s.first(&format!("{SELECT} WHERE decision = ?1"), [decision.as_str()], decode)
}

pub(crate) fn intents(s: Session<'_>, limit: u32) -> Result<Vec<IntentRow>, StoreError> {
    s.all(&format!("{SELECT} ORDER BY made_ms, decision LIMIT ?1"), [limit], decode)
}
