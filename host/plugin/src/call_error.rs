//! Why a call of a guest came to no answer.
//!
//! The only place that looks into wasmtime's errors, by downcast, never by text.

mod frames;

use std::{any::Any, time::Duration};

use wasmtime::{Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::{guest_text, limiter::Refused, state::State};

/// Where the words of wasmtime about a guest are cut: names that the guest chose may be in them.
pub(crate) const MAX_MESSAGE_BYTES: usize = 2 << 10;

/// A call that ended without the guest's answer. Its instance is dead and must be dropped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The guest broke: unreachable code, an access out of bounds, an exhausted stack, a panic.
    #[error("the guest trapped: {message}")]
    Trap {
        /// What happened, in wasmtime's words.
        message: String,
        /// What the guest wrote just before; empty if nothing.
        output: String,
        /// The guest's frames, innermost first, one a line; empty where none are known.
        backtrace: String,
    },
    /// The guest ended itself through WASI's `exit`.
    #[error("the guest exited with status {status}")]
    Exit {
        /// The status it gave.
        status: i32,
        /// What the guest wrote just before; empty if nothing.
        output: String,
    },
    /// The call did not end within its deadline.
    #[error("the call passed its deadline of {limit:?} while it {}", doing(*.waiting_for))]
    DeadlineExceeded {
        /// The deadline.
        limit: Duration,
        /// What the guest waited for at that moment, such as `client.get`; none if it computed.
        waiting_for: Option<&'static str>,
        /// What the guest wrote just before; empty if nothing.
        output: String,
        /// The guest's frames at that moment; empty if it was waiting.
        backtrace: String,
    },
    /// The guest was refused memory, and broke.
    #[error("the guest reached its memory limit: it wanted {wanted} bytes, the limit is {limit}")]
    MemoryLimit {
        /// The total it would have had, in bytes.
        wanted: u64,
        /// The limit, in bytes.
        limit: u64,
        /// What the guest wrote just before; empty if nothing.
        output: String,
        /// The guest's frames as it broke, innermost first.
        backtrace: String,
    },
    /// The guest was refused table elements, and broke.
    #[error("the guest reached its table limit: it wanted {wanted} elements, the limit is {limit}")]
    TableLimit {
        /// The total it would have had.
        wanted: u64,
        /// The limit.
        limit: u64,
    },
    /// What the guest handed to the host cannot be read, or is more than its `hostcall` limit allows in one call.
    #[error("the guest handed over what cannot be taken: {message}")]
    BadHandover {
        /// What was wrong, in wasmtime's words.
        message: String,
        /// The guest's frames, innermost first; empty if it was the answer to a call.
        backtrace: String,
    },
    /// The component does not export what was called.
    #[error("the component does not export `{interface}`")]
    NotExported {
        /// The interface, such as `handler`.
        interface: &'static str,
    },
    /// A call before this one ended without an answer.
    #[error("the instance is dead: a call before this one trapped or was dropped")]
    Dead,
    /// A function that the component exports has other parameters or results than the contract says.
    #[error(
        "the component does not fit the contract: {message}; was it built with another state of the wit/ folder?"
    )]
    Mismatch {
        /// Which type differs, in wasmtime's words.
        message: String,
    },
    /// The host itself panicked while it served the guest, which is a bug of the host. It costs the instance alone.
    #[error("the host panicked while it served the guest: {message}; this is a bug of the host")]
    HostPanicked {
        /// What the panic said.
        message: String,
    },
    /// The instance could not be made, for want of address space or because its component has too many parts.
    #[error("the instance cannot be made: {message}")]
    CannotStart {
        /// What was in the way, in wasmtime's words.
        message: String,
    },
}

/// Raised by this crate when a call's time is up.
#[derive(Debug, thiserror::Error)]
#[error("the deadline has passed")]
pub(crate) struct DeadlinePassed;

/// Raised by this crate when the host panicked within a call.
#[derive(Debug, thiserror::Error)]
#[error("the host panicked: {0}")]
struct Panicked(String);

/// Where the call was when it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum During {
    Start,
    Call,
}

/// Makes an error of a panic that was caught within a call.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> wasmtime::Error {
    let message = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text.as_str(),
        (None, None) => "without a message",
    };
    Panicked(guest_text::line(message, MAX_MESSAGE_BYTES)).into()
}

/// Returns a wasmtime error with its causes as text, which may quote names of the guest's.
pub(crate) fn text(error: &wasmtime::Error) -> String {
    guest_text::line(format_args!("{error:#}"), MAX_MESSAGE_BYTES)
}

/// Tells what it means that an export cannot be called as the contract says.
pub(crate) fn mismatch(error: &wasmtime::Error) -> CallError {
    CallError::Mismatch { message: text(error) }
}

/// Says why a call ended, from wasmtime's error. `output` is what the guest wrote just before.
pub(crate) fn classify(error: &wasmtime::Error, state: &State, during: During, output: String) -> CallError {
    if let Some(Panicked(message)) = error.downcast_ref() {
        return CallError::HostPanicked { message: message.clone() };
    }
    let backtrace = || frames::of(error);
    if error.is::<DeadlinePassed>() {
        let limit = state.deadline.limit;
        let waiting_for = state.waiting_for;
        return CallError::DeadlineExceeded { limit, waiting_for, output, backtrace: backtrace() };
    }
    if let Some(I32Exit(status)) = error.downcast_ref() {
        return CallError::Exit { status: *status, output };
    }
    // A guest that gets no memory usually says so by a trap: what was refused in this call explains it better.
    match state.limiter.refused() {
        Some(Refused::Memory { wanted, limit }) => {
            return CallError::MemoryLimit { wanted, limit, output, backtrace: backtrace() };
        }
        Some(Refused::TableElements { wanted, limit }) => return CallError::TableLimit { wanted, limit },
        None => {}
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        let message = trap.to_string();
        // The variant says "trapped" already.
        let message = message.strip_prefix("wasm trap: ").unwrap_or(&message).to_owned();
        return CallError::Trap { message, output, backtrace: backtrace() };
    }
    let message = guest_text::line(error.root_cause(), MAX_MESSAGE_BYTES);
    match during {
        During::Start if !error.is::<WasmBacktrace>() => CallError::CannotStart { message },
        During::Start | During::Call => CallError::BadHandover { message, backtrace: backtrace() },
    }
}

fn doing(waiting_for: Option<&str>) -> String {
    waiting_for.map_or_else(|| "computed".to_owned(), |import| format!("waited for {import}"))
}

// === impl CallError ===

impl CallError {
    /// Returns what happened and what the guest wrote about it, on lines of its own.
    #[must_use]
    pub fn in_full(&self) -> String {
        match self.output() {
            "" => self.to_string(),
            output => format!("{self}\n{output}"),
        }
    }

    /// Returns what the guest wrote just before it broke, which says more than the error does: an exception, a panic. It may
    /// have several lines, and is empty if the guest wrote nothing.
    #[must_use]
    pub fn output(&self) -> &str {
        match self {
            Self::Trap { output, .. }
            | Self::Exit { output, .. }
            | Self::DeadlineExceeded { output, .. }
            | Self::MemoryLimit { output, .. } => output,
            _ => "",
        }
    }

    /// Returns the guest's frames, innermost first, one a line; empty where none are known.
    #[must_use]
    pub fn backtrace(&self) -> &str {
        match self {
            Self::Trap { backtrace, .. }
            | Self::DeadlineExceeded { backtrace, .. }
            | Self::MemoryLimit { backtrace, .. }
            | Self::BadHandover { backtrace, .. } => backtrace,
            _ => "",
        }
    }
}
