//! The kubeconfig for kubectl: a file that only its owner can read. It exists from when the API server is
//! ready until it ends.
//!
//! A file that `oarlock dev` did not write is never overwritten and never removed. Two properties identify a
//! file of `dev`: a comment in its first line, and a file lock that its process holds. The kernel releases
//! the lock however the process ends, so a file with the comment and without the lock is left over and may be
//! reused.

mod file;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use self::file::{Claimed, Taken, claim, retire};
use crate::telemetry;

/// The path if the command line names none.
const DEFAULT: &str = ".oarlock/kubeconfig";

/// The beginning of the first line of every file that `oarlock dev` writes.
const MARKER: &str = "# Written by `oarlock dev`";

/// The number of names that are tried in the default folder.
const NAMES: u32 = 1_000;

/// The file. Dropping it removes the file, if its content has not changed.
pub(super) struct KubeconfigFile {
    path: PathBuf,
    text: String,
    /// Holds the lock.
    claimed: Claimed,
}

/// Why the kubeconfig cannot be written.
#[derive(Debug)]
pub(super) enum Error {
    /// The path has a file that this process must not replace.
    Taken(Taken),
    /// The system returned an error.
    Io(io::Error),
}

// === impl KubeconfigFile ===

impl KubeconfigFile {
    /// Writes the file at the path that the command line names, or at the default path. If the default path
    /// is taken, chooses another name in the same folder.
    pub(super) fn write(given: Option<&Path>, kubeconfig: &str) -> Result<Self, (PathBuf, Error)> {
        match given {
            Some(path) => Self::write_at(path, kubeconfig).map_err(|error| (path.to_owned(), error)),
            None => Self::write_beside(Path::new(DEFAULT), kubeconfig),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn write_beside(default: &Path, kubeconfig: &str) -> Result<Self, (PathBuf, Error)> {
        let mut path = default.to_owned();
        let mut number = 1;
        loop {
            match Self::write_at(&path, kubeconfig) {
                Err(Error::Taken(_)) if number < NAMES => {
                    number += 1;
                    path = default.with_file_name(format!("kubeconfig-{number}"));
                }
                written => return written.map_err(|error| (path, error)),
            }
        }
    }

    fn write_at(path: &Path, kubeconfig: &str) -> Result<Self, Error> {
        let text =
            format!("{MARKER}, process {}, which removes it when it ends.\n{kubeconfig}", std::process::id());
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        match fs::create_dir_all(folder) {
            // "File exists" would confuse the user, who did not ask to create the folder.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(io::Error::from(io::ErrorKind::NotADirectory).into());
            }
            made => made?,
        }
        let claimed = claim(path, folder, &text)?;
        Ok(Self { path: path.to_owned(), text, claimed })
    }
}

impl Drop for KubeconfigFile {
    fn drop(&mut self) {
        // A stale kubeconfig is misleading, but the command still succeeds.
        match retire(&self.path, &self.claimed, &self.text) {
            Ok(true) => {}
            Ok(false) => {
                telemetry::print_at_end(format!(
                    "the kubeconfig {} was changed by another program and is not removed\n",
                    self.path.display()
                ));
            }
            Err(error) => telemetry::print_at_end(format!(
                "the kubeconfig {} cannot be removed: {error}\n",
                self.path.display()
            )),
        }
    }
}

// === impl Error ===

impl Error {
    /// Returns how the user can solve it.
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::Taken(Taken::Foreign | Taken::Symlink) => {
                "name a file that does not exist, or leave out --kubeconfig: then the file is .oarlock/kubeconfig; to use this \
                 path, move the existing file away"
            }
            Self::Taken(Taken::Folder) => "name a file in that folder",
            Self::Taken(Taken::Special) => "name a file that does not exist",
            Self::Taken(Taken::InUse) => "name another file, or end the other process",
            Self::Io(_) => "name a file in a writable folder with --kubeconfig",
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Taken(Taken::Foreign) => {
                f.write_str("the file exists and was not written by `oarlock dev`, so it is not overwritten")
            }
            Self::Taken(Taken::Symlink) => f.write_str("it is a symbolic link, which is not followed"),
            Self::Taken(Taken::Folder) => f.write_str("it is a folder"),
            Self::Taken(Taken::Special) => f.write_str("it is not a regular file"),
            Self::Taken(Taken::InUse) => {
                f.write_str("it belongs to another `oarlock dev` that is still running")
            }
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests;
