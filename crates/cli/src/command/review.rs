//! `review`: a walk through what waits, for a person at a terminal. Facts first, content after a yes, a word by its key.
//!
//! What a key does stands in `walk`, how text becomes pages in `pager`; the authority room decides, and refuses. Here is
//! the way from one suggestion to the next. Nothing is decided that was not shown as it stands: the hash of the text and
//! the base always go with a word, and a correction is compared with what it was shown against right before.

pub mod editor;
pub mod pager;
pub mod sight;
pub mod terminal;
pub mod walk;

use std::collections::{HashSet, VecDeque};

use thought_authority::chain::{ChainError, Verified};
use thought_authority::decide::{Operators, Submission};
use thought_authority::filesystem::FilesystemConnector;
use thought_authority::project::Status;
use thought_authority::reason::Reason;
use thought_contract::payload::{Disposition, Surface};
use thought_protocol::{EventId, Sensitive};
use thought_store::Store;
use thought_store::handle::Reader;
use thought_store::row::{ProposalFilter, ProposalState};

use self::editor::Edited;
use self::sight::Sight;
use self::terminal::{Signals, Terminal, is_attended};
use self::walk::{HELP, Stage, Step, offered, step};
use super::decisions::{carry_out, chain_failure, ending, project_failure, propose_failure, refusal};
use super::proposals::facts;
use super::proposals::load::{Again, Shown, load, proposed_again};
use crate::compose::{SystemClock, images};
use crate::exit::Failure;
use crate::home::{Home, uid};
use crate::print::{Consent, Content, Printer};
use crate::word::{Documents, Word, token};

/// What `review` was asked for.
#[derive(Debug)]
pub struct Options {
    /// Whether content is shown without a question.
    pub consent: Consent,
    /// Who decides; none where a single operator is configured.
    pub actor: Option<String>,
}

/// How a suggestion was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// For the next.
    Next,
    /// To be shown again as it stands now.
    Again,
    /// It is still there.
    Stays,
    /// For good.
    Quit,
}

/// One walk.
struct Session<'a> {
    home: &'a Home,
    printer: Printer,
    reader: Reader,
    connector: FilesystemConnector,
    word: Word,
    actor: Option<String>,
    content: Content,
    terminal: Terminal,
    signals: Signals,
    /// Position of the last suggestion that came up in its turn.
    behind: u64,
    /// What came up already.
    met: HashSet<EventId>,
    /// What stands in the document by a repetition of it already: it comes up when nothing else does.
    written: VecDeque<EventId>,
    /// What comes up before its turn.
    first: Option<EventId>,
    /// A text of the person's own that its base moved away under: the next edit of the same change begins with it.
    kept: Option<Sensitive<String>>,
}

/// `review`.
///
/// # Errors
/// [`Failure`]: not at a terminal, or several operators and none named (3); a store that cannot be read.
pub async fn run(home: &Home, store: &Store, printer: Printer, options: Options) -> Result<(), Failure> {
    if printer.is_json() || !is_attended() {
        return Err(Failure::refused(
            "not-a-terminal",
            "review asks a person at a terminal, and there is none",
        )
        .hint("scripts use thought proposal-list, thought proposal-show and thought proposal-decision"));
    }
    editor::sweep(home)?;
    let documents = Documents::hold(home, store)?;
    let connector = documents.connector.clone();
    let word = Word::with(home, store, &images(home)?, documents);
    let reader = store.reader();
    let Some(oldest) = oldest_waiting(&reader, 0).await? else {
        return printer.line("nothing waits for a word");
    };
    let operators = Operators::new(home.config.operator.names.clone());
    if let Err(error) = operators.choose(options.actor.as_deref()) {
        return Err(refusal(error, &oldest));
    }
    printer.line(&waiting(&reader).await?)?;
    let content = printer.content(options.consent, "the text of what waits");
    let mut session = Session {
        home,
        printer,
        reader,
        connector,
        word,
        actor: options.actor,
        content,
        signals: Signals::hear()?,
        terminal: Terminal::open()?,
        behind: 0,
        met: HashSet::new(),
        written: VecDeque::new(),
        first: None,
        kept: None,
    };
    session.walk().await?;
    printer.line(&waiting(&session.reader).await?)
}

async fn waiting(reader: &Reader) -> Result<String, Failure> {
    let count = reader.proposal_counts().await?.of(ProposalState::Undecided);
    Ok(match count {
        0 => "nothing waits for a word any more".to_owned(),
        1 => "1 suggestion waits for a word".to_owned(),
        more => format!("{more} suggestions wait for a word"),
    })
}

async fn oldest_waiting(reader: &Reader, after_position: u64) -> Result<Option<EventId>, Failure> {
    let filter = ProposalFilter {
        states: vec![ProposalState::Undecided],
        kinds: Vec::new(),
        after_position,
        limit: 1,
    };
    Ok(reader.proposals(filter).await?.into_iter().next().map(|row| row.proposal))
}

impl Session<'_> {
    async fn walk(&mut self) -> Result<(), Failure> {
        while let Some(proposal) = self.next().await? {
            let left = loop {
                match self.meet(&proposal).await? {
                    Left::Again => {}
                    left => break left,
                }
            };
            if left == Left::Quit {
                break;
            }
        }
        Ok(())
    }

    /// What comes up next: what was just proposed again, else the oldest that did not come up yet.
    async fn next(&mut self) -> Result<Option<EventId>, Failure> {
        if let Some(first) = self.first.take() {
            self.met.insert(first.clone());
            return Ok(Some(first));
        }
        self.kept = None;
        loop {
            let Some(proposal) = oldest_waiting(&self.reader, self.behind).await? else {
                return Ok(self.written.pop_front());
            };
            let Some(row) = self.reader.proposal(proposal.clone()).await? else { return Ok(None) };
            self.behind = row.position;
            if !self.met.insert(proposal.clone()) {
                continue;
            }
            let again = proposed_again(&self.reader, &proposal).await?;
            if !again.as_ref().is_some_and(Again::is_written) {
                return Ok(Some(proposal));
            }
            self.written.push_back(proposal);
        }
    }

    /// Shows a suggestion as it stands, and takes keys until it is left.
    async fn meet(&mut self, proposal: &EventId) -> Result<Left, Failure> {
        let Some(shown) = self.look(proposal).await? else { return Ok(Left::Next) };
        let (verified, trouble) = match self.word.desk.verified(proposal).await {
            Ok(verified) => (Some(verified), None),
            Err(error @ ChainError::Store(_)) => return Err(chain_failure(error)),
            Err(error) => (None, Some(chain_failure(error))),
        };
        let mut sight = Sight::of(shown, verified.as_ref(), self.terminal.window());
        // What was typed before cannot have been meant for this.
        self.terminal.forget_typed();
        self.printer.line("")?;
        self.lines(&facts(self.printer, &sight.shown, &SystemClock))?;
        if let Some(failure) = &trouble {
            self.printer.failure(failure);
        }
        self.page(&sight)?;
        loop {
            let situation = sight.situation(self.content);
            self.printer.line(offered(situation))?;
            let key = self.terminal.key(&mut self.signals).await?;
            let left = self.take(&mut sight, verified.as_ref(), step(situation, key)).await?;
            if left != Left::Stays {
                return Ok(left);
            }
        }
    }

    async fn take(
        &mut self,
        sight: &mut Sight,
        verified: Option<&Verified>,
        step: Step,
    ) -> Result<Left, Failure> {
        match step {
            Step::Quit => return Ok(Left::Quit),
            Step::Skip => return Ok(Left::Next),
            Step::Decide(disposition) => return self.decide(sight, disposition).await,
            Step::Propose => return self.propose(sight).await,
            Step::Edit => return self.edit(sight, verified).await,
            Step::Hint(hint) => self.hint(hint)?,
            Step::Help => self.lines(&HELP)?,
            Step::Turn(turn) if sight.turn(turn) => self.page(sight)?,
            Step::Turn(_) => self.hint("there is nothing more in that direction")?,
            Step::Consent => {
                self.content = Content::Shown;
                self.page(sight)?;
            }
            Step::Whole => {
                sight.toggle_whole();
                self.page(sight)?;
            }
            Step::Back => {
                sight.put_back();
                self.hint("nothing is decided, and your text is dropped")?;
                self.page(sight)?;
            }
        }
        Ok(Left::Stays)
    }

    /// The suggestion as it stands now; none, and a line that says so, when it was decided meanwhile.
    async fn look(&self, proposal: &EventId) -> Result<Option<Shown>, Failure> {
        if let Err(error) = self.connector.refresh().await {
            // A word looks again by itself, and then says what is wrong.
            tracing::debug!(%error, "documents not looked at");
        }
        let row = self.reader.proposal(proposal.clone()).await?;
        let row = row.ok_or_else(|| Failure::not_found("proposal", proposal.as_str()))?;
        if row.state != ProposalState::Undecided {
            let state = row.state.as_str();
            self.hint(&format!(
                "{proposal} was decided meanwhile, and is {state}; thought proposal-show tells how"
            ))?;
            return Ok(None);
        }
        Ok(Some(load(&self.reader, row).await?))
    }

    async fn decide(&mut self, sight: &mut Sight, disposition: Disposition) -> Result<Left, Failure> {
        let proposal = sight.shown.row.proposal.clone();
        let Some(now) = self.look(&proposal).await? else { return Ok(Left::Next) };
        let is_as_shown = now.against == sight.shown.against && now.row.base == sight.shown.row.base;
        if disposition != Disposition::Reject && !is_as_shown {
            self.hint("what it would change has changed since it was shown; here it is as it stands")?;
            self.keep(sight)?;
            return Ok(Left::Again);
        }
        let own = sight.edited_text().map(|text| text.expose().as_bytes().to_vec());
        let submission = Submission {
            disposition,
            replacement: own.filter(|_| disposition == Disposition::Edit).map(Sensitive::new),
            submission_id: token()?,
            actor: self.actor.clone(),
            expect_sha256: Some(sight.shown.review.text_sha256.clone()),
            expect_base: sight.shown.row.base_version.clone(),
            surface: Surface::Cli,
            uid: uid(),
        };
        let (recorded, outcome) = match carry_out(&self.word, &proposal, &submission).await {
            Ok(done) => done,
            Err(failure) => {
                self.printer.failure(&failure);
                // A text of one's own is not taken away for a refusal.
                return Ok(if sight.stage() == Stage::Edited { Left::Stays } else { Left::Again });
            }
        };
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                self.printer.line(&format!("decided: {}; nothing followed yet", recorded.disposition))?;
                self.printer.failure(&project_failure(error));
                return Ok(Left::Next);
            }
        };
        let reason = outcome.status.reason().map_or(String::new(), |reason| format!(" ({reason})"));
        let status = outcome.status.as_str();
        self.printer.line(&format!("decided: {}, {status}{reason}", outcome.disposition))?;
        if let Some(failure) = ending(&outcome) {
            self.printer.failure(&failure);
        }
        if outcome.status == Status::MaterializationFailed(Reason::StaleBase) {
            self.keep(sight)?;
            sight.came_too_late();
            return Ok(Left::Stays);
        }
        Ok(Left::Next)
    }

    /// Proposes the same on the current document; the new proposal comes up next.
    async fn propose(&mut self, sight: &Sight) -> Result<Left, Failure> {
        let origin = &sight.shown.row.proposal;
        let proposed = match self.word.operator_desk.repropose(origin, self.actor.as_deref()).await {
            Ok(proposed) => proposed.proposal,
            Err(error) => {
                self.printer.failure(&propose_failure(error, origin));
                return Ok(if sight.stage() == Stage::TooLate { Left::Stays } else { Left::Again });
            }
        };
        let row = self.reader.proposal(proposed.clone()).await?;
        match row.map(|row| row.state) {
            Some(ProposalState::Undecided) | None => {
                self.printer.line(&format!("proposed again as {proposed}"))?;
                self.first = Some(proposed);
                Ok(Left::Next)
            }
            Some(state) => {
                let state = state.as_str();
                self.hint(&format!(
                    "it was proposed again on this document before, as {proposed}, which is {state}"
                ))?;
                Ok(Left::Stays)
            }
        }
    }

    async fn edit(&mut self, sight: &mut Sight, verified: Option<&Verified>) -> Result<Left, Failure> {
        let Some(bytes_max) = verified.map(thought_authority::chain::replacement_bytes_max) else {
            return Ok(Left::Stays);
        };
        let proposed = sight.shown.review.text.clone();
        let text = sight.edited_text().cloned().or_else(|| self.kept.clone()).unwrap_or(proposed.clone());
        self.terminal.give_back()?;
        let edited = editor::edit(self.home, &mut self.signals, text.expose(), bytes_max).await;
        self.terminal.take_keys()?;
        self.terminal.forget_typed();
        match edited {
            // What was kept differs from what is proposed as it is.
            Ok(Edited::Unchanged) if text != proposed => self.put(sight, text)?,
            Ok(Edited::Ended) => return Ok(Left::Quit),
            Ok(Edited::Unchanged) => self.hint("the text is unchanged, and nothing is decided")?,
            Ok(Edited::Nothing(why)) => self.hint(&format!("{why}; nothing is decided"))?,
            Err(failure) => self.printer.failure(&failure),
            Ok(Edited::Text(text)) if text == proposed => {
                sight.put_back();
                self.hint("the text is the proposed one again, and nothing is decided; a accepts it")?;
            }
            Ok(Edited::Text(text)) => self.put(sight, text)?,
        }
        Ok(Left::Stays)
    }

    /// Shows the person's own text in the place of the proposed one.
    fn put(&mut self, sight: &mut Sight, text: Sensitive<String>) -> Result<(), Failure> {
        self.kept = None;
        sight.put(text);
        self.lines(&sight.facts_of_edited())?;
        self.page(sight)
    }

    /// Keeps the person's own text for the next edit.
    fn keep(&mut self, sight: &Sight) -> Result<(), Failure> {
        let Some(own) = sight.edited_text() else { return Ok(()) };
        self.kept = Some(own.clone());
        self.hint("your text is kept: e begins with it once this is proposed again")
    }

    /// The page that is shown, with the place; nothing without consent.
    fn page(&self, sight: &Sight) -> Result<(), Failure> {
        if self.content == Content::Dark {
            return Ok(());
        }
        let pages = sight.pages();
        for row in pages.shown() {
            self.printer.line(&self.printer.tint(row.tint, &row.text))?;
        }
        self.printer.line(&self.printer.dim(&pages.place()))
    }

    fn lines<T: AsRef<str>>(&self, lines: &[T]) -> Result<(), Failure> {
        lines.iter().try_for_each(|line| self.printer.line(line.as_ref()))
    }

    fn hint(&self, hint: &str) -> Result<(), Failure> {
        self.printer.line(&format!("hint: {hint}"))
    }
}
