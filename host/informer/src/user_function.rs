//! Calls of functions that the users of this crate gave. A panic in one is caught here, counted and named, and is an error of that
//! one call: the cache, the queue and everybody else go on.
//!
//! Not here: the callbacks of [`DeltaFifo::pop`](crate::delta_fifo::DeltaFifo::pop) and of the bare [`Controller`](crate::controller::Controller), whose
//! panics are the caller's own (CT-06), and what implements one of this crate's traits for storage or transport.

use std::any::Any;
use std::fmt::{self, Display};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// How much of a panic's message is kept.
const MAX_MESSAGE: usize = 1024;

/// What a function is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UserFunction {
    /// Files objects in an index.
    Index,
    /// Changes objects on their way in.
    Transformer,
    /// Names objects.
    Key,
    /// Handles notifications, or filters them before a handler.
    Handler,
    /// Hears of lists and watches that failed.
    WatchErrorHandler,
    /// Hears of an informer's or a work queue's figures.
    Metrics,
    /// Changes the options of requests.
    Tweak,
}

/// A function that panicked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{function} panicked: {message}")]
pub struct Panicked {
    /// Which.
    pub function: UserFunction,
    /// What it said.
    pub message: String,
}

/// How often functions of each kind panicked.
static N_PANICS: [AtomicU64; 7] = [const { AtomicU64::new(0) }; 7];

/// Returns how often functions of this kind have panicked in this process.
#[must_use]
pub fn n_panics(function: UserFunction) -> u64 {
    N_PANICS[function as usize].load(Ordering::Relaxed)
}

/// Calls a user's function about something, of which the log tells if it panics.
pub(crate) fn call<T>(
    function: UserFunction,
    about: &dyn Display,
    call: impl FnOnce() -> T,
) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        N_PANICS[function as usize].fetch_add(1, Ordering::Relaxed);
        let message = message_of(&*panic);
        tracing::error!(%about, "{function} panicked: {message}");
        // Whatever the function panicked with may panic again when it is dropped, and then nothing but leaking it helps.
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
