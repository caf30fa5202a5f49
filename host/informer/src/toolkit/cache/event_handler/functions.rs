//! A handler made of functions.

use super::EventHandler;
use crate::object::Object;

/// A handler of up to three functions (client-go: `ResourceEventHandlerFuncs`). It ignores events without a
/// function.
///
/// ```
/// # use oarlock_informer::toolkit::cache::HandlerFunctions;
/// let handler = HandlerFunctions::new()
///     .on_add(|object, is_in_initial_list| println!("add {} {is_in_initial_list}", object.key()))
///     .on_delete(|object, final_state_unknown| println!("delete {} {final_state_unknown}", object.key()));
/// # drop(handler);
/// ```
#[derive(Default)]
#[must_use]
pub struct HandlerFunctions {
    on_add: Option<Box<OnAdd>>,
    on_update: Option<Box<OnUpdate>>,
    on_delete: Option<Box<OnDelete>>,
}

type OnAdd = dyn FnMut(&Object, bool) + Send;
type OnUpdate = dyn FnMut(&Object, &Object) + Send;
type OnDelete = dyn FnMut(&Object, bool) + Send;

// === impl HandlerFunctions ===

impl HandlerFunctions {
    /// Returns a handler without functions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the function for added objects. Its second argument is true for an object of an initial list.
    pub fn on_add(mut self, function: impl FnMut(&Object, bool) + Send + 'static) -> Self {
        self.on_add = Some(Box::new(function));
        self
    }

    /// Sets the function for updated objects. Its arguments are the old and the new state.
    pub fn on_update(mut self, function: impl FnMut(&Object, &Object) + Send + 'static) -> Self {
        self.on_update = Some(Box::new(function));
        self
    }

    /// Sets the function for deleted objects. Its second argument is true if the final state is unknown.
    pub fn on_delete(mut self, function: impl FnMut(&Object, bool) + Send + 'static) -> Self {
        self.on_delete = Some(Box::new(function));
        self
    }
}

impl EventHandler for HandlerFunctions {
    fn on_add(&mut self, object: &Object, is_in_initial_list: bool) {
        if let Some(on_add) = &mut self.on_add {
            on_add(object, is_in_initial_list);
        }
    }

    fn on_update(&mut self, old: &Object, new: &Object) {
        if let Some(on_update) = &mut self.on_update {
            on_update(old, new);
        }
    }

    fn on_delete(&mut self, object: &Object, final_state_unknown: bool) {
        if let Some(on_delete) = &mut self.on_delete {
            on_delete(object, final_state_unknown);
        }
    }
}
