//! What a dead process left: its intent says that a write was begun, and the temporary file what became of it.
//!
//! An intent is a note and no evidence: which bytes were to stand is planned again from the verified change, and a note
//! that says otherwise is refused.

use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, OFlags, unlinkat};
use thought_contract::snapshot::build::MEMORY_PATH;
use thought_protocol::limits::DOCUMENT_BYTES_MAX_CEILING;
use thought_protocol::{EventId, Sha256Hex};
use thought_store::row::{Existence, IntentRow, VersionRow};

use super::exchange::{Content, Failed, Leftover, Site};
use super::{
    MaterializeError, MemoryMaterializer, Step, TEMPORARY_PREFIX, TEMPORARY_SUFFIX, Written, planned,
    temporary_name, verify,
};
use crate::chain::{Decided, Link, MemoryChange, refused};
use crate::limits::ENTRIES_MAX;
use crate::lock::RootGuard;
use crate::reason::Reason;
use crate::root::open_beneath;

/// What the files say of an unfinished write.
enum Left {
    /// The base came out, so the new document stood.
    Written(Stood),
    /// Nothing that counts: begin again.
    Nothing,
    /// A person's save came out, and was taken back.
    TakenBack(Failed),
}

/// Until when the new document stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stood {
    /// It stands.
    Stands,
    /// Until somebody saved something else in its place.
    UntilASave,
}

impl MemoryMaterializer {
    /// Whether the pointer still names the frozen base: nothing was scanned since.
    async fn is_at_base(&self, base: &VersionRow) -> Result<bool, MaterializeError> {
        let pointer = self.parts.reader.document(base.document.clone()).await?;
        Ok(pointer.is_some_and(|now| now.existence == Existence::Present && now.version == base.version))
    }

    /// Goes on from an intent.
    pub(super) async fn resume(
        &self,
        guard: &Arc<RootGuard>,
        decided: &Decided<MemoryChange>,
        intent: &IntentRow,
    ) -> Step<Written> {
        let Some(base) = self.version(decided).await? else {
            return Ok(Err(Failed { reason: Reason::ReceiptMismatch, leftover: Leftover::Kept }));
        };
        // The configured size may be another by now; what was begun was within its own.
        let planned = planned(decided, &base, DOCUMENT_BYTES_MAX_CEILING)?;
        let planned = match planned {
            Ok(planned) if planned.sha256 == intent.expected_sha256 => planned,
            Ok(_) | Err(_) => return Err(refused(Link::Decision, "intent").into()),
        };
        let (old, new) = (base.sha256.clone(), planned.sha256.clone());
        let left = self.at_site(guard, decided, move |site| look_over(site, &old, &new)).await?;
        match left {
            Left::Written(stood) => {
                // The new document was there, and a person saved over it before anything was scanned: it is a version
                // like any other that stood, and the scan finds theirs behind it.
                if stood == Stood::UntilASave && self.is_at_base(&base).await? {
                    let recorded = self.parts.connector.record(guard, MEMORY_PATH, planned.bytes.expose());
                    if let Err(error) = recorded.await {
                        tracing::warn!(decision = %decided.decision().id(), %error, "what stood was not recorded");
                        return Ok(Err(Failed { reason: Reason::ScanFailed, leftover: Leftover::Kept }));
                    }
                }
                Ok(Ok(Written { base, sha256: planned.sha256, pointer: verify::Pointer::MayHaveMovedOn }))
            }
            Left::Nothing => self.write(guard, decided).await,
            Left::TakenBack(failed) => Ok(Err(failed)),
        }
    }

    /// Removes temporary files whose decisions are resolved: their process died between receipt and removal.
    pub(super) async fn sweep(
        &self,
        guard: &Arc<RootGuard>,
        decided: &Decided<MemoryChange>,
    ) -> Result<(), MaterializeError> {
        let own = temporary_name(decided.decision().id());
        let names = self.at_site(guard, decided, left_behind).await?;
        for name in names.into_iter().filter(|name| *name != own) {
            let Some(decision) = decision_in(&name) else { continue };
            if self.parts.reader.intent(decision).await?.is_none() {
                self.at_site(guard, decided, move |site| {
                    let _unheard = unlinkat(site.guard.folder(), name.as_str(), AtFlags::empty());
                })
                .await?;
            }
        }
        Ok(())
    }
}

fn look_over(site: Site<'_>, base: &Sha256Hex, new: &Sha256Hex) -> Left {
    let (temporary, document) = (site.temporary(), site.document());
    let stands = document.is(new);
    match temporary {
        // The base came out: the exchange was made. It is settled once more, since nobody looked at what came next.
        out if out.is(base) => match site.settle(base, new) {
            Ok(()) if stands => Left::Written(Stood::Stands),
            Ok(()) => Left::Written(Stood::UntilASave),
            Err(failed) => Left::TakenBack(failed),
        },
        // Where a file system cannot exchange, the name alone tells.
        Content::Absent if stands => Left::Written(Stood::Stands),
        Content::Absent => Left::Nothing,
        // Never exchanged, or taken back.
        out if out.is(new) => nothing(site),
        // Somebody's save came out, and nothing newer stands in its place.
        out if stands => Left::TakenBack(site.take_back(out, new, Reason::StaleBase)),
        // Half a temporary file, or a save that its author replaced since.
        _ => nothing(site),
    }
}

fn nothing(site: Site<'_>) -> Left {
    match site.remove_temporary() {
        Leftover::None => Left::Nothing,
        Leftover::Kept => Left::TakenBack(Failed { reason: Reason::WriteFailed, leftover: Leftover::Kept }),
    }
}

/// Temporary files of any decision in the root. A folder that cannot be listed has none that matter now.
fn left_behind(site: Site<'_>) -> Vec<String> {
    let opened = open_beneath(site.guard.folder(), ".", OFlags::RDONLY | OFlags::DIRECTORY);
    let Ok(listed) = opened.map(Dir::new) else { return Vec::new() };
    let Ok(entries) = listed else { return Vec::new() };
    let mut names = Vec::new();
    for entry in entries.take(ENTRIES_MAX).flatten() {
        if let Ok(name) = entry.file_name().to_str()
            && decision_in(name).is_some()
        {
            names.push(name.to_owned());
        }
    }
    names
}

fn decision_in(name: &str) -> Option<EventId> {
    let inner = name.strip_prefix(TEMPORARY_PREFIX)?.strip_suffix(TEMPORARY_SUFFIX)?;
    inner.parse().ok()
}
