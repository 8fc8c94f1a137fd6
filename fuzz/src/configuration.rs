//! `thought.toml`: whatever stands in it, it is taken whole and within its bounds, or refused in one printable sentence
//! that begins with the name of the file and quotes keys alone.

use thought_cli::config::Config;
use thought_cli::exit::Exit;

use super::{PLANTED, Seen};

const FILE: &str = "thought.toml";

/// Reads one input.
pub fn read(data: &[u8]) -> Seen {
    let Ok(text) = std::str::from_utf8(data) else { return Seen::Refused };
    match Config::parse(text, FILE) {
        Ok(config) => {
            assert!((1..=16).contains(&config.operator.names.len()));
            assert!(config.inspector.listen.ip().is_loopback());
            assert!(config.context.root.is_relative());
            assert!(config.agents.values().all(|agent| agent.socket.is_absolute()));
            Seen::Taken
        }
        Err(failure) => {
            assert_eq!((failure.exit, failure.code), (Exit::Refused, "configuration"));
            assert!(failure.message.starts_with(FILE));
            let told = [Some(&failure.message), failure.hint.as_ref()];
            assert!(told.into_iter().flatten().all(|text| !text.chars().any(char::is_control)), "{told:?}");
            let names_key = ["there is no key ", "agents.", "provider."]
                .iter()
                .any(|with| failure.message.contains(with));
            assert!(names_key || !failure.message.contains(PLANTED), "{told:?}");
            assert!(failure.hint.is_none_or(|hint| !hint.contains(PLANTED)));
            Seen::Refused
        }
    }
}
