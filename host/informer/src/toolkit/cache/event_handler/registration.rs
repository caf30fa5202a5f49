//! What is left in one's hand of a handler that was registered.

use std::ops::Deref;

use tokio::sync::watch;

use crate::listener::ListenerHandle;

/// A registered handler. Clones are of the same one, and dropping them changes nothing.
///
/// It dereferences to the [`ListenerHandle`], which knows whether the handler has synced and what waits for it.
#[derive(Clone)]
pub struct Registration {
    handle: ListenerHandle,
    progress: watch::Sender<Progress>,
}

/// How far the future is that calls the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    NotBegun,
    Begun,
    Ended,
}

/// The other end, in the future that calls the handler.
pub(crate) struct Delivering(watch::Sender<Progress>);

// === impl Registration ===

impl Registration {
    pub(crate) fn new(handle: ListenerHandle) -> (Self, Delivering) {
        let progress = watch::channel(Progress::NotBegun).0;
        (Self { handle, progress: progress.clone() }, Delivering(progress))
    }

    /// Removes the handler: what waits for it is dropped, a call that is under way goes on. Removing it again does nothing.
    pub fn remove(&self) {
        self.handle.remove();
    }

    /// Removes the handler and waits until the last call has returned. Returns at once if it never was called.
    ///
    /// Waiting for this inside the handler itself would never end.
    pub async fn shut_down(&self) {
        self.remove();
        // The sender is in what this handle holds.
        let _ = self.progress.subscribe().wait_for(|progress| *progress != Progress::Begun).await;
    }
}

impl Deref for Registration {
    type Target = ListenerHandle;

    fn deref(&self) -> &ListenerHandle {
        &self.handle
    }
}

// === impl Delivering ===

impl Delivering {
    /// To be called before anything else that the future does.
    pub(crate) fn begin(&self) {
        self.0.send_replace(Progress::Begun);
    }
}

impl Drop for Delivering {
    fn drop(&mut self) {
        self.0.send_replace(Progress::Ended);
    }
}
