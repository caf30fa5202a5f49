//! The object of the notification that the plugin handles.

use serde::de::DeserializeOwned;

use oarlock_sdk_bindings::oarlock::plugin::event as wit;
pub use wit::Version;

use crate::Error;

/// Returns the value at a JSON pointer of the old or new state, or `None` if the object has no such field.
///
/// # Errors
///
/// `not-found` if this notification has no such state, `invalid` for a malformed pointer or a value of
/// another type.
pub fn field<T: DeserializeOwned>(which: Version, pointer: &str) -> Result<Option<T>, Error> {
    wit::field(which, pointer)?.map(|text| parse(pointer, &text)).transpose()
}

/// Returns the JSON texts at several pointers, in one call of the host.
///
/// # Errors
///
/// As [`field`].
pub fn fields(which: Version, pointers: &[&str]) -> Result<Vec<Option<String>>, Error> {
    let pointers: Vec<String> = pointers.iter().map(|&pointer| pointer.to_owned()).collect();
    wit::fields(which, &pointers)
}

/// Returns the whole object.
///
/// # Errors
///
/// As [`field`].
pub fn object<T: DeserializeOwned>(which: Version) -> Result<T, Error> {
    parse("", &wit::json(which)?)
}

/// Parses the JSON text that the host returned for `pointer`.
pub(crate) fn parse<T: DeserializeOwned>(pointer: &str, text: &str) -> Result<T, Error> {
    serde_json::from_str(text)
        .map_err(|error| Error::Invalid(format!("the value at {pointer:?} has an unexpected form: {error}")))
}
