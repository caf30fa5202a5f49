//! Components on disk, by digest.
//!
//! ```text
//! FOLDER/components/HEX.wasm     a component; its name is the SHA-256 digest of its bytes
//! FOLDER/components/HEX.used     empty; the time of its last change is the last use of the component
//! FOLDER/records/HEX.json        what a source referred to last (`records.rs`)
//! ```
//!
//! A file appears under its name in one step, after its bytes are on the disk: a crash leaves only files
//! without such a name, and `open` removes them. The bytes of a file are compared with its name when the
//! process uses it for the first time. A user of a component holds a shared lock of its file. A component
//! without such a lock is evicted when the cache is full, the longest unused first. The lock belongs to the
//! process: it ends with it, and other processes that use the same folder respect it.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, DirBuilder, File, Metadata},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use tempfile::NamedTempFile;

use crate::{
    digest::{Digest, Hasher},
    error::{Error, Reason},
};

/// The prefix of a file that is being written.
const PART: &str = ".part-";
/// The age from which such a file is left over from a process that ended.
const LEFT_OVER: Duration = Duration::from_secs(3600);
/// How much is read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// The folder with components.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    max_bytes: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The components whose bytes this process has compared with their digest.
    verified: HashSet<Digest>,
    in_use: HashMap<Digest, Weak<Locked>>,
}

/// A component in the cache. It is not evicted while a clone of this value exists.
#[derive(Debug, Clone)]
pub struct CachedComponent(Arc<Locked>);

#[derive(Debug)]
struct Locked {
    digest: Digest,
    path: PathBuf,
    size: u64,
    /// Its shared lock is released when it is closed.
    _file: File,
}

/// A component that is being written.
#[derive(Debug)]
pub(crate) struct Part {
    file: NamedTempFile,
    hasher: Hasher,
    n_bytes: u64,
    /// The first bytes, by which wrong content is recognised.
    start: Vec<u8>,
}

// === impl Cache ===

impl Cache {
    /// Opens the folder, which is created if missing, and must belong to this user alone. Blocks.
    pub(crate) fn open(folder: &Path, max_bytes: u64) -> Result<Self, Error> {
        let failed = |error: &io::Error| Error::cache(format_args!("cache {}", folder.display()), error);
        for folder in [folder.to_owned(), folder.join("components"), folder.join("records")] {
            DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(|error| failed(&error))?;
            check_private(&fs::symlink_metadata(&folder).map_err(|error| failed(&error))?)
                .map_err(|why| Error::new(Reason::Cache, format!("cache {}: {why}", folder.display())))?;
        }
        let this = Self { folder: folder.to_owned(), max_bytes, state: Mutex::default() };
        this.remove_left_over();
        Ok(this)
    }

    pub(crate) fn records(&self) -> PathBuf {
        self.folder.join("records")
    }

    /// Returns a component, if it is in the cache and unchanged. Blocks.
    pub(crate) fn get(&self, digest: Digest) -> Option<CachedComponent> {
        let mut state = self.state.lock();
        self.get_locked(&mut state, digest)
    }

    fn get_locked(&self, state: &mut State, digest: Digest) -> Option<CachedComponent> {
        if let Some(in_use) = state.in_use.get(&digest).and_then(Weak::upgrade) {
            self.touch(digest);
            return Some(CachedComponent(in_use));
        }
        let path = self.path(digest, "wasm");
        let file = File::open(&path).ok()?;
        file.lock_shared().ok()?;
        // Another process may have evicted it before the lock.
        let metadata = file.metadata().ok().filter(|metadata| metadata.nlink() > 0)?;
        if !state.verified.contains(&digest) {
            if hash(&file).ok() != Some(digest) {
                // Only a damaged disk or a user with these rights can have changed it.
                let _ = fs::remove_file(&path);
                return None;
            }
            state.verified.insert(digest);
        }
        self.touch(digest);
        let locked = Arc::new(Locked { digest, path, size: metadata.len(), _file: file });
        state.in_use.retain(|_, it| it.strong_count() > 0);
        state.in_use.insert(digest, Arc::downgrade(&locked));
        Some(CachedComponent(locked))
    }

    /// Begins a new component. Blocks.
    pub(crate) fn begin(&self) -> Result<Part, Error> {
        let file = tempfile::Builder::new().prefix(PART).tempfile_in(self.folder.join("components"));
        let file = file.map_err(|error| Error::cache("the component cannot be written", &error))?;
        Ok(Part { file, hasher: Hasher::default(), n_bytes: 0, start: Vec::new() })
    }

    /// Stores a complete component. Blocks.
    pub(crate) fn store(&self, part: Part) -> Result<CachedComponent, Error> {
        let Part { file, hasher, n_bytes, start: _ } = part;
        let digest = hasher.finish();
        let failed = |error: &io::Error| Error::cache("the component cannot be written", error);
        let mut state = self.state.lock();
        if let Some(component) = self.get_locked(&mut state, digest) {
            return Ok(component);
        }
        self.make_room(&mut state, n_bytes)?;
        file.as_file().sync_all().map_err(|error| failed(&error))?;
        let path = self.path(digest, "wasm");
        let file = file.persist(&path).map_err(|error| failed(&error.error))?;
        // The name is on the disk too.
        File::open(self.folder.join("components"))
            .and_then(|folder| folder.sync_all())
            .map_err(|error| failed(&error))?;
        drop(file);
        state.verified.insert(digest);
        self.get_locked(&mut state, digest).ok_or_else(|| {
            Error::new(Reason::Cache, "the component was removed from the cache by another process")
        })
    }

    /// Evicts components until there is room for this many bytes.
    fn make_room(&self, state: &mut State, n_bytes: u64) -> Result<(), Error> {
        let mut components = self.list();
        let mut total: u64 = components.iter().map(|it| it.size).sum();
        components.sort_by_key(|it| it.used_at);
        for Listed { digest, size, .. } in components {
            if total + n_bytes <= self.max_bytes {
                return Ok(());
            }
            if self.evict(state, digest) {
                total -= size;
            }
        }
        if total + n_bytes <= self.max_bytes {
            return Ok(());
        }
        let message = format!(
            "the cache has no room for {n_bytes} bytes: {total} of {} bytes are components in use",
            self.max_bytes
        );
        Err(Error::new(Reason::Cache, message)
            .hint("raise --max-component-bytes; what serves goes on serving"))
    }

    /// Removes a component, unless a process uses it.
    fn evict(&self, state: &mut State, digest: Digest) -> bool {
        if state.in_use.get(&digest).is_some_and(|it| it.strong_count() > 0) {
            return false;
        }
        let path = self.path(digest, "wasm");
        let Ok(file) = File::open(&path) else { return false };
        if file.try_lock().is_err() || fs::remove_file(&path).is_err() {
            return false;
        }
        let _ = fs::remove_file(self.path(digest, "used"));
        state.verified.remove(&digest);
        true
    }

    fn list(&self) -> Vec<Listed> {
        let entries = fs::read_dir(self.folder.join("components")).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| {
                let name = entry.file_name();
                let digest = Digest::from_hex(name.to_str()?.strip_suffix(".wasm")?)?;
                let metadata = entry.metadata().ok()?;
                let used = fs::metadata(self.path(digest, "used")).and_then(|it| it.modified());
                let used_at = used.or_else(|_| metadata.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
                Some(Listed { digest, size: metadata.len(), used_at })
            })
            .collect()
    }

    /// Records the use of a component. The component's own times stay, by which the code of a component is
    /// recognised.
    fn touch(&self, digest: Digest) {
        // The order of eviction is not worth an error.
        if let Ok(file) = File::options().create(true).append(true).open(self.path(digest, "used")) {
            let _ = file.set_modified(SystemTime::now());
        }
    }

    fn remove_left_over(&self) {
        for folder in ["components", "records"] {
            for entry in fs::read_dir(self.folder.join(folder)).into_iter().flatten().flatten() {
                let is_part = entry.file_name().to_string_lossy().starts_with(PART);
                let age = entry.metadata().and_then(|it| it.modified()).map(|it| it.elapsed());
                if is_part && matches!(age, Ok(Ok(age)) if age > LEFT_OVER) {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
    }

    fn path(&self, digest: Digest, extension: &str) -> PathBuf {
        self.folder.join("components").join(format!("{}.{extension}", digest.to_hex()))
    }
}

struct Listed {
    digest: Digest,
    size: u64,
    used_at: SystemTime,
}

/// Writes a file in one step: readers see the old content or the new one. Blocks.
pub(crate) fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(PART).tempfile_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

fn check_private(metadata: &Metadata) -> Result<(), &'static str> {
    if !metadata.is_dir() {
        Err("it is not a folder")
    } else if metadata.uid() != rustix::process::geteuid().as_raw() {
        Err("the folder belongs to another user")
    } else if metadata.permissions().mode() & 0o022 != 0 {
        Err("other users can write to the folder (run chmod go-w on it)")
    } else {
        Ok(())
    }
}

fn hash(mut file: &File) -> io::Result<Digest> {
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            n => hasher.update(&buffer[..n]),
        }
    }
}

// === impl CachedComponent ===

impl CachedComponent {
    /// Returns the path of the file. It exists as long as this value.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns the digest of the component's bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.0.digest
    }

    /// Returns the length of the component in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.0.size
    }
}

// === impl Part ===

impl Part {
    /// Appends bytes. Blocks.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.hasher.update(bytes);
        self.n_bytes += bytes.len() as u64;
        let missing = 16_usize.saturating_sub(self.start.len()).min(bytes.len());
        self.start.extend_from_slice(&bytes[..missing]);
        self.file.write_all(bytes).map_err(|error| Error::cache("the component cannot be written", &error))
    }

    /// Returns the digest of what was written.
    pub(crate) fn digest(&self) -> Digest {
        self.hasher.clone().finish()
    }

    /// Returns an error if what was written does not begin like WebAssembly.
    pub(crate) fn check_is_wasm(&self) -> Result<(), Error> {
        if self.start.starts_with(b"\0asm") {
            return Ok(());
        }
        let is_text = self.start.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'<');
        let what = match self.n_bytes {
            0 => "it is empty",
            _ if is_text => "it is an HTML or XML page",
            _ => "it does not begin with the magic number of WebAssembly",
        };
        Err(Error::new(Reason::NotAComponent, format!("the content is not a component: {what}"))
            .hint("check what the source refers to; the content must be a component that `oarlock plugin check` accepts"))
    }
}

#[cfg(test)]
mod tests;
