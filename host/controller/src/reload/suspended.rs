//! The plugins that an operator has suspended, for the time in which the host has not loaded them.
//!
//! A suspension ends with `oarlock resume` or with the host. A panic of the dispatcher, or a Plugin object
//! that may not be run for a moment, does not end it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Plugin;
use crate::config::PluginFile;
use crate::plugin_resource::is_of_object;

/// The most plugins that are remembered. Most of these objects were deleted.
const MAX_PLUGINS: usize = 4_096;

/// What each of them was made of, by name.
#[derive(Default)]
pub(super) struct Suspended {
    plugins: BTreeMap<Arc<str>, PathBuf>,
}

// === impl Suspended ===

impl Suspended {
    /// Remembers a plugin that is dropped, if an operator has suspended it.
    pub(super) fn keep(&mut self, name: &Arc<str>, plugin: &Plugin) {
        if !plugin.slot.suspension.get().by_operator {
            return;
        }
        if self.plugins.len() >= MAX_PLUGINS {
            self.plugins.pop_first();
        }
        self.plugins.insert(name.clone(), identity(&plugin.newest.0).to_owned());
    }

    /// Returns whether a plugin that is loaded was suspended when it was dropped.
    pub(super) fn take(&mut self, name: &str, file: &PluginFile) -> bool {
        self.plugins.remove(name).is_some_and(|it| it == identity(file))
    }
}

/// Returns what tells a plugin from another one that gets its name: the file, or the object whatever its
/// account is.
fn identity(file: &PluginFile) -> &Path {
    let path = &*file.path;
    path.parent().filter(|_| is_of_object(path)).unwrap_or(path)
}
