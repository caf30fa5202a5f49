//! Downloads: each component of a source once at a time, a bounded number of them, and into the cache.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use oarlock_flow_control::KeyedPermits;
use parking_lot::Mutex;

use super::Fetcher;
use crate::{
    cache::CachedComponent,
    digest::Digest,
    error::{Error, Reason},
    file::too_large,
    http::{Response, host},
    records::{Record, RecordKey},
};

/// How many components are downloaded at once, and for one tenant. It bounds the unfinished files on the
/// disk.
const MAX_DOWNLOADS: usize = 64;
const MAX_DOWNLOADS_OF_TENANT: usize = 2;
/// How much is collected before it is written.
const WRITE_BYTES: usize = 256 << 10;

/// The downloads in progress.
#[derive(Debug)]
pub(super) struct Downloads {
    permits: KeyedPermits<String>,
    /// By source too: a slow source must not delay another one that has the same component.
    locks: Mutex<HashMap<(RecordKey, Digest), Weak<DownloadLock>>>,
}

type DownloadLock = tokio::sync::Mutex<()>;

impl Default for Downloads {
    fn default() -> Self {
        Self { permits: KeyedPermits::new(MAX_DOWNLOADS, MAX_DOWNLOADS_OF_TENANT), locks: Mutex::default() }
    }
}

// === impl Downloads ===

impl Downloads {
    /// Returns the lock that the download of a component of a source holds.
    fn lock_of(&self, key: &RecordKey, digest: Digest) -> Arc<DownloadLock> {
        let mut locks = self.locks.lock();
        locks.retain(|_, lock| lock.strong_count() > 0);
        let name = (key.clone(), digest);
        if let Some(lock) = locks.get(&name).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::default();
        locks.insert(name, Arc::downgrade(&lock));
        lock
    }
}

// === impl Fetcher ===

impl Fetcher {
    /// Returns the component that a source refers to now, and records it. `size` is its length, if it is
    /// known.
    ///
    /// The cache is used only if this source referred to the component before, with the same credentials. To
    /// know the digest of another's component is no right to it: the registry or server has to send it.
    pub(super) async fn component(
        &self,
        key: &RecordKey,
        tenant: &str,
        record: Record,
        size: Option<u64>,
        request: impl Future<Output = Result<Response, Error>>,
    ) -> Result<CachedComponent, Error> {
        let digest = record.component;
        if let Some(component) = self.known(key, digest).await? {
            self.remember(key, record).await;
            return Ok(component);
        }
        // Before the lock: what waits for the downloads of its tenant must hold up no other tenant.
        let _permit = self.shared.downloads.permits.acquire(&tenant.to_owned()).await;
        let lock = self.shared.downloads.lock_of(key, digest);
        // Held until the record is written: the next one finds the component by it.
        let _only_one = lock.lock().await;
        let component = match self.known(key, digest).await? {
            Some(component) => component,
            None => self.download(request.await?, digest, size).await?,
        };
        self.remember(key, record).await;
        Ok(component)
    }

    /// Returns a component from the cache, if this source referred to it before.
    async fn known(&self, key: &RecordKey, digest: Digest) -> Result<Option<CachedComponent>, Error> {
        let key = key.clone();
        self.blocking(move |shared| {
            let is_known = shared.records.read(&key).is_some_and(|record| record.component == digest);
            Ok(if is_known { shared.cache.get(digest) } else { None })
        })
        .await
    }

    async fn download(
        &self,
        mut response: Response,
        digest: Digest,
        size: Option<u64>,
    ) -> Result<CachedComponent, Error> {
        let host = host(&response.url);
        let max_bytes = self.shared.policy.max_bytes;
        let bound = size.unwrap_or(max_bytes).min(max_bytes);
        let too_long = || match size {
            Some(size) if size < max_bytes => {
                let message = format!("{host} sends more than the {size} bytes that the manifest says");
                Error::new(Reason::DigestMismatch, message)
                    .hint("check the registry and the proxies in front of it: what they answer is not what they say")
            }
            _ => too_large(format_args!("the component at {host}"), max_bytes),
        };
        if response.announced_bytes().is_some_and(|announced| announced > bound) {
            return Err(too_long());
        }
        let mut part = self.blocking(|shared| shared.cache.begin()).await?;
        let mut n_bytes = 0_u64;
        loop {
            let mut buffer = Vec::with_capacity(WRITE_BYTES);
            let mut is_end = false;
            while buffer.len() < WRITE_BYTES && !is_end {
                match response.chunk().await? {
                    Some(chunk) => {
                        n_bytes += chunk.len() as u64;
                        if n_bytes > bound {
                            return Err(too_long());
                        }
                        buffer.extend_from_slice(&chunk);
                    }
                    None => is_end = true,
                }
            }
            part = self
                .blocking(move |_| {
                    part.write(&buffer)?;
                    Ok(part)
                })
                .await?;
            if is_end {
                break;
            }
        }
        let finish = move |shared: &super::Shared| {
            let found = part.digest();
            if found != digest {
                // Content of another kind explains the digest.
                part.check_is_wasm().map_err(|error| error.context(&host))?;
                let message = format!("{host} answers with the digest {found}, not {digest}");
                return Err(Error::new(Reason::DigestMismatch, message).hint(
                    "if the content was changed on purpose, change the digest; otherwise check the server",
                ));
            }
            part.check_is_wasm()?;
            shared.cache.store(part)
        };
        self.blocking(finish).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_waits_only_for_one_of_the_same_source() {
        let downloads = Downloads::default();
        let digest = Digest::of(b"component");
        let [ours, theirs] = ["oci://a/b", "https://slow.example"].map(|it| RecordKey::new(it, b""));
        let lock = downloads.lock_of(&ours, digest);
        assert!(Arc::ptr_eq(&lock, &downloads.lock_of(&ours, digest)));
        assert!(!Arc::ptr_eq(&lock, &downloads.lock_of(&theirs, digest)));
        assert!(!Arc::ptr_eq(&lock, &downloads.lock_of(&ours, Digest::of(b"other"))));
    }
}
