//! Link definitions (`[label]: address`) vanish from rendered Markdown. In a chat, `[Alex]: hello` is a sentence.
//!
//! Escapes every definition that no link uses, or that is no address, so that it is read as the text it looks like.

use std::collections::BTreeSet;

use pulldown_cmark::{Event, LinkType, Parser, Tag};

use super::{OPTIONS, is_linkable};
use crate::limits::DEFINITION_PASSES_MAX;

/// The source with its unused definitions escaped; `None` where that does not settle within the passes allowed (a
/// definition may hide behind another of its label).
pub(super) fn shown(source: &str) -> Option<String> {
    let mut source = source.to_owned();
    for _ in 0..DEFINITION_PASSES_MAX {
        let hidden = unused(&source)?;
        if hidden.is_empty() {
            return Some(source);
        }
        for at in hidden.into_iter().rev() {
            source.insert(at, '\\');
        }
    }
    None
}

/// Where the brackets of unused definitions open, in order; `None` if one cannot be found.
fn unused(source: &str) -> Option<BTreeSet<usize>> {
    let parser = Parser::new_ext(source, OPTIONS).into_offset_iter();
    let definitions: Vec<_> = parser
        .reference_definitions()
        .iter()
        .map(|(_, definition)| (definition.dest.to_string(), definition.span.clone()))
        .collect();
    if definitions.is_empty() {
        return Some(BTreeSet::new());
    }
    let mut used = BTreeSet::new();
    for (event, _) in parser {
        if let Event::Start(Tag::Link { link_type, dest_url, .. } | Tag::Image { link_type, dest_url, .. }) =
            event
            && matches!(link_type, LinkType::Reference | LinkType::Collapsed | LinkType::Shortcut)
        {
            used.insert(dest_url.into_string());
        }
    }
    definitions
        .into_iter()
        .filter(|(address, _)| !(is_linkable(address) && used.contains(address)))
        .map(|(_, span)| source.get(span.clone())?.find('[').map(|at| span.start + at))
        .collect()
}
