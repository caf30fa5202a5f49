//! The future that calls a handler.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;

use super::{EventHandler, Registration, deliver};
use crate::listener::Listener;

/// Calls a handler while it is polled: the caller must spawn or await it.
///
/// It ends when the informer stops or the handler is removed. Dropping it removes the handler.
#[must_use = "only this future calls the handler: spawn it or await it"]
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
            delivering.start();
            deliver(listener, handler).await;
        };
        Self { registration, delivering: deliver.boxed(), was_polled: false }
    }

    /// Returns the registration of the handler. Clone it before spawning the future.
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
                "a handler was removed without a call: its future was dropped before it was polled; spawn or await it"
            );
        }
    }
}

impl fmt::Debug for Handling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handling({})", self.registration.name())
    }
}
