//! Notices that a file may have changed: at once where the operating system notifies, else every few seconds.
//!
//! It watches folders, not files, because a replaced file is another file. It does not find out which file
//! changed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use crate::config::Loaded;
use crate::report::{HostEvent, Reporter};

/// How often a wait ends without a notification.
const POLL: Duration = Duration::from_secs(2);

/// A burst of changes is over when no change has come for this long.
const QUIET: Duration = Duration::from_millis(150);

/// The files are read during a burst that lasts longer than this.
const BURST: Duration = Duration::from_secs(1);

/// Watches the folders of plugin files and components.
pub(super) struct FileWatch {
    watcher: Option<RecommendedWatcher>,
    folders: BTreeSet<PathBuf>,
    /// Some folders cannot be watched.
    has_polled_only: bool,
    changed: Arc<Notify>,
}

/// Why a wait for a change has ended.
pub(super) enum Woken {
    /// The operating system has notified of a change.
    Notified,
    /// It is time to look at the files.
    Polled,
}

// === impl FileWatch ===

impl FileWatch {
    /// Creates a watch of no folder. Where the operating system cannot notify, it only polls, and reports
    /// that.
    pub(super) fn new(reporter: &Reporter) -> Self {
        let changed = Arc::new(Notify::new());
        let notified = changed.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Events may have been lost before an error.
            if event.map_or(true, |event| is_change(&event.kind)) {
                notified.notify_one();
            }
        });
        let watcher = watcher
            .inspect_err(|error| reporter.report(HostEvent::FileWatchTrouble { message: error.to_string() }))
            .ok();
        Self { watcher, folders: BTreeSet::new(), has_polled_only: false, changed }
    }

    /// Watches these folders from now on, and no others. A folder that does not exist is only polled.
    pub(super) fn set(&mut self, folders: BTreeSet<PathBuf>) {
        let Some(watcher) = &mut self.watcher else { return };
        for gone in self.folders.difference(&folders) {
            // The folder may be deleted.
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
        self.has_polled_only = watched.len() < folders.len();
        self.folders = watched;
    }

    /// Returns whether the operating system notifies of changes in all folders. It notifies of no change that
    /// another machine makes.
    pub(super) fn notifies(&self) -> bool {
        self.watcher.is_some() && !self.has_polled_only
    }

    /// Waits until a file may have changed, and until the burst of changes is over.
    pub(super) async fn changed(&self) -> Woken {
        tokio::select! {
            () = self.changed.notified() => {}
            () = tokio::time::sleep(POLL) => return Woken::Polled,
        }
        let calm = async { while tokio::time::timeout(QUIET, self.changed.notified()).await.is_ok() {} };
        // Both results mean that it is time to read the files.
        let _ = tokio::time::timeout(BURST, calm).await;
        Woken::Notified
    }
}

/// Returns the folders in which a relevant file may change.
pub(super) fn folders(sources: &[PathBuf], loaded: &Loaded) -> BTreeSet<PathBuf> {
    let sources = sources.iter().flat_map(|source| [Some(source.as_path()), source.parent()]);
    let files = loaded.files.iter().flat_map(|file| [file.path.parent(), file.component.parent()]);
    let errors = loaded.errors.iter().flat_map(|error| [Some(error.path()), error.path().parent()]);
    let folders = sources.chain(files).chain(errors).flatten();
    let folders = folders.map(|it| if it.as_os_str().is_empty() { Path::new(".") } else { it });
    folders.filter(|it| it.is_dir()).map(Path::to_owned).collect()
}

/// Returns whether an event is a change. Reading is none: the host's own reads would cause the next one.
fn is_change(kind: &EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if *access != AccessKind::Close(AccessMode::Write))
}
