//! The versions of one plugin that the host can go back to without reading them again.

use std::sync::Arc;

use oarlock_plugin::Component;

use crate::config::PluginFile;
use crate::state_folder::VersionId;

/// One version that served. Its code stays mapped.
#[derive(Clone)]
pub(super) struct Version {
    pub(super) id: VersionId,
    pub(super) file: Arc<PluginFile>,
    pub(super) component: Component,
    /// The version that the component states.
    pub(super) stated: String,
    /// It passed its probation.
    pub(super) is_good: bool,
}

/// The version that serves, and the one to go back to.
#[derive(Default)]
pub(super) struct Versions {
    pub(super) serving: Option<Version>,
    before: Option<Version>,
    /// The version that serves is one that the host went back to.
    is_back: bool,
}

// === impl Versions ===

impl Versions {
    /// Notes that another version serves. A good version before it is kept, also while several others follow
    /// it that are not.
    pub(super) fn switched(&mut self, next: Version) {
        let Some(old) = self.serving.replace(next) else { return };
        if let Some(same) = self.serving.as_mut().filter(|next| next.id == old.id) {
            same.is_good |= old.is_good;
            return;
        }
        self.is_back = false;
        if old.is_good || self.before.as_ref().is_none_or(|before| !before.is_good) {
            // Its code is needed again if the new version has to be switched back.
            self.before = Some(old);
        }
    }

    /// Notes that the version that serves was left for this one.
    pub(super) fn went_back(&mut self, to: Version) {
        *self = Self { serving: Some(to), before: None, is_back: true };
    }

    /// Notes that the version that serves passed its probation, if it still serves.
    pub(super) fn passed(&mut self, id: VersionId) {
        if let Some(serving) = self.serving.as_mut().filter(|it| it.id == id) {
            serving.is_good = true;
        }
    }

    /// Returns whether the version that serves is one that the host went back to.
    pub(super) fn is_back(&self) -> bool {
        self.is_back
    }

    /// Returns the version to go back to from the one that serves.
    pub(super) fn before(&self) -> Option<Version> {
        let serving = self.serving.as_ref()?;
        self.before.clone().filter(|before| before.id != serving.id)
    }
}
