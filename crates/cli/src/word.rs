//! The composition of the human word: the rooms' parts that decide, project, propose again and correct, cut for one home.
//!
//! Commands and `serve` take them from here, so that there is one place where a person's names, the context root, the
//! lock's evidence and the handles of a store come together. It holds no rule.

use std::sync::Arc;

use thought_authority::correct::Corrections;
use thought_authority::decide::{Desk, Operators};
use thought_authority::filesystem::{FilesystemConnector, ScanError};
use thought_authority::lock::{LockError, OwnEvidence};
use thought_authority::materialize::{MaterializerParts, MemoryMaterializer, PROJECTION_LOCK_WAIT};
use thought_authority::operator::OperatorDesk;
use thought_authority::project::Projector;
use thought_authority::root::{ContextRoot, RootError};
use thought_authority::walk::WalkError;
use thought_store::{Images, Store};

use crate::compose::SystemClock;
use crate::crash::EnvironmentPoints;
use crate::exit::{Exit, Failure, chain};
use crate::home::Home;

/// The context root of a home as this process holds it.
#[derive(Debug, Clone)]
pub struct Documents {
    /// Scans it.
    pub connector: FilesystemConnector,
    /// What this process writes into the root's lock.
    pub evidence: OwnEvidence,
}

impl Documents {
    /// Holds the context root of a home.
    ///
    /// # Errors
    /// [`Failure`]: a root that is a link or no folder (3).
    pub fn open(home: &Home, store: &Store) -> Result<Self, Failure> {
        Self::of(home, store, ContextRoot::open(&home.path, &home.config.context.root))
    }

    /// The same where a root that is broken is no reason to stop: what it does to a decision is recorded.
    ///
    /// # Errors
    /// [`Failure`]: a home that cannot be held (3).
    pub fn hold(home: &Home, store: &Store) -> Result<Self, Failure> {
        Self::of(home, store, ContextRoot::beneath(&home.path, &home.config.context.root))
    }

    fn of(home: &Home, store: &Store, root: Result<ContextRoot, RootError>) -> Result<Self, Failure> {
        let config = &home.config.context;
        let root = root.map_err(|error| Failure::refused(error.reason(), chain(&error)))?;
        let evidence = OwnEvidence::of_this_process(token()?).map_err(|error| Failure::internal(&error))?;
        let handles = (store.filesystem(), store.reader());
        let connector = FilesystemConnector::new(
            Arc::new(root),
            evidence.clone(),
            config.max_file_bytes,
            handles,
            Arc::new(SystemClock),
        );
        Ok(Self { connector, evidence })
    }
}

/// Everything that a person's word sets in motion on one home.
#[derive(Debug)]
pub struct Word {
    /// Appends decisions.
    pub desk: Desk,
    /// Makes of a decision what follows from it.
    pub projector: Projector,
    /// Proposes again, and back.
    pub operator_desk: OperatorDesk,
    /// Makes judgments of `/correct`.
    pub corrections: Corrections,
}

impl Word {
    /// Cuts the parts from a store.
    ///
    /// # Errors
    /// As [`Documents::hold`].
    pub fn open(home: &Home, store: &Store, images: &Arc<dyn Images>) -> Result<Self, Failure> {
        Ok(Self::with(home, store, images, Documents::hold(home, store)?))
    }

    /// The same over documents that this process holds already.
    pub fn with(home: &Home, store: &Store, images: &Arc<dyn Images>, documents: Documents) -> Self {
        let Documents { connector, evidence } = documents;
        let operators = Operators::new(home.config.operator.names.clone());
        let clock = Arc::new(SystemClock);
        let desk = Desk::new(
            (store.reader(), store.decisions()),
            images.clone(),
            connector.clone(),
            operators.clone(),
            clock.clone(),
        );
        let operator_desk = OperatorDesk::new(
            (store.reader(), store.operator_proposals()),
            images.clone(),
            connector.clone(),
            operators,
            clock.clone(),
        );
        let materializer = MemoryMaterializer::new(MaterializerParts {
            reader: store.reader(),
            store: store.materializer(),
            images: images.clone(),
            connector,
            evidence,
            bytes_max: home.config.context.max_file_bytes,
            lock_wait: PROJECTION_LOCK_WAIT,
            clock: clock.clone(),
            points: Arc::new(EnvironmentPoints::of_this_process()),
        });
        let judgments = (store.reader(), store.judgments());
        let projector = Projector::new(judgments, materializer, images.clone(), clock.clone());
        let corrections = Corrections::new((store.reader(), store.judgments()), clock);
        Self { desk, projector, operator_desk, corrections }
    }
}

/// What to do about a lock file that only a person may clear.
pub const LOCK_HINT: &str = "look who wrote .thought.lock in the context root; thought doctor --clear-lock empties it, and \
                             says so where it has to be removed by hand instead";

/// 32 hex digits that nobody else has.
///
/// # Errors
/// [`Failure`] (8) when the system gives no random bytes.
pub fn token() -> Result<String, Failure> {
    let mut bytes = [0_u8; 16];
    let filled = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    match filled {
        Ok(16) => Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        Ok(_) | Err(_) => {
            Err(Failure::new(Exit::Machine, "no-randomness", "ask the system for random bytes"))
        }
    }
}

/// What to do about a context root that cannot be listed.
pub const fn walk_hint(error: &WalkError) -> &'static str {
    match error {
        WalkError::TooManyDocuments | WalkError::TooManyEntries => {
            "move what is no document of the context out of the context root"
        }
        WalkError::Io(_) => "see that the folders of the context root can be read",
    }
}

/// A scan that did not come about, as a command says it.
pub fn scan_failure(error: &ScanError) -> Failure {
    let message = chain(error);
    match error {
        ScanError::Lock(LockError::Held) => Failure::new(Exit::Conflict, "lock-held", message)
            .hint("another process writes the context; try again in a moment"),
        ScanError::Lock(LockError::RootMoved) => Failure::new(Exit::Conflict, "root-moved", message),
        ScanError::Lock(LockError::CannotWrite(_)) => Failure::new(Exit::Machine, "cannot-write", message)
            .hint("see that the disk that holds the home can be written and has some space left"),
        ScanError::Lock(LockError::Invalid { .. }) => {
            Failure::refused("lock-invalid", message).hint(LOCK_HINT)
        }
        ScanError::Root(root) => Failure::refused(root.reason(), message),
        ScanError::Walk(error) => Failure::refused("unwalkable", message).hint(walk_hint(error)),
        _ => Failure::internal(error),
    }
}
