//! The severity of a line, and its names.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde::Serialize;

/// The severity of a line.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Details for debugging the host or a guest.
    Trace,
    /// Every call that succeeded.
    Debug,
    /// The normal course of the host and its plugins.
    Info,
    /// A problem that the host handles itself.
    Warn,
    /// A problem that an operator has to solve.
    Error,
}

// === impl Level ===

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "trace" => Ok(Self::Trace),
            "debug" => Ok(Self::Debug),
            "info" => Ok(Self::Info),
            "warn" => Ok(Self::Warn),
            "error" => Ok(Self::Error),
            _ => Err(format!("unknown level {text:?}: use trace, debug, info, warn or error")),
        }
    }
}

impl Display for Level {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        })
    }
}
