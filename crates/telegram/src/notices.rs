//! The one table of the words that the product itself says in a chat.
//!
//! Every text is the same each time, holds no content, and never enters a conversation's history.

use std::borrow::Cow;

/// The line at the end of a delivered answer that the model's length limit cut.
pub const CUT_SHORT: &str = "(cut short)";

const START: &str = "Hello. I am a thought stream: write to me and I answer, with what I know about you at hand.\n\n\
I only suggest: what to remember, what to correct, what to keep an eye on. A person decides, and until then nothing \
changes.\n\n\
/help says what you can write: /focus <description> for a suggestion of what to keep an eye on, /correct <text> where I \
was wrong.";

const HELP: &str = "Write to me as you would to anyone, and I answer.\n\n\
/focus <description> suggests something to keep an eye on\n\
/correct <text> puts right what I said last; send it as a reply to put right another answer of mine\n\
/help shows this\n\n\
Tell me what to remember, or where I was wrong, and I suggest that too.\n\n\
I only suggest. A person decides, and nothing changes before that.";

const FOCUS: &str = "Write /focus and then, in your own words, what to keep an eye on. For example:\n\n\
/focus articles about restoring old bicycles\n\n\
That makes a suggestion and nothing more: no focus starts by itself, and a person looks at it first.";

/// Which help a person asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelpTopic {
    /// `/start`.
    Start,
    /// `/help`, and the notice that follows the registration of the menu.
    Commands,
    /// `/focus` without a description.
    Focus,
}

/// Something that the product says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// A run ended without an answer.
    RunFailed,
    /// A run waits for something that is missing.
    RunHeld,
    /// A message of a kind that is not read.
    UnsupportedKind,
    /// An approved change stands in the memory.
    MemoryUpdated,
    /// A `/correct` was recorded.
    Corrected,
    /// A `/correct` that names no reply.
    NotMatched,
    /// How many suggestions wait; at most once a day.
    SuggestionsWaiting {
        /// Suggestions that no one has decided.
        count: u64,
    },
    /// An explanation that was asked for.
    Help(HelpTopic),
}

/// The switch of the configuration that a notice obeys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// `telegram.failure_notice`.
    FailureNotice,
    /// `telegram.notices`.
    Notices,
}

/// The switches as they are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switches {
    /// `telegram.failure_notice`.
    pub failure_notice: bool,
    /// `telegram.notices`.
    pub notices: bool,
}

impl Notice {
    /// The name in events and rows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RunFailed => "run-failed",
            Self::RunHeld => "run-held",
            Self::UnsupportedKind => "unsupported-kind",
            Self::MemoryUpdated => "memory-updated",
            Self::Corrected => "corrected",
            Self::NotMatched => "not-matched",
            Self::SuggestionsWaiting { .. } => "suggestions-waiting",
            Self::Help(_) => "help",
        }
    }

    /// The words.
    pub fn text(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::RunFailed => "I couldn't answer that one. Nothing was changed.",
            Self::RunHeld => "I can't answer right now. I'll reply when I can.",
            Self::UnsupportedKind => "I can't read that kind of message yet.",
            Self::MemoryUpdated => "Memory updated.",
            Self::Corrected => "Corrected.",
            Self::NotMatched => {
                "I couldn't match that to one of my replies. Reply to the message you want to correct."
            }
            Self::SuggestionsWaiting { count } => {
                return Cow::Owned(format!("Suggestions waiting for review: {count}."));
            }
            Self::Help(HelpTopic::Start) => START,
            Self::Help(HelpTopic::Commands) => HELP,
            Self::Help(HelpTopic::Focus) => FOCUS,
        })
    }

    /// Which switch it obeys.
    pub const fn switch(self) -> Switch {
        match self {
            Self::RunFailed | Self::RunHeld => Switch::FailureNotice,
            Self::MemoryUpdated
            | Self::SuggestionsWaiting { .. }
            | Self::UnsupportedKind
            | Self::Corrected
            | Self::NotMatched
            | Self::Help(_) => Switch::Notices,
        }
    }

    /// Whether it is said under these switches.
    pub const fn is_on(self, switches: Switches) -> bool {
        match self.switch() {
            Switch::FailureNotice => switches.failure_notice,
            Switch::Notices => switches.notices,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Notice; 10] = [
        Notice::RunFailed,
        Notice::RunHeld,
        Notice::UnsupportedKind,
        Notice::MemoryUpdated,
        Notice::Corrected,
        Notice::NotMatched,
        Notice::SuggestionsWaiting { count: 3 },
        Notice::Help(HelpTopic::Start),
        Notice::Help(HelpTopic::Commands),
        Notice::Help(HelpTopic::Focus),
    ];

    #[test]
    fn every_notice_is_one_message_and_nothing_markup_like() {
        for notice in ALL {
            let text = notice.text();
            assert!(!text.trim().is_empty() && text.encode_utf16().count() <= 1_000, "{}", notice.name());
            assert!(!text.contains('*') && !text.contains("  "), "{}", notice.name());
        }
    }

    #[test]
    fn the_count_stands_in_the_text() {
        assert_eq!(Notice::SuggestionsWaiting { count: 12 }.text(), "Suggestions waiting for review: 12.");
    }

    #[test]
    fn the_help_says_that_a_person_decides() {
        for topic in [HelpTopic::Start, HelpTopic::Commands, HelpTopic::Focus] {
            assert!(
                Notice::Help(topic).text().contains("a person")
                    || Notice::Help(topic).text().contains("A person")
            );
        }
    }

    #[test]
    fn every_help_names_the_commands_of_the_menu() {
        for entry in crate::commands::MENU {
            for topic in [HelpTopic::Start, HelpTopic::Commands] {
                let word = format!("/{}", entry.command);
                assert!(Notice::Help(topic).text().contains(&word), "{topic:?} without {word}");
            }
        }
    }

    #[test]
    fn one_switch_governs_failures_and_the_other_all_the_rest() {
        let said = |switches| -> Vec<&str> {
            ALL.into_iter().filter(|notice| notice.is_on(switches)).map(Notice::name).collect()
        };
        assert!(said(Switches { failure_notice: false, notices: false }).is_empty());
        assert_eq!(said(Switches { failure_notice: true, notices: false }), ["run-failed", "run-held"]);
        let others = said(Switches { failure_notice: false, notices: true });
        assert_eq!(others.len(), ALL.len() - 2);
        assert!(!others.contains(&"run-failed") && !others.contains(&"run-held"));
    }
}
