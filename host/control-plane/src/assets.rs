//! The folder with the two executables.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::Error;

/// The names of the executables, as in kubebuilder's assets.
pub(crate) const ETCD: &str = "etcd";
pub(crate) const KUBE_APISERVER: &str = "kube-apiserver";

/// How the folders begin that `cargo xtask control-plane` builds; the rest of a name is a digest of its
/// sources.
const BUILT: &str = "control-plane-servers-";

/// A folder with the files `etcd` and `kube-apiserver`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assets {
    folder: PathBuf,
}

// === impl Assets ===

impl Assets {
    /// Checks that the folder has both files.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] for the first file that is not there.
    pub fn in_folder(folder: &Path) -> Result<Self, Error> {
        for program in [ETCD, KUBE_APISERVER] {
            if !folder.join(program).is_file() {
                return Err(Error::Missing { folder: folder.to_owned(), program });
            }
        }
        Ok(Self { folder: folder.to_owned() })
    }

    /// Returns the newest assets that `cargo xtask control-plane` has built into a cache folder, such as
    /// `~/.cache/oarlock`.
    #[must_use]
    pub fn newest_built(cache: &Path) -> Option<Self> {
        let built = |entry: fs::DirEntry| -> Option<(SystemTime, Self)> {
            let name = entry.file_name().into_string().ok()?;
            // A folder with a dot in its name is a build that has not ended yet.
            if !name.starts_with(BUILT) || name.contains('.') {
                return None;
            }
            Some((entry.metadata().ok()?.modified().ok()?, Self::in_folder(&entry.path()).ok()?))
        };
        let entries = fs::read_dir(cache).ok()?.filter_map(Result::ok);
        entries.filter_map(built).max_by_key(|(modified, _)| *modified).map(|(_, assets)| assets)
    }

    /// Returns the folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_complete_folder_is_found() {
        let cache = tempfile::tempdir().unwrap();
        assert_eq!(Assets::newest_built(cache.path()), None);
        let make = |name: &str, programs: &[&str], seconds: u64| {
            let folder = cache.path().join(name);
            fs::create_dir(&folder).unwrap();
            for program in programs {
                fs::write(folder.join(program), "").unwrap();
            }
            let modified = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            fs::File::open(&folder).unwrap().set_modified(modified).unwrap();
            folder
        };
        make("control-plane-servers-1", &[ETCD, KUBE_APISERVER], 1);
        let newest = make("control-plane-servers-2", &[ETCD, KUBE_APISERVER], 2);
        make("control-plane-servers-3", &[ETCD], 3);
        make("control-plane-servers-4.partial", &[ETCD, KUBE_APISERVER], 4);
        make("compiled", &[ETCD, KUBE_APISERVER], 5);
        assert_eq!(Assets::newest_built(cache.path()), Some(Assets { folder: newest }));
    }
}
