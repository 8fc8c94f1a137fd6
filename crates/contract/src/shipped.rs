//! The files that a new home begins with: two declarations, their prompts, and the two documents of the context root.
//!
//! They are part of the binary and nothing more than a beginning: once they lie in a home, the files there count.

/// One file of a new home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShippedFile {
    /// Where it belongs.
    pub place: ShippedPlace,
    /// Its name there.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// Where a shipped file belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShippedPlace {
    /// `agents/` of the home.
    Agents,
    /// `prompts/` of the home.
    Prompts,
    /// The context root, wherever the configuration puts it.
    Context,
}

/// Every shipped file.
pub const SHIPPED: [ShippedFile; 6] = [
    ShippedFile {
        place: ShippedPlace::Agents,
        name: "stream-telegram-conversation.yaml",
        text: include_str!("../shipped/agents/stream-telegram-conversation.yaml"),
    },
    ShippedFile {
        place: ShippedPlace::Agents,
        name: "stream-agent-conversation.yaml",
        text: include_str!("../shipped/agents/stream-agent-conversation.yaml"),
    },
    ShippedFile {
        place: ShippedPlace::Prompts,
        name: "stream-telegram-conversation.md",
        text: include_str!("../shipped/prompts/stream-telegram-conversation.md"),
    },
    ShippedFile {
        place: ShippedPlace::Prompts,
        name: "stream-agent-conversation.md",
        text: include_str!("../shipped/prompts/stream-agent-conversation.md"),
    },
    ShippedFile {
        place: ShippedPlace::Context,
        name: "identity.md",
        text: include_str!("../shipped/context/identity.md"),
    },
    ShippedFile {
        place: ShippedPlace::Context,
        name: "memory.md",
        text: include_str!("../shipped/context/memory.md"),
    },
];

/// The shipped files of one place.
pub fn shipped_in(place: ShippedPlace) -> impl Iterator<Item = &'static ShippedFile> {
    SHIPPED.iter().filter(move |file| file.place == place)
}
