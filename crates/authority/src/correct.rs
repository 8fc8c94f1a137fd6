//! `/correct`: a person's own correction of a reply becomes a judgment, or a refusal that says nothing of its words.
//!
//! The projector follows the commands in the log. What a correction is bound to it finds by the message that is replied
//! to, else by the newest reply of that chat and thread before the command; then it replays the reply's chain. Each command
//! is settled once, in the commit that says so.

use std::sync::Arc;

use thought_contract::event::{Actor, EventType, StoredEvent};
use thought_contract::payload::{
    ConversationText, CorrectionTarget, DeliveryTelegram, OutputContract, TelegramCommand,
};
use thought_contract::time::Clock;
use thought_protocol::EventId;
use thought_protocol::limits::REPLACEMENT_CHARACTERS_MAX;
use thought_store::handle::{CORRECTIONS_CURSOR, Judgments, Reader};
use thought_store::row::EventFilter;
use thought_store::{Precondition, StoreError};

use crate::chain::{Aim, ChainError, is_sealed, verify_target};
use crate::judge::{Criterion, JudgeError, Verdict, judgment};
use crate::limits::{COMMANDS_PAGE, JUDGMENT_TRIES_MAX};

/// The word of the command.
pub(crate) const CORRECT: &str = "correct";

/// Why a correction was refused. The chat hears one fixed sentence, whatever it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The command's event is not whole.
    Malformed,
    /// No words, or too many.
    Words,
    /// No reply is meant.
    NoReply,
    /// The reply's chain does not hold.
    NotMatched,
}

impl Refusal {
    /// The stable code.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Words => "words",
            Self::NoReply => "no-reply",
            Self::NotMatched => "not-matched",
        }
    }
}

/// What became of a command now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// A judgment counts.
    Judged {
        /// The command.
        command: EventId,
        /// The judgment.
        judgment: EventId,
    },
    /// It was refused.
    Refused {
        /// The command.
        command: EventId,
        /// Why.
        refusal: Refusal,
    },
}

/// The projector of people's own corrections.
#[derive(Clone)]
pub struct Corrections {
    reader: Reader,
    judgments: Judgments,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Corrections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Corrections")
    }
}

impl Corrections {
    /// A projector.
    pub fn new((reader, judgments): (Reader, Judgments), clock: Arc<dyn Clock>) -> Self {
        Self { reader, judgments, clock }
    }

    /// Settles every command that nobody looked at yet, in the order of the log.
    ///
    /// # Errors
    /// [`JudgeError`]; what was settled before stays, and the next call goes on from there.
    pub async fn catch_up(&self) -> Result<Vec<Settled>, JudgeError> {
        let mut settled = Vec::new();
        let mut after = self.reader.cursor(CORRECTIONS_CURSOR.to_owned()).await?;
        loop {
            let page = commands_behind(&self.reader, after).await?;
            let Some(last) = page.last() else { return Ok(settled) };
            let last = last.envelope.position;
            let is_full = page.len() == usize::try_from(COMMANDS_PAGE).unwrap_or(usize::MAX);
            for event in page {
                if is_correction(&event) {
                    settled.extend(self.settle(&event).await?);
                }
            }
            // Other commands cost no commit of their own until there are many.
            if is_full {
                self.judgments.looked_at(last).await?;
            }
            after = last;
        }
    }

    async fn settle(&self, event: &StoredEvent) -> Result<Option<Settled>, JudgeError> {
        let (command, position) = (event.envelope.id.clone(), event.envelope.position);
        for _ in 0..JUDGMENT_TRIES_MAX {
            if self.reader.correction(command.clone()).await?.is_some() {
                return Ok(None);
            }
            let verdict = match self.verdict(event).await? {
                Ok(verdict) => verdict,
                Err(refusal) => {
                    self.judgments.refuse(command.clone(), refusal.as_str(), position).await?;
                    tracing::info!(command = %command, reason = refusal.as_str(), "correction refused");
                    return Ok(Some(Settled::Refused { command, refusal }));
                }
            };
            let output = verdict.target.output.clone();
            let active = self.reader.active_judgment(output.clone()).await?;
            let draft = judgment(&verdict, active.clone(), &*self.clock)?;
            match self.judgments.correct(draft, output, active, (command.clone(), position)).await {
                Ok(appended) => {
                    tracing::info!(command = %command, judgment = %appended.id, "correction recorded");
                    return Ok(Some(Settled::Judged { command, judgment: appended.id }));
                }
                // Another judgment came first, maybe this very one by another process.
                Err(StoreError::Precondition(Precondition::ActiveJudgment) | StoreError::Conflict { .. }) => {
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(StoreError::Precondition(Precondition::ActiveJudgment).into())
    }

    async fn verdict(&self, event: &StoredEvent) -> Result<Result<Verdict, Refusal>, JudgeError> {
        let Ok(command) = event.payload::<TelegramCommand>() else { return Ok(Err(Refusal::Malformed)) };
        let envelope = &event.envelope;
        let own = envelope.root_id == envelope.id
            && envelope.actor == Actor::new(format!("human:telegram:{}", command.user_id));
        if !(own && is_sealed(event)) {
            return Ok(Err(Refusal::Malformed));
        }
        let words = command.argument.as_deref().map(str::trim).unwrap_or_default();
        let is_bounded = (1..=REPLACEMENT_CHARACTERS_MAX).contains(&words.chars().count());
        if !is_bounded || words.contains('\0') {
            return Ok(Err(Refusal::Words));
        }
        let target = match self.target(event, &command).await? {
            Ok(target) => target,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let aim = Aim {
            source: &envelope.source,
            chat_id: command.chat_id,
            thread_id: command.thread_id,
            sender: None,
            agents: None,
        };
        match verify_target(&self.reader, &target, &aim).await {
            Ok(()) => {}
            Err(ChainError::Store(error)) => return Err(error.into()),
            Err(_does_not_hold) => return Ok(Err(Refusal::NotMatched)),
        }
        Ok(Ok(Verdict {
            criterion: Criterion::OperatorCorrection,
            actor: envelope.actor.as_str().to_owned(),
            target,
            replacement: ConversationText { summary: words.to_owned() },
            feedback: envelope.id.clone(),
            proposal: None,
        }))
    }

    /// The reply that is meant, by its receipt; never one that came after the command.
    async fn target(
        &self,
        event: &StoredEvent,
        command: &TelegramCommand,
    ) -> Result<Result<CorrectionTarget, Refusal>, JudgeError> {
        let (source, position) = (event.envelope.source.clone(), event.envelope.position);
        let (chat, thread) = (command.chat_id, command.thread_id);
        let receipt = match command.reply_to_message_id {
            Some(message) => self.reader.reply_with_message(source, chat, message).await?,
            None => self.reader.newest_reply(source, chat, thread, position).await?,
        };
        let Some(receipt) = receipt else { return Ok(Err(Refusal::NoReply)) };
        let receipt = self.reader.event(receipt).await?.filter(|found| found.envelope.position < position);
        let Some(receipt) = receipt else { return Ok(Err(Refusal::NoReply)) };
        let Ok(told) = receipt.payload::<DeliveryTelegram>() else { return Ok(Err(Refusal::NotMatched)) };
        let (Some(run), Some(output)) = (told.run, told.output) else { return Ok(Err(Refusal::NotMatched)) };
        Ok(Ok(CorrectionTarget {
            run,
            output,
            delivery_receipt: receipt.envelope.id,
            source_root: receipt.envelope.root_id,
            contract: OutputContract::ConversationText,
        }))
    }
}

/// Whether every correction of a conversation that came before this message is judged or refused: only then may the
/// message be answered.
///
/// # Errors
/// [`StoreError`].
pub async fn is_settled_before(reader: &Reader, message: &StoredEvent) -> Result<bool, StoreError> {
    let mut after = reader.cursor(CORRECTIONS_CURSOR.to_owned()).await?;
    loop {
        let page = commands_behind(reader, after).await?;
        let Some(last) = page.last() else { return Ok(true) };
        after = last.envelope.position;
        for event in page {
            if event.envelope.position > message.envelope.position {
                return Ok(true);
            }
            let same = event.envelope.source == message.envelope.source
                && event.envelope.correlation_id == message.envelope.correlation_id;
            if same && is_correction(&event) && reader.correction(event.envelope.id.clone()).await?.is_none()
            {
                return Ok(false);
            }
        }
    }
}

async fn commands_behind(reader: &Reader, position: u64) -> Result<Vec<StoredEvent>, StoreError> {
    let filter = EventFilter {
        types: vec![EventType::TelegramCommand],
        after_position: position,
        limit: COMMANDS_PAGE,
        ..EventFilter::default()
    };
    reader.events(filter).await
}

/// A command whose payload does not decode is looked at, and refused.
fn is_correction(event: &StoredEvent) -> bool {
    event.payload::<TelegramCommand>().map_or(true, |command| command.command == CORRECT)
}
