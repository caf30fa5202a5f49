//! Adding handlers to an informer, and removing them.

use super::{SharedInformer, Stopped};
use crate::event_handler::{EventHandler, Handling};
use crate::listener::{ListenerConfig, ListenerHandle};

// === impl SharedInformer ===

impl SharedInformer {
    /// Adds a handler, at any time. What the cache holds comes to it as initial adds.
    ///
    /// Returns the future that calls it, which ends when the informer stops or the handler is removed; dropping that future removes the
    /// handler. What the caller needs to ask for the handler and to remove it is [`Handling::registration`]. Adding one handler twice is
    /// adding two.
    ///
    /// ```
    /// # use oarlock_informer::{EventHandler, ListenerConfig, SharedInformer};
    /// # fn example(informer: &SharedInformer, handler: impl EventHandler + 'static) -> Result<(), Box<dyn std::error::Error>> {
    /// let handling = informer.add_event_handler(ListenerConfig::default(), handler)?;
    /// let registration = handling.registration().clone();
    /// tokio::spawn(handling);
    /// # drop(registration);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Code that takes the registration and forgets the future is not compiled:
    ///
    /// ```compile_fail
    /// # use oarlock_informer::{EventHandler, ListenerConfig, SharedInformer};
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

    /// Removes a listener or handler: what waits for it is dropped, what is in flight goes on. Answers whether it was one of this
    /// informer's: one that was removed before, and one of another informer, is left as it is.
    pub fn remove_listener(&self, listener: &ListenerHandle) -> bool {
        self.core.processor.remove(listener.shared())
    }
}
