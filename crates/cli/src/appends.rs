//! Which command appends which events: one table, from which the reference page is made, and which tests hold against the
//! command line's own definition and against what really appears in a store.
//!
//! A new command does not compile before it has a name here, and its tests fail before it has a line. What each role may
//! append at all is bound in the store's handles; this says which command cuts which of them.

use serde_json::json;
use thought_contract::event::EventType as E;

use crate::args::Command;
use crate::exit::Failure;
use crate::print::Printer;

/// One command of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appends {
    /// The command.
    pub command: &'static str,
    /// Every type that it may append, in the registry's order; none for a command that appends nothing.
    pub types: &'static [E],
}

/// What a look at the documents may append.
const SCANNED: &[E] = &[E::FileVersion, E::FileRemoved];
/// What follows from a decision, with the look at the documents around it.
const PROJECTED: &[E] =
    &[E::FileVersion, E::FileRemoved, E::JudgmentRecorded, E::MemoryMaterialized, E::MaterializationFailed];
/// A decision and what follows from it.
const DECIDED: &[E] = &[
    E::FileVersion,
    E::FileRemoved,
    E::ProposalDecision,
    E::JudgmentRecorded,
    E::MemoryMaterialized,
    E::MaterializationFailed,
];
/// A person's proposal, after a look at the documents.
const PROPOSED: &[E] = &[E::FileVersion, E::FileRemoved, E::OperatorMemoryChangeProposed];
/// A person's walk: words, what follows from them, and proposals.
const REVIEWED: &[E] = &[
    E::FileVersion,
    E::FileRemoved,
    E::OperatorMemoryChangeProposed,
    E::ProposalDecision,
    E::JudgmentRecorded,
    E::MemoryMaterialized,
    E::MaterializationFailed,
];
/// The runs of one declaration, with the documents and corrections that they wait for.
const CONSUMED: &[E] = &[
    E::FileVersion,
    E::FileRemoved,
    E::MessageObservation,
    E::DerivedAgentMessage,
    E::MemoryChangeProposed,
    E::CorrectionProposed,
    E::FocusProposed,
    E::RunCompleted,
    E::RunFailed,
    E::RunBlocked,
    E::RunAbandoned,
    E::JudgmentRecorded,
    E::NoticeRequested,
    E::Incident,
];
/// Every role: all but a person's word and a person's proposal.
const SERVED: &[E] = &[
    E::TelegramMessage,
    E::TelegramCommand,
    E::FileVersion,
    E::FileRemoved,
    E::AgentMessage,
    E::MessageObservation,
    E::DerivedAgentMessage,
    E::MemoryChangeProposed,
    E::CorrectionProposed,
    E::FocusProposed,
    E::RunCompleted,
    E::RunFailed,
    E::RunBlocked,
    E::RunAbandoned,
    E::JudgmentRecorded,
    E::MemoryMaterialized,
    E::MaterializationFailed,
    E::DeliveryTelegram,
    E::NoticeRequested,
    E::DeclarationActivated,
    E::Incident,
];
/// The demonstration, in a home of its own.
const SHOWN: &[E] = &[
    E::TelegramMessage,
    E::FileVersion,
    E::AgentMessage,
    E::MessageObservation,
    E::DerivedAgentMessage,
    E::MemoryChangeProposed,
    E::RunCompleted,
    E::ProposalDecision,
    E::MemoryMaterialized,
    E::DeliveryTelegram,
    E::DeclarationActivated,
];

const fn none(command: &'static str) -> Appends {
    Appends { command, types: &[] }
}

const fn some(command: &'static str, types: &'static [E]) -> Appends {
    Appends { command, types }
}

/// The table, in the order of the command line's definition.
pub const TABLE: &[Appends] = &[
    none("init"),
    some("demo", SHOWN),
    none("doctor"),
    some("serve", SERVED),
    none("status"),
    some("scan", SCANNED),
    none("event-list"),
    none("event-show"),
    none("lineage"),
    none("run-list"),
    none("run-show"),
    some("run-abandon", &[E::RunAbandoned]),
    none("run-retry"),
    none("context-show"),
    none("proposal-list"),
    none("proposal-show"),
    some("review", REVIEWED),
    some("proposal-decision", DECIDED),
    some("proposal-project", PROJECTED),
    some("proposal-repropose", PROPOSED),
    some("proposal-revert", PROPOSED),
    none("judgment-list"),
    some("judgment-release", &[E::JudgmentRecorded]),
    none("private-training-export"),
    none("training-export"),
    some("agent-send", &[E::AgentMessage]),
    some("consume", CONSUMED),
    none("declaration-check"),
    some("declaration-activate", &[E::RunBlocked, E::DeclarationActivated]),
    none("declaration-list"),
    none("verify"),
    none("backup"),
    none("restore"),
    some("telegram-menu-register", &[E::DeliveryTelegram, E::NoticeRequested, E::Incident]),
    none("telegram-webhook-set"),
    none("telegram-webhook-delete"),
    some("delivery-retry", &[E::DeliveryTelegram, E::Incident]),
    some("delivery-confirm", &[E::DeliveryTelegram, E::Incident]),
    none("completions"),
    none("man"),
    none("appends"),
];

/// The name of a command, as the table has it.
pub const fn name(command: &Command) -> &'static str {
    match command {
        Command::Init { .. } => "init",
        Command::Demo => "demo",
        Command::Doctor { .. } => "doctor",
        Command::Serve => "serve",
        Command::Status => "status",
        Command::Scan => "scan",
        Command::EventList { .. } => "event-list",
        Command::EventShow { .. } => "event-show",
        Command::Lineage { .. } => "lineage",
        Command::RunList { .. } => "run-list",
        Command::RunShow { .. } => "run-show",
        Command::RunAbandon { .. } => "run-abandon",
        Command::RunRetry { .. } => "run-retry",
        Command::ContextShow { .. } => "context-show",
        Command::ProposalList { .. } => "proposal-list",
        Command::ProposalShow { .. } => "proposal-show",
        Command::Review { .. } => "review",
        Command::ProposalDecision(_) => "proposal-decision",
        Command::ProposalProject { .. } => "proposal-project",
        Command::ProposalRepropose(_) => "proposal-repropose",
        Command::ProposalRevert(_) => "proposal-revert",
        Command::JudgmentList { .. } => "judgment-list",
        Command::JudgmentRelease { .. } => "judgment-release",
        Command::PrivateTrainingExport { .. } => "private-training-export",
        Command::TrainingExport { .. } => "training-export",
        Command::AgentSend(_) => "agent-send",
        Command::Consume { .. } => "consume",
        Command::DeclarationCheck { .. } => "declaration-check",
        Command::DeclarationActivate { .. } => "declaration-activate",
        Command::DeclarationList => "declaration-list",
        Command::Verify { .. } => "verify",
        Command::Backup { .. } => "backup",
        Command::Restore { .. } => "restore",
        Command::TelegramMenuRegister { .. } => "telegram-menu-register",
        Command::TelegramWebhookSet => "telegram-webhook-set",
        Command::TelegramWebhookDelete => "telegram-webhook-delete",
        Command::DeliveryRetry { .. } => "delivery-retry",
        Command::DeliveryConfirm { .. } => "delivery-confirm",
        Command::Completions { .. } => "completions",
        Command::Man { .. } => "man",
        Command::Appends => "appends",
    }
}

/// `appends`: the table, for the reference page.
///
/// # Errors
/// [`Failure`] when stdout cannot be written.
pub fn print(printer: Printer) -> Result<(), Failure> {
    TABLE.iter().try_for_each(|row| {
        let value = json!({"command": row.command, "appends": row.types});
        printer.either(&value, || {
            let types: Vec<&str> = row.types.iter().map(|event_type| event_type.as_str()).collect();
            vec![format!("{:<24} {}", row.command, types.join(" "))]
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{Arg, CommandFactory, Parser};

    use super::*;
    use crate::args::Cli;

    /// A value that an argument takes.
    fn value(argument: &Arg) -> String {
        argument
            .get_possible_values()
            .first()
            .map_or_else(|| "1".to_owned(), |value| value.get_name().to_owned())
    }

    /// The shortest command line of a command.
    fn shortest(command: &clap::Command) -> Vec<String> {
        let mut line = vec!["thought".to_owned(), command.get_name().to_owned()];
        for argument in command.get_arguments().filter(|argument| argument.is_required_set()) {
            line.extend(argument.get_long().map(|long| format!("--{long}")));
            line.push(value(argument));
        }
        line
    }

    #[test]
    fn every_command_of_the_definition_has_one_line_and_its_own_name() {
        let definition = Cli::command();
        let commands: Vec<&clap::Command> = definition.get_subcommands().collect();
        let defined: Vec<&str> = commands.iter().map(|command| command.get_name()).collect();
        let listed: Vec<&str> = TABLE.iter().map(|row| row.command).collect();
        assert_eq!(listed, defined);
        for command in commands {
            let parsed = Cli::try_parse_from(shortest(command)).unwrap();
            assert_eq!(name(&parsed.command), command.get_name());
        }
    }

    #[test]
    fn types_stand_once_and_in_the_registrys_order() {
        for row in TABLE {
            let places: Vec<usize> = row
                .types
                .iter()
                .map(|wanted| E::ALL.iter().position(|found| found == wanted).unwrap())
                .collect();
            assert!(places.is_sorted_by(|a, b| a < b), "{}", row.command);
        }
    }

    #[test]
    fn every_type_is_appended_by_some_command() {
        let all: BTreeSet<&str> =
            TABLE.iter().flat_map(|row| row.types).map(|found| found.as_str()).collect();
        assert_eq!(all.len(), E::ALL.len());
    }
}
