//! Handlers that are called, as client-go has them: three functions, and a future that calls them.
//!
//! A [`Listener`] is pulled, waits where it likes and answers how each delivery went. Most handlers need none of that: they put a key
//! into a queue or count something. Those are an [`EventHandler`], registered with
//! [`SharedInformer::add_event_handler`](crate::SharedInformer::add_event_handler), which gives back the future that calls the handler,
//! a [`Handling`], and with it a [`Registration`]. The caller runs that future where it likes; nothing is called before.
//!
//! One call at a time, and never two of one object out of order. A handler that takes long keeps the task that runs it and
//! lets its own backlog merge, and nobody else's. One that panics is called again for what comes next: the notification at which it
//! panicked counts as finished, is parked (see [`Outcome::Park`]) and comes again merged into the object's next one.

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

/// With more than this waiting, a call that takes longer than [`SLOW`] is worth a line in the log.
const LONG_BACKLOG: usize = 1024;

const SLOW: Duration = Duration::from_millis(100);

/// Is called for what happens to the objects of an informer. What it does not care about it leaves out.
///
/// The calls come one at a time and must not wait for anything: a handler that has to is a [`Listener`]'s consumer.
pub trait EventHandler: Send {
    /// The object appeared, or began to match. `is_in_initial_list` tells the first list, and what a late handler finds, from news.
    fn on_add(&mut self, object: &Object, is_in_initial_list: bool) {
        let _ = (object, is_in_initial_list);
    }

    /// The object changed. The two may be the same: then it is a resync.
    fn on_update(&mut self, old: &Object, new: &Object) {
        let _ = (old, new);
    }

    /// The object is gone, or ceased to match. With `final_state_unknown` the deletion itself was missed, and `object` is the last
    /// state that was seen: client-go's tombstone, already opened.
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

/// Calls a handler for all that a listener is told, until the informer stops or the listener is removed.
///
/// Cancelling it between two calls loses nothing but the listener.
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
        // A long backlog must not keep the task from whatever else it does.
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
        // Parked, and logged.
        Err(_) => Outcome::Park,
    }
}

#[cfg(test)]
mod tests;
