//! Errors of calls to the host, and failures of calls by the host. `?` converts an [`Error`] into a
//! [`Failure`].

pub use oarlock_sdk_bindings::oarlock::plugin::types::{Error, Failure};
