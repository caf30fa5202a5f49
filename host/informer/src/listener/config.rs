//! The configuration of a listener.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use oarlock_json::JsonPointer;
use oarlock_label_selector::LabelSelector;

use super::account::BacklogAccount;
use crate::namespaces::Namespaces;
use crate::object::Object;
use crate::selector::FieldCondition;

/// The configuration of a listener: what it receives, and how much may wait for it.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// The name of the listener in logs and metrics.
    pub name: String,
    /// The listener sees no objects of other namespaces.
    pub namespaces: Namespaces,
    /// Selects objects by their labels.
    pub label_selector: LabelSelector,
    /// Selects objects by their fields: all conditions must hold.
    pub conditions: Vec<FieldCondition>,
    /// The declared fields. If there are any, updates that change none of them are skipped, unless uid or
    /// deletionTimestamp change.
    pub fields: Vec<JsonPointer>,
    /// How often the listener receives every object again. None: the informer's period. Zero: never.
    pub resync: Option<Duration>,
    /// How many notifications wait separately; see the module's documentation.
    pub backlog_limit: usize,
    /// The account that superseded states in the backlog are charged to. All listeners of one owner share it.
    /// While it is full, notifications merge as they do beyond the limit.
    pub account: BacklogAccount,
    /// For a consumer that only collects the keys that objects name. Then notifications do not merge into one
    /// that hides a key which they name, up to 16 notifications of an object; and the delete of an object
    /// whose add was not delivered is delivered.
    pub keys: Option<NamedKey>,
}

/// Returns the key that a state of an object names; `None` if it names none. Cheap to clone.
#[derive(Clone)]
pub struct NamedKey(Arc<Key>);

type Key = dyn Fn(&Object) -> Option<String> + Send + Sync;

// === impl NamedKey ===

impl NamedKey {
    /// Wraps a function of the object's state alone.
    pub fn new(key: impl Fn(&Object) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(key))
    }

    pub(super) fn of(&self, object: &Object) -> Option<String> {
        (self.0)(object)
    }
}

impl fmt::Debug for NamedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("NamedKey")
    }
}

// === impl ListenerConfig ===

impl Default for ListenerConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            namespaces: Namespaces::All,
            label_selector: LabelSelector::everything(),
            conditions: Vec::new(),
            fields: Vec::new(),
            resync: None,
            backlog_limit: 1024,
            account: BacklogAccount::default(),
            keys: None,
        }
    }
}
