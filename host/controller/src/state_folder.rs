//! The host's folder for state: what it keeps over a restart.
//!
//! ```text
//!   STATE/last-good/plugins/NAME-HASH.good        the last version of a plugin that passed its probation
//!   STATE/last-good/plugins/NAME-HASH.candidate   the version that is on probation
//!   STATE/last-good/components/DIGEST.wasm        their components; plugins with the same component share it
//!   STATE/quarantine/NAME-HASH                    the versions that were rolled back
//! ```
//!
//! HASH is of the path of the plugin's file, so that hosts with other plugin files can use the same folder
//! one after the other. The binary locks the folder: one host uses it at a time, or the candidates for a
//! Lease.
//! Every file is written beside its place and renamed, has a checksum, and is used only if it is a regular
//! file that belongs to this user and that no other user can read or write: the file says which account a
//! plugin acts as. These functions block.

mod files;
mod last_good;
mod quarantine;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use oarlock_plugin::component::Digest;
use tokio::sync::{Semaphore, SemaphorePermit};

pub(crate) use self::last_good::LastGood;
pub(crate) use self::quarantine::{Entry, Quarantine};
use crate::config::PluginFile;

/// How many tasks use the folder at once.
const AT_ONCE: usize = 2;

/// The folder, or none: then nothing is kept. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct StateFolder {
    folder: Option<PathBuf>,
    /// The bytes that were added since the folder was last brought within its limits.
    unchecked: Arc<AtomicU64>,
    /// A start of many plugins must not take a thread for each of them.
    turns: Arc<Semaphore>,
}

/// Identifies a version of a plugin: its component, and what its file says about how it runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct VersionId(Digest);

/// An error about a file of the folder.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The system returned an error.
    #[error("{} cannot be {doing}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the host was doing with it.
        doing: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The file is not what this host wrote.
    #[error("{} cannot be used: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The version that passed its probation is not in the file.
    #[error("{} cannot be used: the version that passed its probation is not in it", path.display())]
    OtherVersion {
        /// The file.
        path: PathBuf,
    },
}

/// What the operator can do about a file that cannot be read or written.
pub(crate) const WRITABLE: &str =
    "make the folder of --state-dir writable, free disk space, or name another folder";

// === impl StateFolder ===

impl StateFolder {
    /// Uses this folder, which exists and which no other user can write.
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            unchecked: Arc::new(AtomicU64::new(last_good::CHECK_EVERY)),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// Waits for the turn of a task that keeps a version or looks for one.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }

    /// Returns whether anything is kept.
    pub(crate) fn keeps(&self) -> bool {
        self.folder.is_some()
    }

    /// Returns the name that the files of a plugin begin with.
    fn name_of(plugin: &str, file: &Path) -> String {
        // The path by which the file was named may be relative.
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let hash = Digest::of(file.as_os_str().as_encoded_bytes()).to_string();
        format!("{plugin}-{}", &hash[..16])
    }
}

// === impl VersionId ===

impl VersionId {
    /// Returns the id of a component that runs as its plugin's file says.
    pub(crate) fn of(component: Digest, file: &PluginFile) -> Self {
        Self::of_hex(&component.to_string(), file)
    }

    /// The same, of the digest of a component as 64 hexadecimal digits.
    pub(crate) fn of_hex(component: &str, file: &PluginFile) -> Self {
        Self(Digest::of(format!("{component}{}", file.behaviour()).as_bytes()))
    }
}

impl std::fmt::Display for VersionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Error ===

impl Error {
    fn io(path: &Path, doing: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), doing, source }
    }

    /// Returns what the operator can do, as an imperative.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Io { .. } => WRITABLE,
            Self::Damaged { .. } => {
                "find out whether another program or another version of the host writes to the folder of \
                 --state-dir, and delete the file: the host writes a new one when it next keeps a version"
            }
            Self::OtherVersion { .. } => {
                "if another host uses this folder, name a folder of its own with --state-dir"
            }
        }
    }

    fn damaged(path: &Path, why: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), why: why.into() }
    }
}

#[cfg(test)]
mod tests;
