//! Enqueue rules: which key of the work queue a notification becomes.

use oarlock_json::{JsonPointer, PointerError};

use oarlock_informer::{Object, object::OwnerReference};
use oarlock_plugin::contract::{self, Enqueue, NamedAt, OwnerKind, Scope, WorkKey};

/// The parsed enqueue rule of a subscription.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EnqueueRule {
    /// The kind of the keys.
    kind: String,
    target: Target,
}

#[derive(Clone, Debug, PartialEq)]
enum Target {
    Nothing,
    Itself,
    ControllerOwner { group: String, scope: Scope },
    Pointer(JsonPointer, Scope),
    Label(String, Scope),
    Key(contract::ObjectKey),
}

// === impl EnqueueRule ===

impl EnqueueRule {
    /// Parses the rule of a subscription.
    pub(crate) fn of(subscription: &contract::Subscription) -> Result<Self, PointerError> {
        let name = || subscription.name.clone();
        let (kind, target) = match &subscription.enqueue {
            Enqueue::Nothing => (name(), Target::Nothing),
            Enqueue::Itself => (name(), Target::Itself),
            Enqueue::ControllerOwner(OwnerKind { group, kind, scope }) => {
                (kind.clone(), Target::ControllerOwner { group: group.clone(), scope: *scope })
            }
            Enqueue::Pointer(NamedAt { at, scope }) => (name(), Target::Pointer(at.parse()?, *scope)),
            Enqueue::Label(NamedAt { at, scope }) => (name(), Target::Label(at.clone(), *scope)),
            Enqueue::Key(WorkKey { kind, object }) => (kind.clone(), Target::Key(object.clone())),
        };
        Ok(Self { kind, target })
    }

    /// Returns whether notifications go to the handler, not to the work queue.
    #[must_use]
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self.target, Target::Nothing)
    }

    /// Returns whether the keys that objects name have this kind.
    pub(super) fn has_kind(&self, kind: &str) -> bool {
        !self.is_nothing() && self.kind == kind
    }

    /// Returns the pointer to the field that has the key, if the rule names one.
    pub(crate) fn pointer(&self) -> Option<&JsonPointer> {
        match &self.target {
            Target::Pointer(pointer, _) => Some(pointer),
            _ => None,
        }
    }

    /// Returns the key that a state of an object names; `None` if it names none.
    #[must_use]
    pub(crate) fn key(&self, object: &Object) -> Option<WorkKey> {
        let namespace = object.key().namespace();
        let namespace_in = |scope: Scope| match scope {
            Scope::SameNamespace => namespace.to_owned(),
            Scope::Cluster => String::new(),
        };
        let (namespace, name) = match &self.target {
            Target::Nothing => return None,
            Target::Itself => (namespace.to_owned(), object.key().name().to_owned()),
            Target::ControllerOwner { group, scope } => {
                let owners = object.owner_references();
                let is_meant = |owner: &&OwnerReference| {
                    owner.controller && owner.kind == self.kind && group_of(&owner.api_version) == group
                };
                let owner = owners.iter().find(is_meant)?;
                (namespace_in(*scope), owner.name.clone())
            }
            Target::Pointer(pointer, scope) => {
                let text: String = serde_json::from_str(&object.pointer(pointer)?).ok()?;
                match text.split_once('/') {
                    Some((namespace, name)) if *scope == Scope::SameNamespace => {
                        (namespace.to_owned(), name.to_owned())
                    }
                    _ => (namespace_in(*scope), text),
                }
            }
            Target::Label(label, scope) => {
                let labels = object.labels();
                let value = labels.get(label.as_str())?;
                (namespace_in(*scope), (*value).to_owned())
            }
            Target::Key(object) => {
                return Some(WorkKey { kind: self.kind.clone(), object: object.clone() });
            }
        };
        // No object has a longer name or namespace.
        if name.is_empty() || name.contains('/') || name.len() > 253 || namespace.len() > 63 {
            return None;
        }
        Some(WorkKey { kind: self.kind.clone(), object: contract::ObjectKey { namespace, name } })
    }
}

/// Returns the group of an `apiVersion`; empty for the core group.
fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}
