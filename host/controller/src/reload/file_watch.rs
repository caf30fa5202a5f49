//! Tells when a file might have changed: at once where the system says so, else every few seconds.
//!
//! It watches folders, not files, because a file that is replaced is another file. What changed is for others to find out.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use crate::report::{HostEvent, Reporter};

/// How often everything is looked at, whatever the system says.
const POLL: Duration = Duration::from_secs(2);

/// Changes come in bursts; one is over when nothing has come for this long.
const QUIET: Duration = Duration::from_millis(150);

/// A burst that does not end is looked at all the same.
const BURST: Duration = Duration::from_secs(1);

/// Watches folders.
pub(super) struct FileWatch {
    watcher: Option<RecommendedWatcher>,
    folders: BTreeSet<PathBuf>,
    changed: Arc<Notify>,
}

// === impl FileWatch ===

impl FileWatch {
    /// Makes one that watches nothing yet. Without the system's help it only polls, and says so.
    pub(super) fn new(reporter: &Reporter) -> Self {
        let changed = Arc::new(Notify::new());
        let notified = changed.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // An error may mean that events were lost.
            if event.map_or(true, |event| is_change(&event.kind)) {
                notified.notify_one();
            }
        });
        let watcher = watcher
            .inspect_err(|error| reporter.report(HostEvent::FileWatchTrouble { message: error.to_string() }))
            .ok();
        Self { watcher, folders: BTreeSet::new(), changed }
    }

    /// Watches these folders from now on, and no others. One that is not there (yet) is left to polling.
    pub(super) fn set(&mut self, folders: BTreeSet<PathBuf>) {
        let Some(watcher) = &mut self.watcher else { return };
        for gone in self.folders.difference(&folders) {
            // It may be gone from the disk, too.
            let _ = watcher.unwatch(gone);
        }
        let mut watched: BTreeSet<_> = self.folders.intersection(&folders).cloned().collect();
        for folder in folders.difference(&self.folders) {
            match watcher.watch(folder, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    watched.insert(folder.clone());
                }
                Err(error) => tracing::debug!(folder = %folder.display(), %error, "a folder is only polled"),
            }
        }
        self.folders = watched;
    }

    /// Waits until something may have changed, and until the changes have calmed down.
    pub(super) async fn changed(&self) {
        tokio::select! {
            () = self.changed.notified() => {}
            () = tokio::time::sleep(POLL) => return,
        }
        let calm = async { while tokio::time::timeout(QUIET, self.changed.notified()).await.is_ok() {} };
        // Either way it is time to look.
        let _ = tokio::time::timeout(BURST, calm).await;
    }
}

/// Reading is none, or every look would be the reason for the next.
fn is_change(kind: &EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if *access != AccessKind::Close(AccessMode::Write))
}
