//! Finds out which plugin files are gone for good: those that are absent at two looks.
//!
//! An editor that saves by renaming leaves no file of that name for some milliseconds, and `git checkout` or
//! `rsync` for longer. A host that looks in between must not unload the plugin, which loses its state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// How long a file is absent until its plugin is unloaded. Programs that replace a file take less.
const SECOND_LOOK: Duration = Duration::from_secs(1);

/// The plugins whose files were absent at the last look, and since when.
#[derive(Default)]
pub(super) struct AbsentFiles {
    since: BTreeMap<Arc<str>, Instant>,
}

// === impl AbsentFiles ===

impl AbsentFiles {
    /// Takes the plugins whose files are absent at this look. Returns those whose files were absent at a look
    /// [`SECOND_LOOK`] ago too, and forgets them.
    pub(super) fn look(&mut self, absent: BTreeSet<Arc<str>>) -> BTreeSet<Arc<str>> {
        let now = Instant::now();
        self.since.retain(|name, _| absent.contains(name));
        for name in absent {
            self.since.entry(name).or_insert(now);
        }
        let gone: BTreeSet<_> = self
            .since
            .iter()
            .filter(|(_, since)| now.duration_since(**since) >= SECOND_LOOK)
            .map(|(name, _)| name.clone())
            .collect();
        self.since.retain(|name, _| !gone.contains(name));
        gone
    }

    /// Returns when the files must be looked at again; none if no file is absent.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.since.values().min().map(|since| *since + SECOND_LOOK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<Arc<str>> {
        names.iter().map(|name| Arc::from(*name)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_plugin_is_gone_when_its_file_is_absent_at_two_looks() {
        let mut absent = AbsentFiles::default();
        assert_eq!((absent.look(names(&[])), absent.next_look()), (names(&[]), None));
        let begin = Instant::now();
        assert_eq!(absent.look(names(&["a", "b"])), names(&[]));
        assert_eq!(absent.next_look(), Some(begin + SECOND_LOOK));

        tokio::time::advance(SECOND_LOOK / 2).await;
        assert_eq!(
            absent.look(names(&["a", "b", "c"])),
            names(&[]),
            "looks that follow at once do not count"
        );
        // The file of `b` is there again.
        assert_eq!(absent.look(names(&["a", "c"])), names(&[]));

        tokio::time::sleep_until(begin + SECOND_LOOK).await;
        assert_eq!(absent.look(names(&["a", "b", "c"])), names(&["a"]), "`b` was there meanwhile");
        assert_eq!(absent.next_look(), Some(begin + SECOND_LOOK * 3 / 2));
        tokio::time::advance(SECOND_LOOK).await;
        assert_eq!(absent.look(names(&["b", "c"])), names(&["b", "c"]));
        assert_eq!(absent.next_look(), None);
    }
}
