//! The bounds of a declaration's fields, and what stands for a field that is not written.

use std::ops::RangeInclusive;

use thought_protocol::limits;

/// `version`.
pub const VERSION: RangeInclusive<u32> = 1..=limits::DECLARATION_VERSION_MAX;
/// `concurrency`: conversations side by side.
pub const CONCURRENCY: RangeInclusive<u32> = 1..=64;
/// `budget.maxEvents`: turns of one context.
pub const MAX_EVENTS: RangeInclusive<u32> = 1..=limits::CONTEXT_TURNS_MAX;
/// `budget.maxCharacters`: characters of one context's turns.
pub const MAX_CHARACTERS: RangeInclusive<u32> = 1..=2_000_000;
/// `budget.maxOutputTokens`: tokens of one answer.
pub const MAX_OUTPUT_TOKENS: RangeInclusive<u32> = 1..=1_000_000;
/// `budget.timeoutSeconds`: one run with its backoff.
pub const TIMEOUT_SECONDS: RangeInclusive<u32> = 1..=3_600;
/// `budget.maxAttempts`: attempts of one run, each at most one request.
pub const MAX_ATTEMPTS: RangeInclusive<u32> = 1..=10;
/// `budget.maxRequestsPerDay`: requests of one UTC day; 0 holds every run.
pub const MAX_REQUESTS_PER_DAY: RangeInclusive<u32> = 0..=1_000_000;
/// `subscriptions`, entries.
pub const SUBSCRIPTIONS: RangeInclusive<usize> = 1..=16;
/// `documents.paths`, entries.
pub const DOCUMENT_PATHS: RangeInclusive<usize> = 1..=16;
/// `historyAgents`, entries.
pub const HISTORY_AGENTS: RangeInclusive<usize> = 0..=16;
/// `policy.proposals`, entries.
pub const PROPOSALS: RangeInclusive<usize> = 0..=3;
/// `prompt` and each of `documents.paths`, bytes.
pub const PATH_BYTES_MAX: usize = 255;
/// `provider`, and what follows the colon of a source, bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// Without `concurrency`.
pub const CONCURRENCY_DEFAULT: u32 = 4;
/// Without `provider`.
pub const PROVIDER_DEFAULT: &str = "main";
/// Without `budget.maxEvents`.
pub const MAX_EVENTS_DEFAULT: u32 = 64;
/// Without `budget.maxCharacters`.
pub const MAX_CHARACTERS_DEFAULT: u32 = 120_000;
/// Without `budget.maxOutputTokens`.
pub const MAX_OUTPUT_TOKENS_DEFAULT: u32 = 4_096;
/// Without `budget.timeoutSeconds`.
pub const TIMEOUT_SECONDS_DEFAULT: u32 = 300;
/// Without `budget.maxAttempts`.
pub const MAX_ATTEMPTS_DEFAULT: u32 = 3;
/// Without `budget.maxRequestsPerDay`.
pub const MAX_REQUESTS_PER_DAY_DEFAULT: u32 = 500;
