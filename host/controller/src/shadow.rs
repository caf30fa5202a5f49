//! Shadows: a second component that receives the same events as the serving one, and writes nothing.
//!
//! A plugin's file names the component in `shadow`. The host loads it as a plugin of its own, `NAME.shadow`:
//! with the same account and configuration, its own subscriptions, work queue, instance, log and metrics, and
//! a quarter of the plugin's weight. So a shadow that is slow or traps delays nothing. It may read what the
//! plugin may read. Its writes and Events are withheld ([`access`]) and compared with those of the plugin
//! ([`comparison`]).

mod access;
mod comparison;
mod leaves;

use std::collections::BTreeMap;
use std::sync::Arc;

use oarlock_plugin::kube_access::KubeAccess;
use parking_lot::Mutex;

use self::access::Compared;
pub(crate) use self::comparison::{Comparison, ShadowView};
use crate::config::PluginFile;

/// The end of a shadow's name. No plugin's name has a dot.
const SUFFIX: &str = ".shadow";

/// The part of the plugin's weight that its shadow gets.
const WEIGHT_PART: u32 = 4;

/// The comparisons of all plugins with a shadow. Cheap to clone; clones share them.
#[derive(Clone, Default)]
pub(crate) struct Shadows {
    comparisons: Arc<Mutex<BTreeMap<Arc<str>, Arc<Comparison>>>>,
}

/// Whose writes are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Serving,
    Shadow,
}

/// Returns the plugin whose shadow has this name.
pub(crate) fn serving_of(name: &str) -> Option<&str> {
    name.strip_suffix(SUFFIX)
}

/// Returns the shadow of a plugin as a plugin file, if the plugin has one.
pub(crate) fn file_of(file: &PluginFile) -> Option<PluginFile> {
    let component = file.shadow.clone()?;
    Some(PluginFile {
        name: format!("{}{SUFFIX}", file.name),
        component,
        shadow: None,
        weight: (file.weight / WEIGHT_PART).max(1),
        ..file.clone()
    })
}

// === impl Shadows ===

impl Shadows {
    /// Returns the comparison of a plugin.
    pub(crate) fn of(&self, plugin: &str) -> Arc<Comparison> {
        let mut comparisons = self.comparisons.lock();
        if let Some(found) = comparisons.get(plugin) {
            return found.clone();
        }
        let made = Arc::new(Comparison::default());
        comparisons.insert(plugin.into(), made.clone());
        made
    }

    /// A plugin, or the shadow of one, is unloaded.
    pub(crate) fn unload(&self, name: &str) {
        match serving_of(name) {
            // The status of the plugin holds the comparison, unless the plugin is unloaded, too.
            Some(serving) => {
                if let Some(comparison) = self.comparisons.lock().get(serving) {
                    comparison.end();
                }
            }
            None => drop(self.comparisons.lock().remove(name)),
        }
    }

    /// The host switches to this component of a plugin: for a shadow, its comparison begins.
    pub(crate) fn begin(&self, name: &str, digest: &str) {
        let Some(serving) = serving_of(name) else { return };
        if let Some(comparison) = self.comparisons.lock().get(serving) {
            comparison.begin(digest);
        }
    }

    /// Returns the access of a generation, with its writes compared: withheld for a shadow. The access itself
    /// for a plugin without a shadow.
    pub(crate) fn compare(&self, file: &PluginFile, access: KubeAccess) -> KubeAccess {
        if let Some(serving) = serving_of(&file.name) {
            return Compared::wrap(access, Side::Shadow, self.of(serving));
        }
        if file.shadow.is_some() {
            return Compared::wrap(access, Side::Serving, self.of(&file.name));
        }
        access
    }
}

#[cfg(test)]
mod tests;
