//! Errors of calls to the host, and failures of calls by the host. `?` converts an [`Error`] into a
//! [`Failure`].

use std::time::Duration;

pub(crate) use oarlock_sdk_bindings::oarlock::plugin::types::RetryInfo;
pub use oarlock_sdk_bindings::oarlock::plugin::types::{Error, Failure};

/// Returns the failure that has the call repeated after a while, at most an hour.
pub fn retry_after(message: impl Into<String>, wait: Duration) -> Failure {
    Failure::RetryAfter(RetryInfo { message: message.into(), after_ms: milliseconds(wait) })
}

/// Returns whole milliseconds, at most those that the contract can express (49 days).
pub(crate) fn milliseconds(duration: Duration) -> u32 {
    duration.as_millis().try_into().unwrap_or(u32::MAX)
}

/// Parses the JSON text that the host returned for `pointer`.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(pointer: &str, text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| unexpected(pointer, &error))
}

/// Returns the error for a value of another type.
pub(crate) fn unexpected(pointer: &str, error: &dyn std::fmt::Display) -> Error {
    let value = if pointer.is_empty() { "the object".to_owned() } else { format!("the value at {pointer}") };
    Error::Invalid(format!("{value} has an unexpected form: {error}"))
}
