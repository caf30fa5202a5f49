//! Calls functions of the crate's users, and catches their panics.
//!
//! A panic is counted and logged with the kind of the function, and is an error of that one call. The cache,
//! the queue and other users are not affected.
//!
//! Not here: the callbacks of [`DeltaFifo::pop`](crate::delta_fifo::DeltaFifo::pop) and of the bare
//! [`Controller`](crate::controller::Controller), whose panics are passed to the caller (CT-06), and
//! implementations of this crate's traits for storage and transport.

use std::any::Any;
use std::fmt::{self, Display};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many bytes of a panic's message are kept.
const MAX_MESSAGE: usize = 1024;

/// The kind of a user's function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UserFunction {
    /// Returns the values of an object in an index.
    Index,
    /// Changes objects before they are queued.
    Transformer,
    /// Returns the key of an object.
    Key,
    /// Handles notifications, or filters them for a handler.
    Handler,
    /// Called when a list or watch fails.
    WatchErrorHandler,
    /// Receives the metrics of an informer or a work queue.
    Metrics,
    /// Changes the options of requests.
    Tweak,
}

/// A function that panicked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{function} panicked: {message}")]
pub struct Panicked {
    /// The kind of the function.
    pub function: UserFunction,
    /// The message of the panic.
    pub message: String,
}

/// How often functions of each kind have panicked.
static N_PANICS: [AtomicU64; 7] = [const { AtomicU64::new(0) }; 7];

/// Returns how often functions of this kind have panicked in this process.
#[must_use]
pub fn n_panics(function: UserFunction) -> u64 {
    N_PANICS[function as usize].load(Ordering::Relaxed)
}

/// Calls a user's function. If it panics, the log names `about`, the object of the call.
pub(crate) fn call<T>(
    function: UserFunction,
    about: &dyn Display,
    call: impl FnOnce() -> T,
) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        N_PANICS[function as usize].fetch_add(1, Ordering::Relaxed);
        let message = message_of(&*panic);
        tracing::error!(%about, "{function} panicked: {message}");
        // Dropping the panic's payload may panic again. Then that payload is leaked.
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(again);
        }
        Panicked { function, message }
    })
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    text[..text.floor_char_boundary(MAX_MESSAGE)].to_owned()
}

// === impl UserFunction ===

impl Display for UserFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Index => "the index function",
            Self::Transformer => "the transformer",
            Self::Key => "the key function",
            Self::Handler => "the handler",
            Self::WatchErrorHandler => "the watch error handler",
            Self::Metrics => "the metrics",
            Self::Tweak => "the tweak of list options",
        })
    }
}
