//! A home, a Bot API and a model server, turned towards one another.

use std::path::PathBuf;

use thought_fakes::{
    BotApi, BotConfig, ChatSpec, ModelConfig, ModelServer, Pushed, RecordedRequest, SentMessage, UserSpec,
};
use thought_fakes::{MessageSpec, TokenLimit};

use crate::WAIT_MAX;
use crate::home::Home;
use crate::serve::Serve;

/// The bot's token: of the real shape, known to no bot.
pub const TOKEN: &str = "123456:testkit-token-that-opens-nothing-00";
/// The variable that holds it.
pub const TOKEN_VARIABLE: &str = "THOUGHT_TELEGRAM_TOKEN";
/// The person and the private chat that every world admits.
pub const CHAT: i64 = 4_242;

/// Which of the two APIs the home speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// Anthropic Messages, without a key.
    Anthropic,
    /// OpenAI chat completions, as a local server without a key.
    OpenAi,
}

/// A home with its servers.
#[derive(Debug)]
pub struct World {
    /// The home.
    pub home: Home,
    /// Telegram's side.
    pub bot: BotApi,
    /// The provider's side.
    pub model: ModelServer,
}

impl World {
    /// A world without a key, on the Anthropic API.
    ///
    /// # Panics
    /// When a server or the home cannot be had.
    pub async fn start(binary: impl Into<PathBuf>) -> Self {
        Self::speaking(binary, Speaks::Anthropic, None).await
    }

    /// A world on an API of choice; with a key, the provider asks for it and the variable `THOUGHT_TEST_KEY` holds it.
    ///
    /// # Panics
    /// When a server or the home cannot be had.
    pub async fn speaking(binary: impl Into<PathBuf>, speaks: Speaks, key: Option<&str>) -> Self {
        let provider = if speaks == Speaks::Anthropic { "anthropic" } else { "ollama" };
        Self::around(Home::init(binary, provider), speaks, key).await
    }

    /// A world around a home that is there.
    ///
    /// # Panics
    /// When a server cannot be had.
    pub async fn around(mut home: Home, speaks: Speaks, key: Option<&str>) -> Self {
        let bot = BotApi::start(BotConfig::new(TOKEN)).await.unwrap();
        let token_limit = match speaks {
            Speaks::Anthropic => TokenLimit::Either,
            Speaks::OpenAi => TokenLimit::MaxTokens,
        };
        let config = ModelConfig { api_key: key.map(str::to_owned), token_limit, ..ModelConfig::default() };
        let model = ModelServer::start(config).await.unwrap();
        bot.add_chat(ChatSpec::private(CHAT));
        let root = match speaks {
            Speaks::Anthropic => model.base_url(),
            Speaks::OpenAi => model.openai_base_url(),
        };
        home.set("provider.main", "base_url", Some(&format!("\"{root}\"")));
        home.set("provider.main", "model", Some("\"fake-model\""));
        home.set("provider.main", "key_env", key.map(|_| "\"THOUGHT_TEST_KEY\""));
        home.set("telegram", "api_url", Some(&format!("\"{}\"", bot.base_url())));
        home.set("telegram", "allowed_chats", Some(&format!("[{CHAT}]")));
        home.set("telegram", "ingress", Some("\"poll\""));
        home.set("inspector", "listen", Some("\"127.0.0.1:0\""));
        home.env(TOKEN_VARIABLE, TOKEN);
        if let Some(key) = key {
            home.env("THOUGHT_TEST_KEY", key);
        }
        Self { home, bot, model }
    }

    /// Takes every proposal out of the Telegram declaration, so that no tool is offered. Before the first `serve`.
    ///
    /// # Panics
    /// When the declaration cannot be read or written.
    pub fn offer_nothing(&self) {
        let file = self.home.below("agents/stream-telegram-conversation.yaml");
        let text = std::fs::read_to_string(&file).unwrap();
        let (before, behind) = text.split_once("  proposals:").unwrap();
        let behind = behind.split_once("  externalActions").unwrap().1;
        std::fs::write(&file, format!("{before}  proposals: []\n  externalActions{behind}")).unwrap();
    }

    /// Starts `serve`.
    #[track_caller]
    #[must_use]
    pub fn serve(&self) -> Serve {
        Serve::start(&self.home)
    }

    /// The person writes.
    pub fn say(&self, text: &str) -> Pushed {
        self.bot.push(&MessageSpec::text(ChatSpec::private(CHAT), UserSpec::person(CHAT), text))
    }

    /// Waits until the bot has sent this many messages in all.
    ///
    /// # Panics
    /// When it never does.
    pub async fn sent(&self, count: usize) -> Vec<SentMessage> {
        self.bot.wait_for_sent(count, WAIT_MAX).await.unwrap()
    }

    /// Waits until the model was asked this often in all.
    ///
    /// # Panics
    /// When it never is.
    pub async fn requests(&self, count: usize) -> Vec<RecordedRequest> {
        self.model.wait_for_requests(count, WAIT_MAX).await.unwrap()
    }

    /// The person writes, and the turn runs to its receipt; `number` counts the replies of this world from 1.
    ///
    /// # Panics
    /// When no receipt comes.
    pub async fn turn(&self, text: &str, number: usize) -> SentMessage {
        self.say(text);
        let replies = self.home.wait_for_deliveries("reply", number);
        assert_eq!(replies.len(), number, "one reply a turn");
        self.bot.sent().last().cloned().unwrap()
    }
}
