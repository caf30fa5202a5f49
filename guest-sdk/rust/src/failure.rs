//! What can go wrong, and what the host is told of it: `?` turns an [`Error`] into a [`Failure`].

pub use oarlock_sdk_bindings::oarlock::plugin::types::{Error, Failure};
