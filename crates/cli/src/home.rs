//! The home: one folder that only its owner can enter, with configuration, declarations, prompts, documents, store and
//! locks. Opened here, checked here, named nowhere else.

use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use thought_protocol::Sensitive;

use crate::config::Config;
use crate::env;
use crate::exit::{Exit, Failure};
use crate::print::quoted;

/// Name of the configuration file.
pub const CONFIGURATION: &str = "thought.toml";

/// A home that is there, checked, with its configuration.
#[derive(Debug, Clone)]
pub struct Home {
    /// Canonical path of the folder.
    pub path: PathBuf,
    /// Its configuration.
    pub config: Config,
    /// A bot token that is handed in by the demonstration and stands in no file.
    pub handed_token: Option<Sensitive<String>>,
}

/// Where the home is: `--home`, else `$THOUGHT_HOME`, else the data directory.
///
/// # Errors
/// [`Failure`] when none of them is set.
pub fn locate(option: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = option {
        return Ok(path.to_owned());
    }
    if let Some(path) = env::path("THOUGHT_HOME") {
        return Ok(path);
    }
    if let Some(path) = env::path("XDG_DATA_HOME") {
        return Ok(path.join("thought"));
    }
    match env::path("HOME") {
        Some(path) => Ok(path.join(".local/share/thought")),
        None => Err(Failure::refused("home", "no home is named and HOME is not set")
            .hint("give --home DIR, or set THOUGHT_HOME")),
    }
}

impl Home {
    /// Opens the home that the options name.
    ///
    /// # Errors
    /// [`Failure`]: not found (5), wrong modes or links (3), configuration (3).
    pub fn open(option: Option<&Path>) -> Result<Self, Failure> {
        let named = locate(option)?;
        let path = match std::fs::canonicalize(&named) {
            Ok(path) => path,
            Err(_) => {
                return Err(Failure::new(
                    Exit::NotFound,
                    "no-home",
                    format!("there is no home at {}", named.display()),
                )
                .hint(format!("make one: thought --home {} init", quoted(&named))));
            }
        };
        check_folder(&path)?;
        let file = path.join(CONFIGURATION);
        let text = match read_regular(&file, thought_protocol::limits::CONFIGURATION_BYTES_MAX) {
            Ok(text) => text,
            Err(ReadProblem::Absent) => {
                return Err(Failure::new(
                    Exit::NotFound,
                    "no-home",
                    format!("{} is no home: it has no {CONFIGURATION}", path.display()),
                )
                .hint(format!("make one: thought --home {} init", quoted(&path))));
            }
            Err(problem) => return Err(problem.failure(&file)),
        };
        let text = String::from_utf8(text)
            .map_err(|_error| Failure::refused("configuration", format!("{CONFIGURATION} is not UTF-8")))?;
        let config = Config::parse(&text, CONFIGURATION)?;
        Ok(Self { path, config, handed_token: None })
    }

    /// A path below the home.
    pub fn below(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.path.join(relative)
    }

    /// The database file.
    pub fn database(&self) -> PathBuf {
        self.below(self.config.store.url.trim_start_matches("sqlite:"))
    }

    /// The folder of role locks, made when it is not there.
    ///
    /// # Errors
    /// [`Failure`] when it cannot be made or is no folder of the owner.
    pub fn run_folder(&self) -> Result<PathBuf, Failure> {
        let path = self.below("run");
        make_folder(&path)?;
        Ok(path)
    }

    /// A text file below the home, bounded, through no link.
    ///
    /// # Errors
    /// [`Failure`] naming the file and the problem.
    pub fn read_text(&self, relative: &Path, bytes_max: usize) -> Result<String, Failure> {
        let bytes = read_below(&self.path, relative, bytes_max)?;
        String::from_utf8(bytes)
            .map_err(|_error| Failure::refused("not-utf8", format!("{} is not UTF-8", relative.display())))
    }
}

/// The user's account.
pub fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Refuses a folder that others can enter, that belongs to somebody else, or that is none.
///
/// # Errors
/// [`Failure`] with what to do.
pub fn check_folder(path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    let found = std::fs::symlink_metadata(path).map_err(|error| {
        Failure::new(Exit::NotFound, "no-folder", format!("look at {shown}: {}", error.kind()))
    })?;
    if !found.is_dir() {
        return Err(Failure::refused("not-a-folder", format!("{shown} is not a folder")));
    }
    if found.uid() != uid() {
        return Err(Failure::refused("not-yours", format!("{shown} belongs to another account")));
    }
    if found.mode() & 0o077 != 0 {
        let mode = found.mode() & 0o7777;
        return Err(Failure::refused("open-to-others", format!("{shown} is open to others (mode {mode:o})"))
            .hint(format!("chmod 700 {shown}")));
    }
    Ok(())
}

/// Makes a folder for the owner alone, or checks the one that is there.
///
/// # Errors
/// As [`check_folder`].
pub fn make_folder(path: &Path) -> Result<(), Failure> {
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => check_folder(path),
        Err(error) => Err(Failure::new(
            Exit::Machine,
            "cannot-write",
            format!("make {}: {}", path.display(), error.kind()),
        )),
    }
}

/// Why a file was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadProblem {
    /// It is not there.
    Absent,
    /// It is a link, a folder, a device.
    NotRegular,
    /// It is larger than it may be, bytes.
    TooLarge(usize),
    /// Anything else.
    Io(std::io::ErrorKind),
}

impl ReadProblem {
    /// The failure that tells of it.
    pub fn failure(self, file: &Path) -> Failure {
        let shown = file.display();
        match self {
            Self::Absent => Failure::new(Exit::NotFound, "no-file", format!("there is no {shown}")),
            Self::NotRegular => {
                Failure::refused("not-a-regular-file", format!("{shown} is a link or no regular file"))
                    .hint("put a regular file in its place")
            }
            Self::TooLarge(most) => {
                Failure::refused("too-large", format!("{shown} is larger than {most} bytes"))
            }
            Self::Io(kind) => Failure::new(Exit::Machine, "cannot-read", format!("read {shown}: {kind}")),
        }
    }
}

/// A regular file's bytes, through no link in its last part, bounded.
///
/// # Errors
/// [`ReadProblem`].
pub fn read_regular(path: &Path, bytes_max: usize) -> Result<Vec<u8>, ReadProblem> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = open(path, flags, Mode::empty()).map_err(problem)?;
    read_bounded(file.into(), bytes_max)
}

/// A file's bytes below a folder, through no link at all, bounded.
///
/// # Errors
/// [`Failure`] naming the file and the problem.
pub fn read_below(folder: &Path, relative: &Path, bytes_max: usize) -> Result<Vec<u8>, Failure> {
    use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
    let inner = || {
        let root = open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(problem)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let file = openat2(&root, relative, flags, Mode::empty(), resolve).map_err(problem)?;
        read_bounded(file.into(), bytes_max)
    };
    inner().map_err(|problem| problem.failure(relative))
}

/// An opened regular file's bytes, bounded.
///
/// # Errors
/// [`ReadProblem`].
pub fn read_bounded(file: std::fs::File, bytes_max: usize) -> Result<Vec<u8>, ReadProblem> {
    use std::io::Read;
    let io = |error: std::io::Error| ReadProblem::Io(error.kind());
    if !file.metadata().map_err(io)?.is_file() {
        return Err(ReadProblem::NotRegular);
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() > bytes_max { Err(ReadProblem::TooLarge(bytes_max)) } else { Ok(bytes) }
}

fn problem(errno: rustix::io::Errno) -> ReadProblem {
    use rustix::io::Errno;
    match errno {
        Errno::NOENT => ReadProblem::Absent,
        Errno::LOOP | Errno::ISDIR | Errno::XDEV | Errno::NXIO | Errno::NOTDIR => ReadProblem::NotRegular,
        other => ReadProblem::Io(std::io::Error::from(other).kind()),
    }
}

/// Writes a new file for the owner alone; refuses one that is there.
///
/// # Errors
/// [`Failure`] naming the file.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    use std::io::Write;
    let write = || {
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|error: std::io::Error| {
        Failure::new(Exit::Machine, "cannot-write", format!("write {}: {}", path.display(), error.kind()))
    })
}
