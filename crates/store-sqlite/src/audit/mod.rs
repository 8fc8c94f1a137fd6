//! The audit: is everything in the file what was written?
//!
//! It reads one state of the whole store and changes nothing. Events are hashed, chained and drafted again from their own
//! payloads; content that hangs on a hash is hashed; and every row beside the log is held against the events that it was
//! made from, by rules that are data (`rules.rs`). What no event tells of (waiting updates, counters of refused chats, times
//! of rows, who is at work) can only be held to its form.

mod content;
mod events;
mod rules;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};
use thought_protocol::limits::EVENT_PAYLOAD_BYTES_MAX;
use thought_store::StoreError;
use thought_store::audit::Audit;

use crate::failure;
use crate::fields::Fields;
use crate::schema;
use crate::session::Session;

/// Rows that a walk holds at a time.
const PAGE_ROWS: i64 = 256;
/// Rows that one rule names.
const PER_RULE: i64 = 50;

/// Looks at everything.
///
/// # Errors
/// [`StoreError`] when the file cannot be read at all; what can be read and is wrong is a finding.
pub(crate) fn audit(s: Session<'_>) -> Result<Audit, StoreError> {
    let mut audit = Audit::default();
    file(s, &mut audit)?;
    shape(s, &mut audit)?;
    events::walk(s, &mut audit)?;
    content::versions(s, &mut audit)?;
    content::snapshots(s, &mut audit)?;
    content::declarations(s, &mut audit)?;
    content::runs(s, &mut audit)?;
    for rule in rules::RULES {
        audit.rules += 1;
        let sql = rule.sql.replace(rules::PAYLOAD_BYTES_MAX, &EVENT_PAYLOAD_BYTES_MAX.to_string());
        let sql = format!("{sql} LIMIT {PER_RULE}");
        for row in s.all(&sql, [], |row| Ok(name_of(row)))? {
            audit.found(rule.table, row, rule.fault);
        }
    }
    Ok(audit)
}

/// The engine's own look at its pages and indexes.
fn file(s: Session<'_>, audit: &mut Audit) -> Result<(), StoreError> {
    let said = s.all("PRAGMA integrity_check(20)", [], |row| Fields::of("store", row).get::<String>())?;
    for line in said.iter().filter(|line| *line != "ok") {
        // What it says may quote a value; that it says something is what counts.
        audit.found("store", format!("{} characters", line.chars().count()), "integrity");
    }
    let foreign = s.all("PRAGMA foreign_key_check", [], |row| {
        let mut fields = Fields::of("store", row);
        fields.get::<String>()
    })?;
    for table in foreign {
        audit.found("store", table, "foreign-key");
    }
    Ok(())
}

/// Tables, indexes and their definitions are those that this version makes.
fn shape(s: Session<'_>, audit: &mut Audit) -> Result<(), StoreError> {
    const SQL: &str =
        "SELECT name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name";
    let read = |row: &Row<'_>| {
        let mut fields = Fields::of("sqlite_schema", row);
        Ok((fields.get::<String>()?, fields.get::<String>()?))
    };
    let found = s.all(SQL, [], read)?;
    let mut fresh = Connection::open_in_memory().map_err(failure::during("audit the schema"))?;
    schema::migrate(&mut fresh)?;
    let expected = s.elsewhere(&fresh).all(SQL, [], read)?;
    for (name, _) in found.iter().filter(|object| !expected.contains(object)) {
        audit.found("store", name.clone(), "schema");
    }
    for (name, _) in expected.iter().filter(|object| !found.iter().any(|(name, _)| *name == object.0)) {
        audit.found("store", name.clone(), "schema");
    }
    Ok(())
}

/// Visits every row of a query of the form `SELECT key, … WHERE key > ?1 ORDER BY key LIMIT ?2`; a row that does not decode is
/// visited as its error.
fn walk<T>(
    s: Session<'_>,
    sql: &str,
    read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
    mut visit: impl FnMut(i64, Result<T, StoreError>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut after = i64::MIN;
    loop {
        let page = s.all(sql, params![after, PAGE_ROWS], |row| {
            let key = Fields::of("store", row).get::<i64>()?;
            Ok((key, read(row)))
        })?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = *last;
        for (key, row) in page {
            visit(key, row)?;
        }
    }
}

/// The first column as a name: ids and names are short and plain; anything else is not repeated.
fn name_of(row: &Row<'_>) -> String {
    match row.get_ref(0) {
        Ok(ValueRef::Integer(number)) => number.to_string(),
        Ok(ValueRef::Text(bytes)) if is_plain(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => "of an unreadable id".to_owned(),
    }
}

fn is_plain(bytes: &[u8]) -> bool {
    bytes.len() <= 160 && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-:./ ".contains(byte))
}
