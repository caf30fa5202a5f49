//! Fetches what a source refers to.

mod download;
mod https;
mod oci;

use std::{path::PathBuf, sync::Arc, time::Duration};

use tokio::time::timeout;

use self::download::Downloads;
use crate::{
    cache::{Cache, CachedComponent},
    digest::Digest,
    error::{Error, Reason},
    file,
    http::Http,
    policy::Policy,
    records::{Record, RecordKey, Records},
    referenced::ReadReferenced,
    registry::Registry,
    signature,
    source::{KeySource, Member, Source},
};

/// How long a fetch from a registry or server may take, all in all.
const TOTAL: Duration = Duration::from_secs(300);

/// What a [`Fetcher`] needs.
#[derive(Debug, Clone)]
pub struct Config {
    /// The folder of the cache. It is created if missing, and belongs to this user alone.
    pub cache: PathBuf,
    /// The bound of the cache.
    pub cache_bytes: u64,
    /// The folder of file sources. Without one there are none.
    pub files: Option<PathBuf>,
    /// What is allowed.
    pub policy: Policy,
}

/// Fetches components into the cache. All plugins of a host share one.
#[derive(Debug, Clone)]
pub struct Fetcher {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    cache: Cache,
    records: Records,
    files: Option<PathBuf>,
    policy: Arc<Policy>,
    http: Http,
    registry: Registry,
    downloads: Downloads,
}

/// A component that was fetched.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// The verified file. Hold it while the plugin may be loaded from it.
    pub component: CachedComponent,
    /// The digest of the manifest that the reference named, for an artifact of a registry.
    pub resolved: Option<Digest>,
    /// What the policy required.
    pub verified: Verified,
    /// Why the answer of the registry or server cannot be used, if it cannot: this is what it said last.
    pub stale: Option<Error>,
}

/// What the policy of the host required of a component, and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verified {
    /// The policy requires no signature for this source.
    NotRequired,
    /// A signature is valid: of the key with this name, or of this identity with its issuer.
    SignedBy(String),
}

// === impl Fetcher ===

impl Fetcher {
    /// Opens the cache, and reads the certificate authorities of the system. Blocks.
    pub fn new(config: Config) -> Result<Self, Error> {
        let Config { cache, cache_bytes, files, policy } = config;
        let policy = Arc::new(policy);
        let cache = Cache::open(&cache, cache_bytes)?;
        let http = Http::new(Arc::clone(&policy))?;
        let shared = Shared {
            records: Records::new(cache.records()),
            cache,
            files,
            registry: Registry::new(http.clone(), Arc::clone(&policy)),
            http,
            policy,
            downloads: Downloads::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns the component that a source refers to, from the cache if it is still the right one.
    ///
    /// Each call asks the registry or the API server again, unless the source names a digest that is in the
    /// cache. If the answer of a registry or server cannot be used, what it said last is returned, with
    /// `stale`. The call takes five minutes at most. Dropping the future is safe at any time.
    pub async fn fetch(&self, source: &Source, referenced: &dyn ReadReferenced) -> Result<Fetched, Error> {
        let member = source.member()?;
        self.shared.policy.check_kind(member)?;
        let (what, bytes) = match member {
            Member::ConfigMap(KeySource { name, key }) => {
                let read = referenced.config_map_key(name, key).await;
                let bytes = read.map_err(|error| error.of(&format!("ConfigMap {name}")))?;
                (format!("ConfigMap {name}, key {key}"), bytes)
            }
            Member::Secret(KeySource { name, key }) => {
                let read = referenced.secret_key(name, key).await;
                let bytes = read.map_err(|error| error.of(&format!("Secret {name}")))?;
                (format!("Secret {name}, key {key}"), bytes)
            }
            Member::File(source) => {
                let path = source.path.clone();
                let read = move |shared: &Shared| {
                    file::read(shared.files.as_deref(), &path, shared.policy.max_bytes)
                };
                (format!("file {}", source.path), self.blocking(read).await?)
            }
            Member::Oci(oci) => return Box::pin(self.oci(oci, referenced)).await,
            Member::Https(https) => return Box::pin(self.https(https, referenced.tenant())).await,
        };
        let max_bytes = self.shared.policy.max_bytes;
        if bytes.len() as u64 > max_bytes {
            return Err(file::too_large(what, max_bytes));
        }
        let stored = self.blocking(move |shared| store(&shared.cache, &bytes)).await;
        let component = stored.map_err(|error| error.context(what))?;
        Ok(Fetched { component, resolved: None, verified: Verified::NotRequired, stale: None })
    }

    /// Returns what `ask` returns, or else what the record says, if that is in the cache and `name` needs no
    /// other signature by now.
    async fn or_last(
        &self,
        key: &RecordKey,
        name: &str,
        ask: impl Future<Output = Result<Fetched, Error>>,
    ) -> Result<Fetched, Error> {
        let asked = timeout(TOTAL, ask).await.unwrap_or_else(|_| {
            let message = format!(
                "{name} was not fetched within {} s, with the time that it waited for other downloads of its namespace",
                TOTAL.as_secs()
            );
            Err(Error::new(Reason::Unavailable, message)
                .hint("check the registry or server; the host tries again"))
        });
        match asked {
            Err(error) if error.reason() != Reason::NotAllowed => {
                let last = self.last(key, name).await;
                last.map(|last| Fetched { stale: Some(error.clone()), ..last.fetched }).ok_or(error)
            }
            asked => asked,
        }
    }

    /// Returns what the record says, if that is in the cache, and signed as the policy requires.
    async fn last(&self, key: &RecordKey, name: &str) -> Option<Last> {
        let (key, name) = (key.clone(), name.to_owned());
        let read = move |shared: &Shared| {
            let Some(record) = shared.records.read(&key) else { return Ok(None) };
            let verified = match (shared.policy.signers_of(&name), record.manifest) {
                (None, _) => Verified::NotRequired,
                (Some(_), None) => return Ok(None),
                (Some(signers), Some(manifest)) => {
                    match signature::verify(&record.evidence, signers, manifest) {
                        Ok(signer) => Verified::SignedBy(signer),
                        Err(_) => return Ok(None),
                    }
                }
            };
            let component = shared.cache.get(record.component);
            Ok(component.map(|component| {
                let fetched = Fetched { component, resolved: record.manifest, verified, stale: None };
                Last { fetched, manifest: record.manifest }
            }))
        };
        self.blocking(read).await.ok().flatten()
    }

    /// Records what a source referred to. Without it the host cannot start while the registry is down, which
    /// is no reason to fail now.
    async fn remember(&self, key: &RecordKey, record: Record) {
        let key = key.clone();
        let written = self.blocking(move |shared| {
            let written = shared.records.write(&key, &record);
            written.map_err(|error| Error::cache("the record of the source cannot be written", &error))
        });
        if let Err(error) = written.await {
            tracing::warn!("{error}");
        }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Shared) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let shared = Arc::clone(&self.shared);
        let result = tokio::task::spawn_blocking(move || f(&shared)).await;
        result.map_err(|error| {
            Error::new(Reason::Cache, format!("the work on the cache did not end: {error}"))
        })?
    }
}

/// What a record says.
struct Last {
    fetched: Fetched,
    manifest: Option<Digest>,
}

fn store(cache: &Cache, bytes: &[u8]) -> Result<CachedComponent, Error> {
    if let Some(component) = cache.get(Digest::of(bytes)) {
        return Ok(component);
    }
    let mut part = cache.begin()?;
    part.write(bytes)?;
    part.check_is_wasm()?;
    cache.store(part)
}
