//! The operator's configuration: the value of `config` in the plugin's file.

use serde::de::DeserializeOwned;

use oarlock_sdk_bindings::oarlock::plugin::config as wit;

use crate::Error;

/// Returns the value at a JSON pointer of the configuration, or `None` if there is no value.
///
/// # Errors
///
/// `invalid` for a malformed pointer or a value of another type.
pub fn get<T: DeserializeOwned>(pointer: &str) -> Result<Option<T>, Error> {
    wit::get(pointer)?.map(|text| crate::event::parse(pointer, &text)).transpose()
}
