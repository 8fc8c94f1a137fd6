//! A Telegram Bot API server and a model server on loopback, strict about the real protocols.
//!
//! Both are used by the product's demonstration and by tests. What arrives is judged as the vendors judge it and
//! recorded; what is answered can be scripted, down to the byte at which a connection breaks.
//!
//! This room depends on no other room of the project: it reads and writes the vendors' JSON by itself, so that a
//! mistake in the product's codecs cannot hide behind the same mistake here. It never listens beyond loopback and
//! its `Debug` output holds no content, key or token.

mod bot;
mod client;
mod encoding;
mod error;
mod http;
mod limits;
mod model;
mod record;

pub use bot::{
    BotApi, BotConfig, Call, ChatKind, ChatSpec, Failure, MessageSpec, PhotoSize, PhotoSpec, Pushed,
    SentMessage, UserSpec, WebhookPost,
};
pub use error::Error;
pub use model::{
    Answer, AnsweredCall, Api, Arguments, ContentBesideCalls, KnownModels, ModelConfig, ModelServer,
    RecordedRequest, Reply, RoleOrder, TokenLimit, Validation, demo_brain,
};
