//! The Telegram room: what comes in from the Bot API, what goes out to it, and the words the product itself says there.
//!
//! It must never keep a stranger's words, send a message a second time on a guess, let Telegram parse model text as
//! markup, or let the bot token, a URL or a person's words reach an error or a log line.

pub mod admit;
pub mod chunks;
pub mod client;
pub mod commands;
pub mod dispatcher;
pub mod entities;
pub mod ids;
pub mod ingress;
pub mod limits;
pub mod markdown;
pub mod notices;
pub mod picture;
pub mod spool;
pub mod stop;
pub mod typing;

pub mod wire;
