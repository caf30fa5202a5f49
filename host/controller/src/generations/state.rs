//! The states of a generation, and the transitions between them.

use std::fmt;

use serde::Serialize;

/// What one generation of a plugin is doing, or how it ended.
///
/// ```text
///   Fetched ─► Compiled ─► Checked ─► Warming ─► Serving ─► Draining ─► Gone
///      │          │           │        ▲  │        ▲  │
///      │          │           ▼        │  ▼        │  ├─► Quarantined
///      │          │        Forbidden ◄─┴───────────┴──┘
///      └──────────┴───────────┴──────────┴─► Failed, or Gone when a newer version replaces it
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GenerationState {
    /// Its component was read.
    Fetched,
    /// Its code is loaded.
    Compiled,
    /// It described itself, and the host accepts its description.
    Checked,
    /// Its rights are granted. Its caches sync, and its first instance starts.
    Warming,
    /// The host calls it.
    Serving,
    /// Another generation serves. Its last calls run.
    Draining,
    /// It has ended.
    Gone,
    /// It cannot be used, and never served.
    Failed,
    /// It was rolled back, or is not tried since it was rolled back before.
    Quarantined,
    /// Its account is missing, or lacks a right without which it cannot work.
    Forbidden,
}

// === impl GenerationState ===

impl GenerationState {
    /// All states, in the order of their declaration.
    pub const ALL: [Self; 10] = [
        Self::Fetched,
        Self::Compiled,
        Self::Checked,
        Self::Warming,
        Self::Serving,
        Self::Draining,
        Self::Gone,
        Self::Failed,
        Self::Quarantined,
        Self::Forbidden,
    ];

    /// Returns the name of the state, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fetched => "fetched",
            Self::Compiled => "compiled",
            Self::Checked => "checked",
            Self::Warming => "warming",
            Self::Serving => "serving",
            Self::Draining => "draining",
            Self::Gone => "gone",
            Self::Failed => "failed",
            Self::Quarantined => "quarantined",
            Self::Forbidden => "forbidden",
        }
    }

    /// Returns whether a generation in this state stays in it.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Gone | Self::Failed | Self::Quarantined)
    }

    /// Returns whether a generation in this state may enter the next one. `has_served` says whether it was
    /// Serving before.
    #[must_use]
    pub fn may_become(self, next: Self, has_served: bool) -> bool {
        match self {
            Self::Fetched => matches!(next, Self::Compiled | Self::Failed | Self::Gone),
            Self::Compiled => {
                matches!(next, Self::Checked | Self::Failed | Self::Quarantined | Self::Gone)
            }
            Self::Checked => matches!(next, Self::Warming | Self::Forbidden | Self::Failed | Self::Gone),
            Self::Warming => matches!(next, Self::Serving | Self::Forbidden | Self::Failed | Self::Gone),
            Self::Serving => {
                matches!(next, Self::Draining | Self::Forbidden | Self::Quarantined | Self::Gone)
            }
            Self::Forbidden if has_served => {
                matches!(next, Self::Serving | Self::Draining | Self::Quarantined | Self::Gone)
            }
            Self::Forbidden => matches!(next, Self::Warming | Self::Failed | Self::Gone),
            Self::Draining => next == Self::Gone,
            Self::Gone | Self::Failed | Self::Quarantined => false,
        }
    }
}

impl fmt::Display for GenerationState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
