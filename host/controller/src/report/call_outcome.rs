//! The outcome of a call of a plugin.

use serde::Serialize;

/// The outcome of one call.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum CallOutcome {
    /// The call succeeded.
    Done,
    /// The call failed and is made again.
    Retry {
        /// The failure that the plugin returned, or how the call ended.
        message: String,
        /// The time until the next call.
        after_ms: u64,
    },
    /// The object or key is parked: the next call is made at its next event, when another generation starts,
    /// or by the slow timer.
    Parked {
        /// The failure that the plugin returned, or how the call ended.
        message: String,
    },
}

/// The next call for an object or key whose last call lost the instance.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct NextTry {
    /// How many calls for it lost an instance.
    pub tries: u32,
    /// The shortest time until the next call, which waits until no other work is ready. None when it is
    /// parked.
    pub after_ms: Option<u64>,
}
