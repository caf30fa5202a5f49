//! The folder of one control plane: credentials, data and logs.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Error;

/// A temporary folder. Dropping it removes it; its logs are kept if a server failed.
#[derive(Debug)]
pub(crate) struct Folder {
    temporary: TempDir,
    keeps_logs: bool,
}

// === impl Folder ===

impl Folder {
    pub(crate) fn new() -> Result<Self, Error> {
        let temporary = tempfile::Builder::new()
            .prefix("oarlock-control-plane-")
            .tempdir()
            .map_err(Error::io("cannot create a folder in", std::env::temp_dir()))?;
        let folder = Self { temporary, keeps_logs: false };
        for path in [folder.credentials(), folder.logs()] {
            fs::create_dir(&path).map_err(Error::io("cannot create", &path))?;
        }
        Ok(folder)
    }

    pub(crate) fn credentials(&self) -> PathBuf {
        self.temporary.path().join("credentials")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.temporary.path().join("data")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.temporary.path().join("logs")
    }

    /// Keeps the logs, whose paths an error has named.
    pub(crate) fn keep_logs(&mut self) {
        self.keeps_logs = true;
    }

    /// Removes the folder. The servers have ended.
    fn remove(&mut self) {
        if self.keeps_logs {
            self.temporary.disable_cleanup(true);
            let remove = |path: &Path| fs::remove_dir_all(path);
            // What cannot be removed lies in the system's folder for temporary files.
            let _ = remove(&self.credentials());
            let _ = remove(&self.data());
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.remove();
    }
}
