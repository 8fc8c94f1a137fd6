//! What a key does: the one table of the review, pure, and tested without a terminal.
//!
//! A word falls by its own key alone. Return, the end of input, an interrupt and every other key decide nothing, and what
//! is refused says what to do instead. What was not shown is not let through: that wants consent, an end that was on the
//! screen, a chain that holds, and a base that still stands.

use thought_contract::payload::Disposition;

use super::pager::{Seen, Turn};
use crate::print::Content;

/// What came from the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// One printable character, alone.
    Char(char),
    /// Return.
    Return,
    /// An interrupt, or a signal that ends.
    Interrupt,
    /// Nothing will come any more.
    EndOfInput,
    /// Anything else: an arrow, several at once, a pasted text.
    Other,
}

/// What a key is pressed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// A suggestion.
    Suggestion,
    /// The person's own text in its place, which is not decided yet.
    Edited,
    /// A decision that came too late for its base.
    TooLate,
}

/// Whether a word that lets it through can be said on a suggestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// It can.
    Firm,
    /// The document has moved on: it would not be written.
    Moved,
    /// The document has moved on, and what was proposed stands in it by a repetition of this one.
    Written,
    /// Its evidence does not hold together.
    Refused,
}

/// Everything that what a key does depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Situation {
    /// At what.
    pub stage: Stage,
    /// Whether content may be shown.
    pub content: Content,
    /// Whether its end was on the screen.
    pub seen: Seen,
    /// What it stands on.
    pub ground: Ground,
}

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Turns the pages.
    Turn(Turn),
    /// Shows the whole text in the place of the diff, or the diff again.
    Whole,
    /// Shows content from now on.
    Consent,
    /// Decides.
    Decide(Disposition),
    /// Opens the editor.
    Edit,
    /// Proposes it again on the current document.
    Propose,
    /// Goes back from the edited text to the suggestion.
    Back,
    /// Goes on to the next.
    Skip,
    /// Ends the review.
    Quit,
    /// Says what the keys do.
    Help,
    /// Does nothing, and says why and what to do.
    Hint(&'static str),
}

/// Says it to whoever presses return.
pub const RETURN: &str = "return decides nothing; press the letter of what you mean, or ? for help";
/// Says it to every other key.
pub const UNKNOWN: &str = "that key does nothing; press the letter of what you mean, or ? for help";
const DARK: &str = "its text was not shown; y shows it, r rejects and s skips it unread";
const NOT_ALL: &str = "not all of it was shown; space goes on, G goes to the end";
const MOVED: &str = "the document has changed since; p proposes it again on the current one, r rejects it";
const REFUSED: &str =
    "its evidence does not hold together, so nothing is decided on it; thought verify tells more, s skips it";
const WRITTEN: &str = "it was proposed again, accepted and written: p would write it a second time; r puts this one away, s skips it";
const CURRENT: &str = "it stands on what is current; a accepts it as it is";

/// What a key does in a situation.
pub fn step(situation: Situation, key: Key) -> Step {
    match (key, situation.stage) {
        (Key::Interrupt | Key::EndOfInput, _) => Step::Quit,
        (Key::Return, _) => Step::Hint(RETURN),
        (Key::Other, _) => Step::Hint(UNKNOWN),
        (Key::Char(letter), stage) => {
            if let Some(step) = anywhere(situation, letter) {
                return step;
            }
            match stage {
                Stage::Suggestion => suggestion(situation, letter),
                Stage::Edited => edited(situation, letter),
                Stage::TooLate => too_late(letter),
            }
        }
    }
}

fn anywhere(situation: Situation, letter: char) -> Option<Step> {
    let turn = match letter {
        'q' => return Some(Step::Quit),
        '?' | 'h' => return Some(Step::Help),
        ' ' => Turn::On,
        'b' => Turn::Back,
        'g' => Turn::Begin,
        'G' => Turn::End,
        _ => return None,
    };
    Some(if situation.content == Content::Shown { Step::Turn(turn) } else { Step::Hint(DARK) })
}

fn suggestion(situation: Situation, letter: char) -> Step {
    let Situation { content, ground, .. } = situation;
    match (letter, ground, content) {
        ('s', ..) => Step::Skip,
        ('y', _, Content::Dark) => Step::Consent,
        ('t', _, Content::Dark) => Step::Hint(DARK),
        ('t', _, Content::Shown) => Step::Whole,
        ('a' | 'e' | 'r' | 'p', Ground::Refused, _) => Step::Hint(REFUSED),
        ('r', ..) => Step::Decide(Disposition::Reject),
        ('a' | 'e' | 'p', Ground::Written, _) => Step::Hint(WRITTEN),
        ('p', Ground::Moved, _) => Step::Propose,
        ('p', Ground::Firm, _) => Step::Hint(CURRENT),
        ('a' | 'e', Ground::Moved, _) => Step::Hint(MOVED),
        ('a' | 'e', _, Content::Dark) => Step::Hint(DARK),
        ('a' | 'e', ..) if situation.seen == Seen::NotAll => Step::Hint(NOT_ALL),
        ('a', ..) => Step::Decide(Disposition::Accept),
        ('e', ..) => Step::Edit,
        _ => Step::Hint(UNKNOWN),
    }
}

fn edited(situation: Situation, letter: char) -> Step {
    match letter {
        'y' if situation.seen == Seen::NotAll => Step::Hint(NOT_ALL),
        'y' => Step::Decide(Disposition::Edit),
        'e' => Step::Edit,
        't' => Step::Whole,
        'n' => Step::Back,
        _ => Step::Hint(UNKNOWN),
    }
}

fn too_late(letter: char) -> Step {
    match letter {
        'p' => Step::Propose,
        's' => Step::Skip,
        _ => Step::Hint(UNKNOWN),
    }
}

/// The keys that are offered.
pub fn offered(situation: Situation) -> &'static str {
    match (situation.stage, situation.ground, situation.content) {
        (Stage::Edited, ..) => "[y] decide with this text  [e]dit again  [n]o, back  [q]uit  [?]",
        (Stage::TooLate, ..) => "[p]ropose again on the current document  [s]kip  [q]uit  [?]",
        (_, Ground::Refused, _) => "[s]kip  [q]uit  [?]",
        (_, _, Content::Dark) => "[y] show its text  [r]eject  [s]kip  [q]uit  [?]",
        (_, Ground::Written, _) => "[r]eject, to put it away  [s]kip  [q]uit  [?]",
        (_, Ground::Moved, _) => "[p]ropose again on the current document  [r]eject  [s]kip  [q]uit  [?]",
        (_, Ground::Firm, _) => "[a]ccept  [e]dit  [r]eject  [s]kip  [q]uit  [?]",
    }
}

/// What every key does, line by line.
pub const HELP: [&str; 13] = [
    "a      accept it as it is",
    "e      edit it ($VISUAL, else $EDITOR, else vi); you see the outcome before anything is decided",
    "r      reject it",
    "p      propose it again on the current document, where that has changed since; the new one comes up next",
    "s      skip it; it goes on waiting",
    "y      show its text; at a text that you edited: decide with it",
    "n      at a text that you edited: back, with nothing decided",
    "t      the whole text in the place of the diff, and back",
    "space  one page on",
    "b      one page back",
    "g, G   to the beginning, to the end",
    "q      quit; what is not decided goes on waiting",
    "Return, Ctrl-C and every other key decide nothing.",
];

#[cfg(test)]
mod tests {
    use super::*;

    const FIRM: Situation = Situation {
        stage: Stage::Suggestion,
        content: Content::Shown,
        seen: Seen::All,
        ground: Ground::Firm,
    };

    fn situations() -> Vec<Situation> {
        let mut all = Vec::new();
        for stage in [Stage::Suggestion, Stage::Edited, Stage::TooLate] {
            for content in [Content::Shown, Content::Dark] {
                for seen in [Seen::All, Seen::NotAll] {
                    for ground in [Ground::Firm, Ground::Moved, Ground::Written, Ground::Refused] {
                        all.push(Situation { stage, content, seen, ground });
                    }
                }
            }
        }
        all
    }

    fn press(situation: Situation, letter: char) -> Step {
        step(situation, Key::Char(letter))
    }

    #[test]
    fn a_word_falls_by_its_own_letter_alone() {
        for situation in situations() {
            for key in [Key::Return, Key::Interrupt, Key::EndOfInput, Key::Other] {
                let step = step(situation, key);
                assert!(matches!(step, Step::Hint(_) | Step::Quit), "{situation:?} {key:?}: {step:?}");
            }
            for letter in (0..=0x2ff_u32).filter_map(char::from_u32) {
                let word = match (situation.stage, letter) {
                    (Stage::Suggestion, 'a') => Some(Disposition::Accept),
                    (Stage::Suggestion, 'r') => Some(Disposition::Reject),
                    (Stage::Edited, 'y') => Some(Disposition::Edit),
                    _ => None,
                };
                if let Step::Decide(said) = press(situation, letter) {
                    assert_eq!(Some(said), word, "{situation:?} {letter:?}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_let_through_that_was_not_shown_to_its_end_on_firm_ground() {
        for situation in situations().into_iter().filter(|one| one.stage == Stage::Suggestion) {
            let may = situation == FIRM;
            assert_eq!(press(situation, 'a') == Step::Decide(Disposition::Accept), may, "{situation:?}");
            assert_eq!(press(situation, 'e') == Step::Edit, may, "{situation:?}");
        }
        let unseen = Situation { stage: Stage::Edited, seen: Seen::NotAll, ..FIRM };
        assert_eq!(press(unseen, 'y'), Step::Hint(NOT_ALL));
    }

    #[test]
    fn each_refusal_says_what_to_do() {
        let moved = Situation { ground: Ground::Moved, ..FIRM };
        assert_eq!((press(moved, 'a'), press(moved, 'e')), (Step::Hint(MOVED), Step::Hint(MOVED)));
        assert_eq!((press(moved, 'p'), press(FIRM, 'p')), (Step::Propose, Step::Hint(CURRENT)));
        assert_eq!(press(Situation { content: Content::Dark, ..FIRM }, 'a'), Step::Hint(DARK));
        assert_eq!(press(Situation { seen: Seen::NotAll, ..FIRM }, 'a'), Step::Hint(NOT_ALL));
        let refused = Situation { ground: Ground::Refused, ..FIRM };
        for letter in ['a', 'e', 'r', 'p'] {
            assert_eq!(press(refused, letter), Step::Hint(REFUSED));
        }
        assert_eq!(step(FIRM, Key::Return), Step::Hint(RETURN));
        assert_eq!(press(FIRM, 'A'), Step::Hint(UNKNOWN));
    }

    #[test]
    fn whatever_stands_there_can_be_skipped_or_left_and_rejected_unread() {
        for situation in situations() {
            assert_eq!(press(situation, 'q'), Step::Quit);
            assert_eq!(press(situation, '?'), Step::Help);
            match situation.stage {
                Stage::Edited => assert_eq!(press(situation, 'n'), Step::Back),
                Stage::Suggestion | Stage::TooLate => assert_eq!(press(situation, 's'), Step::Skip),
            }
        }
        let dark = Situation { content: Content::Dark, seen: Seen::NotAll, ..FIRM };
        assert_eq!(press(dark, 'r'), Step::Decide(Disposition::Reject));
        assert_eq!(press(dark, 'y'), Step::Consent);
        assert_eq!(press(dark, ' '), Step::Hint(DARK));
    }

    #[test]
    fn what_is_offered_does_something() {
        for situation in situations() {
            let offered = offered(situation);
            let letters = offered.match_indices('[').filter_map(|(at, _)| offered[at + 1..].chars().next());
            for letter in letters.filter(|letter| *letter != '?') {
                let step = press(situation, letter);
                let is_waiting_for_the_end = situation.seen == Seen::NotAll && step == Step::Hint(NOT_ALL);
                assert!(is_waiting_for_the_end || !matches!(step, Step::Hint(_)), "{situation:?} {letter}");
            }
        }
    }
}
