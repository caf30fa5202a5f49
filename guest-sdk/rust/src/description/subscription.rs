//! Subscriptions: the objects of whose changes the host notifies the plugin.

use oarlock_sdk_bindings::exports::oarlock::plugin::metadata as wit;

use crate::{
    Content, Enqueue, FieldCondition, Fields, GroupVersionResource, NamedAt, Namespaces, OwnerKind, Resource,
    Scope, Test,
};

/// One subscription: `Subscription::new("pods", gvr("", "v1", "pods")).label_selector("app=web")`.
#[derive(Clone, Debug)]
#[must_use]
pub struct Subscription(pub(crate) wit::Subscription);

// === impl Subscription ===

impl Subscription {
    /// Returns a subscription to all objects of a resource, in all namespaces that the account may read.
    pub fn new(name: &str, target: GroupVersionResource) -> Self {
        Self(wit::Subscription {
            name: name.to_owned(),
            target,
            namespaces: Namespaces::All,
            label_selector: String::new(),
            conditions: Vec::new(),
            fields: Vec::new(),
            content: Content::Full,
            resync_seconds: 0,
            enqueue: Enqueue::Nothing,
            ignore_own_writes: false,
        })
    }

    /// Returns a subscription to all objects of the resource that a type stands for.
    pub fn of<T: Resource>(name: &str) -> Self {
        Self::new(name, T::gvr())
    }

    /// Restricts the subscription to one namespace.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.0.namespaces = Namespaces::One(namespace.to_owned());
        self
    }

    /// Restricts the subscription to objects whose labels match a selector in the syntax of Kubernetes.
    pub fn label_selector(mut self, selector: &str) -> Self {
        self.0.label_selector = selector.to_owned();
        self
    }

    /// Restricts the subscription to objects whose field at the JSON pointer passes the test. All conditions
    /// must hold.
    pub fn condition(mut self, pointer: &str, test: Test) -> Self {
        self.0.conditions.push(FieldCondition { pointer: pointer.to_owned(), test });
        self
    }

    /// Declares the fields of a struct as those that the plugin needs. The host skips updates that change
    /// none of them, and every notification carries their values: see [`Fields`].
    pub fn fields<F: Fields>(self) -> Self {
        self.pointers(F::POINTERS)
    }

    /// Declares the fields at these JSON pointers as those that the plugin needs, for pointers that only the
    /// configuration names.
    pub fn pointers(mut self, pointers: &[&str]) -> Self {
        self.0.fields = pointers.iter().map(|&pointer| pointer.to_owned()).collect();
        self
    }

    /// Declares that the plugin needs only `apiVersion`, `kind` and `metadata`.
    pub fn metadata_only(mut self) -> Self {
        self.0.content = Content::Metadata;
        self
    }

    /// Has the host deliver every object again after this interval, in seconds.
    pub fn resync_seconds(mut self, seconds: u32) -> Self {
        self.0.resync_seconds = seconds;
        self
    }

    /// Has the host skip notifications of what the plugin writes itself: of objects that it creates, and of
    /// writes that demand a resourceVersion. Deletes are never skipped.
    pub fn ignore_own_writes(mut self) -> Self {
        self.0.ignore_own_writes = true;
        self
    }

    /// Has notifications add keys for [`crate::Reconciler`] instead of calling [`crate::Handler`].
    pub fn enqueue(mut self, enqueue: Enqueue) -> Self {
        self.0.enqueue = enqueue;
        self
    }
}

/// Returns the rule for the object that the string at a JSON pointer names, in the namespace of the object
/// with the pointer.
#[must_use]
pub fn enqueue_pointer(pointer: &str) -> Enqueue {
    Enqueue::Pointer(NamedAt { at: pointer.to_owned(), scope: Scope::SameNamespace })
}

/// Returns the rule for the object that the value of a label names, in the namespace of the object with the
/// label.
#[must_use]
pub fn enqueue_label(label: &str) -> Enqueue {
    Enqueue::Label(NamedAt { at: label.to_owned(), scope: Scope::SameNamespace })
}

/// Returns the rule for the controller owner of a kind, in the namespace of its dependent.
#[must_use]
pub fn enqueue_controller_owner(group: &str, kind: &str) -> Enqueue {
    let (group, kind) = (group.to_owned(), kind.to_owned());
    Enqueue::ControllerOwner(OwnerKind { group, kind, scope: Scope::SameNamespace })
}
