//! Shadows: a second component that receives the same events as the serving one, and writes nothing.
//!
//! A plugin's file names the component in `shadow`, and so does the definition of a Plugin object once the
//! component was fetched. The host loads it as a plugin of its own, `NAME.shadow`: with the same account and
//! configuration, its own subscriptions, work queue, instance, log and metrics, and a quarter of the plugin's
//! weight. So a shadow that is slow or traps delays nothing, and one that comes or goes changes nothing of
//! the plugin. It may read what the plugin may read. Its writes and Events are withheld ([`access`]) and
//! compared with those of the plugin ([`comparison`]).

mod access;
mod comparison;
mod leaves;

use std::collections::BTreeMap;
use std::sync::Arc;

use oarlock_plugin::kube_access::KubeAccess;
use parking_lot::Mutex;

use self::access::Compared;
pub(crate) use self::comparison::{Comparison, ShadowView, WriteDifference};
use crate::config::PluginFile;

/// The end of a shadow's name. The name of a file or an object has no dot.
const SUFFIX: &str = ".shadow";

/// The name that no object has: with its namespace it would be the name of a shadow.
pub(crate) const RESERVED: &str = "shadow";

/// The part of the plugin's weight that its shadow gets.
const WEIGHT_PART: u32 = 4;

/// The comparisons of all plugins, each with a shadow or without one yet. Cheap to clone; clones share them.
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

/// Returns the name of a plugin's shadow.
pub(crate) fn name_of(plugin: &str) -> String {
    format!("{plugin}{SUFFIX}")
}

/// Takes the shadow out of a plugin's file and returns it as a file of its own, if the plugin has one.
pub(crate) fn split_off(file: &mut PluginFile) -> Option<PluginFile> {
    let component = file.shadow.take()?;
    Some(PluginFile {
        name: name_of(&file.name),
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

    /// Returns the access of a generation, with its writes compared while the plugin has a shadow: withheld
    /// for the shadow.
    pub(crate) fn compare(&self, name: &str, access: KubeAccess) -> KubeAccess {
        let (side, plugin) = match serving_of(name) {
            Some(serving) => (Side::Shadow, serving),
            None => (Side::Serving, name),
        };
        Compared::wrap(access, side, self.of(plugin))
    }
}

#[cfg(test)]
mod tests;
