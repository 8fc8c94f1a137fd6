//! The Telegram side of the short commands: the client and the dispatcher of the configured channel.
//!
//! The token is taken from where the configuration says and goes into the client alone.

use std::sync::Arc;

use thought_store::Store;
use thought_telegram::client::{BotClient, ClientError};
use thought_telegram::dispatcher::{DispatchOptions, Dispatcher, DispatcherPorts};
use thought_telegram::ids::ChatId;
use thought_telegram::notices::Switches;

use crate::command::status::channel_source;
use crate::compose::SystemClock;
use crate::config::Telegram;
use crate::doctor;
use crate::exit::{Exit, Failure, chain};
use crate::home::Home;
use crate::secrets::{self, Secret};

/// The configured channel.
///
/// # Errors
/// [`Failure`] (3) when the configuration has none.
pub fn configured(home: &Home) -> Result<&Telegram, Failure> {
    home.config.telegram.as_ref().ok_or_else(|| {
        Failure::refused("no-channel", "no channel is configured").hint("add [telegram] to thought.toml")
    })
}

/// A client of the configured channel; nothing is sent.
///
/// # Errors
/// [`Failure`] (3) when there is no channel, no token, or one that cannot be one.
pub fn client(home: &Home) -> Result<Arc<BotClient>, Failure> {
    let telegram = configured(home)?;
    match secrets::telegram_token(home, telegram)? {
        Secret::Found(token) => doctor::client(&telegram.api_url, token.into_inner()).map(Arc::new),
        Secret::Missing(problem) => Err(Failure::refused("no-token", format!("telegram: {problem}"))
            .hint("export it, or set token_file in [telegram]")),
        Secret::NotNamed => Err(Failure::refused("no-token", "telegram: no token is named")
            .hint("set token_env or token_file in [telegram]")),
    }
}

/// A call to the Bot API that did not come about, as a command says it.
pub fn call_failure(error: &ClientError) -> Failure {
    let message = chain(error);
    match error {
        ClientError::Unauthorized => {
            Failure::refused("token-refused", message).hint("ask @BotFather for the token")
        }
        ClientError::BadRequest { .. } | ClientError::Forbidden | ClientError::Conflict => {
            Failure::refused("telegram-refused", message)
        }
        ClientError::RetryAfter { seconds } => Failure::new(Exit::Machine, "retry-after", message)
            .hint(format!("Telegram asks to wait {seconds} s")),
        _ => Failure::new(Exit::Machine, "telegram-unreachable", message),
    }
}

/// Which notices the configuration lets be said.
pub const fn switches(telegram: &Telegram) -> Switches {
    Switches { failure_notice: telegram.failure_notice, notices: telegram.notices }
}

/// The dispatcher of the configured channel.
pub fn dispatcher(home: &Home, telegram: &Telegram, store: &Store, client: Arc<BotClient>) -> Dispatcher {
    let ports = DispatcherPorts {
        reader: store.reader(),
        deliveries: store.dispatcher(channel_source(home)),
        incidents: store.incidents("dispatcher"),
        client,
        clock: Arc::new(SystemClock),
    };
    let chats = telegram.allowed_chats.iter().copied().map(ChatId).collect();
    Dispatcher::new(ports, DispatchOptions::new(chats, switches(telegram)))
}
