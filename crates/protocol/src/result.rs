//! The worker's result, and the parent's distrust of it.
//!
//! A result says what the worker read. It decides nothing: the parent reads the same bytes itself and accepts only a
//! result that matches one to one, so that a worker can withhold an answer but never change one.

use serde::{Deserialize, Serialize};

use crate::answer::{self, Answer, FailReason, RawCall, Usage, ValidatedAnswer};
use crate::canonical::{self, CanonicalError};
use crate::packet::Packet;
use crate::provider;
use crate::strict_json::{self, StrictJsonError};

/// The version of the result's form. It moves apart from the packet's and from every event schema.
pub const RESULT_FORMAT: u32 = 1;

/// What stands for a captured call: no content, and no further request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Captured {
    /// The provider's id of the call.
    pub id: String,
    /// Always `true`: the answer ends here.
    pub terminate: bool,
}

/// What the worker made of the answer.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Outcome {
    /// A valid answer.
    Answer {
        /// The trimmed text, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Whether it was cut by length.
        truncated: bool,
        /// The calls, raw.
        calls: Vec<RawCall>,
        /// How many thinking parts were dropped.
        thinking_parts_dropped: u32,
        /// Tokens.
        usage: Usage,
        /// One for each call, in order.
        captured: Vec<Captured>,
    },
    /// No valid answer.
    Failed {
        /// Why.
        reason: FailReason,
    },
}

/// The result frame's body.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkerResult {
    /// [`RESULT_FORMAT`].
    pub result_format: u32,
    /// What the worker made of the answer.
    pub outcome: Outcome,
}

/// Bytes that are no result of this build.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// Not strict JSON of the result's shape.
    #[error("read a worker's result: it is not of the result's form")]
    Form(#[source] StrictJsonError),
    /// Another version of the form.
    #[error("read a worker's result: it has format {found}, this build speaks {RESULT_FORMAT}")]
    Format {
        /// The version found.
        found: u64,
    },
    /// Other bytes than the canonical ones of what they say.
    #[error("read a worker's result: the bytes are not canonical")]
    NotCanonical,
}

impl ResultError {
    /// The reason under which an attempt ends.
    pub const fn fail_reason(&self) -> FailReason {
        match self {
            Self::Format { .. } => FailReason::ProtocolVersion,
            Self::Form(_) | Self::NotCanonical => FailReason::WorkerProtocol,
        }
    }
}

/// Where a worker's result departs from the parent's own reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The worker failed what the parent can read.
    #[error("compare a worker's result: it withholds an answer")]
    Withheld,
    /// Another text, or another cut.
    #[error("compare a worker's result: the text differs")]
    Text,
    /// A call dropped, invented, moved or changed.
    #[error("compare a worker's result: the calls differ")]
    Calls,
    /// The captured list is not one terminating entry for each call.
    #[error("compare a worker's result: the captured calls differ")]
    Captured,
    /// Other counts.
    #[error("compare a worker's result: the counts differ")]
    Counts,
}

impl WorkerResult {
    /// The result of a valid answer.
    pub fn of_answer(answer: Answer) -> Self {
        let captured =
            answer.calls.iter().map(|call| Captured { id: call.id.clone(), terminate: true }).collect();
        Self {
            result_format: RESULT_FORMAT,
            outcome: Outcome::Answer {
                text: answer.text,
                truncated: answer.truncated,
                calls: answer.calls,
                thinking_parts_dropped: answer.thinking_parts_dropped,
                usage: answer.usage,
                captured,
            },
        }
    }

    /// The result of an answer that is none.
    pub const fn of_failure(reason: FailReason) -> Self {
        Self { result_format: RESULT_FORMAT, outcome: Outcome::Failed { reason } }
    }

    /// The canonical bytes.
    ///
    /// # Errors
    /// Never in practice: counts are within the contract's integers.
    pub fn encode(&self) -> Result<Vec<u8>, CanonicalError> {
        canonical::to_vec(self)
    }

    /// Reads a result strictly: the exact canonical bytes of this version, or nothing.
    ///
    /// # Errors
    /// [`ResultError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, ResultError> {
        let value = strict_json::parse(bytes).map_err(ResultError::Form)?;
        match value.get("resultFormat").and_then(serde_json::Value::as_u64) {
            Some(found) if found != u64::from(RESULT_FORMAT) => return Err(ResultError::Format { found }),
            _ => {}
        }
        let result: Self = strict_json::from_slice(bytes).map_err(ResultError::Form)?;
        match result.encode() {
            Ok(canonical) if canonical == bytes => Ok(result),
            Ok(_) | Err(_) => Err(ResultError::NotCanonical),
        }
    }

    /// Compares one to one with the parent's own reading of the same bytes.
    ///
    /// # Errors
    /// The first [`Mismatch`].
    pub fn matches(&self, own: &Answer) -> Result<(), Mismatch> {
        let Outcome::Answer { text, truncated, calls, thinking_parts_dropped, usage, captured } =
            &self.outcome
        else {
            return Err(Mismatch::Withheld);
        };
        if (text, *truncated) != (&own.text, own.truncated) {
            return Err(Mismatch::Text);
        }
        if *calls != own.calls {
            return Err(Mismatch::Calls);
        }
        let terminates =
            |(captured, call): (&Captured, &RawCall)| captured.terminate && captured.id == call.id;
        if captured.len() != calls.len() || !captured.iter().zip(calls).all(terminates) {
            return Err(Mismatch::Captured);
        }
        if (*thinking_parts_dropped, *usage) != (own.thinking_parts_dropped, own.usage) {
            return Err(Mismatch::Counts);
        }
        Ok(())
    }
}

/// The worker's half: reads a raw answer and validates it.
pub fn judge(packet: &Packet, body: &[u8]) -> WorkerResult {
    match read_and_validate(packet, body) {
        Ok((answer, _)) => WorkerResult::of_answer(answer),
        Err(reason) => WorkerResult::of_failure(reason),
    }
}

/// The parent's half: reads the raw answer and validates it again, and demands that the worker's result matches. The
/// parent's own reason comes first; a worker can neither soften nor sharpen it.
///
/// # Errors
/// The parent's own [`FailReason`], or [`FailReason::WorkerMismatch`].
pub fn confirm(packet: &Packet, body: &[u8], result: &WorkerResult) -> Result<ValidatedAnswer, FailReason> {
    let (answer, validated) = read_and_validate(packet, body)?;
    result.matches(&answer).or(Err(FailReason::WorkerMismatch))?;
    Ok(validated)
}

fn read_and_validate(packet: &Packet, body: &[u8]) -> Result<(Answer, ValidatedAnswer), FailReason> {
    let answer = provider::read_answer(packet, body)?;
    let validated = answer::validate(packet, &answer)?;
    Ok((answer, validated))
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Answer { calls, truncated, .. } => {
                write!(f, "Answer({} calls, truncated: {truncated})", calls.len())
            }
            Self::Failed { reason } => write!(f, "Failed({reason})"),
        }
    }
}

impl std::fmt::Debug for WorkerResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WorkerResult({:?})", self.outcome)
    }
}
