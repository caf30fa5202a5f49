//! Adds handlers to an informer and removes them.

use super::{SharedInformer, Stopped};
use crate::listener::{ListenerConfig, ListenerHandle};
use crate::toolkit::cache::{EventHandler, Handling};

// === impl SharedInformer ===

impl SharedInformer {
    /// Adds a handler, at any time. It receives the objects in the cache as initial adds.
    ///
    /// Returns the future that calls the handler, which ends when the informer stops or the handler is
    /// removed. Dropping the future removes the handler. [`Handling::registration`] returns whether the
    /// handler has synced, and removes it. A handler that is added twice is called twice.
    ///
    /// ```
    /// # use oarlock_informer::{ListenerConfig, SharedInformer, toolkit::cache::EventHandler};
    /// # fn example(
    /// #     informer: &SharedInformer,
    /// #     handler: impl EventHandler + 'static,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let handling = informer.add_event_handler(ListenerConfig::default(), handler)?;
    /// let registration = handling.registration().clone();
    /// tokio::spawn(handling);
    /// # drop(registration);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The future cannot be forgotten; this code does not compile:
    ///
    /// ```compile_fail
    /// # use oarlock_informer::{ListenerConfig, SharedInformer, toolkit::cache::EventHandler};
    /// # fn example(informer: &SharedInformer, handler: impl EventHandler + 'static) {
    /// let (registration, _future) = informer.add_event_handler(ListenerConfig::default(), handler).unwrap();
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When the informer has stopped.
    pub fn add_event_handler(
        &self,
        config: ListenerConfig,
        handler: impl EventHandler + 'static,
    ) -> Result<Handling, Stopped> {
        Ok(Handling::new(self.add_listener(config)?, handler))
    }

    /// Removes a listener or handler and drops its backlog. Deliveries in flight continue. Returns whether it
    /// was registered with this informer; does nothing otherwise.
    pub fn remove_listener(&self, listener: &ListenerHandle) -> bool {
        self.core.processor.remove(listener.shared())
    }
}
