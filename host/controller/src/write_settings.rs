//! Whether the writes of a plugin are stored, sent as dry runs, or fail.
//!
//! A version has what its own file says. The newest file counts as well, whichever version serves, and from
//! the moment on at which it is read: an operator who suspends writes does not wait until a new version is
//! ready, and need not have one that can be used.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::config::PluginFile;
use crate::shadow;
use crate::status::Writes;

/// What the newest file of a plugin says. Cheap to clone: clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewestFile {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    suspends: AtomicBool,
    dry_run: AtomicBool,
}

/// What holds for the writes of one version.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteSettings {
    suspends: bool,
    dry_run: bool,
    /// The version is a shadow: none of its writes is sent.
    withholds: bool,
    newest: NewestFile,
}

// === impl NewestFile ===

impl NewestFile {
    /// Notes what the newest file says. Returns whether it allows writes that it did not allow before.
    pub(crate) fn set(&self, file: &PluginFile) -> bool {
        let Shared { suspends, dry_run } = &*self.shared;
        dry_run.store(file.dry_run, Ordering::Release);
        suspends.swap(file.suspend_writes, Ordering::AcqRel) && !file.suspend_writes
    }
}

// === impl WriteSettings ===

impl WriteSettings {
    /// Returns the settings of the version that was made of `file`.
    pub(crate) fn of(file: &PluginFile, newest: &NewestFile) -> Self {
        let withholds = shadow::serving_of(&file.name).is_some();
        Self { suspends: file.suspend_writes, dry_run: file.dry_run, withholds, newest: newest.clone() }
    }

    /// Returns whether writes fail with `suspended`.
    pub(crate) fn suspends(&self) -> bool {
        self.suspends || self.newest.shared.suspends.load(Ordering::Acquire)
    }

    /// Returns whether writes are sent as dry runs, so that the API server checks them and stores nothing.
    pub(crate) fn dry_run(&self) -> bool {
        self.dry_run || self.newest.shared.dry_run.load(Ordering::Acquire)
    }

    /// Returns what becomes of the writes.
    pub(crate) fn writes(&self) -> Writes {
        match (self.withholds, self.suspends(), self.dry_run()) {
            (true, _, _) => Writes::Withheld,
            (false, true, _) => Writes::Suspended,
            (false, false, true) => Writes::DryRun,
            (false, false, false) => Writes::Stored,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn file(more: &str) -> PluginFile {
        let text = format!("name: p\ncomponent: p.wasm\nserviceAccount: {{namespace: a, name: b}}\n{more}");
        PluginFile::parse(Path::new("p.yaml"), &text).unwrap()
    }

    #[test]
    fn the_newest_file_counts_beside_the_version_s_own() {
        let newest = NewestFile::default();
        let [usual, suspended, dry] =
            ["", "suspendWrites: true", "dryRun: true"].map(|more| WriteSettings::of(&file(more), &newest));
        let writes = || [&usual, &suspended, &dry].map(WriteSettings::writes);
        assert_eq!(writes(), [Writes::Stored, Writes::Suspended, Writes::DryRun]);
        assert!(!newest.set(&file("dryRun: true")));
        assert_eq!(writes(), [Writes::DryRun, Writes::Suspended, Writes::DryRun]);
        assert!(!newest.set(&file("suspendWrites: true")));
        assert_eq!(writes(), [Writes::Suspended; 3]);
        assert!(newest.set(&file("")), "it allows writes again");
        assert_eq!(writes(), [Writes::Stored, Writes::Suspended, Writes::DryRun]);
    }

    #[test]
    fn the_writes_of_a_shadow_are_withheld() {
        let shadow = PluginFile { name: "p.shadow".to_owned(), ..file("suspendWrites: true") };
        assert_eq!(WriteSettings::of(&shadow, &NewestFile::default()).writes(), Writes::Withheld);
    }
}
