//! The operator's configuration: the value of `config` in the plugin's file.

use serde::de::DeserializeOwned;

use crate::Error;
use crate::failure::parse;
use crate::imports::config;

/// Returns the whole configuration.
///
/// ```no_run
/// #[derive(serde::Deserialize)]
/// #[serde(deny_unknown_fields, rename_all = "camelCase", default)]
/// struct Config {
///     max_age_minutes: u32,
/// }
///
/// impl Default for Config {
///     fn default() -> Self {
///         Self { max_age_minutes: 60 }
///     }
/// }
///
/// let config: Config = oarlock_sdk::config::read()?;
/// # Ok::<(), oarlock_sdk::Error>(())
/// ```
///
/// # Errors
///
/// `invalid`, with the cause, for a configuration of another form. Returned from [`crate::Plugin::describe`],
/// it has the host refuse the plugin, so that the operator sees it.
pub fn read<T: DeserializeOwned>() -> Result<T, Error> {
    serde_json::from_str(&config::json())
        .map_err(|error| Error::Invalid(format!("the configuration has an unexpected form: {error}")))
}

/// Returns the value at a JSON pointer of the configuration, or `None` if there is no value.
///
/// # Errors
///
/// `invalid` for a malformed pointer or a value of another type.
pub fn get<T: DeserializeOwned>(pointer: &str) -> Result<Option<T>, Error> {
    config::get(pointer)?.map(|text| parse(pointer, &text)).transpose()
}
