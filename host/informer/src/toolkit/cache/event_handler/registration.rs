//! The registration of a handler.

use std::ops::Deref;

use tokio::sync::watch;

use crate::listener::ListenerHandle;

/// A registered handler (client-go: `ResourceEventHandlerRegistration`). Clones share it, and dropping them
/// changes nothing.
///
/// It dereferences to the [`ListenerHandle`], which tells whether the handler has synced, and the size of its
/// backlog.
#[derive(Clone)]
pub struct Registration {
    handle: ListenerHandle,
    progress: watch::Sender<Progress>,
}

/// The progress of the future that calls the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    NotStarted,
    Started,
    Ended,
}

/// The half of the registration in the future that calls the handler.
pub(crate) struct Delivering(watch::Sender<Progress>);

// === impl Registration ===

impl Registration {
    pub(crate) fn new(handle: ListenerHandle) -> (Self, Delivering) {
        let progress = watch::channel(Progress::NotStarted).0;
        (Self { handle, progress: progress.clone() }, Delivering(progress))
    }

    /// Removes the handler and drops its backlog. A running call is not interrupted. A second call does
    /// nothing.
    pub fn remove(&self) {
        self.handle.remove();
    }

    /// Removes the handler and waits until its last call has returned. Returns at once if there was no call.
    ///
    /// The handler itself must not await this: it would wait forever.
    pub async fn shut_down(&self) {
        self.remove();
        // This registration keeps the sender alive, so the wait cannot fail.
        let _ = self.progress.subscribe().wait_for(|progress| *progress != Progress::Started).await;
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
    /// Records that the future runs. Must be its first call.
    pub(crate) fn start(&self) {
        self.0.send_replace(Progress::Started);
    }
}

impl Drop for Delivering {
    fn drop(&mut self) {
        self.0.send_replace(Progress::Ended);
    }
}
