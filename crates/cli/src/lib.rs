//! The command line of thought stream: arguments, configuration, printing, and the composition in which ports meet
//! adapters. A library beside the binary of one line, so that its parts can be tested.

pub mod appends;
pub mod args;
pub mod backup;
pub mod blobs;
pub mod channel;
pub mod claim;
pub mod command;
pub mod compose;
pub mod config;
pub mod crash;
pub mod demo;
pub mod doctor;
pub mod env;
pub mod exit;
pub mod home;
pub mod init;
pub mod jail;
pub mod lock;
pub mod logging;
pub mod model;
pub mod print;
pub mod secrets;
pub mod serve;
pub mod socket;
pub mod word;

use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::Cli;
use crate::exit::{Exit, Failure};
use crate::print::Printer;

/// The whole process: the worker when it was started as one, else the command that the arguments ask for.
pub fn main() -> ExitCode {
    if let Some(code) = jail::become_worker() {
        return code;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let printer = Printer::new(&cli.global);
    match compose::run(cli, printer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            printer.failure(&failure);
            ExitCode::from(failure.exit as u8)
        }
    }
}

/// Help and version are answers; anything else is a usage error, as an object where `--json` was asked for.
fn usage(error: &clap::Error) -> ExitCode {
    let is_answer = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let wants_json = std::env::args_os().any(|argument| argument == "--json");
    if wants_json && !is_answer {
        let rendered = error.render().to_string();
        let mut first = rendered.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        if let (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(missing))) =
            (error.kind(), error.get(ContextKind::InvalidArg))
        {
            // Their names, as the command declares them; never what was given.
            first = format!("{first} {}", missing.join(", "));
        }
        let global = args::Global {
            home: None,
            json: true,
            log_level: None,
            log_format: None,
            color: args::Color::Never,
        };
        let failure = Failure::new(Exit::Usage, "usage", first).hint("thought --help");
        Printer::new(&global).failure(&failure);
    } else if error.print().is_err() {
        return ExitCode::from(Exit::Internal as u8);
    }
    if is_answer { ExitCode::SUCCESS } else { ExitCode::from(Exit::Usage as u8) }
}
