//! Every bound of the fakes, once.

/// Longest request line with headers, in bytes.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Longest request body, in bytes: above both vendors' own limits, so that theirs can be answered.
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Most open connections of one server; further ones wait in the backlog.
pub(crate) const CONNECTIONS_MAX: usize = 1024;
/// Most recorded model requests that are kept; the oldest go first, the count goes on.
pub(crate) const REQUESTS_KEPT_MAX: usize = 10_000;
/// Most recorded calls, sent messages, pushed updates and known messages that are kept.
pub(crate) const RECORDS_KEPT_MAX: usize = 200_000;

/// Anthropic's bound on one request body, in bytes.
pub(crate) const ANTHROPIC_REQUEST_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Largest decoded image that a model takes, in bytes.
pub(crate) const IMAGE_BYTES_MAX: usize = 5 * 1024 * 1024;
/// Longest tool name and Anthropic tool id, in characters.
pub(crate) const NAME_CHARS_MAX: usize = 64;
/// Longest tool call id of OpenAI's chat completions, in characters.
pub(crate) const OPENAI_ID_CHARS_MAX: usize = 40;

/// Longest Telegram message text, in UTF-16 units.
pub(crate) const TEXT_UNITS_MAX: usize = 4096;
/// Most entities of one message.
pub(crate) const ENTITIES_MAX: usize = 100;
/// Largest file that a bot may fetch, in bytes.
pub(crate) const FILE_BYTES_MAX: usize = 20 * 1024 * 1024;
/// Longest long poll, in seconds.
pub(crate) const POLL_SECONDS_MAX: i64 = 50;
/// Most updates in one answer of `getUpdates`.
pub(crate) const POLL_LIMIT_MAX: i64 = 100;
/// Longest webhook secret, in characters.
pub(crate) const SECRET_CHARS_MAX: usize = 256;
/// Most commands of one menu.
pub(crate) const COMMANDS_MAX: usize = 100;
/// How far beyond the newest update an offset may point before it counts as nonsense and is ignored.
pub(crate) const OFFSET_AHEAD_MAX: i64 = 10;
/// First and longest pause between two tries of one webhook post, in milliseconds.
pub(crate) const WEBHOOK_BACKOFF_MS: (u64, u64) = (20, 1000);
/// Longest answer head of a webhook receiver that is read, in bytes.
pub(crate) const WEBHOOK_ANSWER_BYTES_MAX: usize = 64 * 1024;
