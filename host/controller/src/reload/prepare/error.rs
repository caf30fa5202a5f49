//! Why a version of a plugin never serves.

use oarlock_plugin::{component, contract, describe::DescribeError};

use crate::generations::GenerationState;
use crate::informers::Refused;
use crate::state_folder::Entry;
use crate::{plan, provision, regular_file, shadow};

/// Why a version of a plugin is not switched to.
#[derive(Debug, thiserror::Error)]
pub(in crate::reload) enum Error {
    #[error("the component {path} cannot be read: {source}")]
    Read { path: String, source: regular_file::Error },
    #[error("the component {path} cannot be used: {source}")]
    Component { path: String, source: component::Error },
    #[error(transparent)]
    Describe(#[from] DescribeError),
    #[error(transparent)]
    Plan(#[from] plan::Error),
    #[error(transparent)]
    Provision(#[from] provision::Error),
    #[error("its reads and indices cannot be set up: {}", message(.0))]
    Access(contract::Error),
    #[error("its first instance cannot be made: {}", .0.in_full())]
    Start(oarlock_plugin::CallError),
    #[error(transparent)]
    Budget(Refused),
    #[error("its file sets `{key}`, which only a plugin may have whose description says `stateless`")]
    HasState { key: &'static str },
    #[error("the host panicked while it loaded this version: {0}; this is a bug of the host")]
    Panicked(String),
    #[error(
        "version {} was rolled back at {}: {}; the host does not try it again",
        .0.version, .0.since, .0.reason
    )]
    Quarantined(Entry),
    #[error("nothing has changed")]
    Unchanged,
    /// The host is ending.
    #[error("the informer of {resource} has stopped")]
    Stopped { resource: String },
}

// === impl Error ===

impl Error {
    /// Returns what the operator can do about it, where the message does not say that already. `plugin` is
    /// the name of the plugin, or of its shadow.
    pub(in crate::reload) fn hint(&self, plugin: &str) -> Option<String> {
        match self {
            Self::Read { source, .. } if source.is_not_found() => {
                let key = if shadow::serving_of(plugin).is_some() { "shadow" } else { "component" };
                Some(format!(
                    "build it, or correct `{key}` in the plugin's file (a path relative to that file)"
                ))
            }
            Self::Describe(DescribeError::Refused(_)) => Some(
                "the plugin itself says this; correct its source, or correct `config` in the plugin's file"
                    .to_owned(),
            ),
            Self::HasState { key } => Some(format!(
                "remove `{key}` from the plugin's file, or keep no state in the plugin and say so in its description"
            )),
            Self::Budget(refused) => Some(refused.excess.hint()),
            Self::Quarantined(_) => Some(format!(
                "repair the plugin: the host loads a changed component or changed settings at once. \
                 `oarlock rollback {plugin} --release` makes it try this version again"
            )),
            _ => None,
        }
    }

    /// Returns the text for a status, which has no place for a hint. Other hints are about plugin files: a
    /// status may be that of an object.
    pub(in crate::reload) fn in_status(&self) -> String {
        match self {
            Self::Budget(refused) => format!("{self}. Fix: {}", refused.excess.hint()),
            _ => self.to_string(),
        }
    }

    /// Returns the state of a generation that ends with this error.
    pub(in crate::reload) fn state(&self) -> GenerationState {
        match self {
            Self::Quarantined(_) => GenerationState::Quarantined,
            _ => GenerationState::Failed,
        }
    }

    /// Returns whether the component may be in the middle of being written. A missing component is being
    /// replaced where a version of it serves.
    pub(in crate::reload) fn may_be_half_written(&self, serves: bool) -> bool {
        match self {
            Self::Read { source, .. } => {
                (serves && source.is_not_found()) || matches!(source, regular_file::Error::Changing)
            }
            Self::Component { source, .. } => matches!(
                source,
                component::Error::Empty
                    | component::Error::NotWasm { .. }
                    | component::Error::Truncated { .. }
                    | component::Error::Compile(_)
            ),
            _ => false,
        }
    }
}

fn message(error: &contract::Error) -> &str {
    match error {
        contract::Error::Throttled(throttled) => &throttled.message,
        contract::Error::NotFound(text)
        | contract::Error::AlreadyExists(text)
        | contract::Error::Conflict(text)
        | contract::Error::Forbidden(text)
        | contract::Error::Invalid(text)
        | contract::Error::Unavailable(text)
        | contract::Error::Timeout(text)
        | contract::Error::Gone(text)
        | contract::Error::NotDeclared(text)
        | contract::Error::NotSynced(text)
        | contract::Error::LimitExceeded(text)
        | contract::Error::Suspended(text) => text,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::informers::{Excess, Resource};

    #[test]
    fn a_status_says_what_to_do_about_a_budget_without_room() {
        let excess = Excess { of: Resource::Bytes, used: 4 << 20, limit: 3 << 20, is_share: false };
        let refused = Refused { wanted: "full objects of v1/pods".to_owned(), excess };
        insta::assert_snapshot!(Error::Budget(refused).in_status(), @"the budget has no room for full objects of v1/pods: the caches take 4 MiB, the limit is 3 MiB. Fix: raise --max-cache-bytes if the host has the memory, declare metadata only, or remove other plugins");
        assert_eq!(Error::Unchanged.in_status(), "nothing has changed");
    }

    #[test]
    fn the_hint_for_a_missing_component_names_the_key_of_the_file_that_names_it() {
        let missing = io::Error::from(io::ErrorKind::NotFound);
        let error = Error::Read { path: "next.wasm".to_owned(), source: missing.into() };
        insta::assert_snapshot!(error.hint("hello").unwrap(), @"build it, or correct `component` in the plugin's file (a path relative to that file)");
        insta::assert_snapshot!(error.hint("hello.shadow").unwrap(), @"build it, or correct `shadow` in the plugin's file (a path relative to that file)");
    }
}
