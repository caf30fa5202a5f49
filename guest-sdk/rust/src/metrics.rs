//! The plugin's own metrics on the host's metrics page, as `oarlock_guest_<name>{plugin="…", …}`.
//!
//! ```no_run
//! use oarlock_sdk::metrics;
//!
//! metrics::add("copies", 1.0, &[("namespace", "default")])?;
//! metrics::set("sources", 3.0, &[])?;
//! # Ok::<(), oarlock_sdk::Error>(())
//! ```

use oarlock_sdk_bindings::oarlock::plugin::types::Entry;

use crate::Error;
use crate::imports::metrics;

/// Increases a counter, by no negative number.
///
/// # Errors
///
/// `invalid` for a malformed name or a name of another type, `limit-exceeded` for too many series.
pub fn add(name: &str, by: f64, labels: &[(&str, &str)]) -> Result<(), Error> {
    metrics::counter_add(name, by, &entries(labels))
}

/// Sets a gauge to a value.
///
/// # Errors
///
/// As [`add`].
pub fn set(name: &str, value: f64, labels: &[(&str, &str)]) -> Result<(), Error> {
    metrics::gauge_set(name, value, &entries(labels))
}

fn entries(labels: &[(&str, &str)]) -> Vec<Entry> {
    labels.iter().map(|&(name, value)| Entry { name: name.to_owned(), value: value.to_owned() }).collect()
}
