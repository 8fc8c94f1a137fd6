//! `declaration-check`, `declaration-activate`, `declaration-list`, and the reading of declaration files for `serve`.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use thought_authority::root::ContextRoot;
use thought_protocol::Sha256Hex;
use thought_protocol::limits::{DECLARATION_BYTES_MAX, PROMPT_BYTES_MAX};
use thought_runtime::changeover::{self, RoleState};
use thought_runtime::declarations::{self, Installed, Package, Standing};
use thought_runtime::port::TokioSleeper;
use thought_store::handle::Reader;
use thought_store::row::Activity;
use thought_store::{BoxFuture, Store};

use crate::compose::{SystemClock, worker_sha256};
use crate::crash::EnvironmentPoints;
use crate::exit::{Exit, Failure, chain};
use crate::home::{Home, read_regular};
use crate::jail::{self, Jailer};
use crate::lock::{self, RoleLock, Taken};
use crate::print::Printer;

/// The failure that tells of a refused declaration, with its file.
pub fn refusal(error: &declarations::Error, file: &Path) -> Failure {
    use declarations::Error as E;
    let shown = file.display();
    match error {
        E::Declaration(problem) => {
            let line = problem.line.map_or(String::new(), |line| format!(":{line}"));
            let message = format!("{shown}{line}: {problem}");
            let failure = Failure::refused("declaration", message);
            match &problem.hint {
                Some(hint) => failure.hint(hint.clone()),
                None => failure,
            }
        }
        E::FingerprintChanged { version, .. } => {
            let hint = format!("set version: {} in {shown}, then activate it", version + 1);
            Failure::refused("fingerprint-changed", chain(error)).hint(hint)
        }
        E::VersionNotHigher { .. } => Failure::refused("version-not-higher", chain(error)),
        E::Raced { .. } => Failure::new(Exit::Conflict, "changed-meanwhile", chain(error)),
        E::Prompt { .. } => Failure::refused("prompt", chain(error)),
        E::NotInstalled { .. } => Failure::new(Exit::NotFound, "not-installed", chain(error)),
        E::Store(_) | E::Manifest(_) | E::Draft(_) => Failure::internal(error),
    }
}

/// Reads a declaration file anywhere, and its prompt below the home.
///
/// # Errors
/// [`Failure`] naming the file, the line and what to do.
pub fn read(home: &Home, file: &Path) -> Result<Package, Failure> {
    let bytes = read_regular(file, DECLARATION_BYTES_MAX).map_err(|problem| problem.failure(file))?;
    let text = String::from_utf8(bytes)
        .map_err(|_error| Failure::refused("not-utf8", format!("{} is not UTF-8", file.display())))?;
    let checked = declarations::check(&text).map_err(|error| refusal(&error, file))?;
    let prompt_path = PathBuf::from(checked.declaration().prompt());
    let prompt = home.read_text(&prompt_path, PROMPT_BYTES_MAX)?;
    checked.with_prompt(prompt.into_bytes()).map_err(|error| refusal(&error, &prompt_path))
}

/// Every declaration file of the home, by name.
///
/// # Errors
/// [`Failure`]: a link, or a folder that others can enter (3), one that is not there (5) or cannot be read (8).
pub fn files(home: &Home) -> Result<Vec<PathBuf>, Failure> {
    let folder = home.below("agents");
    crate::home::check_folder(&folder)?;
    let entries = std::fs::read_dir(&folder).map_err(|error| {
        Failure::new(Exit::Machine, "cannot-read", format!("read {}: {}", folder.display(), error.kind()))
    })?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    Ok(files)
}

/// `declaration-check`.
///
/// # Errors
/// [`Failure`]: refused (3).
pub fn check(home: &Home, printer: Printer, file: &Path) -> Result<(), Failure> {
    let package = read(home, file)?;
    let declaration = package.declaration();
    let value = json!({
        "declaration": declaration.id(), "version": declaration.version(),
        "fingerprint": package.fingerprint(), "valid": true,
    });
    printer.either(&value, || {
        vec![
            format!("{} v{} is valid", declaration.id(), declaration.version()),
            format!("fingerprint {}", package.fingerprint()),
        ]
    })
}

/// `declaration-activate`, whoever is at work on the home.
///
/// # Errors
/// [`Failure`]: refused (3), another change is under way or a role does not answer (4), not ready (8); then the version
/// before is at work.
pub async fn activate(home: &Home, store: &Store, printer: Printer, file: &Path) -> Result<(), Failure> {
    let package = read(home, file)?;
    let _alone = hold_activation(home).await?;
    let roles = HomeRoles { home, held: Mutex::new(Vec::new()) };
    let readiness = HomeReadiness { home };
    let points = EnvironmentPoints::of_this_process();
    let parts = changeover::Parts {
        reader: store.reader(),
        activator: store.activator(),
        roles: &roles,
        readiness: &readiness,
        clock: &SystemClock,
        sleeper: &TokioSleeper,
        crash: &points,
        token: crate::word::token()?,
    };
    let told = |step: &str| printer.remark(step);
    let installed =
        changeover::change(&parts, &package, &told).await.map_err(|error| change_refusal(&error, file))?;
    let declaration = package.declaration();
    let (id, version) = (declaration.id(), declaration.version());
    let mut value = json!({"declaration": id, "version": version, "fingerprint": package.fingerprint()});
    let line = match &installed {
        Installed::Now { event, replaced } => {
            value["event"] = json!(event);
            value["replaced"] = json!(replaced);
            value["status"] = json!("activated");
            let before = replaced.map_or(String::new(), |version| format!(" in place of v{version}"));
            format!("activated {id} v{version}{before}, {event}")
        }
        Installed::Already => {
            value["status"] = json!("already-active");
            format!("{id} v{version} is active already; nothing was changed")
        }
    };
    printer.either(&value, || vec![line])
}

/// How long an activation waits for another process that only looks whether one is under way.
const ACTIVATION_TRIES: u32 = 20;
/// Between two tries.
const ACTIVATION_PAUSE: Duration = Duration::from_millis(50);

/// One change at a time, and the roles see that it is alive by this lock.
async fn hold_activation(home: &Home) -> Result<RoleLock, Failure> {
    for _ in 0..ACTIVATION_TRIES {
        if let Taken::Ours(lock) = lock::take(home, lock::ACTIVATE)? {
            return Ok(lock);
        }
        tokio::time::sleep(ACTIVATION_PAUSE).await;
    }
    let message = "another declaration-activate is at work on this home";
    Err(Failure::new(Exit::Conflict, "role-held", message).hint("wait until it has ended, then try again"))
}

/// The failure that tells of a change that did not come about.
fn change_refusal(error: &changeover::Error, file: &Path) -> Failure {
    use changeover::Error as E;
    match error {
        E::Declaration(error) => refusal(error, file),
        E::NoAnswer { .. } => Failure::new(Exit::Conflict, "no-answer", chain(error))
            .hint("the version before goes on; thought status tells which runs are on, and held ones are not waited for"),
        E::NotReady { .. } => Failure::new(Exit::Machine, "not-ready", chain(error))
            .hint("the version before goes on; thought doctor names what is missing"),
        E::Role { .. } => Failure::new(Exit::Machine, "cannot-lock", chain(error)),
        E::Store(_) => Failure::internal(error),
    }
}

/// The roles of a home, by their locks.
struct HomeRoles<'a> {
    home: &'a Home,
    held: Mutex<Vec<(String, RoleLock)>>,
}

impl changeover::Roles for HomeRoles<'_> {
    fn take(&self, role: &str) -> Result<RoleState, &'static str> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.iter().any(|(name, _)| name == role) {
            return Ok(RoleState::Taken);
        }
        match lock::take(self.home, role) {
            Ok(Taken::Ours(lock)) => {
                held.push((role.to_owned(), lock));
                Ok(RoleState::Taken)
            }
            Ok(Taken::Held) => Ok(RoleState::AtWork),
            Err(failure) => Err(failure.code),
        }
    }

    fn consumer(&self, declaration: &str) -> String {
        lock::consumer(declaration)
    }
}

/// What must hold on this machine before a version takes over.
struct HomeReadiness<'a> {
    home: &'a Home,
}

impl changeover::Readiness for HomeReadiness<'_> {
    fn prove(&self) -> BoxFuture<'_, Result<Sha256Hex, &'static str>> {
        Box::pin(async {
            let prove = || {
                ContextRoot::open(&self.home.path, &self.home.config.context.root)
                    .map_err(|error| Failure::refused(error.reason(), chain(&error)))?;
                let worker = worker_sha256(self.home)?;
                Jailer::start(jail::launcher(jail::tier(self.home.config.sandbox.mode))?)?.warm_up()?;
                Ok::<_, Failure>(worker)
            };
            prove().map_err(|failure| failure.code)
        })
    }
}

/// `declaration-list`.
///
/// # Errors
/// [`Failure`] when the store cannot be read.
pub async fn list(home: &Home, reader: &Reader, printer: Printer) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for row in reader.declarations().await? {
        let state = match row.activity {
            Activity::Active => "active",
            Activity::Superseded => "superseded",
        };
        if printer.is_json() {
            printer.object(&json!({
                "id": row.id, "version": row.version, "state": state, "fingerprint": row.fingerprint,
                "activatedAt": row.activated_at,
            }))?;
        }
        let short_print = row.fingerprint.as_str()[..19].to_owned();
        rows.push(vec![
            row.id,
            row.version.to_string(),
            state.to_owned(),
            short_print,
            row.activated_at.to_string(),
        ]);
    }
    if !printer.is_json() {
        printer.table(&["declaration", "version", "state", "fingerprint", "activated"], &rows)?;
        for remark in differences(home, reader).await? {
            printer.remark(&remark);
        }
    }
    Ok(())
}

/// What in the home's files differs from what is active, each with the command to run.
///
/// # Errors
/// [`Failure`] when the store or the folder cannot be read.
pub async fn differences(home: &Home, reader: &Reader) -> Result<Vec<String>, Failure> {
    let mut remarks = Vec::new();
    for file in files(home)? {
        let package = match read(home, &file) {
            Ok(package) => package,
            Err(failure) => {
                remarks.push(failure.message);
                continue;
            }
        };
        let standing =
            declarations::standing(reader, &package).await.map_err(|error| Failure::internal(&error))?;
        remarks.extend(difference(home, &file, &package, &standing));
    }
    Ok(remarks)
}

/// What in one file differs from what is active, with the command to run.
pub fn difference(home: &Home, file: &Path, package: &Package, standing: &Standing) -> Option<String> {
    let name = file.strip_prefix(&home.path).unwrap_or(file).display();
    let version = package.declaration().version();
    match standing {
        Standing::Active | Standing::NotInstalled => None,
        Standing::Newer { active } => Some(format!(
            "{name} holds v{version}, v{active} is active: thought declaration-activate {}",
            file.display()
        )),
        Standing::Changed { active } => Some(format!(
            "{name} or its prompt differs from the active v{active}: set version: {}, then thought \
             declaration-activate {}",
            active + 1,
            file.display()
        )),
        Standing::Older { active } => {
            Some(format!("{name} holds v{version}, v{active} is active: versions only rise"))
        }
    }
}
