//! Builds the frozen context of a run, and rebuilds it for every later attempt and reader.
//!
//! Owns the reading: documents as they stand now, the conversation's newest turns with their evidence, and the stored
//! bytes of what was activated. What is history, what fits and how it renders is decided by pure code of the contract;
//! nothing here keeps a copy that could go stale, and nothing here waits: an answer whose delivery is still on the way
//! is handed back to the caller, who knows the time.

mod evidence;
mod read;

use thought_contract::conversation::{Conversation, TriggerRefusal, TurnEvidence};
use thought_contract::declaration::Declaration;
use thought_contract::event::StoredEvent;
use thought_contract::run::{BlockedReason, HeldReason, snapshot_id};
use thought_contract::snapshot::build::{Composition, ModelBinding, Selection, compose, freeze, select};
use thought_contract::snapshot::{LoadedEvidence, RebuildError, Snapshot, SnapshotError};
use thought_contract::time::Timestamp;
use thought_protocol::canonical::CanonicalError;
use thought_protocol::limits::{OMITTED_IDS_MAX, PACKET_BYTES_MAX};
use thought_protocol::packet::Packet;
use thought_protocol::{EventId, RunId, Sensitive};
use thought_store::command::NewSnapshot;
use thought_store::engine::StoreError;
use thought_store::handle::Reader;
use thought_store::row::{ContextQuery, ContextRows, DeclarationRow};

use crate::port::{Binding, Documents, DocumentsError};

pub use evidence::{pending_reply, turn_evidence};
pub use read::rebuild;
pub use thought_store::{Images, ImagesError, NoImages};

use read::{DocumentSet, documents, images};

/// A context that could not be built or rebuilt. Content-dark.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// The store did not answer.
    #[error("read the evidence of a context")]
    Store(#[from] StoreError),
    /// The documents could not be looked at.
    #[error("look at the documents of a context")]
    Documents(#[from] DocumentsError),
    /// An image could not be read.
    #[error("read the images of a context")]
    Images(#[from] ImagesError),
    /// The evidence does not render.
    #[error("render a context")]
    Rebuild(#[from] RebuildError),
    /// The snapshot cannot be written or read.
    #[error("keep a context")]
    Snapshot(#[from] SnapshotError),
    /// The trigger has no place in a conversation.
    #[error("build a context: event {trigger} has no ordinal in a conversation")]
    NoOrdinal {
        /// The trigger.
        trigger: EventId,
    },
    /// A document's pointer names a version that is not there.
    #[error("build a context: a document names a version that is missing")]
    VersionMissing,
    /// No such run.
    #[error("rebuild a context: run {run} is missing")]
    RunMissing {
        /// The run.
        run: RunId,
    },
    /// The run was never frozen.
    #[error("rebuild a context: run {run} has no snapshot")]
    SnapshotMissing {
        /// The run.
        run: RunId,
    },
    /// The stored snapshot is not of this run, or not what its hash says.
    #[error("rebuild a context: the snapshot of run {run} is not its own")]
    SnapshotForeign {
        /// The run.
        run: RunId,
    },
}

impl From<CanonicalError> for ContextError {
    fn from(error: CanonicalError) -> Self {
        Self::Snapshot(SnapshotError::Canonical(error))
    }
}

/// What a run's context is built from.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The run.
    pub run: &'a RunId,
    /// The activated declaration as stored.
    pub stored: &'a DeclarationRow,
    /// The same, read.
    pub declaration: &'a Declaration,
    /// Which model is asked.
    pub binding: &'a Binding,
    /// What is answered.
    pub trigger: &'a StoredEvent,
    /// What to do about answers whose delivery is still on the way.
    pub pending: PendingReplies,
}

/// What to do about earlier answers whose delivery is still on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingReplies {
    /// Build nothing yet: say which one is waited for.
    Await,
    /// Waiting is over: leave them out, and say so in the manifest.
    Omit,
}

/// What building came to.
#[derive(Debug)]
pub enum Built {
    /// The context is frozen.
    Ready(Box<BuiltContext>),
    /// An earlier answer is on its way to the chat.
    Pending {
        /// The one that settled last.
        output: EventId,
        /// When it settled: the wait is bounded from here.
        settled_at: Timestamp,
    },
    /// The run waits for something outside.
    Held(HeldReason),
    /// The run may not go on.
    Blocked(BlockedReason),
}

/// A frozen context.
#[derive(Debug)]
pub struct BuiltContext {
    /// As it is stored with the first attempt.
    pub snapshot: NewSnapshot,
    /// What the jail is told.
    pub packet: Packet,
    /// Its canonical bytes: the payload of a packet frame.
    pub packet_bytes: Sensitive<Vec<u8>>,
    /// What is stored, read.
    pub snapshot_decoded: Snapshot,
}

/// Builds contexts from one store.
#[derive(Clone, Copy)]
pub struct ContextBuilder<'a> {
    reader: &'a Reader,
    documents: &'a dyn Documents,
    images: &'a dyn Images,
}

impl std::fmt::Debug for ContextBuilder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ContextBuilder")
    }
}

impl<'a> ContextBuilder<'a> {
    /// Takes where evidence, documents and images come from.
    pub fn new(reader: &'a Reader, documents: &'a dyn Documents, images: &'a dyn Images) -> Self {
        Self { reader, documents, images }
    }

    /// Builds the context of a run that has none yet.
    ///
    /// # Errors
    /// [`ContextError`] when evidence cannot be read or does not hold together; trying again may help, and nothing was
    /// written.
    pub async fn build(&self, ask: Ask<'_>) -> Result<Built, ContextError> {
        let conversation = match Conversation::open(ask.declaration, ask.trigger) {
            Ok(conversation) => conversation,
            Err(refusal) => return Ok(Built::Blocked(blocked(refusal))),
        };
        self.documents.refresh().await?;
        let earlier_max = ask.declaration.budget().events_max.saturating_sub(1);
        // A turn with its answer is two events: this many are all that fit, and one more that does not.
        let mut turns_max = earlier_max.min(earlier_max / 2 + 1);
        loop {
            match self.build_from(&ask, &conversation, turns_max).await? {
                Some(built) => return Ok(built),
                // Some have no answer that is shown, and there is room for earlier ones.
                None => turns_max = earlier_max,
            }
        }
    }

    /// Builds the context from at most so many earlier turns; nothing where all of them fit and more may, up to the bound of
    /// the declaration.
    async fn build_from(
        &self,
        ask: &Ask<'_>,
        conversation: &Conversation<'_>,
        turns_max: u32,
    ) -> Result<Option<Built>, ContextError> {
        let trigger = &ask.trigger.envelope;
        let rows = self.reader.context(query(ask, conversation, turns_max)).await?;
        let rows = rows.ok_or_else(|| ContextError::NoOrdinal { trigger: trigger.id.clone() })?;
        let ContextRows { conversation: name, ordinal, turns, older, documents: found } = rows;
        if let (PendingReplies::Await, Some((output, settled_at))) = (ask.pending, pending_reply(&turns)) {
            return Ok(Some(Built::Pending { output, settled_at }));
        }
        let documents = match documents(ask.declaration, found)? {
            DocumentSet::Found(found) => found,
            DocumentSet::IdentityMissing => return Ok(Some(Built::Held(HeldReason::DocumentMissing))),
        };
        let history = turn_evidence(turns);
        let budget = ask.declaration.budget();
        let selection = match select(conversation, &history, &documents.present, budget, ordinal) {
            Ok(selection) => selection,
            Err(_too_large) => return Ok(Some(Built::Blocked(BlockedReason::ContextTooLarge))),
        };
        let has_more = turns_max < budget.events_max.saturating_sub(1) && !older.is_empty();
        if has_more && history.first().is_some_and(|oldest| selection.reaches(oldest.ordinal)) {
            return Ok(None);
        }
        let omitted_newest = omitted(&selection, &history, older);
        let parts = Composition {
            declaration: ask.declaration,
            fingerprint: &ask.stored.fingerprint,
            model: model_binding(ask.binding),
            conversation: &name,
            ordinal,
            documents: &documents.present,
            missing_documents: documents.missing,
            omitted_newest,
        };
        let snapshot = compose(parts, conversation, &selection);
        let mut loaded = LoadedEvidence::default();
        evidence::put_declaration(&mut loaded, ask.stored);
        images(self.images, ask.trigger, &mut loaded).await?;
        loaded.put_event(ask.trigger.clone());
        evidence::put_turns(&mut loaded, history);
        evidence::put_documents(&mut loaded, documents.present);
        finish(ask.run, snapshot, &loaded).map(Some)
    }
}

/// What the store is asked for.
fn query(ask: &Ask<'_>, conversation: &Conversation<'_>, turns_max: u32) -> ContextQuery {
    let declared = ask.declaration.documents();
    ContextQuery {
        trigger: ask.trigger.envelope.id.clone(),
        turns_max,
        agents: conversation.agents().iter().map(|agent| agent.as_str().to_owned()).collect(),
        older_max: u32::try_from(OMITTED_IDS_MAX).unwrap_or(u32::MAX),
        documents: declared.map(|documents| (documents.source.clone(), documents.paths.clone())),
    }
}

/// The newest turns that are left out, newest first: what was read and does not fit, then what was not read.
fn omitted(selection: &Selection<'_>, history: &[TurnEvidence], older: Vec<EventId>) -> Vec<EventId> {
    let Some(end) = selection.omitted_before() else { return Vec::new() };
    let unfit = history.iter().rev().filter(|turn| turn.ordinal < end);
    let unfit = unfit.map(|turn| turn.message.envelope.id.clone());
    unfit.chain(older).take(OMITTED_IDS_MAX).collect()
}

fn finish(run: &RunId, snapshot: Snapshot, loaded: &LoadedEvidence) -> Result<Built, ContextError> {
    let frozen = freeze(snapshot, loaded)?;
    if frozen.packet_bytes.expose().len() > PACKET_BYTES_MAX {
        return Ok(Built::Blocked(BlockedReason::ContextTooLarge));
    }
    let encoded = frozen.snapshot.encode()?;
    Ok(Built::Ready(Box::new(BuiltContext {
        snapshot: NewSnapshot {
            id: snapshot_id(run),
            sha256: encoded.sha256,
            packet_sha256: frozen.snapshot.packet_sha256.clone(),
            bytes: encoded.compressed,
        },
        packet: frozen.packet,
        packet_bytes: frozen.packet_bytes,
        snapshot_decoded: frozen.snapshot,
    })))
}

/// What a snapshot freezes of a binding. Equal to [`Snapshot::binding`] as long as the same model is configured.
pub fn model_binding(binding: &Binding) -> ModelBinding {
    ModelBinding {
        api: binding.api,
        model: binding.model.clone(),
        compat: binding.compat,
        token_limit: binding.token_limit,
    }
}

const fn blocked(refusal: TriggerRefusal) -> BlockedReason {
    match refusal {
        TriggerRefusal::Route => BlockedReason::RouteRefused,
        TriggerRefusal::NotSubscribed | TriggerRefusal::Malformed | TriggerRefusal::Empty => {
            BlockedReason::Policy
        }
    }
}
