//! `init`: makes a home. Files only: nothing is installed, nothing contacted.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;
use thought_contract::shipped::{ShippedPlace, shipped_in};

use crate::args::ProviderChoice;
use crate::config::{Config, Ingress};
use crate::env;
use crate::exit::{Exit, Failure};
use crate::home::{self, CONFIGURATION};
use crate::jail::{self, Allowed};
use crate::print::{self, Printer};

/// The variable that a new configuration names for the bot's token.
pub const TOKEN_VARIABLE: &str = "THOUGHT_TELEGRAM_TOKEN";

/// What a new configuration is written from.
#[derive(Debug)]
pub struct Plan {
    /// The provider's API, root, model, key variable and name of the token limit.
    pub provider: ProviderPlan,
    /// Who may decide.
    pub operator: String,
    /// The Telegram part.
    pub telegram: TelegramPlan,
    /// What the machine allows.
    pub jail: Allowed,
    /// Where the pages listen.
    pub inspector: String,
}

/// The provider of a new configuration.
#[derive(Debug)]
pub struct ProviderPlan {
    /// `anthropic-messages` or `openai-chat`.
    pub api: &'static str,
    /// The API's root.
    pub base_url: String,
    /// The model's name.
    pub model: String,
    /// The variable that holds the key.
    pub key_env: Option<&'static str>,
    /// How the token limit is called.
    pub token_limit: &'static str,
}

/// The channel of a new configuration.
#[derive(Debug)]
pub struct TelegramPlan {
    /// The Bot API's root, where it is not Telegram's own.
    pub api_url: Option<String>,
    /// The file that holds the token, where it is not a variable.
    pub token_file: Option<&'static str>,
    /// Chats it talks to.
    pub allowed_chats: Vec<i64>,
    /// How updates arrive.
    pub ingress: Ingress,
}

impl ProviderPlan {
    /// The plan of a choice on the command line.
    pub fn of(choice: ProviderChoice, model: Option<String>) -> Self {
        let (api, base_url, default, key_env, token_limit) = match choice {
            ProviderChoice::Anthropic => (
                "anthropic-messages",
                "https://api.anthropic.com",
                "claude-sonnet-4-5",
                Some("ANTHROPIC_API_KEY"),
                "max_tokens",
            ),
            ProviderChoice::Openai => (
                "openai-chat",
                "https://api.openai.com/v1",
                "gpt-5-mini",
                Some("OPENAI_API_KEY"),
                "max_completion_tokens",
            ),
            ProviderChoice::Ollama => {
                ("openai-chat", "http://127.0.0.1:11434/v1", "llama3.2", None, "max_tokens")
            }
        };
        let model = model.unwrap_or_else(|| default.to_owned());
        Self { api, base_url: base_url.to_owned(), model, key_env, token_limit }
    }
}

/// `init`.
///
/// # Errors
/// [`Failure`]: a non-empty folder that is no home (3), a machine without a jail is no failure.
pub fn run(
    option: Option<&Path>,
    printer: Printer,
    choice: ProviderChoice,
    model: Option<String>,
) -> Result<(), Failure> {
    let named = home::locate(option)?;
    if named.join(CONFIGURATION).symlink_metadata().is_ok() {
        let home = home::Home::open(Some(&named))?;
        let value = json!({"home": home.path, "created": false});
        return printer.either(&value, || {
            vec![format!("{} is a home already; nothing was changed", print::path(&home.path))]
        });
    }
    let ingress = if env::secret(TOKEN_VARIABLE).is_some() { Ingress::Poll } else { Ingress::Off };
    let plan = Plan {
        provider: ProviderPlan::of(choice, model),
        operator: login_name(),
        telegram: TelegramPlan { api_url: None, token_file: None, allowed_chats: vec![], ingress },
        jail: jail::allowed(),
        inspector: "127.0.0.1:8788".to_owned(),
    };
    let path = make(&named, &plan)?;
    let value = json!({
        "home": path, "created": true, "ingress": plan.telegram.ingress.as_str(), "sandbox": plan.jail.mode(),
    });
    printer.either(&value, || {
        let mut lines = vec![
            format!("made {} (only you can read it)", print::path(&path)),
            format!("jail: {}", plan.jail.sentence()),
        ];
        lines.extend(next_steps(&plan, &path, option.is_some()));
        lines
    })
}

fn next_steps(plan: &Plan, path: &Path, is_named: bool) -> Vec<String> {
    let thought = if is_named {
        format!("thought --home {}", crate::print::quoted(path))
    } else {
        "thought".to_owned()
    };
    let mut steps = Vec::new();
    if let Some(variable) = plan.provider.key_env {
        steps.push(format!("put the provider's key into the environment: export {variable}=…"));
    }
    if plan.telegram.ingress == Ingress::Off {
        steps.push(format!(
            "put your bot's token into the environment: export {TOKEN_VARIABLE}=…   (talk to @BotFather)"
        ));
        steps.push(format!("set ingress = \"poll\" in {}", path.join(CONFIGURATION).display()));
    }
    steps.push(format!(
        "say whom it may talk to: write to the bot once while it runs, then `{thought} doctor --who` shows the chat \
         id for allowed_chats"
    ));
    steps.push(format!("{thought} serve"));
    let numbered = steps.iter().enumerate();
    numbered
        .map(|(index, step)| format!("{} {}. {step}", if index == 0 { "next:" } else { "     " }, index + 1))
        .collect()
}

/// Makes a home from a plan; answers its canonical path.
///
/// # Errors
/// [`Failure`]: a folder that is not empty (3), a disk that cannot be written (8).
pub fn make(path: &Path, plan: &Plan) -> Result<std::path::PathBuf, Failure> {
    let cannot = |error: &std::io::Error| {
        let message = format!("make {}: {}", path.display(), error.kind());
        Failure::new(Exit::Machine, "cannot-write", message)
    };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|error| cannot(&error))?;
    }
    claim(path)?;
    let path = std::fs::canonicalize(path).map_err(|error| cannot(&error))?;
    for folder in ["agents", "prompts", "context", "blobs", "run"] {
        home::make_folder(&path.join(folder))?;
    }
    let places = [
        (ShippedPlace::Agents, "agents"),
        (ShippedPlace::Prompts, "prompts"),
        (ShippedPlace::Context, "context"),
    ];
    for (place, folder) in places {
        for file in shipped_in(place) {
            home::write_new(&path.join(folder).join(file.name), file.text.as_bytes())?;
        }
    }
    let text = configuration(plan);
    // The file is read back by the strict reader before it is trusted to exist.
    Config::parse(&text, CONFIGURATION)?;
    home::write_new(&path.join(CONFIGURATION), text.as_bytes())?;
    Ok(path)
}

/// Makes the folder, or takes an empty one of the owner's and closes it to others.
fn claim(path: &Path) -> Result<(), Failure> {
    let Ok(mut entries) = std::fs::read_dir(path) else { return home::make_folder(path) };
    if entries.next().is_some() {
        let message = format!("{} is not empty and is no home", path.display());
        return Err(Failure::refused("not-a-home", message).hint("name a new or an empty folder"));
    }
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    // A folder of somebody else stays as it is, and is refused by the look that follows.
    let _refused_below = std::fs::set_permissions(path, mode);
    home::check_folder(path)
}

fn configuration(plan: &Plan) -> String {
    let mut text = String::new();
    let quoted = |value: &str| serde_json::to_string(value).unwrap_or_else(|_| "\"\"".to_owned());
    let mut line = |content: &str| {
        // Writing into a String does not fail.
        let _infallible = writeln!(text, "{content}");
    };
    line(
        "# The configuration of this home. It never holds a secret, only the name of a variable or file that does.",
    );
    line("[operator]");
    line(&format!("names = [{}]  # the people who may decide", quoted(&plan.operator)));
    line("\n[store]\nurl = \"sqlite:thought.db\"");
    line("\n[context]\nroot = \"context\"\nmax_file_bytes = 262144");
    line("\n[sandbox]");
    if let Some(why) = plan.jail.remark() {
        line(&format!("# {why}"));
    }
    line(&format!("mode = {}", quoted(plan.jail.mode())));
    line("\n[provider.main]");
    line(&format!("api = {}  # or \"{}\"", quoted(plan.provider.api), other_api(plan.provider.api)));
    line(&format!("base_url = {}", quoted(&plan.provider.base_url)));
    line(&format!("model = {}", quoted(&plan.provider.model)));
    match plan.provider.key_env {
        Some(variable) => line(&format!("key_env = {}  # or key_file", quoted(variable))),
        None => line("# key_env = \"…\" or key_file = \"…\"; a local server needs neither"),
    }
    line("timeout_seconds = 120");
    line("compat = \"standard\"  # or \"content-null\", \"content-empty\"");
    line(&format!("token_limit = {}", quoted(plan.provider.token_limit)));
    line("\n[telegram]\nsource = \"telegram:stream\"");
    line(&format!(
        "api_url = {}",
        quoted(plan.telegram.api_url.as_deref().unwrap_or("https://api.telegram.org"))
    ));
    match plan.telegram.token_file {
        Some(file) => line(&format!("token_file = {}", quoted(file))),
        None => line(&format!("token_env = {}  # or token_file", quoted(TOKEN_VARIABLE))),
    }
    let chats: Vec<String> = plan.telegram.allowed_chats.iter().map(i64::to_string).collect();
    line(&format!("allowed_chats = [{}]", chats.join(", ")));
    line("allowed_users = []  # required for groups; in a private chat the chat is the user");
    line(&format!("ingress = {}  # \"poll\" or \"off\"", quoted(plan.telegram.ingress.as_str())));
    line("failure_notice = true\nnotices = true");
    line(&format!("\n[inspector]\nlisten = {}", quoted(&plan.inspector)));
    line("\n[log]\nlevel = \"info\"\nformat = \"text\"");
    text
}

fn other_api(api: &str) -> &'static str {
    if api == "openai-chat" { "anthropic-messages" } else { "openai-chat" }
}

/// The login name: the environment's, else the one of the account; made printable and short.
fn login_name() -> String {
    let name = env::text("USER").or_else(|| env::text("LOGNAME")).or_else(account_name).unwrap_or_default();
    let name: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
    if name.is_empty() { format!("uid-{}", home::uid()) } else { name }
}

/// The name of this process's account in the local table of accounts.
fn account_name() -> Option<String> {
    let table = std::fs::read_to_string("/etc/passwd").ok()?;
    let own = home::uid().to_string();
    table.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == own).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(choice: ProviderChoice) -> Plan {
        Plan {
            provider: ProviderPlan::of(choice, None),
            operator: "alex \"quoted\"".to_owned(),
            telegram: TelegramPlan {
                api_url: None,
                token_file: None,
                allowed_chats: vec![],
                ingress: Ingress::Off,
            },
            jail: Allowed::Full,
            inspector: "127.0.0.1:8788".to_owned(),
        }
    }

    #[test]
    fn every_choice_makes_a_home_that_its_own_reader_accepts() {
        for choice in [ProviderChoice::Anthropic, ProviderChoice::Openai, ProviderChoice::Ollama] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("deep/home");
            let made = make(&path, &plan(choice)).unwrap();
            let home = home::Home::open(Some(&made)).unwrap();
            assert_eq!(home.config.operator.names, ["alex \"quoted\""]);
            assert_eq!(home.config.provider.len(), 1);
        }
    }

    #[test]
    fn a_folder_with_something_in_it_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("home");
        home::make_folder(&path).unwrap();
        std::fs::write(path.join("note"), "x").unwrap();
        assert_eq!(make(&path, &plan(ProviderChoice::Ollama)).unwrap_err().code, "not-a-home");
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1);
    }
}
