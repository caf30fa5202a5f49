//! What can be set until an informer starts.

use parking_lot::Mutex;

use super::SharedInformer;
use crate::delta_fifo::Transformer;
use crate::reflector::WatchErrorHandler;

/// The informer runs, or has run: this cannot be set any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("informer has already started")]
pub struct AlreadyStarted;

/// What was set so far; none once the informer has started.
pub(super) struct Settings(Mutex<Option<Set>>);

#[derive(Clone, Default)]
pub(super) struct Set {
    pub(super) transformer: Option<Transformer>,
    pub(super) watch_error_handler: Option<WatchErrorHandler>,
}

// === impl Settings ===

impl Settings {
    pub(super) fn new(set: Set) -> Self {
        Self(Mutex::new(Some(set)))
    }

    /// Returns what was set, and lets nothing be set from now on.
    pub(super) fn seal(&self) -> Set {
        self.0.lock().take().unwrap_or_default()
    }

    fn change(&self, change: impl FnOnce(&mut Set)) -> Result<(), AlreadyStarted> {
        self.0.lock().as_mut().map(change).ok_or(AlreadyStarted)
    }
}

// === impl SharedInformer ===

impl SharedInformer {
    /// Says what changes every object on its way in, in place of what was said before.
    ///
    /// # Errors
    ///
    /// Once the informer has started.
    pub fn set_transformer(&self, transformer: Transformer) -> Result<(), AlreadyStarted> {
        self.core.settings.change(|set| set.transformer = Some(transformer))
    }

    /// Says who is told when a list or watch fails, in place of the log or whom was named before.
    ///
    /// # Errors
    ///
    /// Once the informer has started.
    pub fn set_watch_error_handler(&self, handler: WatchErrorHandler) -> Result<(), AlreadyStarted> {
        self.core.settings.change(|set| set.watch_error_handler = Some(handler))
    }
}
