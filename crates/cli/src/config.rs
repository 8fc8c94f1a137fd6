//! `thought.toml`: the one configuration file. Never a secret, only the name of a variable or file that holds one.
//!
//! Strict: an unknown key is refused with file, line and the nearest known key, and every value is checked before any
//! command runs, whichever command it is.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thought_contract::declaration::nearest_name;
use thought_protocol::limits;
use thought_protocol::packet::{Api, Compat, TokenLimit};

use crate::exit::Failure;

/// The whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The people who may decide.
    pub operator: Operator,
    /// Where events live.
    #[serde(default)]
    pub store: Store,
    /// The documents.
    #[serde(default)]
    pub context: Context,
    /// The jail.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// The models, by name.
    #[serde(default)]
    pub provider: BTreeMap<String, Provider>,
    /// The channel.
    #[serde(default)]
    pub telegram: Option<Telegram>,
    /// Agents with an account of their own, by id.
    #[serde(default)]
    pub agents: BTreeMap<String, AgentAccount>,
    /// The local pages.
    #[serde(default)]
    pub inspector: Inspector,
    /// Logs.
    #[serde(default)]
    pub log: Log,
}

/// The people who may decide.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operator {
    /// At least one name.
    pub names: Vec<String>,
}

/// Where events live.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Store {
    /// `sqlite:` and a path below the home.
    pub url: String,
}

impl Default for Store {
    fn default() -> Self {
        Self { url: "sqlite:thought.db".to_owned() }
    }
}

/// The documents.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Context {
    /// A path below the home.
    pub root: PathBuf,
    /// The largest document, bytes.
    pub max_file_bytes: u64,
}

impl Default for Context {
    fn default() -> Self {
        Self { root: PathBuf::from("context"), max_file_bytes: limits::DOCUMENT_BYTES_MAX_DEFAULT }
    }
}

/// The jail.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sandbox {
    /// The tier.
    pub mode: SandboxMode,
}

/// The tier of the jail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum SandboxMode {
    /// Every layer.
    #[default]
    #[serde(rename = "full")]
    Full,
    /// Without namespaces, where they are forbidden.
    #[serde(rename = "landlock+seccomp")]
    LandlockSeccomp,
}

/// A model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// Which API it speaks.
    pub api: Api,
    /// The API's root.
    pub base_url: String,
    /// The model's name.
    pub model: String,
    /// The variable that holds the key.
    #[serde(default)]
    pub key_env: Option<String>,
    /// The file that holds the key.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// Bound of one request, seconds.
    #[serde(default = "timeout_default")]
    pub timeout_seconds: u64,
    /// What stands beside tool calls.
    #[serde(default)]
    pub compat: Compat,
    /// How the token limit is called.
    #[serde(default)]
    pub token_limit: TokenLimit,
}

const fn timeout_default() -> u64 {
    120
}

/// How updates arrive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ingress {
    /// Long polling.
    Poll,
    /// Telegram posts them.
    Webhook,
    /// They do not.
    #[default]
    Off,
}

impl Ingress {
    /// The written form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Webhook => "webhook",
            Self::Off => "off",
        }
    }
}

/// The channel.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Telegram {
    /// The source of its events.
    #[serde(default = "telegram_source_default")]
    pub source: String,
    /// The Bot API's root.
    #[serde(default = "telegram_api_default")]
    pub api_url: String,
    /// The variable that holds the token.
    #[serde(default)]
    pub token_env: Option<String>,
    /// The file that holds the token.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
    /// Chats it talks to.
    #[serde(default)]
    pub allowed_chats: Vec<i64>,
    /// People it listens to; required for groups.
    #[serde(default)]
    pub allowed_users: Vec<i64>,
    /// How updates arrive.
    #[serde(default)]
    pub ingress: Ingress,
    /// Whether a run that failed or waits is told of.
    #[serde(default = "yes")]
    pub failure_notice: bool,
    /// Whether the other notices are sent.
    #[serde(default = "yes")]
    pub notices: bool,
    /// The webhook.
    #[serde(default)]
    pub webhook: Option<Webhook>,
}

fn telegram_source_default() -> String {
    "telegram:stream".to_owned()
}

fn telegram_api_default() -> String {
    "https://api.telegram.org".to_owned()
}

const fn yes() -> bool {
    true
}

/// The webhook.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The path.
    pub path: String,
    /// The variable that holds the secret.
    #[serde(default)]
    pub secret_env: Option<String>,
    /// The file that holds the secret.
    #[serde(default)]
    pub secret_file: Option<PathBuf>,
    /// What Telegram is told.
    pub public_url: String,
}

/// An agent with an account of its own.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentAccount {
    /// Its account.
    pub uid: u32,
    /// Its socket, outside the home.
    pub socket: PathBuf,
}

/// The local pages.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Inspector {
    /// Where they listen: loopback only.
    pub listen: SocketAddr,
}

impl Default for Inspector {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 8788)) }
    }
}

/// Logs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// How much.
    pub level: LogLevel,
    /// In which form.
    pub format: LogFormat,
}

/// How much is logged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// What failed.
    Error,
    /// What wants a look.
    Warn,
    /// What happened.
    #[default]
    Info,
    /// How it happened.
    Debug,
    /// Everything but content.
    Trace,
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One object a line.
    Json,
}

/// Folders of the home that hold other things than documents.
const RESERVED: [&str; 4] = ["agents", "prompts", "blobs", "run"];

impl Config {
    /// Reads and checks a configuration; `file` is how it is named in errors.
    ///
    /// # Errors
    /// [`Failure`] with file, line and what to do.
    pub fn parse(text: &str, file: &str) -> Result<Self, Failure> {
        if text.len() > limits::CONFIGURATION_BYTES_MAX {
            let most = limits::CONFIGURATION_BYTES_MAX;
            return Err(Failure::refused("configuration", format!("{file} is larger than {most} bytes")));
        }
        let config: Self = toml::from_str(text).map_err(|error| syntax(&error, text, file))?;
        config.check().map_err(|(key, problem, hint)| {
            let line = line_of_key(text, &key).map_or(String::new(), |line| format!(":{line}"));
            let failure = Failure::refused("configuration", format!("{file}{line}: {key} {problem}"));
            match hint {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        })?;
        Ok(config)
    }

    fn check(&self) -> Result<(), (String, String, Option<String>)> {
        let bad = |key: &str, problem: &str, hint: Option<&str>| {
            Err((key.to_owned(), problem.to_owned(), hint.map(str::to_owned)))
        };
        let names = &self.operator.names;
        let is_name = |name: &String| is_label(name, 64) && !thought_contract::review::has_hidden(name);
        if names.is_empty() || names.len() > 16 || !names.iter().all(is_name) {
            return bad("operator.names", "wants 1 to 16 names of 1 to 64 printable characters", None);
        }
        // `human:telegram:4242` is the actor of a person in the chat, and nobody else's.
        if names.iter().any(|name| name.contains(':')) {
            return bad("operator.names", "wants names without a colon", None);
        }
        if names.iter().enumerate().any(|(index, name)| names[..index].contains(name)) {
            return bad("operator.names", "names somebody twice", None);
        }
        let path = self.store.url.strip_prefix("sqlite:");
        if !path.is_some_and(|path| is_below(Path::new(path))) {
            return bad("store.url", "wants sqlite: and a path below the home", None);
        }
        if !is_below(&self.context.root) {
            return bad("context.root", "wants a path below the home, without ..", None);
        }
        if RESERVED.iter().any(|folder| self.context.root.starts_with(folder)) {
            let taken = RESERVED.join(", ");
            return bad("context.root", &format!("wants a folder of its own, outside {taken}"), None);
        }
        if !(1..=limits::DOCUMENT_BYTES_MAX_CEILING).contains(&self.context.max_file_bytes) {
            let most = limits::DOCUMENT_BYTES_MAX_CEILING;
            return bad("context.max_file_bytes", &format!("wants 1 to {most}"), None);
        }
        if !self.inspector.listen.ip().is_loopback() {
            return bad("inspector.listen", "wants a loopback address", Some("use 127.0.0.1 and a port"));
        }
        for (name, account) in &self.agents {
            if thought_contract::declaration::agent_id(name).is_err() {
                return bad("agents", "names an agent otherwise than by a lower-case id", None);
            }
            if !account.socket.is_absolute() {
                return bad(
                    &format!("agents.{name}.socket"),
                    "wants an absolute path outside the home",
                    None,
                );
            }
            let has_another =
                self.agents.iter().any(|(other, there)| other != name && there.socket == account.socket);
            if has_another {
                return bad(&format!("agents.{name}.socket"), "is another agent's socket too", None);
            }
        }
        for (name, provider) in &self.provider {
            provider.check().map_err(|(key, problem)| (format!("provider.{name}.{key}"), problem, None))?;
        }
        if let Some(telegram) = &self.telegram {
            telegram.check().map_err(|(key, problem, hint)| (format!("telegram.{key}"), problem, hint))?;
        }
        Ok(())
    }
}

impl Provider {
    fn check(&self) -> Result<(), (String, String)> {
        let bad = |key: &str, problem: String| Err((key.to_owned(), problem));
        if !is_label(&self.model, limits::LABEL_CHARACTERS_MAX) {
            return bad("model", "wants the name of a model".to_owned());
        }
        if !names_variable(self.key_env.as_deref()) {
            return bad("key_env", VARIABLE_WANTED.to_owned());
        }
        if self.key_env.is_some() && self.key_file.is_some() {
            return bad("key_file", "stands beside key_env: keep one of them".to_owned());
        }
        if !(1..=3_600).contains(&self.timeout_seconds) {
            return bad("timeout_seconds", "wants 1 to 3600".to_owned());
        }
        let timeout = std::time::Duration::from_secs(self.timeout_seconds);
        match thought_broker::Endpoint::new(self.api, &self.base_url, None, timeout) {
            Ok(_) => Ok(()),
            Err(error) => bad("base_url", format!("is refused: {error}")),
        }
    }
}

type Problem = (String, String, Option<String>);

impl Telegram {
    fn check(&self) -> Result<(), Problem> {
        let bad =
            |key: &str, problem: &str, hint: Option<String>| Err((key.to_owned(), problem.to_owned(), hint));
        let name = self.source.strip_prefix("telegram:").unwrap_or_default();
        if name.is_empty() || name.len() > 64 || !name.bytes().all(is_name_byte) {
            return bad("source", "wants telegram: and a name of lower-case letters, digits and -", None);
        }
        if let Err(error) = thought_telegram::client::check_api_url(&self.api_url) {
            return bad("api_url", &format!("is refused: {error}"), None);
        }
        if !names_variable(self.token_env.as_deref()) {
            return bad("token_env", VARIABLE_WANTED, None);
        }
        if self.token_env.is_some() && self.token_file.is_some() {
            return bad("token_file", "stands beside token_env: keep one of them", None);
        }
        if self.allowed_chats.contains(&0) {
            return bad("allowed_chats", "holds 0, which no chat is", None);
        }
        if self.allowed_users.iter().any(|user| *user <= 0) {
            return bad("allowed_users", "wants the numbers of people, which are above 0", None);
        }
        if let Some(group) = self.allowed_chats.iter().find(|chat| **chat < 0)
            && self.allowed_users.is_empty()
        {
            return bad(
                "allowed_users",
                &format!("is empty, and the chat {group} is a group"),
                Some("name the people it may listen to there: allowed_users = [ … ]".to_owned()),
            );
        }
        if let Some(Err((key, problem))) = self.webhook.as_ref().map(Webhook::check) {
            return bad(key, problem, None);
        }
        Ok(())
    }
}

impl Webhook {
    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
        if !self.path.starts_with('/')
            || !self.path.bytes().all(plain)
            || self.path.len() > WEBHOOK_PATH_BYTES_MAX
        {
            return Err(("webhook.path", "wants a path of plain characters that begins with /"));
        }
        if !thought_telegram::client::is_public_url(&self.public_url) {
            return Err((
                "webhook.public_url",
                "wants https://host with a path behind it (http on loopback alone)",
            ));
        }
        if !names_variable(self.secret_env.as_deref()) {
            return Err(("webhook.secret_env", VARIABLE_WANTED));
        }
        if self.secret_env.is_some() && self.secret_file.is_some() {
            return Err(("webhook.secret_file", "stands beside secret_env: keep one of them"));
        }
        Ok(())
    }
}

/// The path of the webhook, bytes.
const WEBHOOK_PATH_BYTES_MAX: usize = 256;

/// What is said where the name of a variable is wanted; never what stands there instead, which may be the secret itself.
const VARIABLE_WANTED: &str =
    "wants the name of a variable, in upper-case letters, digits and _, and never the secret";
/// Longest name of a variable, bytes.
const VARIABLE_BYTES_MAX: usize = 64;

/// Whether it names a variable of the environment, if anything stands there: names are told, and no secret looks like one.
fn names_variable(name: Option<&str>) -> bool {
    name.is_none_or(|name| {
        let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        name.len() <= VARIABLE_BYTES_MAX
            && name.bytes().all(plain)
            && name.starts_with(|first: char| !first.is_ascii_digit())
    })
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

fn is_label(text: &str, most: usize) -> bool {
    !text.is_empty() && text.chars().count() <= most && text.chars().all(|c| !c.is_control())
}

fn is_below(path: &Path) -> bool {
    use std::path::Component;
    path.components().next().is_some()
        && path.components().all(|part| matches!(part, Component::Normal(_)))
        && path.as_os_str().len() <= limits::LABEL_CHARACTERS_MAX
}

/// What the parser says, as file, line, problem and nearest known key. The parser's own text is taken only where it
/// quotes keys; values are never repeated.
fn syntax(error: &toml::de::Error, text: &str, file: &str) -> Failure {
    let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let message = error.message();
    let mut quoted = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field") {
        let key = quoted.next().unwrap_or_default().to_owned();
        let known: Vec<&str> = quoted.collect();
        let failure = Failure::refused("configuration", format!("{file}:{line}: there is no key {key} here"));
        return match nearest_name(&key, &known) {
            Some(near) => failure.hint(format!("did you mean {near}? known here: {}", known.join(", "))),
            None => failure.hint(format!("known here: {}", known.join(", "))),
        };
    }
    if let Some(key) = message.strip_prefix("missing field `").and_then(|rest| rest.split('`').next()) {
        return Failure::refused("configuration", format!("{file}:{line}: the key {key} is missing"));
    }
    let problem = if message.starts_with("unknown variant") {
        let known: Vec<&str> = quoted.skip(1).collect();
        format!("this value is none of {}", known.join(", "))
    } else if message.starts_with("invalid type") {
        let expected = message.rsplit("expected ").next().unwrap_or("another type");
        format!("this value has the wrong type, expected {expected}")
    } else if message.starts_with("duplicate key") {
        "this key stands here twice".to_owned()
    } else {
        "this is not TOML".to_owned()
    };
    Failure::refused("configuration", format!("{file}:{line}: {problem}"))
}

fn line_of_key(text: &str, dotted: &str) -> Option<usize> {
    let (table, key) = dotted.rsplit_once('.')?;
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            inside = header.split(']').next() == Some(table);
        } else if inside && line.split('=').next().map(str::trim) == Some(key) {
            return Some(index + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[operator]\nnames = [\"alex\"]\n";

    fn refusal(text: &str) -> Failure {
        Config::parse(text, "thought.toml").unwrap_err()
    }

    #[test]
    fn the_shortest_file_has_every_default() {
        let config = Config::parse(GOOD, "thought.toml").unwrap();
        assert_eq!(config.store.url, "sqlite:thought.db");
        assert_eq!(config.context.max_file_bytes, 262_144);
        assert_eq!(config.sandbox.mode, SandboxMode::Full);
        assert!(config.telegram.is_none());
    }

    #[test]
    fn an_unknown_key_names_file_line_and_the_nearest_known_key() {
        let failure = refusal(&format!("{GOOD}\n[telegram]\nallowed_chat = [1]\n"));
        assert_eq!(failure.message, "thought.toml:5: there is no key allowed_chat here");
        assert!(failure.hint.unwrap().starts_with("did you mean allowed_chats?"));
        assert_eq!(failure.exit, Exit::Refused);
    }

    #[test]
    fn values_that_cannot_be_are_refused_with_their_line_and_never_repeated() {
        let cases = [
            ("[inspector]\nlisten = \"0.0.0.0:8788\"\n", "thought.toml:4: inspector.listen"),
            ("[context]\nroot = \"../out\"\n", "thought.toml:4: context.root"),
            ("[store]\nurl = \"postgres://x\"\n", "thought.toml:4: store.url"),
            (
                "[provider.main]\napi = \"openai-chat\"\nbase_url = \"http://example.org/v1\"\nmodel = \"m\"\n",
                "thought.toml:5: provider.main.base_url",
            ),
            ("[telegram]\napi_url = \"http://canary.example\"\n", "thought.toml:4: telegram.api_url"),
            ("[telegram]\nallowed_chats = [-5]\n", "thought.toml: telegram.allowed_users"),
            (
                "[telegram]\n[telegram.webhook]\nlisten = \"127.0.0.1:1\"\npath = \"/t\"\n\
                 public_url = \"http://localhost.canary.example/\"\n",
                "thought.toml:7: telegram.webhook.public_url",
            ),
            (
                "[telegram]\n[telegram.webhook]\nlisten = \"127.0.0.1:1\"\npath = \"/t?canary\"\n\
                 public_url = \"https://example.org/\"\n",
                "thought.toml:6: telegram.webhook.path",
            ),
            ("[telegram]\ntoken_env = \"1:canary\"\n", "thought.toml:4: telegram.token_env"),
            (
                "[provider.main]\napi = \"openai-chat\"\nbase_url = \"https://example.org/v1\"\nmodel = \"m\"\n\
                 key_env = \"sk-canary\"\n",
                "thought.toml:7: provider.main.key_env",
            ),
            (
                "[telegram]\n[telegram.webhook]\nlisten = \"127.0.0.1:1\"\npath = \"/t\"\n\
                 public_url = \"https://example.org/\"\nsecret_env = \"00canary\"\n",
                "thought.toml:8: telegram.webhook.secret_env",
            ),
            ("[sandbox]\nmode = \"canary\"\n", "thought.toml:4: this value is none of full"),
            ("[log]\nlevel = 5\n", "thought.toml:4: "),
            ("[agents.Canary]\nuid = 5\nsocket = \"/run/x\"\n", "thought.toml: agents names"),
            ("[agents.co]\nuid = 5\nsocket = \"canary\"\n", "thought.toml:5: agents.co.socket"),
            (
                "[agents.bo]\nuid = 5\nsocket = \"/run/canary\"\n[agents.co]\nuid = 6\nsocket = \"/run/canary\"\n",
                "thought.toml:5: agents.bo.socket",
            ),
            ("[log]\nlevel = \"info\"\nlevel = \"info\"\n", "thought.toml:5: "),
            ("canary = = 1\n", "thought.toml:3: "),
        ];
        for (text, start) in cases {
            let failure = refusal(&format!("{GOOD}{text}"));
            assert!(failure.message.starts_with(start), "{} for {text}", failure.message);
            assert!(!failure.message.contains("canary"), "{}", failure.message);
        }
    }

    use crate::exit::Exit;
}
