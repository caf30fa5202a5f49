//! What the operator can do about an event.

use crate::state_folder;

use super::HostEvent;

/// What the operator can do about a version before that is refused for a reason which has no hint of its own.
const VERSION_BEFORE: &str = "correct what the message names, or load another version of the plugin";

// === impl HostEvent ===

impl HostEvent {
    /// Returns what the operator can do, as an imperative; none for an event that needs nothing, and for one
    /// whose message is from a guest.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::PluginRefused { hint, .. }
            | Self::VersionBeforeRefused { hint, .. }
            | Self::SubscriptionForbidden { hint, .. } => hint.as_deref(),
            Self::ResourceForbidden { hint, .. }
            | Self::ResourceOverBudget { hint, .. }
            | Self::OverBudget { hint, .. } => Some(hint),
            Self::StateTrouble { hint, .. }
            | Self::RecordFailed { hint, .. }
            | Self::ResourceAbsent { hint, .. } => Some(hint),
            Self::LeadershipLost { .. } => Some("start it again, then it stands by"),
            Self::PluginRolledBack { .. } => Some(
                "repair the plugin: the host loads a changed component or changed settings at once. \
                 `oarlock rollback PLUGIN --release` makes it try this version again",
            ),
            Self::RecordLimitReached { .. } => {
                Some("move the files away or raise --record-limit, then start the host again")
            }
            Self::PluginPanicked { .. } => Some("report this, it is a bug of the host"),
            Self::ReportsDropped { .. } => Some("read it faster, or print less with --level"),
            _ => None,
        }
    }

    /// Returns the event of a version before that is refused. `hint` is that of the error.
    pub(crate) fn version_before_refused(message: String, hint: Option<String>) -> Self {
        // The text of some errors has it.
        let says_it = message.contains("Fix: ");
        let hint = hint.or_else(|| (!says_it).then(|| VERSION_BEFORE.to_owned()));
        Self::VersionBeforeRefused { message, hint }
    }

    /// Returns the event of an error of the state folder.
    pub(crate) fn state_trouble(error: &state_folder::Error) -> Self {
        Self::StateTrouble { message: error.to_string(), hint: error.hint() }
    }
}
