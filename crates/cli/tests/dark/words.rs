//! The planted words: each is of letters, digits and dashes alone, so that it is the same in JSON, in an address and in a
//! header, and each says where it was put.

use thought_testkit::world::TOKEN;

/// What opens something: in the environment of the process that was given it, and nowhere else.
pub(crate) const KEY: &str = "sk-canary-key-0123456789abcdefghijklmn";
/// As [`KEY`].
pub(crate) const SECRET: &str = "canary-secret-of-the-webhook-0123456789";

/// Said by people who are heard, by the model, and by documents: content, which belongs into the store.
pub(crate) const MESSAGE: &str = "canary-message-of-the-person";
pub(crate) const CAPTION: &str = "canary-caption-of-a-photo";
pub(crate) const COMMAND: &str = "canary-argument-of-a-command";
pub(crate) const ANSWER: &str = "canary-answer-of-the-model";
pub(crate) const PROPOSED: &str = "canary-text-of-a-suggestion";
pub(crate) const REASON: &str = "canary-reason-of-a-suggestion";
pub(crate) const OWN: &str = "canary-own-words-of-the-person";
pub(crate) const FOCUS: &str = "canary-description-of-a-focus";
pub(crate) const MAIL: &str = "canary-words-of-another-agent";
pub(crate) const IDENTITY: &str = "canary-identity-document";
pub(crate) const MEMORY: &str = "canary-memory-document";
pub(crate) const PROMPT: &str = "canary-prompt-of-the-declaration";
pub(crate) const CONTENT: [&str; 12] =
    [MESSAGE, CAPTION, COMMAND, ANSWER, PROPOSED, REASON, OWN, FOCUS, MAIL, IDENTITY, MEMORY, PROMPT];

/// What is never stored, whoever says it: strangers, names of people, what servers say of a failure, what a model thinks,
/// garbage.
pub(crate) const STRANGER: &str = "canary-words-of-a-stranger";
pub(crate) const PERSON: &str = "canary-name-of-a-person";
pub(crate) const QUOTED: &str = "canary-words-that-were-quoted";
pub(crate) const VENDOR: &str = "canary-error-of-the-provider";
pub(crate) const TELEGRAM: &str = "canary-error-of-telegram";
pub(crate) const THINKING: &str = "canary-thinking-of-the-model";
pub(crate) const GARBAGE: &str = "canary-garbage-of-nobody";
pub(crate) const NEVER: [&str; 7] = [STRANGER, PERSON, QUOTED, VENDOR, TELEGRAM, THINKING, GARBAGE];

/// What opens something.
pub(crate) const KEYS: [&str; 3] = [KEY, SECRET, TOKEN];

/// All of them.
pub(crate) fn all() -> Vec<&'static str> {
    [&CONTENT[..], &NEVER, &KEYS].concat()
}

/// What may not lie on the disk at all.
pub(crate) fn not_stored() -> Vec<&'static str> {
    [&NEVER[..], &KEYS].concat()
}
