//! Adding handlers to an informer, and removing them.

use futures::FutureExt;
use futures::future::BoxFuture;

use super::{SharedInformer, Stopped};
use crate::event_handler::{self, EventHandler, Registration};
use crate::listener::{ListenerConfig, ListenerHandle};

// === impl SharedInformer ===

impl SharedInformer {
    /// Adds a handler, at any time. What the cache holds comes to it as initial adds.
    ///
    /// Returns what the caller needs to ask for it and to remove it, and the future that calls it, which ends when the informer stops or
    /// the handler is removed; dropping that future removes the handler. Adding one handler twice is adding two.
    ///
    /// # Errors
    ///
    /// When the informer has stopped.
    pub fn add_event_handler(
        &self,
        config: ListenerConfig,
        handler: impl EventHandler + 'static,
    ) -> Result<(Registration, BoxFuture<'static, ()>), Stopped> {
        let listener = self.add_listener(config)?;
        let (registration, delivering) = Registration::new(listener.handle());
        let deliver = async move {
            delivering.begin();
            event_handler::deliver(listener, handler).await;
        };
        Ok((registration, deliver.boxed()))
    }

    /// Removes a listener or handler: what waits for it is dropped, what is in flight goes on. Answers whether it was one of this
    /// informer's: one that was removed before, and one of another informer, is left as it is.
    pub fn remove_listener(&self, listener: &ListenerHandle) -> bool {
        self.core.processor.remove(listener.shared())
    }
}
