//! The plugins that objects define, as the reload reads them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use oarlock_component_source::CachedComponent;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::account::Account;
use crate::config::{PluginFile, names};
use crate::shadow;
use crate::state_folder::Entry;

/// The definitions by the host's name of the plugin. Cheap to clone: clones share the definitions.
#[derive(Clone, Debug)]
pub(crate) struct Definitions {
    sender: Arc<watch::Sender<Snapshot>>,
    /// The components of the definitions, and those of their shadows under the names of the shadows, which
    /// the cache keeps while they are here.
    components: Arc<Mutex<BTreeMap<Arc<str>, CachedComponent>>>,
    /// The versions that were rolled back, as the statuses of the objects say.
    rolled_back: Arc<Mutex<RolledBack>>,
}

/// The versions that were rolled back, by the host's name of the plugin.
type RolledBack = BTreeMap<Arc<str>, Arc<[Entry]>>;

/// All definitions at one time.
pub(crate) type Snapshot = Arc<BTreeMap<Arc<str>, Arc<PluginFile>>>;

/// What stands for the folders of Plugin and ClusterPlugin objects. It does not depend on the working
/// directory.
const FOLDERS: [&str; 2] = ["/plugins.oarlock.dev", "/clusterplugins.oarlock.dev"];

/// The parts of a spec that take effect at once.
pub(super) struct AtOnce {
    pub(super) account: Account,
    pub(super) is_suspended: bool,
    pub(super) suspend_writes: bool,
    /// One that is added or changed is fetched first.
    pub(super) has_shadow: bool,
}

/// Names a Plugin or ClusterPlugin. Displays as `Plugin NAMESPACE/NAME` or `ClusterPlugin NAME`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct PluginKey {
    /// None for a ClusterPlugin.
    pub(super) namespace: Option<Arc<str>>,
    pub(super) name: Arc<str>,
}

// === impl Definitions ===

impl Definitions {
    /// Returns an empty set.
    pub(crate) fn new() -> Self {
        Self {
            sender: Arc::new(watch::Sender::default()),
            components: Arc::default(),
            rolled_back: Arc::default(),
        }
    }

    /// Returns what sees the current definitions and each change of them.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Snapshot> {
        self.sender.subscribe()
    }

    /// Adds or replaces a definition, with the component of its shadow.
    pub(super) fn set(
        &self,
        mut file: PluginFile,
        component: CachedComponent,
        shadow: Option<CachedComponent>,
    ) {
        let name: Arc<str> = file.name.as_str().into();
        self.components.lock().insert(name.clone(), component);
        file.shadow = self.keep_shadow(&name, shadow);
        self.sender.send_if_modified(|all| {
            if all.get(&name).is_some_and(|before| **before == file) {
                return false;
            }
            Arc::make_mut(all).insert(name, Arc::new(file));
            true
        });
    }

    /// Adds, replaces or removes the shadow of a definition.
    pub(super) fn set_shadow(&self, name: &str, component: Option<CachedComponent>) {
        if self.get(name).is_none() {
            return;
        }
        let shadow = self.keep_shadow(name, component);
        self.sender.send_if_modified(|all| match all.get(name) {
            Some(file) if file.shadow != shadow => {
                let file = PluginFile { shadow, ..PluginFile::clone(file) };
                Arc::make_mut(all).insert(name.into(), Arc::new(file));
                true
            }
            _ => false,
        });
    }

    /// Keeps the component of a shadow in the cache, and returns its path.
    fn keep_shadow(&self, plugin: &str, component: Option<CachedComponent>) -> Option<PathBuf> {
        let name = shadow::name_of(plugin).into();
        let mut components = self.components.lock();
        let Some(component) = component else {
            components.remove(&name);
            return None;
        };
        let path = component.path().to_owned();
        components.insert(name, component);
        Some(path)
    }

    /// Applies what takes effect at once, whether the rest of the object's spec can be used or not: a plugin
    /// acts only as the account that its spec names, and is called, and may write, unless the spec suspends
    /// that. It has no shadow without one in the spec.
    pub(super) fn apply_at_once(&self, name: &str, at_once: AtOnce) {
        let AtOnce { account, is_suspended, suspend_writes, has_shadow } = at_once;
        let Some(file) = self.get(name) else { return };
        if file.service_account != account {
            return self.remove(name);
        }
        if !has_shadow {
            self.set_shadow(name, None);
        }
        self.sender.send_if_modified(|all| match all.get(name) {
            Some(file) if (file.is_suspended, file.suspend_writes) != (is_suspended, suspend_writes) => {
                let file = PluginFile { is_suspended, suspend_writes, ..PluginFile::clone(file) };
                Arc::make_mut(all).insert(name.into(), Arc::new(file));
                true
            }
            _ => false,
        });
    }

    /// Removes a definition.
    pub(super) fn remove(&self, name: &str) {
        self.sender.send_if_modified(|all| {
            let has_it = all.contains_key(name);
            if has_it {
                Arc::make_mut(all).remove(name);
            }
            has_it
        });
        self.components.lock().remove(name);
        self.keep_shadow(name, None);
    }

    /// Notes the versions that the status of an object names as rolled back; `None` if it says nothing.
    pub(super) fn note_rolled_back(&self, name: &str, entries: Option<Vec<Entry>>) {
        let before = {
            let mut rolled_back = self.rolled_back.lock();
            match &entries {
                Some(entries) => rolled_back.insert(name.into(), entries.as_slice().into()),
                None => rolled_back.remove(name),
            }
        };
        if before.as_deref() != entries.as_deref() {
            // A task that follows the definitions looks at this, too.
            self.sender.send_modify(|_| {});
        }
    }

    /// Returns the versions that the status of an object names as rolled back, if it says anything.
    pub(crate) fn rolled_back(&self, name: &str) -> Option<Arc<[Entry]>> {
        self.rolled_back.lock().get(name).cloned()
    }

    /// Returns the definition of a plugin.
    pub(super) fn get(&self, name: &str) -> Option<Arc<PluginFile>> {
        self.sender.borrow().get(name).cloned()
    }
}

/// Returns whether a path stands for an object.
pub(crate) fn is_of_object(path: &Path) -> bool {
    FOLDERS.iter().any(|folder| path.starts_with(folder))
}

// === impl PluginKey ===

impl PluginKey {
    /// Returns the host's name of the plugin. The names of a namespace and of a plugin have no dot, so two
    /// plugins never have the same name, and a plugin of a namespace never that of a plugin file.
    pub(super) fn host_name(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}.{}", self.name),
            None => self.name.to_string(),
        }
    }

    /// Returns the account that a spec with this `serviceAccountName` names.
    pub(super) fn account(&self, name: &str, host_namespace: &str) -> Account {
        let namespace = self.namespace.as_deref().unwrap_or(host_namespace);
        Account { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Returns what stands for the path of the plugin's file. The paths of its objects are below it.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(match &self.namespace {
            Some(namespace) => format!("{}/{namespace}/{}", FOLDERS[0], self.name),
            None => format!("{}/{}", FOLDERS[1], self.name),
        })
    }

    /// Returns what stands for the path of the file of one object that acts as one account. What the host
    /// keeps of a plugin belongs to a path, so neither an object that was created again nor another account
    /// gets an earlier version.
    pub(super) fn path_of(&self, uid: &str, account: &str) -> PathBuf {
        self.path().join(uid).join(account)
    }

    /// Returns whether the host's name of the plugin can be made of its name. The definitions of both kinds
    /// refuse other names; an older definition may not.
    pub(super) fn is_valid(&self) -> bool {
        names::dns_label(&self.name).is_ok() && &*self.name != shadow::RESERVED
    }

    pub(super) fn kind(&self) -> &'static str {
        if self.namespace.is_some() { "Plugin" } else { "ClusterPlugin" }
    }
}

impl fmt::Display for PluginKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, name } = self;
        match namespace {
            Some(namespace) => write!(f, "{} {namespace}/{name}", self.kind()),
            None => write!(f, "{} {name}", self.kind()),
        }
    }
}
