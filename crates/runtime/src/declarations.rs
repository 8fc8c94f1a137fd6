//! Declarations between their files and the store: what is installed, under which fingerprint, and what differs.
//!
//! A version is installed once, with the canonical bytes of its file, the bytes of its prompt and the proposal manifest
//! of this build; runs use those bytes ever after. It must never change an installed version, lower one, or parse a
//! stored declaration by another build's defaults.

use std::collections::BTreeMap;

use thought_contract::declaration::{Declaration, DeclarationError, Replay, fingerprint};
use thought_contract::draft::{self, DraftError};
use thought_contract::event::SourceName;
use thought_contract::payload::{DeclarationActivated, SourceHead};
use thought_contract::time::Clock;
use thought_protocol::canonical::{self, CanonicalError};
use thought_protocol::limits::PROMPT_BYTES_MAX;
use thought_protocol::{EventId, Fingerprint, Sensitive, Sha256Hex, proposal};
use thought_store::command::NewDeclaration;
use thought_store::handle::{Activator, Reader, Superseded};
use thought_store::row::DeclarationRow;
use thought_store::{Precondition, StoreError};

/// A declaration that is not installed, or cannot be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is refused.
    #[error("check the declaration")]
    Declaration(#[source] DeclarationError),
    /// The prompt is empty, too long, or not text.
    #[error("check the prompt of {declaration}: it must be 1 to {PROMPT_BYTES_MAX} bytes of UTF-8 text")]
    Prompt {
        /// Whose prompt.
        declaration: String,
    },
    /// The proposal manifest has no canonical form. A defect.
    #[error("write the proposal manifest")]
    Manifest(#[source] CanonicalError),
    /// The version is installed with another content.
    #[error(
        "install {declaration} version {version}: it is installed with another content; raise the version"
    )]
    FingerprintChanged {
        /// The declaration.
        declaration: String,
        /// Its version.
        version: u32,
    },
    /// A higher version is active.
    #[error("install {declaration} version {version}: version {active} is active, and versions only rise")]
    VersionNotHigher {
        /// The declaration.
        declaration: String,
        /// The version of the file.
        version: u32,
        /// The active one.
        active: u32,
    },
    /// Another process installed at the same time.
    #[error("install {declaration} version {version}: another version became active meanwhile")]
    Raced {
        /// The declaration.
        declaration: String,
        /// The version of the file.
        version: u32,
    },
    /// No version is active.
    #[error("load the declaration {declaration}: it is not installed")]
    NotInstalled {
        /// The declaration.
        declaration: String,
    },
    /// The activation's event cannot be drafted.
    #[error("draft the activation")]
    Draft(#[from] DraftError),
    /// The store.
    #[error("reach the store for a declaration")]
    Store(#[from] StoreError),
}

/// A declaration file that is well formed, before its prompt is read.
#[derive(Debug, Clone)]
pub struct Checked {
    declaration: Declaration,
    manifest: Vec<u8>,
}

/// What an installation stores.
#[derive(Debug, Clone)]
pub struct Package {
    declaration: Declaration,
    manifest: Vec<u8>,
    prompt: Sensitive<Vec<u8>>,
    fingerprint: Fingerprint,
}

/// Checks the text of a declaration file.
///
/// # Errors
/// [`Error::Declaration`] with line, field and hint.
pub fn check(text: &str) -> Result<Checked, Error> {
    let declaration = Declaration::parse(text).map_err(Error::Declaration)?;
    let manifest = manifest_bytes(&declaration)?;
    Ok(Checked { declaration, manifest })
}

/// The canonical bytes of the proposal manifest that this build has for a declaration.
fn manifest_bytes(declaration: &Declaration) -> Result<Vec<u8>, Error> {
    canonical::to_vec(&proposal::manifest(declaration.proposals())).map_err(Error::Manifest)
}

impl Checked {
    /// The declaration; its prompt's path is relative to the home.
    pub fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    /// Adds the bytes of the prompt.
    ///
    /// # Errors
    /// [`Error::Prompt`] when they are empty, too long, not UTF-8, or hold U+0000.
    pub fn with_prompt(self, prompt: Vec<u8>) -> Result<Package, Error> {
        let is_text =
            std::str::from_utf8(&prompt).is_ok_and(|text| !text.trim().is_empty() && !text.contains('\0'));
        if !is_text || prompt.len() > PROMPT_BYTES_MAX {
            return Err(Error::Prompt { declaration: self.declaration.id().to_string() });
        }
        let fingerprint = fingerprint(self.declaration.canonical_bytes(), &prompt, &self.manifest);
        Ok(Package {
            declaration: self.declaration,
            manifest: self.manifest,
            prompt: Sensitive::new(prompt),
            fingerprint,
        })
    }
}

impl Package {
    /// The declaration.
    pub fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    /// Fingerprint of declaration, prompt and proposal manifest.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }
}

/// What an installation came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Installed {
    /// It became active now.
    Now {
        /// The event that says so.
        event: EventId,
        /// The version that was active before.
        replaced: Option<u32>,
    },
    /// It was active already, with the same content.
    Already,
}

/// Makes a package the active version of its declaration and says so in the log. A declaration that was never installed
/// begins where its subscriptions say; a higher version goes on where the version before stood, so that nothing between
/// the two is lost.
///
/// # Errors
/// [`Error`]; then the version before stays active.
pub async fn install(
    reader: &Reader,
    activator: &Activator,
    clock: &dyn Clock,
    package: &Package,
    worker_sha256: &Sha256Hex,
) -> Result<Installed, Error> {
    install_after((reader, activator), clock, package, worker_sha256, Before::default()).await
}

/// What ends with the version before, in the commit that installs the next.
#[derive(Debug, Default)]
pub struct Before {
    /// The runs that it leaves.
    pub superseded: Vec<Superseded>,
    /// The change that this is.
    pub token: Option<String>,
}

/// As [`install`], and ends what belongs to the version before.
///
/// # Errors
/// As [`install`].
pub async fn install_after(
    (reader, activator): (&Reader, &Activator),
    clock: &dyn Clock,
    package: &Package,
    worker_sha256: &Sha256Hex,
    before: Before,
) -> Result<Installed, Error> {
    let declaration = package.declaration();
    let (id, version) = (declaration.id().to_string(), declaration.version());
    let active = reader.declaration(id.clone()).await?;
    if let Some(row) = &active
        && follows(row, package)? == Order::Same
    {
        return Ok(Installed::Already);
    }
    let replaced = active.map(|row| row.version);
    let sources = starting_heads(reader, declaration, replaced).await?;
    let payload = DeclarationActivated {
        declaration: id.clone(),
        version,
        fingerprint: package.fingerprint().clone(),
        sources: sources
            .iter()
            .map(|(source, head)| SourceHead { source: source.clone(), head: *head })
            .collect(),
        worker_sha256: worker_sha256.clone(),
    };
    let event = draft::declaration_activated(&payload, clock.now())?;
    let row = NewDeclaration {
        id: id.clone(),
        version,
        expected_active: replaced,
        fingerprint: package.fingerprint().clone(),
        declaration: Sensitive::new(declaration.canonical_bytes().to_vec()),
        prompt: package.prompt.clone(),
        manifest: Sensitive::new(package.manifest.clone()),
        sources,
    };
    match activator.take_over(event, row, before.superseded, before.token).await {
        Ok(appended) => {
            tracing::info!(declaration = %id, version, event = %appended.id, "declaration activated");
            Ok(Installed::Now { event: appended.id, replaced })
        }
        Err(StoreError::Precondition(Precondition::ActiveVersion)) => {
            Err(Error::Raced { declaration: id, version })
        }
        Err(error) => Err(error.into()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Same,
    Next,
}

/// How a package stands to the active version.
fn follows(active: &DeclarationRow, package: &Package) -> Result<Order, Error> {
    let (declaration, version) = (package.declaration().id().to_string(), package.declaration().version());
    if active.version == version && active.fingerprint == *package.fingerprint() {
        Ok(Order::Same)
    } else if active.version == version {
        Err(Error::FingerprintChanged { declaration, version })
    } else if active.version > version {
        Err(Error::VersionNotHigher { declaration, version, active: active.version })
    } else {
        Ok(Order::Next)
    }
}

/// Whether a package may take the place of the active version.
///
/// # Errors
/// [`Error::FingerprintChanged`], [`Error::VersionNotHigher`]; the store's.
pub async fn may_follow(reader: &Reader, package: &Package) -> Result<(), Error> {
    match reader.declaration(package.declaration().id().to_string()).await? {
        Some(row) => follows(&row, package).map(drop),
        None => Ok(()),
    }
}

/// The sequence behind which the version begins, for each subscribed source.
async fn starting_heads(
    reader: &Reader,
    declaration: &Declaration,
    replaced: Option<u32>,
) -> Result<Vec<(SourceName, u64)>, Error> {
    let before: BTreeMap<SourceName, u64> = match replaced {
        None => BTreeMap::new(),
        Some(_) => reader
            .consumers()
            .await?
            .into_iter()
            .filter(|row| row.declaration == declaration.id().as_str())
            .map(|row| (row.source, row.scanned))
            .collect(),
    };
    let mut heads: BTreeMap<SourceName, u64> = BTreeMap::new();
    for subscription in declaration.subscriptions() {
        let head = match (before.get(&subscription.source), subscription.replay) {
            (Some(scanned), _) => *scanned,
            (None, Replay::All) => 0,
            (None, Replay::Now) => reader.source(subscription.source.clone()).await?.head,
        };
        heads
            .entry(subscription.source.clone())
            .and_modify(|known| *known = head.min(*known))
            .or_insert(head);
    }
    Ok(heads.into_iter().collect())
}

/// A declaration as it runs: the stored bytes of the active version.
#[derive(Debug, Clone)]
pub struct Active {
    /// The declaration, read from its stored bytes.
    pub declaration: Declaration,
    /// What the activation stored.
    pub stored: DeclarationRow,
    /// Whether this build's proposal manifest is the one that was activated.
    pub manifest: ManifestState,
}

/// How this build's proposal manifest stands to an activated one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestState {
    /// The same bytes.
    Same,
    /// Others: runs are held until a version with the new manifest is activated.
    Changed,
}

/// Loads the active version of a declaration.
///
/// # Errors
/// [`Error::NotInstalled`]; [`Error::Declaration`] when this build cannot serve the stored bytes; the store's.
pub async fn load_active(reader: &Reader, declaration: &str) -> Result<Active, Error> {
    match reader.declaration(declaration.to_owned()).await? {
        Some(row) => active_of(row),
        None => Err(Error::NotInstalled { declaration: declaration.to_owned() }),
    }
}

fn active_of(row: DeclarationRow) -> Result<Active, Error> {
    let declaration = Declaration::from_canonical(row.declaration.expose()).map_err(Error::Declaration)?;
    let manifest = if manifest_bytes(&declaration)? == *row.manifest.expose() {
        ManifestState::Same
    } else {
        ManifestState::Changed
    };
    Ok(Active { declaration, stored: row, manifest })
}

/// How a file of the home stands to what is active.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Active with this content.
    Active,
    /// Never installed.
    NotInstalled,
    /// The file has a higher version than the active one: it waits for its activation.
    Newer {
        /// The active version.
        active: u32,
    },
    /// The file has the active version and another content: its version must be raised.
    Changed {
        /// The active version.
        active: u32,
    },
    /// The file is older than what is active.
    Older {
        /// The active version.
        active: u32,
    },
}

/// Compares a package made from the home's files with what is active.
///
/// # Errors
/// The store's.
pub async fn standing(reader: &Reader, package: &Package) -> Result<Standing, Error> {
    let version = package.declaration().version();
    let Some(row) = reader.declaration(package.declaration().id().to_string()).await? else {
        return Ok(Standing::NotInstalled);
    };
    let active = row.version;
    Ok(match version.cmp(&active) {
        std::cmp::Ordering::Greater => Standing::Newer { active },
        std::cmp::Ordering::Less => Standing::Older { active },
        std::cmp::Ordering::Equal if row.fingerprint == *package.fingerprint() => Standing::Active,
        std::cmp::Ordering::Equal => Standing::Changed { active },
    })
}
