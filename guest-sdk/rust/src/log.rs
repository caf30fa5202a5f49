//! Lines in the host's log.

use oarlock_sdk_bindings::oarlock::plugin::log as wit;
use oarlock_sdk_bindings::oarlock::plugin::types::Entry;
pub use wit::Level;

/// Writes one line with its pairs. The macros ([`crate::info!`] and others) are shorter.
pub fn log(level: Level, message: &str, pairs: &[(&str, &dyn std::fmt::Display)]) {
    if !wit::enabled(level) {
        return;
    }
    let pairs: Vec<Entry> = pairs
        .iter()
        .map(|(name, value)| Entry { name: (*name).to_owned(), value: value.to_string() })
        .collect();
    wit::log(level, message, &pairs);
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
