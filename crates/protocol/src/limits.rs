//! Every bound of the contract, once. A *character* is one Unicode scalar value; bounded text never holds U+0000.

/// The visible text of an answer, after trimming, characters.
pub const VISIBLE_TEXT_CHARACTERS_MAX: usize = 12_000;
/// Proposed text of a memory change, characters.
pub const PROPOSED_TEXT_CHARACTERS_MAX: usize = 32_768;
/// The reason of a proposal, characters.
pub const REASON_CHARACTERS_MAX: usize = 1_000;
/// The replacement of a correction, characters.
pub const REPLACEMENT_CHARACTERS_MAX: usize = 4_096;
/// The longest `maxLength` that a schema in a request names, characters; longer ones are said in words.
pub const REQUEST_SCHEMA_LENGTH_MAX: u64 = 64;
/// Evidence ids that one call may cite.
pub const EVIDENCE_IDS_MAX: usize = 16;
/// Calls captured from one answer.
pub const CALLS_MAX: usize = 3;
/// Text of a private agent message, characters.
pub const AGENT_MESSAGE_CHARACTERS_MAX: usize = 16_384;
/// Text of a Telegram message that becomes an event, characters (the Bot API sends at most 4,096 UTF-16 units).
pub const TELEGRAM_TEXT_CHARACTERS_MAX: usize = 8_192;
/// Images of one message.
pub const IMAGES_MAX: usize = 10;

/// Depth of JSON that strict parsing accepts.
pub const JSON_DEPTH_MAX: usize = 32;
/// A packet frame, bytes: context, documents, tools and images.
pub const PACKET_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A rendered request, bytes.
pub const REQUEST_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A raw answer of a provider, bytes.
pub const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The raw arguments of one call, bytes: the longest proposed text, each character escaped as a surrogate pair, fits.
pub const ARGUMENTS_BYTES_MAX: usize = 512 * 1024;
/// The id that a provider gives a call, characters.
pub const CALL_ID_CHARACTERS_MAX: usize = 256;
/// A result frame, bytes: three calls at their bound, escaped once more, and the text.
pub const RESULT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The id of a focus declaration, characters.
pub const FOCUS_ID_CHARACTERS: std::ops::RangeInclusive<usize> = 3..=64;
/// The version of a focus declaration.
pub const FOCUS_VERSION: std::ops::RangeInclusive<u32> = 1..=1_000_000;
/// The summary of a focus's scope, characters.
pub const FOCUS_SUMMARY_CHARACTERS_MAX: usize = 500;
/// Entries of a scope's `includes`, and of its `excludes`.
pub const FOCUS_SCOPE_ENTRIES_MAX: usize = 16;
/// One entry of `includes` or `excludes`, characters.
pub const FOCUS_SCOPE_ENTRY_CHARACTERS_MAX: usize = 200;
/// The objective of a focus, characters.
pub const FOCUS_OBJECTIVE_CHARACTERS_MAX: usize = 2_000;
/// Subscriptions of a focus.
pub const FOCUS_SUBSCRIPTIONS: std::ops::RangeInclusive<usize> = 1..=16;
/// A focus's budget of events a day.
pub const FOCUS_EVENTS_PER_DAY: std::ops::RangeInclusive<u32> = 1..=10_000;
/// A focus's budget of inference requests a day.
pub const FOCUS_INFERENCE_REQUESTS_PER_DAY: std::ops::RangeInclusive<u32> = 0..=1_000;
/// A focus's budget of context characters.
pub const FOCUS_CONTEXT_CHARACTERS: std::ops::RangeInclusive<u32> = 1_000..=200_000;
/// Permissions that a focus may ask for.
pub const FOCUS_PERMISSIONS_MAX: usize = 8;
/// Days after which a focus may retire.
pub const FOCUS_RETIREMENT_DAYS: std::ops::RangeInclusive<u32> = 1..=3_650;
/// Events after which a focus may retire.
pub const FOCUS_RETIREMENT_EVENTS: std::ops::RangeInclusive<u32> = 1..=1_000_000;

/// One payload of an event, bytes.
pub const EVENT_PAYLOAD_BYTES_MAX: usize = 1024 * 1024;
/// Any single-line string of a contract that has no bound of its own (model names, content types, paths), characters.
pub const LABEL_CHARACTERS_MAX: usize = 512;

/// Declaration and agent ids, characters.
pub const AGENT_ID_CHARACTERS: std::ops::RangeInclusive<usize> = 2..=64;
/// A declaration's version, highest.
pub const DECLARATION_VERSION_MAX: u32 = 1_000_000;
/// A declaration file, bytes.
pub const DECLARATION_BYTES_MAX: usize = 64 * 1024;
/// A prompt file, bytes.
pub const PROMPT_BYTES_MAX: usize = 64 * 1024;
/// `thought.toml`, bytes.
pub const CONFIGURATION_BYTES_MAX: usize = 256 * 1024;
/// A document of the context root when the configuration says nothing else, bytes.
pub const DOCUMENT_BYTES_MAX_DEFAULT: u64 = 262_144;
/// The most that `context.max_file_bytes` may be set to, bytes.
pub const DOCUMENT_BYTES_MAX_CEILING: u64 = 4 * 1024 * 1024;

/// Turns that the trusted block of ids names.
pub const ID_BLOCK_TURNS_MAX: usize = 8;
/// Ids of omitted turns that a manifest keeps.
pub const OMITTED_IDS_MAX: usize = 64;
/// Turns that one context may hold, whatever a declaration's budget says.
pub const CONTEXT_TURNS_MAX: u32 = 256;

/// Longest `Retry-After` that is honoured, seconds.
pub const RETRY_AFTER_SECONDS_MAX: u64 = 60;
/// First wait between attempts, milliseconds; it doubles.
pub const BACKOFF_FIRST_MS: u64 = 500;
/// Longest wait for a delivery of the turn before, seconds from that output's settlement.
pub const DELIVERY_WAIT_SECONDS_MAX: u64 = 30;
/// Longest wait for the root lock before a snapshot's scan, seconds.
pub const SCAN_LOCK_WAIT_SECONDS_MAX: u64 = 5;

/// The written part of a shortened id list shown for an ambiguous prefix.
pub const AMBIGUOUS_CANDIDATES_MAX: usize = 8;
