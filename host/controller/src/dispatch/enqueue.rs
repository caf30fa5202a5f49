//! Enqueue rules: which key of the work queue a notification becomes.

use oarlock_json::{JsonPointer, PointerError};

use oarlock_informer::Object;
use oarlock_plugin::contract::{self, Enqueue, WorkKey};

/// The parsed enqueue rule of a subscription.
#[derive(Clone, Debug)]
pub(crate) struct EnqueueRule {
    /// The kind of the keys.
    kind: String,
    target: Target,
}

#[derive(Clone, Debug)]
enum Target {
    Nothing,
    Itself,
    ControllerOwner,
    Pointer(JsonPointer),
    Label(String),
}

// === impl EnqueueRule ===

impl EnqueueRule {
    /// Parses the rule of a subscription.
    pub(crate) fn of(subscription: &contract::Subscription) -> Result<Self, PointerError> {
        let name = || subscription.name.clone();
        let (kind, target) = match &subscription.enqueue {
            Enqueue::Nothing => (name(), Target::Nothing),
            Enqueue::Itself => (name(), Target::Itself),
            Enqueue::ControllerOwner(kind) => (kind.clone(), Target::ControllerOwner),
            Enqueue::Pointer(pointer) => (name(), Target::Pointer(pointer.parse()?)),
            Enqueue::Label(label) => (name(), Target::Label(label.clone())),
        };
        Ok(Self { kind, target })
    }

    /// Returns whether notifications go to the handler, not to the work queue.
    #[must_use]
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self.target, Target::Nothing)
    }

    /// Returns the key that a state of an object names; `None` if it names none.
    #[must_use]
    pub(crate) fn key(&self, object: &Object) -> Option<WorkKey> {
        let namespace = object.key().namespace();
        let (namespace, name) = match &self.target {
            Target::Nothing => return None,
            Target::Itself => (namespace.to_owned(), object.key().name().to_owned()),
            Target::ControllerOwner => {
                let owners = object.owner_references();
                let owner = owners.iter().find(|owner| owner.controller && owner.kind == self.kind)?;
                (namespace.to_owned(), owner.name.clone())
            }
            Target::Pointer(pointer) => {
                let text: String = serde_json::from_str(&object.pointer(pointer)?).ok()?;
                match text.split_once('/') {
                    Some((namespace, name)) => (namespace.to_owned(), name.to_owned()),
                    None => (namespace.to_owned(), text),
                }
            }
            Target::Label(label) => {
                let labels = object.labels();
                let value = labels.get(label.as_str())?;
                (namespace.to_owned(), (*value).to_owned())
            }
        };
        // No object has a longer name or namespace.
        if name.is_empty() || name.contains('/') || name.len() > 253 || namespace.len() > 63 {
            return None;
        }
        Some(WorkKey { kind: self.kind.clone(), object: contract::ObjectKey { namespace, name } })
    }
}
