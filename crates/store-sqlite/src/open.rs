//! Opening: what may be opened, how each connection is set up, and who may migrate.
//!
//! A file is created only when told to, for its owner alone. Links, other databases and newer stores are refused. Only
//! an opener who has the file to itself migrates it; everyone else waits for that.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use thought_store::StoreError;

use crate::failure;
use crate::faults::Faults;
use crate::limits::{
    CHECKPOINT_PAGES, LOG_BYTES_KEPT, NEWS_CACHE_KIB, OPEN_RETRY_MS, READER_CACHE_KIB, STATEMENTS_KEPT,
    WRITER_CACHE_KIB,
};
use crate::schema::{self, Found, Migration, SCHEMA_VERSION};

/// What happens when there is no store yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creation {
    /// It is made.
    IfMissing,
    /// That is an error.
    Never,
}

/// Whether pages that are read are counted, which costs two looks at `/proc` a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageCounting {
    /// They are not; `pages_read` stays 0.
    Off,
    /// They are; opening fails where the kernel tells no byte counts.
    On,
}

/// How a store is opened.
#[derive(Clone)]
pub struct OpenOptions {
    /// What happens when there is none.
    pub creation: Creation,
    /// Reader threads; 1 to 4.
    pub readers: usize,
    /// How long another process may hold the store before an operation fails, milliseconds.
    pub busy_timeout_ms: u32,
    /// Whether pages are counted.
    pub page_counting: PageCounting,
    /// Most pages of 4,096 bytes that the database may have: a quota. None is SQLite's own bound.
    pub pages_max: Option<u32>,
    /// Faults on purpose, for tests.
    pub faults: Option<Arc<dyn Faults>>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            creation: Creation::Never,
            readers: 2,
            busy_timeout_ms: 10_000,
            page_counting: PageCounting::Off,
            pages_max: None,
            faults: None,
        }
    }
}

impl OpenOptions {
    /// The defaults, and a store is made where there is none.
    pub fn create() -> Self {
        Self { creation: Creation::IfMissing, ..Self::default() }
    }
}

impl std::fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenOptions")
            .field("creation", &self.creation)
            .field("readers", &self.readers)
            .field("busy_timeout_ms", &self.busy_timeout_ms)
            .finish_non_exhaustive()
    }
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Write,
    Read,
    News,
}

/// Makes sure that there is a store of the current schema at this path, and returns the path without links.
pub(crate) fn prepare(path: &Path, options: &OpenOptions) -> Result<PathBuf, StoreError> {
    let path = resolve(path)?;
    ensure_file(&path, options.creation)?;
    let deadline = Instant::now() + Duration::from_millis(u64::from(options.busy_timeout_ms));
    loop {
        if step(&path, deadline)? == Step::Ready {
            return Ok(path);
        }
        if Instant::now() >= deadline {
            return Err(failure::unreachable(
                "another process has it open and keeps it from being opened here",
            ));
        }
        // Two openers that meet do not stay in step.
        let jitter = u64::from(std::process::id() % 7);
        std::thread::sleep(Duration::from_millis(OPEN_RETRY_MS + jitter));
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Ready,
    Again,
}

fn step(path: &Path, deadline: Instant) -> Result<Step, StoreError> {
    let left_ms = deadline.saturating_duration_since(Instant::now()).as_millis().min(250);
    let mut connection = raw(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection
        .busy_timeout(Duration::from_millis(left_ms as u64))
        .map_err(failure::during("set the busy timeout"))?;
    let found = match schema::look(&connection) {
        Ok(found) => found,
        Err(error) if failure::is_busy(&error) => return Ok(Step::Again),
        Err(error) => return Err(failure::of("look at the store", &error)),
    };
    match found {
        Found::Foreign => Err(failure::unreachable("the file is the database of something else")),
        Found::Store(version) if version > SCHEMA_VERSION => {
            Err(StoreError::Newer { found: version, known: SCHEMA_VERSION })
        }
        Found::Store(version) if version == SCHEMA_VERSION => write_ahead(&connection),
        Found::Store(_) | Found::Empty => match schema::migrate(&mut connection)? {
            Migration::Done => write_ahead(&connection),
            Migration::Busy => Ok(Step::Again),
        },
    }
}

fn write_ahead(connection: &Connection) -> Result<Step, StoreError> {
    let mode = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
    match mode {
        Ok(mode) if mode == "wal" => Ok(Step::Ready),
        Ok(_) => Err(failure::unreachable("its file system allows no write-ahead log")),
        Err(error) if failure::is_busy(&error) => Ok(Step::Again),
        Err(error) => Err(failure::of("set the journal mode", &error)),
    }
}

/// The path with every link of its folder resolved; the file itself may not be one.
fn resolve(path: &Path) -> Result<PathBuf, StoreError> {
    let name = path.file_name().ok_or_else(|| failure::unreachable("its path names no file"))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = folder.canonicalize().map_err(|error| unreachable_io("its folder", &error))?;
    Ok(folder.join(name))
}

fn ensure_file(path: &Path, creation: Creation) -> Result<(), StoreError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_symlink() => Err(failure::unreachable("the file is a link")),
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(_) => Err(failure::unreachable("it is no regular file")),
        Err(error) if error.kind() == ErrorKind::NotFound && creation == Creation::IfMissing => create(path),
        Err(error) => Err(unreachable_io("the file", &error)),
    }
}

fn create(path: &Path) -> Result<(), StoreError> {
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_empty) => Ok(()),
        // Another process made it first; then it is looked at like any other.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => ensure_file(path, Creation::Never),
        Err(error) if error.kind() == ErrorKind::StorageFull => Err(StoreError::NoSpace),
        Err(error) => Err(unreachable_io("create the file", &error)),
    }
}

fn unreachable_io(what: &str, error: &std::io::Error) -> StoreError {
    StoreError::Unreachable { what: format!("{what}: {}", error.kind()) }
}

fn raw(path: &Path, access: OpenFlags) -> Result<Connection, StoreError> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    Connection::open_with_flags(path, flags).map_err(failure::during("open the store"))
}

/// Opens a connection to a store that [`prepare`] made ready.
pub(crate) fn connect(
    path: &Path,
    purpose: Purpose,
    options: &OpenOptions,
) -> Result<Connection, StoreError> {
    let access = match purpose {
        Purpose::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
        Purpose::Read | Purpose::News => OpenFlags::SQLITE_OPEN_READ_ONLY,
    };
    let connection = raw(path, access)?;
    let cache_kib = match purpose {
        Purpose::Write => WRITER_CACHE_KIB,
        Purpose::Read => READER_CACHE_KIB,
        Purpose::News => NEWS_CACHE_KIB,
    };
    let set = |name: &str, value: i64| {
        connection
            .pragma_update_and_check(None, name, value, |_| Ok(()))
            .or_else(|error| match error {
                rusqlite::Error::QueryReturnedNoRows => Ok(()),
                other => Err(other),
            })
            .map_err(failure::during("set up a connection"))
    };
    connection
        .busy_timeout(Duration::from_millis(u64::from(options.busy_timeout_ms)))
        .map_err(failure::during("set up a connection"))?;
    // Plans hold for any values. Otherwise the planner looks at what is bound, and a statement that is kept is planned
    // anew at each binding, which takes ten times as long as running it.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(failure::during("set up a connection"))?;
    connection.set_prepared_statement_cache_capacity(match purpose {
        Purpose::News => 1,
        Purpose::Write | Purpose::Read => STATEMENTS_KEPT,
    });
    // A negative cache size counts KiB.
    set("cache_size", -cache_kib)?;
    set("mmap_size", 0)?;
    set("temp_store", 2)?;
    set("trusted_schema", 0)?;
    match purpose {
        Purpose::Read | Purpose::News => set("query_only", 1)?,
        Purpose::Write => {
            // 2 is FULL: a commit that is acknowledged is on the disk.
            set("synchronous", 2)?;
            set("foreign_keys", 1)?;
            set("journal_size_limit", LOG_BYTES_KEPT)?;
            set("wal_autocheckpoint", CHECKPOINT_PAGES)?;
            if let Some(pages) = options.pages_max {
                set("max_page_count", i64::from(pages))?;
            }
        }
    }
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn refused(path: &Path, options: &OpenOptions) -> String {
        prepare(path, options).unwrap_err().to_string()
    }

    #[test]
    fn a_missing_store_is_made_for_its_owner_alone_and_only_when_told_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("thought.db");
        assert!(refused(&path, &OpenOptions::default()).contains("not found"));
        assert!(!path.exists());
        prepare(&path, &OpenOptions::create()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        prepare(&path, &OpenOptions::default()).unwrap();
    }

    #[test]
    fn links_folders_and_other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real.db");
        prepare(&real, &OpenOptions::create()).unwrap();
        let link = folder.path().join("link.db");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert!(refused(&link, &OpenOptions::create()).contains("a link"));
        let dangling = folder.path().join("dangling.db");
        std::os::unix::fs::symlink(folder.path().join("nowhere"), &dangling).unwrap();
        assert!(refused(&dangling, &OpenOptions::create()).contains("a link"));
        assert!(!folder.path().join("nowhere").exists());
        assert!(refused(folder.path(), &OpenOptions::create()).contains("no regular file"));
        let text = folder.path().join("text.db");
        fs::write(&text, "not a database, whatever its name says; long enough to have a header of 100 bytes and more, and so on")
            .unwrap();
        assert!(refused(&text, &OpenOptions::create()).contains("no database"));
        let absent = folder.path().join("absent").join("thought.db");
        assert!(refused(&absent, &OpenOptions::create()).contains("its folder"));
    }

    #[test]
    fn newer_and_foreign_stores_are_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("thought.db");
        prepare(&path, &OpenOptions::create()).unwrap();
        let raw = Connection::open(&path).unwrap();
        raw.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
        drop(raw);
        let before = fs::read(&path).unwrap();
        match prepare(&path, &OpenOptions::create()) {
            Err(StoreError::Newer { found, known }) => {
                assert_eq!((found, known), (SCHEMA_VERSION + 1, SCHEMA_VERSION));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(fs::read(&path).unwrap(), before);

        let foreign = folder.path().join("foreign.db");
        Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
        assert!(refused(&foreign, &OpenOptions::create()).contains("something else"));
    }

    #[test]
    fn a_store_of_an_older_schema_is_migrated_only_by_an_opener_who_is_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("thought.db");
        prepare(&path, &OpenOptions::create()).unwrap();
        let old = Connection::open(&path).unwrap();
        // A store of version 0 with our mark: every step is due, and the tables of the first are there already.
        old.pragma_update(None, "user_version", 0).unwrap();
        old.query_row("SELECT count(*) FROM events", [], |row| row.get::<_, i64>(0)).unwrap();
        let options = OpenOptions { busy_timeout_ms: 60, ..OpenOptions::default() };
        assert!(refused(&path, &options).contains("another process has it open"));
        drop(old);
        // Alone it goes ahead, and the step that cannot be applied twice leaves everything as it was.
        assert!(refused(&path, &options).contains("migrate the schema"));
        let raw = Connection::open(&path).unwrap();
        assert_eq!(schema::look(&raw).unwrap(), Found::Store(0));
    }

    #[test]
    fn a_kept_statement_is_planned_once_whatever_is_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("thought.db");
        prepare(&path, &OpenOptions::create()).unwrap();
        for purpose in [Purpose::Write, Purpose::Read] {
            let connection = connect(&path, purpose, &OpenOptions::default()).unwrap();
            let sql = "SELECT id FROM events WHERE type = ?1 AND position > ?2 ORDER BY position LIMIT 1";
            for value in 0..5 {
                let mut statement = connection.prepare_cached(sql).unwrap();
                let mut rows = statement.query(("none", value)).unwrap();
                assert!(rows.next().unwrap().is_none());
            }
            let statement = connection.prepare_cached(sql).unwrap();
            assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0, "{purpose:?}");
        }
    }
}
