//! Why a call of a guest came to no answer.
//!
//! The only place that looks into wasmtime's errors, by downcast, never by text.

use std::time::Duration;

use wasmtime::{Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::{limiter::Refused, state::State};

/// A call that ended without the guest's answer. Its instance is dead and must be dropped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The guest broke: unreachable code, an access out of bounds, an exhausted stack, a panic.
    #[error("the guest trapped: {message}")]
    Trap {
        /// What happened, in wasmtime's words.
        message: String,
        /// The guest's frames, innermost first, one a line; empty where none are known.
        backtrace: String,
    },
    /// The guest ended itself through WASI's `exit`.
    #[error("the guest exited with status {status}")]
    Exit {
        /// The status it gave.
        status: i32,
    },
    /// The call did not end within its deadline.
    #[error("the call passed its deadline of {limit:?} while it {}", doing(*.waiting_for))]
    DeadlineExceeded {
        /// The deadline.
        limit: Duration,
        /// What the guest waited for at that moment, such as `client.get`; none if it computed.
        waiting_for: Option<&'static str>,
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

/// Where the call was when it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum During {
    Start,
    Call,
}

/// Tells what it means that an export cannot be called as the contract says.
pub(crate) fn mismatch(error: &wasmtime::Error) -> CallError {
    CallError::Mismatch { message: format!("{error:#}") }
}

/// Tells what a wasmtime error means.
pub(crate) fn classify(error: &wasmtime::Error, state: &State, during: During) -> CallError {
    let backtrace = || error.downcast_ref::<WasmBacktrace>().map(ToString::to_string).unwrap_or_default();
    if error.is::<DeadlinePassed>() {
        let limit = state.deadline.limit;
        return CallError::DeadlineExceeded { limit, waiting_for: state.waiting_for, backtrace: backtrace() };
    }
    if let Some(I32Exit(status)) = error.downcast_ref() {
        return CallError::Exit { status: *status };
    }
    // A guest that gets no memory usually says so by a trap: what was refused in this call explains it better.
    match state.limiter.refused() {
        Some(Refused::Memory { wanted, limit }) => {
            return CallError::MemoryLimit { wanted, limit, backtrace: backtrace() };
        }
        Some(Refused::TableElements { wanted, limit }) => return CallError::TableLimit { wanted, limit },
        None => {}
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        let message = trap.to_string();
        // The variant says "trapped" already.
        let message = message.strip_prefix("wasm trap: ").unwrap_or(&message).to_owned();
        return CallError::Trap { message, backtrace: backtrace() };
    }
    let message = error.root_cause().to_string();
    match during {
        During::Start if !error.is::<WasmBacktrace>() => CallError::CannotStart { message },
        During::Start | During::Call => CallError::BadHandover { message, backtrace: backtrace() },
    }
}

fn doing(waiting_for: Option<&str>) -> String {
    waiting_for.map_or_else(|| "computed".to_owned(), |import| format!("waited for {import}"))
}
