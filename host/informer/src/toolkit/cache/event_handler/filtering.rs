//! A handler that gets only the objects that a filter accepts.

use super::EventHandler;
use crate::object::Object;

/// Calls a handler for the objects that a filter accepts (client-go: `FilteringResourceEventHandler`).
///
/// If the filter accepts only the new state of an update, the handler gets an add, never one of an initial
/// list; if it accepts only the old state, a delete of the old state. For a delete the filter gets the last
/// known state, also if the informer missed the deletion.
///
/// To filter by labels, namespaces and fields, use [`ListenerConfig`](crate::ListenerConfig): it needs no
/// call.
pub struct FilteringHandler<F, H> {
    filter: F,
    handler: H,
}

// === impl FilteringHandler ===

impl<F: FnMut(&Object) -> bool + Send, H: EventHandler> FilteringHandler<F, H> {
    /// Returns a handler with a filter.
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
        // The filter gets the new state first (EH-02).
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
