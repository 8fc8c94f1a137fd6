//! The command line: one definition from which parsing, help, completions and manual pages come.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::{LogFormat, LogLevel};
use crate::socket::WAIT_SECONDS_MAX;

/// A private assistant in Telegram that remembers, and cannot rewrite its own memory.
#[derive(Debug, Parser)]
#[command(name = "thought", version, propagate_version = true, disable_help_subcommand = true)]
#[command(after_help = "Exit codes: 0 done, 1 internal error, 2 usage, 3 refused, 4 conflict, 5 not found, \
    6 decided but not written, 7 wait ran out, 8 this machine cannot, 9 the run ended without an answer.")]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// The home: configuration, documents and store [default: $THOUGHT_HOME, else thought in the data directory]
    #[arg(long, global = true, value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// Print data and errors as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// How much is logged on stderr [default: log.level of the configuration]
    #[arg(long, global = true, value_enum)]
    pub log_level: Option<LogLevel>,
    /// The form of a log line [default: log.format of the configuration]
    #[arg(long, global = true, value_enum)]
    pub log_format: Option<LogFormat>,
    /// Colour in printed text
    #[arg(long, global = true, value_enum, default_value = "auto")]
    pub color: Color,
}

/// When printed text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// In a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Which provider a new home is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProviderChoice {
    /// Anthropic's Messages API; the key stands in ANTHROPIC_API_KEY.
    Anthropic,
    /// OpenAI's chat completions; the key stands in OPENAI_API_KEY.
    Openai,
    /// A local Ollama; no key.
    Ollama,
}

/// Consent to printing content.
#[derive(Debug, Clone, Copy, Args)]
pub struct Acknowledge {
    /// Print private content: messages, prompts, answers
    #[arg(long = "acknowledge-sensitive-private")]
    pub acknowledged: bool,
}

/// A page of a list.
#[derive(Debug, Clone, Args)]
pub struct Page {
    /// At most this many rows [default: 50 printed, all with --json]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub limit: Option<u32>,
}

/// A private message of an agent, and how far its answer is followed.
#[derive(Debug, Clone, Args)]
pub struct AgentSend {
    /// The sending agent's id
    #[arg(long, value_name = "ID")]
    pub from: String,
    /// The receiving agent's id
    #[arg(long, value_name = "ID")]
    pub to: String,
    /// The thread that the message belongs to
    #[arg(long, value_name = "ID")]
    pub thread: String,
    /// The message's id: the same one again is the same message
    #[arg(long, value_name = "ID")]
    pub message_id: String,
    /// A file of your own with the text, which nobody else can write
    #[arg(long, value_name = "FILE")]
    pub file: PathBuf,
    /// Wait this long for the end of its run, seconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=WAIT_SECONDS_MAX))]
    pub wait_seconds: Option<u64>,
    /// Print the response
    #[arg(long)]
    pub show_response: bool,
    /// Consent
    #[command(flatten)]
    pub acknowledge: Acknowledge,
    /// Through the agent's socket, without a home
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Refused: what stands on a command line is seen by everybody
    #[arg(long, hide = true)]
    pub text: Option<SeenText>,
    /// Refused, as above
    #[arg(hide = true)]
    pub words: Vec<SeenText>,
}

/// A person's word on a proposal.
#[derive(Debug, Clone, Args)]
pub struct ProposalDecision {
    /// The proposal, or a unique beginning of it
    #[arg(long, value_name = "ID")]
    pub proposal: String,
    /// The word; an edit wants a replacement
    #[arg(long, value_parser = ["accept", "edit", "reject"])]
    pub disposition: String,
    /// A file with your own text in the place of the proposed one, read once
    #[arg(long, value_name = "FILE")]
    pub replacement_file: Option<PathBuf>,
    /// What this submission calls itself [default: a random name]
    #[arg(long, value_name = "ID")]
    pub submission_id: Option<String>,
    /// Who decides [default: the single configured operator]
    #[arg(long, value_name = "NAME")]
    pub actor: Option<String>,
    /// Decide only if the proposed text has this SHA-256
    #[arg(long, value_name = "SHA256")]
    pub expect_sha256: Option<String>,
    /// Decide only if it was made for this version and, unless it is rejected, the document still stands there
    #[arg(long, value_name = "VERSION")]
    pub expect_base: Option<String>,
}

/// An earlier memory change that a person goes back to.
#[derive(Debug, Clone, Args)]
pub struct ProposeAgain {
    /// The earlier proposal, or a unique beginning of it
    pub id: String,
    /// Who proposes [default: the single configured operator]
    #[arg(long, value_name = "NAME")]
    pub actor: Option<String>,
}

/// Text on a command line, where it has no place; it is dropped unseen.
#[derive(Debug, Clone)]
pub struct SeenText;

impl std::str::FromStr for SeenText {
    type Err = std::convert::Infallible;

    fn from_str(_unseen: &str) -> Result<Self, Self::Err> {
        Ok(Self)
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a home: files only, nothing installed
    Init {
        /// The provider to write into the configuration
        #[arg(long, value_enum, default_value = "anthropic")]
        provider: ProviderChoice,
        /// The model's name [default: a current one of the provider]
        #[arg(long)]
        model: Option<String>,
    },
    /// Show the whole chain in a fresh temporary home, against servers on loopback
    Demo,
    /// Check home, configuration, store, jail, provider and Telegram, with a hint for each
    Doctor {
        /// List the chats that wrote to the bot and are not admitted
        #[arg(long)]
        who: bool,
        /// Empty evidence in the context root's lock that no process can have written, after a yes
        #[arg(long, conflicts_with = "who")]
        clear_lock: bool,
        /// The yes
        #[arg(long, requires = "clear_lock")]
        yes: bool,
    },
    /// Run ingress, consumers, dispatcher, projectors and scan in one process
    Serve,
    /// Tell how things stand
    Status,
    /// Scan the context root once
    Scan,
    /// List events, oldest first
    EventList {
        /// Of this type
        #[arg(long = "type", value_name = "TYPE")]
        event_type: Option<String>,
        /// Of this source
        #[arg(long)]
        source: Option<String>,
        /// Above this position
        #[arg(long, value_name = "POSITION", default_value_t = 0)]
        after: u64,
        /// The page
        #[command(flatten)]
        page: Page,
        /// Consent
        #[command(flatten)]
        acknowledge: Acknowledge,
    },
    /// Show one event
    EventShow {
        /// The event, or a unique beginning of it
        id: String,
        /// Consent
        #[command(flatten)]
        acknowledge: Acknowledge,
    },
    /// Show the chain of authority that an event stands in, as a tree
    Lineage {
        /// The event, or a unique beginning of it
        id: String,
    },
    /// List runs, oldest first
    RunList {
        /// Of this declaration
        #[arg(long)]
        agent: Option<String>,
        /// In this state
        #[arg(long, value_parser = ["running", "held", "completed", "failed", "blocked", "abandoned"])]
        state: Option<String>,
        /// Behind this run
        #[arg(long, value_name = "RUN")]
        after: Option<String>,
        /// The page
        #[command(flatten)]
        page: Page,
    },
    /// Show one run with its attempts
    RunShow {
        /// The run, or a unique beginning of it
        id: String,
    },
    /// Give up a run that has not ended
    RunAbandon {
        /// The run, or a unique beginning of it
        id: String,
    },
    /// Run a failed, blocked or abandoned turn again; a second request may be billed again
    RunRetry {
        /// The run, or a unique beginning of it
        id: String,
    },
    /// Show what a run was given: the snapshot's manifest, and with consent the packet
    ContextShow {
        /// The run, or a unique beginning of it
        run: String,
        /// Consent
        #[command(flatten)]
        acknowledge: Acknowledge,
    },
    /// List what models and people suggested, oldest first
    ProposalList {
        /// In this state
        #[arg(long, value_parser = ["undecided", "decided", "projected", "failed", "inert"])]
        state: Option<String>,
        /// Of this kind
        #[arg(long, value_parser = ["memory-change", "self-correction", "focus-declaration"])]
        kind: Option<String>,
        /// Behind this proposal
        #[arg(long, value_name = "PROPOSAL")]
        after: Option<String>,
        /// The page
        #[command(flatten)]
        page: Page,
    },
    /// Show one proposal as a reviewer sees it, and with consent its text and what it would change
    ProposalShow {
        /// The proposal, or a unique beginning of it
        id: String,
        /// Consent
        #[command(flatten)]
        acknowledge: Acknowledge,
    },
    /// Walk through what waits for a word, at a terminal
    Review {
        /// Who decides [default: the single configured operator]
        #[arg(long, value_name = "NAME")]
        actor: Option<String>,
        /// Consent
        #[command(flatten)]
        acknowledge: Acknowledge,
    },
    /// Decide on a proposal, and carry it out at once
    ProposalDecision(ProposalDecision),
    /// Carry out decisions that nothing has followed from yet
    ProposalProject {
        /// Only the decision on this proposal
        #[arg(long, value_name = "ID")]
        proposal: Option<String>,
    },
    /// Propose a memory change again, on the document as it stands now
    ProposalRepropose(ProposeAgain),
    /// Propose to put the version before a memory change back in its place
    ProposalRevert(ProposeAgain),
    /// List judgments on answers, oldest first
    JudgmentList {
        /// Behind this judgment
        #[arg(long, value_name = "JUDGMENT")]
        after: Option<String>,
        /// The page
        #[command(flatten)]
        page: Page,
        /// Consent
        #[command(flatten)]
        acknowledge: Acknowledge,
    },
    /// Let a correction of your own leave the house, with the whole context of its answer
    JudgmentRelease {
        /// The judgment, or a unique beginning of it
        id: String,
        /// Say that you mean it
        #[arg(long)]
        acknowledge_external: bool,
        /// Who releases [default: the single configured operator]
        #[arg(long, value_name = "NAME")]
        actor: Option<String>,
    },
    /// Write judgments on answers as preference examples for training here, with a manifest beside them
    PrivateTrainingExport {
        /// The file to make, in a folder that only you can enter
        #[arg(long, value_name = "FILE")]
        output: PathBuf,
        /// Say that you know how private it is
        #[arg(long)]
        acknowledge_sensitive_private_training: bool,
    },
    /// Write released judgments as preference examples, with a manifest beside them
    TrainingExport {
        /// The file to make, in a folder that only you can enter
        #[arg(long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Send a private message as an agent, and with a wait read its one response
    AgentSend(AgentSend),
    /// Run the consumer of one declaration as a process of its own
    Consume {
        /// The declaration
        #[arg(long, value_name = "ID")]
        agent: String,
    },
    /// Validate a declaration
    DeclarationCheck {
        /// The file
        file: PathBuf,
    },
    /// Activate a declaration version
    DeclarationActivate {
        /// The file
        file: PathBuf,
    },
    /// List what is installed
    DeclarationList,
    /// Verify every hash, chain, lineage and projection; nothing is changed
    Verify {
        /// Hold the heads in this file against the store: what status --json printed, or a manifest of a backup or export
        #[arg(long, value_name = "FILE")]
        against: Option<PathBuf>,
    },
    /// Write the whole home into one file, while it is in use
    Backup {
        /// The file to make, outside the home
        #[arg(long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Make a home of a backup, in a folder that is empty or not there (--home)
    Restore {
        /// The backup
        #[arg(long, value_name = "FILE")]
        input: PathBuf,
    },
    /// Register the command menu with Telegram, and tell each admitted chat of it once
    TelegramMenuRegister {
        /// Tell no chat
        #[arg(long)]
        skip_help_notice: bool,
    },
    /// Have Telegram post updates to the public address of [telegram.webhook]
    TelegramWebhookSet,
    /// Have Telegram keep updates for polling; those that wait are kept
    TelegramWebhookDelete,
    /// Send an uncertain delivery again, from the chunk of which nobody knows; it may be read twice
    DeliveryRetry {
        /// The delivery: its output event, or a unique beginning of it
        id: String,
    },
    /// Record that an uncertain delivery was seen, and send what follows it
    DeliveryConfirm {
        /// The delivery: its output event, or a unique beginning of it
        id: String,
        /// Who saw it, where several operators are configured
        #[arg(long, value_name = "NAME")]
        actor: Option<String>,
    },
    /// Print a completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    Man {
        /// Into this folder
        #[arg(long, value_name = "DIR")]
        output: PathBuf,
    },
    /// Print which command appends which events
    #[command(hide = true)]
    Appends,
}
