//! The payload of every event type: strict, camelCase, canonical when written.
//!
//! None of these types prints its content: `Debug` names the type alone, so that a log line cannot carry a message.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thought_protocol::proposal::ProposalKind;
use thought_protocol::{
    AttemptId, DocumentId, EventId, Fingerprint, RunId, Sha256Hex, SnapshotId, VersionId,
};

use crate::event::{EventType, SourceName};

/// A type of payload, tied to the event types that carry it.
pub trait Payload: Serialize + DeserializeOwned {
    /// The registered types whose payload this is.
    const TYPES: &'static [EventType];
}

macro_rules! payloads {
    ($($(#[$doc:meta])* $name:ident [$($event:ident),*] { $($(#[$fdoc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name {
            $($(#[$fdoc])* pub $field: $type,)*
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }

        impl Payload for $name {
            const TYPES: &'static [EventType] = &[$(EventType::$event),*];
        }
    )*};
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// The written form.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The value of a written form.
            pub fn from_word(text: &str) -> Option<Self> {
                match text { $($word => Some(Self::$variant),)* _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )*};
}

words! {
    /// The one state a model's proposal is ever in.
    AgentProposed { /// Asked for by a model; nothing more.
        AgentProposed = "agent-proposed", }
    /// The one state an operator's proposal is ever in.
    OperatorProposed { /// Asked for by a person; still wants a decision.
        OperatorProposed = "operator-proposed", }
    /// How a memory change would be made.
    MemoryOperation {
        /// The text is added at the end.
        Append = "append",
        /// The text takes the whole document's place.
        ReplaceDocument = "replace-document",
    }
    /// Why an operator proposed.
    Purpose {
        /// The same change again, on the current base.
        Repropose = "repropose",
        /// Back to the version before a change.
        Revert = "revert",
    }
    /// A person's word on a proposal.
    Disposition {
        /// As proposed.
        Accept = "accept",
        /// With the operator's own text.
        Edit = "edit",
        /// No.
        Reject = "reject",
    }
    /// Whose authority a decision rests on.
    HumanAuthority { /// A person's, and nobody else's.
        Human = "human", }
    /// Where a decision was made.
    Surface {
        /// The command line.
        Cli = "cli",
        /// The local web pages.
        Inspector = "inspector",
    }
    /// The frozen contract of an output.
    OutputContract { /// `{"summary": …}`.
        ConversationText = "conversation-text@1", }
    /// What a judgment says.
    JudgmentKind { /// The output should have been another.
        Correct = "correct", }
    /// What was delivered.
    DeliveryKind {
        /// The answer to a turn.
        Reply = "reply",
        /// A run ended without an answer.
        RunFailed = "notice:run-failed",
        /// A run waits.
        RunHeld = "notice:run-held",
        /// A kind of message that cannot be read.
        UnsupportedKind = "notice:unsupported-kind",
        /// The memory was changed.
        MemoryUpdated = "notice:memory-updated",
        /// A correction was recorded.
        Corrected = "notice:corrected",
        /// A correction matched no reply.
        NotMatched = "notice:not-matched",
        /// Suggestions wait for review.
        SuggestionsWaiting = "notice:suggestions-waiting",
        /// What the bot is and can do.
        Help = "notice:help",
    }
    /// A notice that no other event tells of.
    NoticeName {
        /// A run waits.
        RunHeld = "run-held",
        /// A kind of message that cannot be read.
        UnsupportedKind = "unsupported-kind",
        /// Suggestions wait for review.
        SuggestionsWaiting = "suggestions-waiting",
        /// What the bot is and can do.
        Help = "help",
    }
}

/// A literal `false` of the contract: it reads back from nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct No;

impl Serialize for No {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(false)
    }
}

impl<'de> Deserialize<'de> for No {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if bool::deserialize(deserializer)? {
            Err(serde::de::Error::custom("expected the literal false"))
        } else {
            Ok(Self)
        }
    }
}

payloads! {
    /// An image of a message; its bytes are a blob.
    Image [] {
        /// Name of the blob.
        blob_sha256: Sha256Hex,
        /// What it was checked to be.
        media_type: String,
        /// Size, bytes.
        byte_count: u64,
        /// Pixels.
        width: u32,
        /// Pixels.
        height: u32,
    }

    /// A person's message that starts a turn.
    TelegramMessage [TelegramMessage] {
        /// The chat.
        chat_id: i64,
        /// The forum topic, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")] thread_id: Option<i64>,
        /// The message; of an album its first part.
        message_id: i64,
        /// The person.
        user_id: i64,
        /// Text or caption.
        #[serde(default, skip_serializing_if = "Option::is_none")] text: Option<String>,
        /// Images, in order.
        images: Vec<Image>,
        /// The message it answers.
        #[serde(default, skip_serializing_if = "Option::is_none")] reply_to_message_id: Option<i64>,
        /// The album.
        #[serde(default, skip_serializing_if = "Option::is_none")] media_group_id: Option<String>,
    }

    /// A command that no model answers.
    TelegramCommand [TelegramCommand] {
        /// The chat.
        chat_id: i64,
        /// The forum topic, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")] thread_id: Option<i64>,
        /// The message.
        message_id: i64,
        /// The person.
        user_id: i64,
        /// `start`, `help`, `focus` or `correct`.
        command: String,
        /// What stands behind it.
        #[serde(default, skip_serializing_if = "Option::is_none")] argument: Option<String>,
        /// The message it answers.
        #[serde(default, skip_serializing_if = "Option::is_none")] reply_to_message_id: Option<i64>,
    }

    /// A new version of a document.
    FileVersion [FileVersion] {
        /// The document.
        document_id: DocumentId,
        /// This version.
        version_id: VersionId,
        /// The version before.
        #[serde(default, skip_serializing_if = "Option::is_none")] previous_version_id: Option<VersionId>,
        /// Path below the context root.
        path: String,
        /// Hash of the content.
        sha256: Sha256Hex,
        /// Size, bytes.
        byte_count: u64,
        /// `text/markdown`, or `application/octet-stream` for what is not UTF-8.
        content_type: String,
        /// `id` of valid frontmatter.
        #[serde(default, skip_serializing_if = "Option::is_none")] frontmatter_id: Option<String>,
    }

    /// A document that is gone.
    FileRemoved [FileRemoved] {
        /// The document.
        document_id: DocumentId,
        /// The last version.
        previous_version_id: VersionId,
        /// Path below the context root.
        path: String,
    }

    /// A private message of an admitted agent.
    AgentMessage [AgentMessage] {
        /// Its id, chosen by the sender.
        message_id: String,
        /// Its thread, chosen by the sender.
        thread_id: String,
        /// Who writes.
        sender_agent_id: String,
        /// To whom.
        recipient_agent_id: String,
        /// What.
        text: String,
    }

    /// A declaration as an event names it.
    AgentVersion [] {
        /// Declaration id.
        id: String,
        /// Declaration version.
        version: u32,
        /// Fingerprint of what was activated.
        fingerprint: Fingerprint,
    }

    /// The answer of a conversation turn.
    MessageObservation [MessageObservation] {
        /// What was said.
        summary: String,
        /// Cut by the length limit.
        truncated: bool,
        /// The frozen contract.
        contract: OutputContract,
        /// The run.
        run: RunId,
        /// The declaration.
        agent: AgentVersion,
        /// Name of the provider in the configuration.
        provider: String,
        /// The model that answered.
        model: String,
        /// The frozen context.
        context_snapshot: SnapshotId,
    }

    /// The answer to a private agent message.
    DerivedAgentMessage [DerivedAgentMessage] {
        /// What was said.
        summary: String,
        /// Cut by the length limit.
        truncated: bool,
        /// The frozen contract.
        contract: OutputContract,
        /// The run.
        run: RunId,
        /// The declaration.
        agent: AgentVersion,
        /// Name of the provider in the configuration.
        provider: String,
        /// The model that answered.
        model: String,
        /// The frozen context.
        context_snapshot: SnapshotId,
        /// Derived from the run.
        message_id: String,
        /// The thread.
        thread_id: String,
        /// The recipient of the message it answers.
        sender_agent_id: String,
        /// The sender of the message it answers.
        recipient_agent_id: String,
        /// The message it answers.
        in_reply_to: String,
        /// Sequence of that message in its source.
        input_sequence: u64,
    }

    /// An agent's id and version, as a proposal names it.
    ProposerAgent [] {
        /// Declaration id.
        id: String,
        /// Declaration version.
        version: u32,
    }

    /// Where a model's proposal comes from.
    Proposer [] {
        /// The run.
        run: RunId,
        /// The answer it came with.
        output: EventId,
        /// What was answered.
        trigger: EventId,
        /// The declaration.
        agent: ProposerAgent,
        /// Fingerprint of what was activated.
        fingerprint: Fingerprint,
        /// Name of the provider in the configuration.
        provider: String,
        /// The model.
        model: String,
        /// The frozen context.
        context_snapshot: SnapshotId,
    }

    /// The document version that a memory change is bound to.
    MemoryTarget [] {
        /// The source.
        source: SourceName,
        /// The document.
        document_id: DocumentId,
        /// Path below the context root.
        path: String,
        /// The version.
        version_id: VersionId,
        /// Hash of its content.
        sha256: Sha256Hex,
        /// Its content type.
        content_type: String,
    }

    /// A memory change that a model proposed.
    MemoryChangeProposed [MemoryChangeProposed] {
        /// Literal.
        proposal_state: AgentProposed,
        /// Where it comes from.
        proposer: Proposer,
        /// What it is bound to.
        target: MemoryTarget,
        /// How.
        operation: MemoryOperation,
        /// The text.
        proposed_text: String,
        /// Its length, characters.
        text_length: u64,
        /// Its hash.
        text_sha256: Sha256Hex,
        /// Why.
        reason: String,
        /// What it cites.
        evidence: Vec<EventId>,
        /// Literal.
        publication_eligible: No,
    }

    /// The answer that a correction is bound to.
    CorrectionTarget [] {
        /// The run that gave it.
        run: RunId,
        /// The answer.
        output: EventId,
        /// Its receipt.
        delivery_receipt: EventId,
        /// Root of its lineage.
        source_root: EventId,
        /// Its frozen contract.
        contract: OutputContract,
    }

    /// The full output of `conversation-text@1`.
    ConversationText [] {
        /// What is said.
        summary: String,
    }

    /// A correction of itself that a model proposed.
    CorrectionProposed [CorrectionProposed] {
        /// Literal.
        proposal_state: AgentProposed,
        /// Where it comes from.
        proposer: Proposer,
        /// What it is bound to.
        target: CorrectionTarget,
        /// The full output it should have been.
        replacement: ConversationText,
        /// Why.
        reason: String,
        /// What it cites.
        evidence: Vec<EventId>,
        /// Literal.
        quality_eligible: No,
        /// Literal.
        external_export_eligible: No,
        /// Literal.
        publication_eligible: No,
    }

    /// What a proposed focus may do: nothing.
    FocusAuthority [] {
        /// Literal.
        activation: No,
        /// Literal.
        data_expansion: No,
        /// Literal.
        external_actions: No,
        /// Literal.
        training: No,
        /// Literal.
        adapter_promotion: No,
    }

    /// What of a proposed focus was resolved: nothing.
    FocusResolution [] {
        /// Literal.
        events: Unchecked,
        /// Literal.
        sources: Unchecked,
        /// Literal.
        capabilities: Unchecked,
        /// Literal.
        lineage: Unchecked,
    }

    /// A focus declaration that a model proposed.
    FocusProposed [FocusProposed] {
        /// Literal.
        proposal_state: AgentProposed,
        /// Where it comes from.
        proposer: Proposer,
        /// The strict declaration, canonical.
        declaration: Value,
        /// Its fingerprint, computed by the parent.
        fingerprint: Fingerprint,
        /// Literal.
        authority: FocusAuthority,
        /// Literal.
        resolution: FocusResolution,
    }

    /// A memory change that a person proposed again or in reverse.
    OperatorMemoryChangeProposed [OperatorMemoryChangeProposed] {
        /// Literal.
        proposal_state: OperatorProposed,
        /// The proposal it goes back to.
        origin: EventId,
        /// Why.
        purpose: Purpose,
        /// How.
        operation: MemoryOperation,
        /// The text.
        proposed_text: String,
        /// Its length, characters.
        text_length: u64,
        /// Its hash.
        text_sha256: Sha256Hex,
        /// What it is bound to.
        target: MemoryTarget,
        /// Who.
        operator: String,
        /// Literal.
        publication_eligible: No,
    }

    /// A proposal as the completed run names it.
    ProposalReference [] {
        /// Its kind.
        kind: ProposalKind,
        /// The event.
        event: EventId,
    }

    /// Tokens, as far as the provider told.
    Usage [] {
        /// Tokens in.
        #[serde(default, skip_serializing_if = "Option::is_none")] input_tokens: Option<u64>,
        /// Tokens out.
        #[serde(default, skip_serializing_if = "Option::is_none")] output_tokens: Option<u64>,
    }

    /// A run that ended with an answer.
    RunCompleted [RunCompleted] {
        /// The run.
        run: RunId,
        /// The attempt that answered.
        attempt: AttemptId,
        /// The frozen context.
        context_snapshot: SnapshotId,
        /// The answer.
        output: EventId,
        /// What was proposed, in order.
        proposals: Vec<ProposalReference>,
        /// What it cost.
        usage: Usage,
        /// Thinking parts that were dropped.
        thinking_parts_dropped: u32,
    }

    /// A run that ended without an answer.
    RunEnded [RunFailed, RunBlocked, RunAbandoned] {
        /// The run.
        run: RunId,
        /// Attempts made.
        attempts: u32,
        /// Reason code.
        reason: String,
    }

    /// The operator's own text of an edit.
    DecisionReplacement [] {
        /// The exact text.
        text: String,
        /// Its length, characters.
        length: u64,
        /// Its hash.
        sha256: Sha256Hex,
    }

    /// A person's word on a proposal.
    ProposalDecision [ProposalDecision] {
        /// The proposal.
        proposal: EventId,
        /// Its kind.
        proposal_kind: ProposalKind,
        /// The word.
        disposition: Disposition,
        /// The operator's text, of an edit alone.
        #[serde(default, skip_serializing_if = "Option::is_none")] replacement: Option<DecisionReplacement>,
        /// Provenance of the submission.
        submission_id: String,
        /// Who.
        operator: String,
        /// Literal.
        authority: HumanAuthority,
        /// Where.
        surface: Surface,
        /// Which account.
        uid: u32,
    }

    /// A correction that counts.
    JudgmentRecorded [JudgmentRecorded] {
        /// Literal 2.
        schema_version: u32,
        /// Literal.
        kind: JudgmentKind,
        /// `agent-self-correction` or `operator-correction`.
        criterion: String,
        /// Literal 1.
        criterion_version: u32,
        /// Whose word.
        actor: String,
        /// The answer.
        target: CorrectionTarget,
        /// What it should have been.
        replacement: ConversationText,
        /// The decision or command it rests on.
        feedback: EventId,
        /// May train privately.
        quality_eligible: bool,
        /// May leave the house.
        external_export_eligible: bool,
        /// The judgment it takes the place of.
        #[serde(default, skip_serializing_if = "Option::is_none")] supersedes: Option<EventId>,
    }

    /// A memory change that was written and verified.
    MemoryMaterialized [MemoryMaterialized] {
        /// The proposal.
        proposal: EventId,
        /// The decision.
        decision: EventId,
        /// The document.
        document_id: DocumentId,
        /// The version it rested on.
        base_version_id: VersionId,
        /// The version it made.
        version_id: VersionId,
        /// Hash of the new content.
        sha256: Sha256Hex,
        /// Size, bytes.
        byte_count: u64,
        /// The scanned version's event.
        file_event: EventId,
    }

    /// A memory change that could not be written.
    MaterializationFailed [MaterializationFailed] {
        /// The proposal.
        proposal: EventId,
        /// The decision.
        decision: EventId,
        /// Reason code.
        reason: String,
    }

    /// One message of a delivery.
    DeliveredChunk [] {
        /// Telegram's id of it; absent when a person confirmed it.
        #[serde(default, skip_serializing_if = "Option::is_none")] message_id: Option<i64>,
        /// Its length, UTF-16 units.
        utf16_length: u64,
        /// Who confirmed that it was seen.
        #[serde(default, skip_serializing_if = "Option::is_none")] confirmed_by: Option<String>,
    }

    /// A reply or notice that reached its chat.
    DeliveryTelegram [DeliveryTelegram] {
        /// What.
        kind: DeliveryKind,
        /// The chat.
        chat_id: i64,
        /// The forum topic, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")] thread_id: Option<i64>,
        /// The messages, in order.
        chunks: Vec<DeliveredChunk>,
        /// The run of a reply.
        #[serde(default, skip_serializing_if = "Option::is_none")] run: Option<RunId>,
        /// The output of a reply.
        #[serde(default, skip_serializing_if = "Option::is_none")] output: Option<EventId>,
    }

    /// A notice that no other event tells of.
    NoticeRequested [NoticeRequested] {
        /// Which.
        name: NoticeName,
        /// The chat.
        chat_id: i64,
        /// The forum topic, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")] thread_id: Option<i64>,
    }

    /// Where a source stood.
    SourceHead [] {
        /// The source.
        source: SourceName,
        /// Its head at activation; a consumer begins behind it.
        head: u64,
    }

    /// A declaration that became active.
    DeclarationActivated [DeclarationActivated] {
        /// Declaration id.
        declaration: String,
        /// Declaration version.
        version: u32,
        /// Fingerprint of declaration, prompt and proposal manifest.
        fingerprint: Fingerprint,
        /// Where each subscribed source stood.
        sources: Vec<SourceHead>,
        /// Hash of the binary that will be jailed.
        worker_sha256: Sha256Hex,
    }

    /// Something that an operator should look at.
    Incident [Incident] {
        /// Kind code.
        kind: String,
        /// What it is about: an id or a name, never content.
        subject: String,
        /// Which occurrence.
        count: u64,
    }
}

words! {
    /// The one state in which a focus proposal's references stand.
    Unchecked { /// Nobody looked.
        Unchecked = "unchecked", }
}
