//! Collects the calls of the plugin.

use std::sync::Arc;
use std::time::SystemTime;

use oarlock_plugin::observe::Observe;
use oarlock_plugin::record::Call;
use parking_lot::Mutex;

use crate::clock::CaseClock;

/// The calls since the last look, in the order in which they ended.
pub(crate) struct Watcher {
    clock: Arc<CaseClock>,
    calls: Mutex<Vec<Call>>,
}

// === impl Watcher ===

impl Watcher {
    pub(crate) fn new(clock: Arc<CaseClock>) -> Self {
        Self { clock, calls: Mutex::default() }
    }

    pub(crate) fn take(&self) -> Vec<Call> {
        std::mem::take(&mut *self.calls.lock())
    }
}

impl Observe for Watcher {
    fn now(&self) -> SystemTime {
        self.clock.now()
    }

    fn called(&self, call: Call) {
        self.calls.lock().push(call);
    }
}
