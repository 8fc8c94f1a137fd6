//! `private-training-export`, `training-export` and `judgment-release`: judgments become a file, and a person lets one
//! leave the house. Examples go into that file alone; counts, names and hashes are what is printed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use thought_authority::decide::{DecideError, Operators};
use thought_authority::export::{
    self, DestinationError, ExportError, FileError, ReleaseError, Report, Request, Scope, Watcher,
};
use thought_protocol::EventId;
use thought_runtime::port::CrashPoints;
use thought_store::{Images, Store};

use super::resolve::resolve;
use crate::compose::SystemClock;
use crate::crash::EnvironmentPoints;
use crate::exit::{Exit, Failure, chain};
use crate::home::Home;
use crate::print::{self, Printer};

/// Judgments from which on an export tells how far it is.
const LONG: u64 = 500;
/// Cells of the bar.
const CELLS: u64 = 30;

/// What a person said yes to on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledged {
    /// It stands there.
    Yes,
    /// It does not, and nobody is asked.
    No,
}

impl Acknowledged {
    /// Whether the option was given.
    pub const fn of(given: bool) -> Self {
        if given { Self::Yes } else { Self::No }
    }

    fn or_refuse(self, option: &str, what: &str) -> Result<(), Failure> {
        match self {
            Self::Yes => Ok(()),
            Self::No => {
                Err(Failure::refused("not-acknowledged", format!("{what}, and that was not acknowledged"))
                    .hint(format!("say {option}")))
            }
        }
    }
}

/// `private-training-export`.
///
/// # Errors
/// [`Failure`]: not acknowledged, a destination that is refused (3), another export at work there (4), no space (3, 8).
pub async fn private(
    parts: (&Home, &Store, &dyn Images),
    printer: Printer,
    output: &Path,
    acknowledged: Acknowledged,
) -> Result<(), Failure> {
    let what = "the file will hold private words, documents and conversations";
    acknowledged.or_refuse("--acknowledge-sensitive-private-training", what)?;
    write(parts, printer, (Scope::Private, output)).await
}

/// `training-export`.
///
/// # Errors
/// As [`private`]; nothing is acknowledged, since each judgment in it was released.
pub async fn external(
    parts: (&Home, &Store, &dyn Images),
    printer: Printer,
    output: &Path,
) -> Result<(), Failure> {
    write(parts, printer, (Scope::External, output)).await
}

async fn write(
    (home, store, images): (&Home, &Store, &dyn Images),
    printer: Printer,
    (scope, output): (Scope, &Path),
) -> Result<(), Failure> {
    outside(home, output)?;
    let request = Request { scope, output, tool_version: env!("CARGO_PKG_VERSION") };
    let meter = Meter::new(printer);
    let outcome = export::export((&store.reader(), images), request, &meter).await;
    meter.end();
    let report = outcome.map_err(|error| failure(&error))?;
    for name in &report.swept {
        printer.remark(&format!("removed {name}, which an export that was killed had left"));
    }
    printer.either(&report_json(&report, output), || report_lines(printer, &report, output))
}

/// An export lies outside the home: in there it would be taken for a document, a declaration or a blob, and be carried into
/// every backup. A folder that cannot be looked at is refused by the export itself.
fn outside(home: &Home, output: &Path) -> Result<(), Failure> {
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match std::fs::canonicalize(folder) {
        Ok(folder) if folder.starts_with(&home.path) => {
            let message = format!("{} lies inside the home", output.display());
            Err(Failure::refused("inside-home", message)
                .hint("choose a folder outside: what lies in the home is served, and goes into its backups"))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

fn manifest_path(output: &Path) -> PathBuf {
    let mut path = output.as_os_str().to_owned();
    path.push(".manifest.json");
    path.into()
}

fn report_json(report: &Report, output: &Path) -> Value {
    let manifest = &report.manifest;
    json!({
        "output": output.to_string_lossy(), "manifest": manifest_path(output).to_string_lossy(),
        "sha256": manifest.output.sha256, "bytes": manifest.output.bytes,
        "included": manifest.included, "excluded": manifest.excluded, "swept": report.swept,
    })
}

fn report_lines(printer: Printer, report: &Report, output: &Path) -> Vec<String> {
    let manifest = &report.manifest;
    let mut lines = vec![
        format!("output    {}", printer.bold(&print::path(output))),
        format!("manifest  {}", print::path(&manifest_path(output))),
        format!("sha256    {}, {} bytes", manifest.output.sha256, manifest.output.bytes),
        format!("included  {}", manifest.included),
    ];
    let left_out = manifest.excluded.iter();
    lines.extend(left_out.map(|(reason, count)| format!("excluded  {count} {reason}")));
    lines
}

/// How far an export is: a bar in a terminal, lines elsewhere, nothing for a program.
struct Meter {
    printer: Printer,
    points: EnvironmentPoints,
    /// The last step that was told, in the units of its form.
    told: AtomicU64,
    is_bar: bool,
}

impl Meter {
    fn new(printer: Printer) -> Self {
        let points = EnvironmentPoints::of_this_process();
        Self { printer, points, told: AtomicU64::new(0), is_bar: printer.is_drawn_on() }
    }

    /// Leaves the line of the bar.
    fn end(&self) {
        if self.is_bar && self.told.load(Ordering::Relaxed) > 0 {
            self.printer.draw("");
        }
    }
}

impl Watcher for Meter {
    fn reach(&self, name: &'static str) {
        CrashPoints::reach(&self.points, name);
    }

    fn progress(&self, done: u64, of: u64) {
        if of < LONG {
            return;
        }
        let steps = if self.is_bar { 100 } else { 10 };
        let step = done.saturating_mul(steps) / of.max(1);
        if self.told.swap(step, Ordering::Relaxed) == step {
            return;
        }
        let counts = format!("{done} of {of} judgments");
        if self.is_bar {
            self.printer.draw(&format!("{} {counts}", bar(done, of)));
        } else {
            self.printer.remark(&counts);
        }
    }
}

fn bar(done: u64, of: u64) -> String {
    let full = (done.saturating_mul(CELLS) / of.max(1)).min(CELLS);
    (0..CELLS).map(|cell| if cell < full { '#' } else { '.' }).collect()
}

fn failure(error: &ExportError) -> Failure {
    let message = chain(error);
    match error {
        ExportError::Destination(refused) => {
            let failure = Failure::refused(refused.code(), message);
            match hint(*refused) {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        }
        ExportError::File(FileError::Busy) => Failure::new(Exit::Conflict, "export-running", message)
            .hint("wait until the other export has ended, or choose another name"),
        ExportError::File(FileError::Odd { .. }) => Failure::refused("destination-odd", message)
            .hint("look at it and move it away, or choose another name"),
        ExportError::File(FileError::Taken) => Failure::refused("destination-exists", message)
            .hint("choose a name that is free; nothing is overwritten"),
        ExportError::File(FileError::NoSpace) => Failure::new(Exit::Machine, "no-space", message)
            .hint("nothing was left there; free some space and export again"),
        ExportError::File(FileError::Io(_)) => Failure::new(Exit::Machine, "cannot-write", message),
        ExportError::Store(_) => Failure::new(Exit::Internal, "store", message),
        ExportError::Write(_) | ExportError::Canonical(_) => Failure::internal(error),
    }
}

const fn hint(refused: DestinationError) -> Option<&'static str> {
    use DestinationError as E;
    match refused {
        E::NoName | E::NameKept => Some("name a file"),
        E::NameLong => Some("choose a shorter name"),
        E::Absent | E::NotFolder | E::NotOwned => {
            Some("make a folder of your own for it: mkdir -m 700 FOLDER")
        }
        E::Link => Some("write the path without links, and put the file into a real folder"),
        E::Open => Some("chmod 700 the folder, or make another: mkdir -m 700 FOLDER"),
        E::GitWorkTree => Some("choose a folder outside: what lies in a work tree is soon committed"),
        E::OutputExists | E::ManifestExists => Some("choose a name that is free; nothing is overwritten"),
        E::Space { .. } => Some("free some space, or choose a folder on another disk"),
        E::Io(_) => None,
    }
}

/// `judgment-release`.
///
/// # Errors
/// [`Failure`]: no such judgment (5); not acknowledged, not a person's own correction, superseded, or not one that an
/// export would have (3).
pub async fn release(
    (home, store, images): (&Home, &Store, &dyn Images),
    printer: Printer,
    (id, actor): (&str, Option<&str>),
    acknowledged: Acknowledged,
) -> Result<(), Failure> {
    let what = "a released correction may leave the house, with the whole context of its answer: prompt, documents and \
                earlier turns";
    acknowledged.or_refuse("--acknowledge-external", what)?;
    let operators = Operators::new(home.config.operator.names.clone());
    let operator = operators.choose(actor).map_err(|error| actor_failure(&error))?;
    let id: EventId = resolve(&store.reader(), id, "evt", "judgment").await?;
    let handles = (&store.reader(), &store.judgments());
    let released =
        export::release(handles, images, &SystemClock, (&id, operator)).await.map_err(release_failure)?;
    let value = json!({"judgment": released.judgment, "supersedes": released.supersedes});
    printer.either(&value, || {
        vec![
            format!("judgment    {}", printer.bold(released.judgment.as_str())),
            format!("supersedes  {}", released.supersedes),
        ]
    })
}

fn actor_failure(error: &DecideError) -> Failure {
    let failure = Failure::refused("actor", chain(error));
    failure.hint("--actor names one of [operator] names in thought.toml")
}

fn release_failure(error: ReleaseError) -> Failure {
    let message = chain(&error);
    match error {
        ReleaseError::NotFound { id } => Failure::not_found("judgment", id.as_str()),
        ReleaseError::NotAJudgment { .. } => Failure::refused("not-a-judgment", message),
        ReleaseError::NotOwnCorrection { .. } => Failure::refused("not-own-correction", message)
            .hint("what a model suggested stays here, also when a person let it through"),
        ReleaseError::Superseded { .. } => {
            Failure::refused("superseded", message).hint("thought judgment-list names the one that stands")
        }
        ReleaseError::SelfCorrectionInContext { .. } => {
            Failure::refused("self-correction-in-context", message).hint(
                "the model was shown what it suggested and you let through, and that stays here: nothing that was \
                 answered on such a context can be released",
            )
        }
        ReleaseError::Provenance { .. } => Failure::refused("provenance", message),
        ReleaseError::Store(error) => error.into(),
        ReleaseError::Draft(_) => Failure::internal(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills_from_nothing_to_all() {
        assert_eq!(bar(0, 10), ".".repeat(30));
        assert_eq!(bar(5, 10), format!("{}{}", "#".repeat(15), ".".repeat(15)));
        assert_eq!(bar(10, 10), "#".repeat(30));
        assert_eq!(bar(0, 0), ".".repeat(30));
    }

    #[test]
    fn without_the_acknowledgment_the_option_is_named() {
        assert!(Acknowledged::of(true).or_refuse("--x", "it is private").is_ok());
        let refused = Acknowledged::of(false).or_refuse("--x", "it is private").unwrap_err();
        assert_eq!((refused.exit, refused.hint.as_deref()), (Exit::Refused, Some("say --x")));
    }
}
