//! Every bound of this room, once. Lengths of Telegram text are UTF-16 code units, as the Bot API counts them.

/// One message, UTF-16 units after entities are taken out.
pub const CHUNK_UTF16_MAX: usize = 4_096;
/// Entities of one message.
pub const CHUNK_ENTITIES_MAX: usize = 100;
/// Depth of nested lists that is still shown by indentation; deeper ones stand at this depth.
pub const LIST_INDENT_DEPTH_MAX: usize = 8;
/// Widest table that is padded into columns, characters a row; a wider one would wrap on a phone and is not padded.
pub const TABLE_PADDED_CHARACTERS_MAX: usize = 60;
/// Language label of a code block, characters; a longer one is shown as text.
pub const LANGUAGE_CHARACTERS_MAX: usize = 32;
/// Passes over one text to make unused link definitions visible, before it is sent as it was written.
pub const DEFINITION_PASSES_MAX: usize = 8;
/// A rendered text may be this many times as long as its source, plus one message; beyond, the source is sent.
pub const RENDER_GROWTH_MAX: usize = 4;

/// An answer of the Bot API other than a batch of updates, bytes.
pub const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// A batch of updates, bytes: one hundred updates of long, fully escaped text with the quoted message beside it.
pub const UPDATES_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How much of an answer is looked at for the number of an update that is too large to be read, bytes.
pub const FIRST_UPDATE_BYTES: usize = 1_024;
/// A downloaded file, bytes: what the Bot API itself allows.
pub const FILE_BYTES_MAX: usize = 20 * 1024 * 1024;
/// A photo that is taken, bytes.
pub const PHOTO_BYTES_MAX: u64 = 5 * 1024 * 1024;
/// One side of a picture that is taken, pixels: what the narrower of the two model APIs takes.
pub const PICTURE_SIDE_PIXELS_MAX: u32 = 8_000;
/// Photos that are fetched at once: those of one album.
pub const PHOTOS_AT_ONCE_MAX: usize = 10;
/// How long a photo is tried to be fetched, milliseconds: its chat waits no longer than 30 seconds for it.
pub const PHOTO_PATIENCE_MS: u64 = 25_000;
/// Updates of one batch.
pub const UPDATES_PER_BATCH_MAX: u8 = 100;
/// Longest long poll, seconds.
pub const POLL_SECONDS_MAX: u32 = 50;
/// Longest wait that a 429 may ask for, seconds.
pub const RETRY_AFTER_SECONDS_MAX: u64 = 3_600;
/// Wait after a 429 that names none, seconds.
pub const RETRY_AFTER_SECONDS_DEFAULT: u64 = 5;
/// A file id, an album id or a file path of the Bot API, bytes.
pub const OPAQUE_ID_BYTES_MAX: usize = 512;
/// A bot token, bytes.
pub const TOKEN_BYTES_MAX: usize = 256;

/// How long one poll waits for an update, seconds.
pub const POLL_SECONDS: u32 = 25;
/// First pause after a failed call or commit, milliseconds; it doubles.
pub const BACKOFF_FIRST_MS: u64 = 500;
/// Longest such pause, milliseconds.
pub const BACKOFF_LONGEST_MS: u64 = 30_000;
/// A post to the webhook, bytes: far beyond any one update. A longer one is not read.
pub const WEBHOOK_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The head of a post to the webhook, bytes.
pub const WEBHOOK_HEAD_BYTES_MAX: usize = 16 * 1024;
/// Header fields of a post to the webhook.
pub const WEBHOOK_HEADERS_MAX: usize = 64;
/// Connections to the webhook at once. Telegram makes one; of those that have not shown the secret the oldest makes room.
pub const WEBHOOK_CONNECTIONS_MAX: usize = 64;
/// How long a head, and then a body, may take, milliseconds.
pub const WEBHOOK_READ_MS: u64 = 10_000;
/// How long a stop waits for posts on their way, milliseconds.
pub const WEBHOOK_STOP_MS: u64 = 5_000;
/// How often it is looked where Telegram posts to, as long as that is not here and once it is, milliseconds.
pub const WEBHOOK_LOOK_MS: (u64, u64) = (15_000, 300_000);
/// Pause after a connection could not be taken, milliseconds.
pub const WEBHOOK_ACCEPT_PAUSE_MS: u64 = 100;
/// The secret of the webhook, characters.
pub const WEBHOOK_SECRET_BYTES_MAX: usize = 256;
/// Refused chats that are remembered as named in the log.
pub const REFUSED_CHATS_TOLD_MAX: usize = 8;
/// Spooled updates that are looked at in one go.
pub const SPOOL_PAGE: u32 = 256;
/// The same where all of a page belongs to chats that wait: the ones behind must not wait with them.
pub const SPOOL_PAGE_MAX: u32 = 8_192;
/// Tries of a spooled update before it is set aside.
pub const SPOOL_TRIES_MAX: u32 = 5;
/// First pause after a failed try, milliseconds; it doubles, so that all tries end within 30 seconds.
pub const SPOOL_RETRY_FIRST_MS: u64 = 500;
/// How long an album is collected after its newest part, milliseconds.
pub const ALBUM_QUIET_MS: u64 = 2_000;

/// A wait from which on it is recorded before the pause that the message was not sent, milliseconds: below, the two
/// commits would cost more than a person's look at the rare delivery that is cut off there.
pub const LONG_PAUSE_MS: u64 = 2_000;
/// Events that are read in one go.
pub const DISPATCH_PAGE: u32 = 64;
/// Deliveries that are known and wait for their turn; beyond, no more are read. Each holds no text, only names.
pub const DELIVERIES_WAITING_MAX: usize = 16_384;
/// Chats that are served at once; each holds the text of one delivery.
pub const CHATS_AT_ONCE_MAX: usize = 128;
/// Events without a delivery, after which the cursor is moved by itself.
pub const SKIPPED_BEFORE_ADVANCE: usize = 64;
/// Unfinished deliveries that are looked at when the dispatcher begins.
pub const UNFINISHED_MAX: u32 = 100_000;
/// Longest wait between two looks for suggestions that wait, milliseconds.
pub const REMINDER_LOOK_MS: u64 = 3_600_000;
/// Suggestions or decisions that one look reads in one go.
pub const WAITING_PAGE: u32 = 256;
/// Suggestions that wait, the oldest first, that are followed back to their chats.
pub const WAITING_READ_MAX: u32 = 4_096;
/// How long a dispatcher that is told to stop waits for sends on their way, milliseconds.
pub const STOP_GRACE_MS: u64 = 8_000;
/// How often a chat is shown that somebody writes, milliseconds; Telegram shows it for about five seconds.
pub const TYPING_INTERVAL_MS: u64 = 4_000;
/// Chats that are shown it at once.
pub const TYPING_AT_ONCE_MAX: usize = 32;
