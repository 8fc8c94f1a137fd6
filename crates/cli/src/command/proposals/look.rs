//! A look at the files before a suggestion is shown: a document that was edited and not scanned yet has moved on.
//!
//! It reads and compares, takes no lock and appends nothing: a command that only shows leaves versions to the scan.

use std::collections::HashMap;

use thought_protocol::{Sha256Hex, VersionId};
use thought_store::handle::Reader;
use thought_store::row::{Base, ProposalRow, ProposalState};

use crate::exit::Failure;
use crate::home::{self, Home};

/// What a home's files say of the versions that stand in the store as current.
#[derive(Debug)]
pub struct Files<'a> {
    home: &'a Home,
    known: HashMap<VersionId, Base>,
}

impl<'a> Files<'a> {
    /// The files of a home.
    pub fn of(home: &'a Home) -> Self {
        Self { home, known: HashMap::new() }
    }

    /// The row of an open proposal with its base marked as stale where the file is another one by now, is gone, or cannot
    /// be read as a document.
    ///
    /// # Errors
    /// [`Failure`] when the store cannot be read.
    pub async fn look(&mut self, reader: &Reader, mut row: ProposalRow) -> Result<ProposalRow, Failure> {
        let is_open = matches!(row.state, ProposalState::Undecided | ProposalState::Decided);
        let Some(version) = row.base_version.clone().filter(|_| is_open && row.base == Base::Current) else {
            return Ok(row);
        };
        row.base = match self.known.get(&version) {
            Some(base) => *base,
            None => {
                let base = self.base(reader, version.clone()).await?;
                self.known.insert(version, base);
                base
            }
        };
        Ok(row)
    }

    async fn base(&self, reader: &Reader, version: VersionId) -> Result<Base, Failure> {
        let Some(version) = reader.version(version).await? else { return Ok(Base::Stale) };
        let context = &self.home.config.context;
        let most = usize::try_from(context.max_file_bytes).unwrap_or(usize::MAX);
        Ok(match home::read_below(&self.home.path, &context.root.join(&version.path), most) {
            Ok(bytes) if Sha256Hex::of(&bytes) == version.sha256 => Base::Current,
            Ok(_) => Base::Stale,
            Err(failure) => {
                tracing::debug!(%failure, "a document was not looked at");
                Base::Stale
            }
        })
    }
}
