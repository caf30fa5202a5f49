//! A handler that hears only of the objects that a function picks.

use super::EventHandler;
use crate::object::Object;

/// Passes on to a handler what concerns the objects for which a function answers true.
///
/// An object that begins to be picked is an add (never part of an initial list), one that ceases to be is a delete of its old state.
/// Of a delete the function is asked with the last state that is known, also when the deletion itself was missed.
///
/// What labels, namespaces and fields can say is better said in [`ListenerConfig`](crate::ListenerConfig): there it costs no call.
pub struct FilteringHandler<F, H> {
    filter: F,
    handler: H,
}

// === impl FilteringHandler ===

impl<F: FnMut(&Object) -> bool + Send, H: EventHandler> FilteringHandler<F, H> {
    /// Puts a filter before a handler.
    #[must_use]
    pub fn new(filter: F, handler: H) -> Self {
        Self { filter, handler }
    }
}

impl<F: FnMut(&Object) -> bool + Send, H: EventHandler> EventHandler for FilteringHandler<F, H> {
    fn on_add(&mut self, object: &Object, is_in_initial_list: bool) {
        if (self.filter)(object) {
            self.handler.on_add(object, is_in_initial_list);
        }
    }

    fn on_update(&mut self, old: &Object, new: &Object) {
        // New is asked about before old (EH-02).
        let is_picked = (self.filter)(new);
        let was_picked = (self.filter)(old);
        match (is_picked, was_picked) {
            (true, true) => self.handler.on_update(old, new),
            (true, false) => self.handler.on_add(new, false),
            (false, true) => self.handler.on_delete(old, false),
            (false, false) => {}
        }
    }

    fn on_delete(&mut self, object: &Object, final_state_unknown: bool) {
        if (self.filter)(object) {
            self.handler.on_delete(object, final_state_unknown);
        }
    }
}
