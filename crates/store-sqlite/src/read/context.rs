//! All that a context is built from, in one read: what it asks for by itself would be told apart by commits in between.

use thought_protocol::EventId;
use thought_store::StoreError;
use thought_store::row::{ContextQuery, ContextRows, DocumentRow, Existence, HistoryQuery, VersionRow};

use super::{document, event, history};
use crate::session::Session;

pub(crate) fn context(s: Session<'_>, query: &ContextQuery) -> Result<Option<ContextRows>, StoreError> {
    let Some(place) = event::place(s, &query.trigger)? else { return Ok(None) };
    let turns = match query.turns_max {
        0 => Vec::new(),
        limit => history::history(
            s,
            &HistoryQuery {
                source: place.source.clone(),
                conversation: place.conversation.clone(),
                before_ordinal: place.ordinal,
                limit,
                agents: query.agents.clone(),
            },
        )?,
    };
    let oldest = turns.first().map_or(place.ordinal, |turn| turn.ordinal);
    let older: Vec<EventId> = match query.older_max {
        0 => Vec::new(),
        limit => event::turn_ids(s, &place.source, &place.conversation, (1, oldest), limit)?,
    };
    let documents = documents(s, query)?;
    Ok(Some(ContextRows {
        conversation: place.conversation,
        ordinal: place.ordinal,
        turns,
        older,
        documents,
    }))
}

fn documents(
    s: Session<'_>,
    query: &ContextQuery,
) -> Result<Vec<(DocumentRow, Option<VersionRow>)>, StoreError> {
    let Some((source, paths)) = &query.documents else { return Ok(Vec::new()) };
    let mut found = Vec::with_capacity(paths.len());
    for path in paths {
        if let Some(row) = document::at_path(s, source, path)?
            && row.existence == Existence::Present
        {
            let version = document::version(s, &row.version)?;
            found.push((row, version));
        }
    }
    Ok(found)
}
