//! Finds out without reading them whether files may have changed since they were read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use super::ReadFiles;
use crate::config::Error;
use crate::regular_file::Stamp;

/// The files are read after this long at the latest, whatever their stamps say.
const READ_AGAIN: Duration = Duration::from_secs(300);

/// The stamp of a file that was modified this short a time ago may be that of its next content.
const SETTLED: Duration = Duration::from_secs(2);

/// The stamps of everything that a reading of the plugin files depended on.
///
/// Hundreds of plugin files take milliseconds to read and parse, which is most of the CPU time of an idle
/// host.
pub(super) struct SeenFiles {
    /// None if a file had an error, or was modified a moment ago.
    stamps: Option<Vec<(PathBuf, Option<Stamp>)>>,
    seen_at: Instant,
}

// === impl SeenFiles ===

impl SeenFiles {
    /// Takes the stamps after the files were read. Blocks.
    pub(super) fn of(sources: &[PathBuf], read: &ReadFiles) -> Self {
        let seen_at = Instant::now();
        let is_of_stamps =
            |error: &Error| matches!(error, Error::EmptyFolder { .. } | Error::Misplaced { .. });
        if !read.loaded.errors.iter().all(is_of_stamps) {
            // Any other error may end without a change of a stamp.
            return Self { stamps: None, seen_at };
        }
        let files = read.loaded.files.iter().flat_map(|file| [&file.path, &file.component]).cloned();
        let paths = sources.iter().flat_map(|source| with_folders_in(source)).chain(files);
        let misplaced = read.loaded.errors.iter().map(|error| error.path().to_owned());
        let paths: BTreeSet<_> = paths.chain(misplaced).chain(read.folders.iter().cloned()).collect();
        let stamps = paths.into_iter().map(|path| {
            let stamp = Stamp::of(&path);
            let is_settled = stamp.is_none_or(|stamp| !stamp.is_younger_than(SETTLED));
            is_settled.then_some((path, stamp))
        });
        Self { stamps: stamps.collect(), seen_at }
    }

    /// Returns whether the files must be read again now, whether they changed or not.
    pub(super) fn is_outdated(&self) -> bool {
        self.stamps.is_none() || self.seen_at.elapsed() >= READ_AGAIN
    }

    /// Returns whether no file seems to have changed. Blocks.
    pub(super) fn is_unchanged(&self) -> bool {
        let stamps = self.stamps.as_ref();
        stamps.is_some_and(|stamps| stamps.iter().all(|(path, stamp)| Stamp::of(path) == *stamp))
    }
}

/// Returns a source, and the folders in it, each of which may get a plugin file.
fn with_folders_in(source: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(source).into_iter().flatten().flatten();
    let folders = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
    std::iter::once(source.to_owned()).chain(folders)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::SystemTime;

    use super::*;
    use crate::config;

    /// Sets the time of the last modification to a minute ago.
    fn settle(path: &Path) {
        File::open(path).unwrap().set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    }

    fn seen(folder: &Path) -> SeenFiles {
        let sources = [folder.to_owned()];
        let loaded = config::load_paths(&sources);
        let read = ReadFiles { loaded, stamps: Default::default(), folders: [folder.to_owned()].into() };
        SeenFiles::of(&sources, &read)
    }

    fn file(name: &str) -> String {
        format!("name: {name}\ncomponent: p.wasm\nserviceAccount: {{namespace: default, name: p}}\n")
    }

    #[tokio::test(start_paused = true)]
    async fn an_empty_folder_is_read_again_when_it_gets_a_file() {
        let dir = tempfile::tempdir().unwrap();
        settle(dir.path());
        let before = seen(dir.path());
        assert!(!before.is_outdated() && before.is_unchanged());
        fs::write(dir.path().join("p.yaml"), file("p")).unwrap();
        assert!(!before.is_unchanged());
    }

    #[tokio::test(start_paused = true)]
    async fn files_are_read_again_when_a_stamp_has_changed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let sub = at("sub");
        fs::create_dir(&sub).unwrap();
        fs::write(at("p.yaml"), file("p")).unwrap();
        fs::write(at("p.wasm"), "").unwrap();
        assert!(seen(dir.path()).is_outdated(), "modified a moment ago");
        let settle_all = || [&at("p.yaml"), &at("p.wasm"), &sub, dir.path()].into_iter().for_each(settle);
        let changes: [(&str, &dyn Fn()); 5] = [
            ("a component", &|| fs::write(at("p.wasm"), "x").unwrap()),
            ("a file of the same length", &|| fs::write(at("p.yaml"), file("q")).unwrap()),
            ("a new file", &|| fs::write(at("q.yaml"), file("s")).unwrap()),
            ("a file in a folder", &|| fs::write(sub.join("plugin.yaml"), file("t")).unwrap()),
            ("a file is gone", &|| fs::remove_file(at("q.yaml")).unwrap()),
        ];
        for (what, change) in changes {
            settle_all();
            for new in [at("q.yaml"), sub.join("plugin.yaml")].iter().filter(|new| new.exists()) {
                settle(new);
            }
            let before = seen(dir.path());
            assert!(!before.is_outdated() && before.is_unchanged(), "before {what}");
            change();
            assert!(!before.is_unchanged(), "{what}");
        }
        settle_all();
        let before = seen(dir.path());
        tokio::time::advance(READ_AGAIN).await;
        assert!(before.is_outdated());
        fs::write(at("bad.yaml"), "?").unwrap();
        settle(&at("bad.yaml"));
        settle_all();
        assert!(seen(dir.path()).is_outdated(), "a file has an error");
    }
}
