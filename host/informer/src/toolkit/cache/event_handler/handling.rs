//! The future that calls a handler.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;

use super::{EventHandler, Registration, deliver};
use crate::listener::Listener;

/// Calls a handler, while it is polled: nothing is called before somebody spawns it or awaits it.
///
/// It ends when the informer stops or the handler is removed. Dropping it removes the handler.
#[must_use = "the handler is called by this future alone: spawn it or await it"]
pub struct Handling {
    registration: Registration,
    delivering: BoxFuture<'static, ()>,
    was_polled: bool,
}

// === impl Handling ===

impl Handling {
    pub(crate) fn new(listener: Listener, handler: impl EventHandler + 'static) -> Self {
        let (registration, delivering) = Registration::new(listener.handle());
        let deliver = async move {
            delivering.begin();
            deliver(listener, handler).await;
        };
        Self { registration, delivering: deliver.boxed(), was_polled: false }
    }

    /// Returns what the handler is asked for and removed by. Clone it before the future is spawned.
    #[must_use]
    pub fn registration(&self) -> &Registration {
        &self.registration
    }
}

impl Future for Handling {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.was_polled = true;
        self.delivering.poll_unpin(context)
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        if !self.was_polled && !self.registration.is_closed() {
            tracing::warn!(
                listener = self.registration.name(),
                "a handler was removed before it was ever called: the future that calls it was dropped, not spawned or awaited"
            );
        }
    }
}

impl fmt::Debug for Handling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handling({})", self.registration.name())
    }
}
