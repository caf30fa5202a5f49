//! Lines in the host's log.
//!
//! With the features `log` and `tracing`, what the crates of these names log is in it too; the plugin does
//! nothing more than to use their macros.

#[cfg(feature = "log")]
mod facade;

pub use oarlock_sdk_bindings::oarlock::plugin::log::Level;
use oarlock_sdk_bindings::oarlock::plugin::types::Entry;

use crate::imports::log as host;

/// Writes one line with its pairs. The macros ([`crate::info!`] and others) are shorter.
pub fn log(level: Level, message: &str, pairs: &[(&str, &dyn std::fmt::Display)]) {
    if !host::enabled(level) {
        return;
    }
    let pairs: Vec<Entry> = pairs
        .iter()
        .map(|(name, value)| Entry { name: (*name).to_owned(), value: value.to_string() })
        .collect();
    host::log(level, message, &pairs);
}

/// Writes a line at a level: `log!(Level::Info, "copied", "namespace" = namespace)`.
#[macro_export]
macro_rules! log {
    ($level:expr, $message:expr $(, $name:literal = $value:expr)* $(,)?) => {
        $crate::log::log($level, &::std::string::ToString::to_string(&$message), &[$(($name, &$value)),*])
    };
}

/// Writes a line at level info: `info!("copied", "namespace" = namespace)`.
#[macro_export]
macro_rules! info {
    ($($rest:tt)*) => { $crate::log!($crate::log::Level::Info, $($rest)*) };
}

/// Writes a line at level warn.
#[macro_export]
macro_rules! warn {
    ($($rest:tt)*) => { $crate::log!($crate::log::Level::Warn, $($rest)*) };
}

/// Writes a line at level debug.
#[macro_export]
macro_rules! debug {
    ($($rest:tt)*) => { $crate::log!($crate::log::Level::Debug, $($rest)*) };
}

/// Writes a line at level error.
#[macro_export]
macro_rules! error {
    ($($rest:tt)*) => { $crate::log!($crate::log::Level::Error, $($rest)*) };
}

/// Has the crates `log` and `tracing` write to the host's log, if their features are on.
pub(crate) fn install() {
    #[cfg(feature = "log")]
    facade::install();
    #[cfg(feature = "tracing")]
    crate::tracing::install();
}

/// Returns the most verbose level that the host writes; `None` if it writes none.
#[cfg(any(feature = "log", feature = "tracing"))]
pub(crate) fn most_verbose() -> Option<Level> {
    let levels = [Level::Trace, Level::Debug, Level::Info, Level::Warn, Level::Error];
    levels.into_iter().find(|&level| host::enabled(level))
}
