//! The object of the notification that the plugin handles.

use serde::de::DeserializeOwned;

pub use oarlock_sdk_bindings::oarlock::plugin::event::Version;

use crate::failure::parse;
use crate::imports::event;
use crate::{Error, Fields};

/// Returns the value at a JSON pointer of the old or new state, or `None` if the object has no such field.
///
/// # Errors
///
/// `not-found` if this notification has no such state, `invalid` for a malformed pointer or a value of
/// another type.
pub fn field<T: DeserializeOwned>(which: Version, pointer: &str) -> Result<Option<T>, Error> {
    event::field(which, pointer)?.map(|text| parse(pointer, &text)).transpose()
}

/// Returns several fields, in one call of the host. For fields that the subscription does not declare; those
/// that it declares come with the notification.
///
/// # Errors
///
/// As [`field`].
pub fn fields<F: Fields>(which: Version) -> Result<F, Error> {
    F::parse(&texts(which, F::POINTERS)?)
}

/// Returns the JSON texts at several pointers, in one call of the host.
///
/// # Errors
///
/// As [`field`].
pub fn texts(which: Version, pointers: &[&str]) -> Result<Vec<Option<String>>, Error> {
    let pointers: Vec<String> = pointers.iter().map(|&pointer| pointer.to_owned()).collect();
    event::fields(which, &pointers)
}

/// Returns the whole object.
///
/// # Errors
///
/// As [`field`].
pub fn object<T: DeserializeOwned>(which: Version) -> Result<T, Error> {
    parse("", &event::json(which)?)
}
