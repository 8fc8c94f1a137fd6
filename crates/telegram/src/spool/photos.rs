//! Fetching the photos of spooled messages, beside the waves: a download may take long, and must hold up its own chat
//! alone.
//!
//! A photo is fetched, looked at and kept durably before the event that names it is written. What cannot be fetched in
//! its time, or is no picture, is told as such; what was kept and is never named does no harm. Nothing here survives the
//! process: a photo that was not named is fetched again, and is the same blob.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use thought_contract::payload::Image;
use thought_protocol::Sha256Hex;
use thought_store::BoxFuture;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::lane::Item;
use crate::admit::{Admission, PhotoRef};
use crate::client::{BotClient, ClientError};
use crate::limits::{BACKOFF_FIRST_MS, BACKOFF_LONGEST_MS, PHOTO_BYTES_MAX, PHOTOS_AT_ONCE_MAX};
use crate::picture::{self, NoPicture};
use crate::stop::Backoff;

/// Bytes that could not be kept. Content-dark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("keep a blob: {code}")]
pub struct BlobError {
    /// A stable code.
    pub code: &'static str,
}

/// Where bytes are kept by their hash.
pub trait Blobs: Send + Sync + 'static {
    /// Keeps bytes durably, and names them. The same bytes have the same name.
    fn keep(&self, bytes: Vec<u8>) -> BoxFuture<'_, Result<Sha256Hex, BlobError>>;
}

/// What became of a photo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fetched {
    /// It is kept under this name.
    Kept(Image),
    /// It is no picture that is taken, or it could not be had.
    Unusable {
        /// A stable code.
        code: &'static str,
    },
}

/// What photos are fetched with.
#[derive(Clone)]
pub struct PhotoPorts {
    /// Fetches.
    pub client: Arc<BotClient>,
    /// Keeps.
    pub blobs: Arc<dyn Blobs>,
}

/// Photos that are being fetched, and those that were and wait for their event.
pub(super) struct Photos {
    ports: PhotoPorts,
    patience: Duration,
    tasks: JoinSet<(i64, Fetched)>,
    begun: HashSet<i64>,
    fetched: HashMap<i64, Fetched>,
}

impl Photos {
    pub(super) fn new(ports: PhotoPorts, patience: Duration) -> Self {
        Self { ports, patience, tasks: JoinSet::new(), begun: HashSet::new(), fetched: HashMap::new() }
    }

    /// Begins with the photos of what waits, in order, as many as may be fetched at once, and takes in what is done.
    pub(super) fn look(&mut self, items: &VecDeque<Item>) {
        while let Some(joined) = self.tasks.try_join_next() {
            self.ended(joined);
        }
        for item in items {
            if self.tasks.len() >= PHOTOS_AT_ONCE_MAX {
                return;
            }
            let Some(photo) = photo(item) else { continue };
            if self.fetched.contains_key(&item.update) || !self.begun.insert(item.update) {
                continue;
            }
            let (update, photo) = (item.update, photo.clone());
            let (ports, patience) = (self.ports.clone(), self.patience);
            self.tasks.spawn(async move { (update, fetch(&ports, &photo, patience).await) });
        }
    }

    /// Whether nothing of this is still to be fetched.
    pub(super) fn has_all_of(&self, item: &Item) -> bool {
        photo(item).is_none() || self.fetched.contains_key(&item.update)
    }

    /// What became of the photo of an update.
    pub(super) fn of(&self, update: i64) -> Option<&Fetched> {
        self.fetched.get(&update)
    }

    /// The updates' events are written, or they are set aside.
    pub(super) fn forget(&mut self, updates: &[i64]) {
        for update in updates {
            self.fetched.remove(update);
        }
    }

    /// Waits until a fetch ends; for ever if none is on.
    pub(super) async fn wait(&mut self) {
        match self.tasks.join_next().await {
            Some(joined) => self.ended(joined),
            None => std::future::pending().await,
        }
    }

    fn ended(&mut self, joined: Result<(i64, Fetched), tokio::task::JoinError>) {
        match joined {
            Ok((update, fetched)) => {
                self.begun.remove(&update);
                self.fetched.insert(update, fetched);
            }
            // Which one it was is not told: all that have no task are begun anew.
            Err(_broken) => {
                tracing::error!("fetching a photo broke off");
                self.tasks.abort_all();
                self.begun.clear();
            }
        }
    }
}

/// The photo of an update that becomes a message.
fn photo(item: &Item) -> Option<&PhotoRef> {
    match &item.meaning {
        Ok(Admission::Message(message)) => message.photos.first(),
        _ => None,
    }
}

/// One photo, fetched, looked at and kept.
async fn fetch(ports: &PhotoPorts, photo: &PhotoRef, patience: Duration) -> Fetched {
    let deadline = Instant::now() + patience;
    let bytes = match tokio::time::timeout_at(deadline, download(&ports.client, photo)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) => return unusable(error.code()),
        Err(_elapsed) => return unusable("not-in-time"),
    };
    let picture = match picture::look(&bytes) {
        Ok(picture) => picture,
        Err(NoPicture::Kind | NoPicture::Header) => return unusable("no-picture"),
        Err(NoPicture::Sides) => return unusable("sides"),
    };
    let (width, height) = picture.pixels;
    let byte_count = bytes.len() as u64;
    let blob_sha256 = keep(&*ports.blobs, bytes).await;
    Fetched::Kept(Image { blob_sha256, media_type: picture.media_type.to_owned(), byte_count, width, height })
}

fn unusable(code: &'static str) -> Fetched {
    tracing::warn!(code, "a photo could not be taken");
    Fetched::Unusable { code }
}

/// Its bytes; asked for again as long as that may help.
async fn download(client: &BotClient, photo: &PhotoRef) -> Result<Vec<u8>, ClientError> {
    let bytes_max = usize::try_from(PHOTO_BYTES_MAX).unwrap_or(usize::MAX);
    let mut backoff = Backoff::new(BACKOFF_FIRST_MS, BACKOFF_LONGEST_MS);
    loop {
        let error = match client.get_file(&photo.file_id).await {
            Ok(file) => match client.download(&file, bytes_max).await {
                Ok(bytes) => return Ok(bytes),
                Err(error) => error,
            },
            Err(error) => error,
        };
        match error {
            ClientError::TooLarge { .. } | ClientError::BadRequest { .. } | ClientError::Forbidden => {
                return Err(error);
            }
            ClientError::RetryAfter { seconds } => tokio::time::sleep(Duration::from_secs(seconds)).await,
            _ => tokio::time::sleep(backoff.next_pause()).await,
        }
    }
}

/// Keeps bytes; a disk that does not take them is waited for, as the store is.
async fn keep(blobs: &dyn Blobs, bytes: Vec<u8>) -> Sha256Hex {
    let mut backoff = Backoff::new(BACKOFF_FIRST_MS, BACKOFF_LONGEST_MS);
    loop {
        match blobs.keep(bytes.clone()).await {
            Ok(name) => return name,
            Err(error) => {
                tracing::error!(code = error.code, "a photo waits for the disk");
                tokio::time::sleep(backoff.next_pause()).await;
            }
        }
    }
}
