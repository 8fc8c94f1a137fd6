//! The index of proposals. Each filter is a set of walks over one index, so that an answer costs its own length.

use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};
use thought_protocol::EventId;
use thought_protocol::proposal::ProposalKind;
use thought_store::StoreError;
use thought_store::row::{Base, ProposalCounts, ProposalFilter, ProposalRow, ProposalState};

use crate::fields::Fields;
use crate::session::Session;

const SELECT: &str =
    "SELECT proposals.event, proposals.position, proposals.kind, proposals.run, proposals.document,
        proposals.base_version, proposals.state, proposals.proposed_ms,
        proposals.document IS NULL
            OR (documents.present = 1 AND documents.version = proposals.base_version)
    FROM proposals LEFT JOIN documents ON documents.id = proposals.document";

fn kind(text: &str) -> Option<ProposalKind> {
    ProposalKind::ALL.into_iter().find(|kind| kind.as_str() == text)
}

fn decode(row: &Row<'_>) -> Result<ProposalRow, StoreError> {
    let mut fields = Fields::of("proposals", row);
    Ok(ProposalRow {
        proposal: fields.parse()?,
        position: fields.get()?,
        kind: fields.word(kind)?,
        run: fields.parse_optional()?,
        document: fields.parse_optional()?,
        base_version: fields.parse_optional()?,
        state: fields.word(ProposalState::from_word)?,
        proposed_at: fields.time()?,
        // Nothing is known of a document that was never scanned: then the comparison says nothing either.
        base: if fields.get::<Option<bool>>()? == Some(true) { Base::Current } else { Base::Stale },
    })
}

pub(crate) fn proposal(s: Session<'_>, id: &EventId) -> Result<Option<ProposalRow>, StoreError> {
    s.first(&format!("{SELECT} WHERE proposals.event = ?1"), [id.as_str()], decode)
}

/// Proposals by filter. Every state with every kind is a walk of its own, and the walks are merged.
pub(crate) fn proposals(s: Session<'_>, filter: &ProposalFilter) -> Result<Vec<ProposalRow>, StoreError> {
    let after = i64::try_from(filter.after_position).unwrap_or(i64::MAX);
    let mut values = vec![Value::Integer(after), Value::Integer(i64::from(filter.limit))];
    if filter.states.is_empty() && filter.kinds.is_empty() {
        let sql = format!("{SELECT} WHERE proposals.position > ?1 ORDER BY proposals.position LIMIT ?2");
        return s.all(&sql, params_from_iter(values), decode);
    }
    let states = if filter.states.is_empty() { &ProposalState::ALL[..] } else { &filter.states };
    let kinds = if filter.kinds.is_empty() { &ProposalKind::ALL[..] } else { &filter.kinds };
    let mut walks = Vec::with_capacity(states.len() * kinds.len());
    for state in states {
        for kind in kinds {
            values.push(Value::Text(state.as_str().to_owned()));
            values.push(Value::Text(kind.as_str().to_owned()));
            let (state, kind) = (values.len() - 1, values.len());
            walks.push(format!(
                "SELECT * FROM (SELECT position FROM proposals
                 WHERE state = ?{state} AND kind = ?{kind} AND position > ?1 ORDER BY position LIMIT ?2)"
            ));
        }
    }
    let walks = walks.join(" UNION ALL ");
    let sql = format!(
        "{SELECT} WHERE proposals.position IN (SELECT position FROM ({walks}) ORDER BY position LIMIT ?2)
         ORDER BY proposals.position"
    );
    s.all(&sql, params_from_iter(values), decode)
}

pub(crate) fn counts(s: Session<'_>) -> Result<ProposalCounts, StoreError> {
    let sql = "SELECT state, proposals FROM proposal_counts WHERE proposals > 0 ORDER BY state";
    let states = s.all(sql, [], |row| {
        let mut fields = Fields::of("proposal_counts", row);
        Ok((fields.word(ProposalState::from_word)?, fields.get()?))
    })?;
    let sql = "SELECT event, proposed_ms FROM proposals WHERE state = 'undecided' ORDER BY position LIMIT 1";
    let oldest_undecided_at = s.first(sql, [], |row| {
        let mut fields = Fields::of("proposals", row);
        let _: EventId = fields.parse()?;
        fields.time()
    })?;
    Ok(ProposalCounts { states, oldest_undecided_at })
}
