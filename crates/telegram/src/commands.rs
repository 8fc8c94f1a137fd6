//! The slash commands, and the menu that offers them.
//!
//! Owns which words are commands. Everything else that begins with a slash, or that is meant for another bot, is
//! ordinary text.

/// A command that is an event of its own and never a turn of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommandName {
    /// `/start`: what this is.
    Start,
    /// `/help`: the commands.
    Help,
    /// `/focus` alone: how to use it. With a description it is a message like any other.
    Focus,
    /// `/correct`: a person's correction of a reply. Without words it is refused like one that matches nothing.
    Correct,
}

impl CommandName {
    /// The word without its slash, as in events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Help => "help",
            Self::Focus => "focus",
            Self::Correct => "correct",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Start, Self::Help, Self::Focus, Self::Correct].into_iter().find(|name| name.as_str() == word)
    }
}

/// One entry of the menu: the word without its slash, and what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MenuEntry {
    /// 1–32 characters of `a–z`, `0–9` and `_`.
    pub command: &'static str,
    /// 1–256 characters.
    pub description: &'static str,
}

/// The menu, in the order shown. It offers what works and nothing else.
pub const MENU: [MenuEntry; 3] = [
    MenuEntry { command: "help", description: "What I can do" },
    MenuEntry { command: "focus", description: "Suggest something to keep an eye on" },
    MenuEntry { command: "correct", description: "Put right what I said" },
];

/// A command as it was written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parsed<'a> {
    pub(crate) name: CommandName,
    /// What stands behind it, trimmed; `None` if nothing does.
    pub(crate) argument: Option<&'a str>,
}

/// Reads a text as a command to the bot of this name; `None` for ordinary text. A username is compared without case, a
/// command with it.
pub(crate) fn parse<'a>(text: &'a str, bot_username: &str) -> Option<Parsed<'a>> {
    let body = text.strip_prefix('/')?;
    let (word, rest) = body.split_at(body.find(char::is_whitespace).unwrap_or(body.len()));
    let name = match word.split_once('@') {
        Some((name, bot)) if bot.eq_ignore_ascii_case(bot_username) => name,
        Some(_) => return None,
        None => word,
    };
    let name = CommandName::parse(name)?;
    let argument = Some(rest.trim()).filter(|rest| !rest.is_empty());
    // A description makes a turn, in which the model may answer and suggest.
    if name == CommandName::Focus && argument.is_some() {
        return None;
    }
    Some(Parsed { name, argument })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_text() {
        type Command = (CommandName, Option<&'static str>);
        let table: [(&str, Option<Command>); 17] = [
            ("/start", Some((CommandName::Start, None))),
            ("/start payload", Some((CommandName::Start, Some("payload")))),
            ("/help", Some((CommandName::Help, None))),
            ("/help@Stream_Bot", Some((CommandName::Help, None))),
            ("/help@other_bot", None),
            ("/help@", None),
            ("/focus", Some((CommandName::Focus, None))),
            ("/focus \n ", Some((CommandName::Focus, None))),
            ("/focus@stream_bot", Some((CommandName::Focus, None))),
            ("/focus what I read", None),
            ("/correct", Some((CommandName::Correct, None))),
            ("/correct  two words ", Some((CommandName::Correct, Some("two words")))),
            ("/correct\nline one\nline two", Some((CommandName::Correct, Some("line one\nline two")))),
            ("/corrected x", None),
            ("/HELP", None),
            ("/", None),
            (" /help", None),
        ];
        for (text, wanted) in table {
            let seen = parse(text, "stream_bot").map(|parsed| (parsed.name, parsed.argument));
            assert_eq!(seen, wanted, "{text:?}");
        }
    }

    #[test]
    fn the_menu_keeps_the_bounds_of_the_bot_api() {
        for entry in MENU {
            assert!(
                entry.command.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
                "{}",
                entry.command
            );
            assert!((1..=32).contains(&entry.command.len()) && (1..=256).contains(&entry.description.len()));
            assert!(CommandName::parse(entry.command).is_some(), "{} is no command", entry.command);
        }
        assert_eq!(MENU.map(|entry| entry.command), ["help", "focus", "correct"]);
    }
}
