//! What stands before the person: a suggestion, or their own text in its place, laid out in pages.

use thought_authority::chain::Verified;
use thought_contract::review::{Review, visible};
use thought_protocol::Sensitive;
use thought_protocol::proposal::ProposalKind;
use thought_store::row::Base;

use super::super::proposals::load::{Again, Shown};
use super::super::proposals::{meaning, tinted};
use super::pager::{Pages, Rows, Seen, Turn, Window};
use super::walk::{Ground, Situation, Stage};
use crate::print::{Content, Tint};

/// A text of the person's own, and what it would change.
#[derive(Debug)]
struct Own {
    text: Sensitive<String>,
    review: Review,
    views: Views,
}

/// The change, and the whole text. Having seen the change is what counts: it holds what comes and what goes.
#[derive(Debug)]
struct Views {
    change: Pages,
    whole: Pages,
}

/// Which view is on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum View {
    Change,
    Whole,
}

/// What stands before the person.
#[derive(Debug)]
pub struct Sight {
    /// The suggestion.
    pub shown: Shown,
    ground: Ground,
    window: Window,
    views: Views,
    own: Option<Own>,
    view: View,
    is_too_late: bool,
}

impl Sight {
    /// A suggestion, with its verified chain where it holds.
    pub fn of(shown: Shown, verified: Option<&Verified>, window: Window) -> Self {
        let ground = match (verified, shown.row.kind, shown.row.base) {
            (None, ..) => Ground::Refused,
            (Some(_), ProposalKind::MemoryChange, Base::Stale)
                if shown.again.as_ref().is_some_and(Again::is_written) =>
            {
                Ground::Written
            }
            (Some(_), ProposalKind::MemoryChange, Base::Stale) => Ground::Moved,
            // A correction takes the place of whatever stands on the answer, and is shown against that.
            (Some(_), ..) => Ground::Firm,
        };
        let reason = shown.details["reason"].as_str().unwrap_or("");
        let views = views(&shown.review, reason, window);
        Self { ground, window, views, own: None, view: View::Change, is_too_late: false, shown }
    }

    /// Where it is.
    pub fn stage(&self) -> Stage {
        match (&self.own, self.is_too_late) {
            (_, true) => Stage::TooLate,
            (Some(_), false) => Stage::Edited,
            (None, false) => Stage::Suggestion,
        }
    }

    /// What a key depends on.
    pub fn situation(&self, content: Content) -> Situation {
        let seen = match content {
            Content::Shown => self.current().change.seen(),
            Content::Dark => Seen::NotAll,
        };
        Situation { stage: self.stage(), content, seen, ground: self.ground }
    }

    /// The pages on the screen.
    pub fn pages(&self) -> &Pages {
        match self.view {
            View::Change => &self.current().change,
            View::Whole => &self.current().whole,
        }
    }

    /// Turns them; whether another page is shown.
    pub fn turn(&mut self, turn: Turn) -> bool {
        let views = self.own.as_mut().map_or(&mut self.views, |own| &mut own.views);
        match self.view {
            View::Change => views.change.turn(turn),
            View::Whole => views.whole.turn(turn),
        }
    }

    /// The whole text in the place of the change, and back.
    pub fn toggle_whole(&mut self) {
        self.view = if self.view == View::Whole { View::Change } else { View::Whole };
    }

    /// A text of the person's own in the place of the proposed one.
    pub fn put(&mut self, text: Sensitive<String>) {
        self.view = View::Change;
        self.own = self.shown.edited(text.expose()).map(|review| {
            let views = views(&review, "", self.window);
            Own { text, review, views }
        });
    }

    /// The suggestion again.
    pub fn put_back(&mut self) {
        self.view = View::Change;
        self.own = None;
    }

    /// The person's own text.
    pub fn edited_text(&self) -> Option<&Sensitive<String>> {
        self.own.as_ref().map(|own| &own.text)
    }

    /// Length, hash and marks of the person's own text.
    pub fn facts_of_edited(&self) -> Vec<String> {
        let Some(own) = &self.own else { return Vec::new() };
        let (length, sha256) = (own.review.text_length, &own.review.text_sha256);
        let mut lines = vec![String::new(), format!("your text {length} characters, sha256 {sha256}")];
        let kind = self.shown.row.kind;
        lines.extend(own.review.warnings.iter().map(|mark| format!("warning   {}", meaning(*mark, kind))));
        lines
    }

    /// The decision was made, and came too late for its base.
    pub fn came_too_late(&mut self) {
        self.is_too_late = true;
    }

    fn current(&self) -> &Views {
        self.own.as_ref().map_or(&self.views, |own| &own.views)
    }
}

fn views(review: &Review, reason: &str, window: Window) -> Views {
    let mut change = Rows::of(window);
    if !reason.is_empty() {
        change.heading("the reason:");
        visible(reason).lines().for_each(|line| change.content(Tint::Plain, line));
    }
    let diff = tinted(review.diff.expose());
    change.heading(if diff.is_empty() { "it would change nothing" } else { "what it would change:" });
    diff.iter().for_each(|(tint, line)| change.content(*tint, line));
    let mut whole = Rows::of(window);
    whole.heading("its whole text:");
    visible(review.text.expose()).lines().for_each(|line| whole.content(Tint::Plain, line));
    Views { change: change.pages(), whole: whole.pages() }
}
