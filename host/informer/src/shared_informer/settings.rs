//! Settings that can be changed until an informer starts.

use parking_lot::Mutex;

use super::{Lifecycle, SharedInformer};
use crate::delta_fifo::Transformer;
use crate::reflector::WatchErrorHandler;

/// The informer has started, so this setting cannot be changed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("informer has already started")]
pub struct AlreadyStarted;

/// The settings, which the start takes.
pub(super) struct Settings(Mutex<Set>);

/// The settings of an informer.
#[derive(Clone, Default)]
pub(super) struct Set {
    pub(super) transformer: Option<Transformer>,
    pub(super) watch_error_handler: Option<WatchErrorHandler>,
}

// === impl Settings ===

impl Settings {
    pub(super) fn new(set: Set) -> Self {
        Self(Mutex::new(set))
    }

    /// Returns the settings. Called once the informer counts as started.
    pub(super) fn take(&self) -> Set {
        std::mem::take(&mut self.0.lock())
    }
}

// === impl SharedInformer ===

impl SharedInformer {
    /// Sets the transformer, which changes each object before it is queued. Replaces the one set before.
    ///
    /// # Errors
    ///
    /// When the informer has started.
    pub fn set_transformer(&self, transformer: Transformer) -> Result<(), AlreadyStarted> {
        self.change_settings(|set| set.transformer = Some(transformer))
    }

    /// Sets the handler that is called when a list or watch fails. Replaces the one set before, and the log.
    ///
    /// # Errors
    ///
    /// When the informer has started.
    pub fn set_watch_error_handler(&self, handler: WatchErrorHandler) -> Result<(), AlreadyStarted> {
        self.change_settings(|set| set.watch_error_handler = Some(handler))
    }

    fn change_settings(&self, change: impl FnOnce(&mut Set)) -> Result<(), AlreadyStarted> {
        let mut set = self.core.settings.0.lock();
        // A start after this check waits for the lock before it takes the settings.
        if self.lifecycle() != Lifecycle::Created {
            return Err(AlreadyStarted);
        }
        change(&mut set);
        Ok(())
    }
}
