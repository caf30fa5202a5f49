//! The folder of one control plane: credentials, data and logs.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Error;

/// What the API server writes to its audit log: who changed what, without contents.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, verbs: [get, list, watch]}
- {level: Metadata}
";

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

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.logs().join("audit.log")
    }

    /// Writes the audit policy, and returns its path.
    pub(crate) fn write_audit_policy(&self) -> Result<PathBuf, Error> {
        let path = self.temporary.path().join("audit-policy.yaml");
        fs::write(&path, AUDIT_POLICY).map_err(Error::io("cannot write", &path))?;
        Ok(path)
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
            let _ = fs::remove_file(self.temporary.path().join("audit-policy.yaml"));
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.remove();
    }
}
