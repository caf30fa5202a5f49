//! Why a call of a guest ended without an answer.
//!
//! The only module that inspects wasmtime's errors: by downcast, never by text.

mod frames;

use std::{any::Any, time::Duration};

use wasmtime::{Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::{guest, limiter::Refused, state::StoreState};

/// The maximum length of a message of wasmtime about a guest: it may contain names that the guest chose.
pub(crate) const MAX_MESSAGE_BYTES: usize = 2 << 10;

/// A call that ended without the guest's answer. Its instance cannot be called again and must be dropped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The guest trapped: unreachable code, an access out of bounds, an exhausted stack, a panic.
    #[error("the guest trapped: {message}")]
    Trap {
        /// The reason, from wasmtime.
        message: String,
        /// The guest's last output before that; may be empty.
        output: String,
        /// The guest's frames, innermost first, one on each line; may be empty.
        backtrace: String,
    },
    /// The guest ended itself through WASI's `exit`.
    #[error("the guest exited with status {status}")]
    Exit {
        /// The exit status.
        status: i32,
        /// The guest's last output before that; may be empty.
        output: String,
    },
    /// The call exceeded its deadline.
    #[error("the call exceeded its deadline of {limit:?} while it {}", doing(*.waiting_for))]
    DeadlineExceeded {
        /// The deadline.
        limit: Duration,
        /// The import that the guest waited for, such as `client.get`; `None` if the guest computed.
        waiting_for: Option<&'static str>,
        /// The guest's last output before that; may be empty.
        output: String,
        /// The guest's frames at that moment; empty if it was waiting.
        backtrace: String,
    },
    /// The guest was refused memory, and failed.
    #[error("the guest reached its memory limit: it wanted {wanted} bytes, the limit is {limit}")]
    MemoryLimit {
        /// The total that it asked for, in bytes.
        wanted: u64,
        /// The limit, in bytes.
        limit: u64,
        /// The guest's last output before that; may be empty.
        output: String,
        /// The guest's frames when it failed, innermost first.
        backtrace: String,
    },
    /// The guest was refused table elements, and failed.
    #[error("the guest reached its table limit: it wanted {wanted} elements, the limit is {limit}")]
    TableLimit {
        /// The total that it asked for.
        wanted: u64,
        /// The limit.
        limit: u64,
    },
    /// The host cannot read the data that the guest passed, or the data exceed the `hostcall` limit of one
    /// call.
    #[error("the guest passed data that the host cannot accept: {message}")]
    InvalidData {
        /// The reason, from wasmtime.
        message: String,
        /// The guest's frames, innermost first; empty if it was the answer to a call.
        backtrace: String,
    },
    /// The component does not export the interface of the call.
    #[error("the component does not export `{interface}`")]
    NotExported {
        /// The interface, such as `handler`.
        interface: &'static str,
    },
    /// An earlier call of the instance ended without an answer.
    #[error("the instance cannot be called again: an earlier call trapped or was dropped")]
    Dead,
    /// An exported function has other parameters or results than in the contract.
    #[error(
        "the component does not match the contract: {message}; was it built with another version of the wit/ folder?"
    )]
    Mismatch {
        /// The type that differs, from wasmtime.
        message: String,
    },
    /// The host panicked while it served the guest, which is a bug of the host. Only the instance ends.
    #[error("the host panicked while it served the guest: {message}; this is a bug of the host")]
    HostPanicked {
        /// The panic's message.
        message: String,
    },
    /// The instance cannot be created: the address space is exhausted, or its component has too many parts.
    #[error("the instance cannot be created: {message}")]
    CannotStart {
        /// The reason, from wasmtime.
        message: String,
    },
}

/// Raised by this crate when a call exceeds its deadline.
#[derive(Debug, thiserror::Error)]
#[error("the deadline has passed")]
pub(crate) struct DeadlinePassed;

/// Raised by this crate after a panic of the host within a call.
#[derive(Debug, thiserror::Error)]
#[error("the host panicked: {0}")]
struct Panicked(String);

/// The phase in which a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum During {
    Start,
    Call,
}

/// Converts a panic that was caught within a call into an error.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> wasmtime::Error {
    let message = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text.as_str(),
        (None, None) => "without a message",
    };
    Panicked(guest::text::line(message, MAX_MESSAGE_BYTES)).into()
}

/// Returns a wasmtime error and its causes as text, escaped: it may quote names that the guest chose.
pub(crate) fn text(error: &wasmtime::Error) -> String {
    guest::text::line(format_args!("{error:#}"), MAX_MESSAGE_BYTES)
}

/// Converts the error of an export whose type does not match the contract.
pub(crate) fn mismatch(error: &wasmtime::Error) -> CallError {
    CallError::Mismatch { message: text(error) }
}

/// Converts the wasmtime error of a call. `output` is the guest's last output before it.
pub(crate) fn classify(
    error: &wasmtime::Error,
    state: &StoreState,
    during: During,
    output: String,
) -> CallError {
    if let Some(Panicked(message)) = error.downcast_ref() {
        return CallError::HostPanicked { message: message.clone() };
    }
    let backtrace = || frames::of(error);
    if error.is::<DeadlinePassed>() {
        let limit = state.limit;
        let waiting_for = state.waiting_for;
        return CallError::DeadlineExceeded { limit, waiting_for, output, backtrace: backtrace() };
    }
    if let Some(I32Exit(status)) = error.downcast_ref() {
        return CallError::Exit { status: *status, output };
    }
    // A guest that gets no memory usually traps. The refusal explains the failure better than the trap.
    match state.limiter.refused() {
        Some(Refused::Memory { wanted, limit }) => {
            return CallError::MemoryLimit { wanted, limit, output, backtrace: backtrace() };
        }
        Some(Refused::TableElements { wanted, limit }) => return CallError::TableLimit { wanted, limit },
        None => {}
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        let message = trap.to_string();
        // The error's text says "trapped" already.
        let message = message.strip_prefix("wasm trap: ").unwrap_or(&message).to_owned();
        return CallError::Trap { message, output, backtrace: backtrace() };
    }
    let message = guest::text::line(error.root_cause(), MAX_MESSAGE_BYTES);
    match during {
        During::Start if !error.is::<WasmBacktrace>() => CallError::CannotStart { message },
        During::Start | During::Call => {
            // wasmtime has no type for this error, and its text names no setting.
            let is_too_much = message.contains("fuel allocated for hostcalls");
            let message = match is_too_much {
                true => "more bytes in one call than limits.hostcall allows".to_owned(),
                false => message,
            };
            CallError::InvalidData { message, backtrace: backtrace() }
        }
    }
}

fn doing(waiting_for: Option<&str>) -> String {
    waiting_for.map_or_else(|| "computed".to_owned(), |import| format!("waited for {import}"))
}

// === impl CallError ===

impl CallError {
    /// Returns the error, and on further lines the guest's last output.
    #[must_use]
    pub fn in_full(&self) -> String {
        match self.output() {
            "" => self.to_string(),
            output => format!("{self}\n{output}"),
        }
    }

    /// Returns the guest's last output, such as an exception or a panic. It may have several lines, or be
    /// empty.
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

    /// Removes the guest's last output and returns it.
    pub(crate) fn take_output(&mut self) -> String {
        match self {
            Self::Trap { output, .. }
            | Self::Exit { output, .. }
            | Self::DeadlineExceeded { output, .. }
            | Self::MemoryLimit { output, .. } => std::mem::take(output),
            _ => String::new(),
        }
    }

    /// Returns the guest's frames, innermost first, one on each line; may be empty.
    #[must_use]
    pub fn backtrace(&self) -> &str {
        match self {
            Self::Trap { backtrace, .. }
            | Self::DeadlineExceeded { backtrace, .. }
            | Self::MemoryLimit { backtrace, .. }
            | Self::InvalidData { backtrace, .. } => backtrace,
            _ => "",
        }
    }
}
