//! client-go's event handlers: three functions, and a future that calls them.
//!
//! The consumer of a [`Listener`] pulls notifications, may wait, and reports the outcome of each delivery.
//! Most handlers need none of that: they add a key to a queue or count something. They implement
//! [`EventHandler`]. [`SharedInformer::add_event_handler`](crate::SharedInformer::add_event_handler) returns
//! a [`Handling`], the future that calls the handler, and with it a [`Registration`]. The caller runs the
//! future; before that, no call is made.
//!
//! A handler gets one call at a time, and the calls for one object in order. A slow handler blocks only its
//! own task, and only its own backlog merges. After a panic the handler is called for the next notification;
//! the notification at which it panicked is parked (see [`Outcome::Park`]) and comes again, merged into the
//! next one of its object.

mod filtering;
mod functions;
mod handling;
mod registration;

use std::time::Duration;

use tokio::task::coop;
use tokio::time::Instant;

use crate::listener::{Delivery, Listener, Notification, Outcome};
use crate::object::Object;
use crate::user_function::{self, UserFunction};

pub use filtering::FilteringHandler;
pub use functions::HandlerFunctions;
pub use handling::Handling;
pub use registration::Registration;

/// With more pending notifications than this, a call that takes longer than [`SLOW`] is logged.
const LONG_BACKLOG: usize = 1024;

const SLOW: Duration = Duration::from_millis(100);

/// Handles the changes of an informer's objects. The default methods do nothing.
///
/// The calls come one at a time and must not block. A handler that must wait consumes a [`Listener`] instead.
pub trait EventHandler: Send {
    /// The object was added, or matches now. `is_in_initial_list` is true for the initial list, and for the
    /// objects that the cache had when the handler was added.
    fn on_add(&mut self, object: &Object, is_in_initial_list: bool) {
        let _ = (object, is_in_initial_list);
    }

    /// The object was updated. In a resync, `old` and `new` are the same.
    fn on_update(&mut self, old: &Object, new: &Object) {
        let _ = (old, new);
    }

    /// The object was deleted, or no longer matches. With `final_state_unknown` the informer missed the
    /// deletion, and `object` is the last state that it saw (client-go: `DeletedFinalStateUnknown`).
    fn on_delete(&mut self, object: &Object, final_state_unknown: bool) {
        let _ = (object, final_state_unknown);
    }
}

impl<H: EventHandler + ?Sized> EventHandler for Box<H> {
    fn on_add(&mut self, object: &Object, is_in_initial_list: bool) {
        (**self).on_add(object, is_in_initial_list);
    }

    fn on_update(&mut self, old: &Object, new: &Object) {
        (**self).on_update(old, new);
    }

    fn on_delete(&mut self, object: &Object, final_state_unknown: bool) {
        (**self).on_delete(object, final_state_unknown);
    }
}

/// Calls a handler with each notification of a listener, until the informer stops or the listener is removed.
///
/// Dropping the future removes the listener.
pub async fn deliver(mut listener: Listener, mut handler: impl EventHandler) {
    while let Some(delivery) = listener.next().await {
        let begun_at = Instant::now();
        let outcome = call(&mut handler, &delivery, listener.name());
        let took = begun_at.elapsed();
        if took > SLOW {
            let pending = listener.stats().pending;
            if pending > LONG_BACKLOG {
                tracing::warn!(
                    listener = listener.name(),
                    ?took,
                    pending,
                    "a slow handler has a long backlog"
                );
            }
        }
        listener.finish(&delivery.key, outcome);
        // With a long backlog, other futures of the task must run too.
        coop::consume_budget().await;
    }
}

fn call(handler: &mut impl EventHandler, delivery: &Delivery, name: &str) -> Outcome {
    let call = || match &delivery.notification {
        Notification::Added { object, is_in_initial_list } => handler.on_add(object, *is_in_initial_list),
        Notification::Updated { old, new } => handler.on_update(old, new),
        Notification::Deleted { object, final_state_unknown } => {
            handler.on_delete(object, *final_state_unknown);
        }
    };
    match user_function::call(UserFunction::Handler, &format_args!("{name:?}, {}", delivery.key), call) {
        Ok(()) => Outcome::Done,
        // The panic is logged.
        Err(_) => Outcome::Park,
    }
}

#[cfg(test)]
mod tests;
