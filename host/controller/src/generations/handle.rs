//! Writes the state of one generation, from its preparation to the end of its last call.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::{GenerationState, Generations, Purpose, Record};

/// One generation. Cheap to clone: dropping the last clone ends the generation.
#[derive(Clone)]
pub(crate) struct GenerationHandle {
    inner: Arc<Inner>,
}

struct Inner {
    generations: Generations,
    number: u64,
    purpose: Purpose,
    is_left: AtomicBool,
    at_switch: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

// === impl GenerationHandle ===

impl GenerationHandle {
    pub(super) fn new(generations: Generations, number: u64, purpose: Purpose) -> Self {
        let (is_left, at_switch) = (AtomicBool::new(false), Mutex::default());
        Self { inner: Arc::new(Inner { generations, number, purpose, is_left, at_switch }) }
    }

    /// Returns the number of the generation.
    #[cfg(test)]
    pub(crate) fn number(&self) -> u64 {
        self.inner.number
    }

    /// Notes that its code is loaded.
    pub(crate) fn compiled(&self, digest: String) {
        self.change(|record| record.view.digest = Some(digest));
        self.enter(GenerationState::Compiled, "its code is loaded");
    }

    /// Notes that the host accepts its description.
    pub(crate) fn checked(&self, version: String) {
        self.change(|record| record.view.version = Some(version));
        self.enter(GenerationState::Checked, "it described itself");
    }

    /// Notes that it waits for rights.
    pub(crate) fn forbidden(&self, reason: &str) {
        self.enter(GenerationState::Forbidden, reason);
    }

    /// Notes that its rights are granted.
    pub(crate) fn warming(&self) {
        self.enter(GenerationState::Warming, "its rights are granted; its caches sync, and it starts");
    }

    /// Has something done when the dispatcher switches to it, before its first call. For a generation that
    /// never serves it is not done.
    pub(crate) fn at_switch(&self, action: impl FnOnce() + Send + 'static) {
        *self.inner.at_switch.lock() = Some(Box::new(action));
    }

    /// Notes that the dispatcher switched to it.
    pub(crate) fn serving(&self) {
        let reason = match self.inner.purpose {
            Purpose::Newest => "the host switched to it",
            Purpose::Before => "the host went back to it",
            Purpose::LastGood => "it is the last good version, and the newest one cannot be used",
        };
        self.enter(GenerationState::Serving, reason);
        let action = self.inner.at_switch.lock().take();
        if let Some(action) = action {
            action();
        }
    }

    /// Notes that the dispatcher goes back from it to another generation, and that it is not tried again.
    pub(crate) fn quarantined(&self, reason: &str) {
        self.enter(GenerationState::Quarantined, reason);
    }

    /// Notes that the dispatcher switched to another generation. One that was rolled back stays quarantined.
    pub(crate) fn draining(&self, next: u64) {
        if self.inner.state().is_some_and(|state| !state.is_final()) {
            self.enter(GenerationState::Draining, &format!("generation {next} serves"));
        }
    }

    /// Counts an instance that it lost.
    pub(crate) fn instance_lost(&self) {
        self.change(|record| record.view.instances_lost += 1);
    }

    /// Removes the generation from the list: the version that serves was made of the same.
    pub(crate) fn withdraw(&self) {
        let Inner { generations, number, .. } = &*self.inner;
        generations.list.lock().generations.retain(|it| it.view.number != *number);
    }

    /// Leaves the generation in its state: whether it failed or is tried again is noted by its number.
    pub(crate) fn leave(&self) {
        self.inner.is_left.store(true, Ordering::Relaxed);
    }

    fn change(&self, change: impl FnOnce(&mut Record)) {
        self.inner.generations.change(self.inner.number, change);
    }

    fn enter(&self, state: GenerationState, reason: &str) {
        self.inner.generations.enter(self.inner.number, state, reason);
    }
}

impl fmt::Debug for GenerationHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { generations, number, .. } = &*self.inner;
        write!(f, "GenerationHandle({}#{number})", generations.plugin)
    }
}

// === impl Inner ===

impl Inner {
    fn state(&self) -> Option<GenerationState> {
        let mut state = None;
        self.generations.change(self.number, |record| state = Some(record.view.state));
        state
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if *self.is_left.get_mut() {
            return;
        }
        let reason = match self.state() {
            None => return,
            Some(state) if state.is_final() => return,
            // It may be read again, as while another process writes it. The list shows no attempt twice.
            Some(GenerationState::Fetched | GenerationState::Compiled) => return,
            Some(GenerationState::Draining) => "its last calls have ended",
            Some(GenerationState::Serving) => "its plugin was unloaded, or the host stops",
            Some(_) => "it was replaced before it served",
        };
        self.generations.enter(self.number, GenerationState::Gone, reason);
    }
}
