//! The kubeconfig for kubectl: a file that only its owner can read, there from the moment the API server is ready until it ends.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// The file. Dropping it removes it, unless someone else has replaced it meanwhile.
pub(super) struct KubeconfigFile {
    path: PathBuf,
    text: String,
}

// === impl KubeconfigFile ===

impl KubeconfigFile {
    pub(super) fn write(path: &Path, text: &str) -> io::Result<Self> {
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        // Written beside and moved there, so that nobody ever reads half of it.
        let name = path.file_name().ok_or_else(|| io::Error::other("the path names no file"))?;
        let beside = folder.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        Ok(Self { path: path.to_owned(), text: text.to_owned() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for KubeconfigFile {
    fn drop(&mut self) {
        if fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            // A stale kubeconfig misleads, but is no reason to fail at the end.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_its_owner_reads_it_and_it_goes_with_the_server() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deeper/kubeconfig");
        let file = KubeconfigFile::write(&path, "one").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let later = KubeconfigFile::write(&path, "two").unwrap();
        drop(file);
        assert!(path.exists(), "it is another's now");
        drop(later);
        assert!(!path.exists());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 0);
    }
}
