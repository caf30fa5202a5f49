//! The plugin's description of itself, built step by step.

use oarlock_sdk_bindings::exports::oarlock::plugin::metadata as wit;
pub use wit::{Index, Read, Request};

use crate::{
    Content, Enqueue, FieldCondition, GroupVersionResource, NamedAt, Namespaces, ObjectKey, OwnerKind, Scope,
    Test, Trigger, WallTimes, WorkKey,
};

/// Subscriptions, reads, indices, requests and schedules of a plugin. The host asks for it before it calls
/// the plugin.
#[derive(Clone, Debug)]
#[must_use]
pub struct Description(pub(crate) wit::Description);

// === impl Description ===

impl Description {
    /// Returns a description without subscriptions, of a plugin that keeps state between calls.
    pub fn new(name: &str, version: &str) -> Self {
        Self(wit::Description {
            name: name.to_owned(),
            version: version.to_owned(),
            subscriptions: Vec::new(),
            reads: Vec::new(),
            indices: Vec::new(),
            requests: Vec::new(),
            schedules: Vec::new(),
            stateless: false,
        })
    }

    /// Adds a subscription.
    pub fn subscribe(mut self, subscription: Subscription) -> Self {
        self.0.subscriptions.push(subscription.0);
        self
    }

    /// Adds a lister of whole objects in all namespaces that the account may read.
    pub fn read(mut self, name: &str, target: GroupVersionResource) -> Self {
        self.0.reads.push(lister(name, target, false));
        self
    }

    /// Adds a lister like [`read`](Self::read) whose changes queue keys again: after a change of what the
    /// last run of [`crate::Reconciler::reconcile`] for a key read through it, that key is reconciled again.
    pub fn read_that_wakes(mut self, name: &str, target: GroupVersionResource) -> Self {
        self.0.reads.push(lister(name, target, true));
        self
    }

    /// Adds an index; see [`label_index`] and [`pointer_index`].
    pub fn index(mut self, index: Index) -> Self {
        self.0.indices.push(index);
        self
    }

    /// Declares requests with these verbs through [`crate::client`], in all namespaces: writes, and live
    /// reads of resources that are declared nowhere else.
    pub fn request(mut self, target: GroupVersionResource, verbs: &[&str]) -> Self {
        self.0.requests.push(Request {
            target,
            namespaces: Namespaces::All,
            verbs: verbs.iter().map(|&verb| verb.to_owned()).collect(),
            subresource: String::new(),
        });
        self
    }

    /// Adds a schedule; see [`every`] and [`at`].
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.0.schedules.push(schedule.0);
        self
    }

    /// Declares that the plugin can lose everything it keeps between calls.
    pub fn stateless(mut self) -> Self {
        self.0.stateless = true;
        self
    }
}

/// One subscription: `Subscription::new("pods", gvr("", "v1", "pods")).label_selector("app=web")`.
#[derive(Clone, Debug)]
#[must_use]
pub struct Subscription(wit::Subscription);

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

    /// Declares the fields (JSON pointers) that the plugin needs. The host skips updates that change none of
    /// them, and every notification carries their values.
    pub fn fields(mut self, pointers: &[&str]) -> Self {
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

/// One schedule; see [`every`] and [`at`]. Its key has the kind of its name, and an empty object.
#[derive(Clone, Debug)]
#[must_use]
pub struct Schedule(wit::Schedule);

// === impl Schedule ===

impl Schedule {
    fn new(name: &str, trigger: Trigger) -> Self {
        Self(wit::Schedule { name: name.to_owned(), trigger, at_start: false, key: None })
    }

    /// Has it also fire when the plugin starts on a host, which catches up on missed times.
    pub fn at_start(mut self) -> Self {
        self.0.at_start = true;
        self
    }

    /// Has it add the key of this kind and object.
    pub fn key(mut self, kind: &str, object: ObjectKey) -> Self {
        self.0.key = Some(WorkKey { kind: kind.to_owned(), object });
        self
    }
}

fn lister(name: &str, target: GroupVersionResource, wakes: bool) -> Read {
    Read { name: name.to_owned(), target, namespaces: Namespaces::All, content: Content::Full, wakes }
}

/// Returns a schedule that adds the key of its name every so many seconds.
///
/// ```
/// use oarlock_sdk::{Description, at, every};
///
/// let description = Description::new("reaper", "0.1.0")
///     .schedule(every("expire", 60))
///     .schedule(at("report", "0 6 * * mon-fri", "Europe/Berlin").at_start());
/// # drop(description);
/// ```
pub fn every(name: &str, seconds: u32) -> Schedule {
    Schedule::new(name, Trigger::EverySeconds(seconds))
}

/// Returns a schedule that adds the key of its name at the times of a cron expression, in a time zone of the
/// IANA database (empty for UTC).
pub fn at(name: &str, cron: &str, time_zone: &str) -> Schedule {
    let times = WallTimes { cron: cron.to_owned(), time_zone: time_zone.to_owned() };
    Schedule::new(name, Trigger::At(times))
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

/// Returns an index of a declared lister by the value of a label.
pub fn label_index(name: &str, lister: &str, label: &str) -> Index {
    let source = wit::IndexSource::Label(label.to_owned());
    Index { name: name.to_owned(), lister: lister.to_owned(), source }
}

/// Returns an index of a declared lister by the scalar at a JSON pointer (`*` for every element of a list).
pub fn pointer_index(name: &str, lister: &str, pointer: &str) -> Index {
    let source = wit::IndexSource::Pointer(pointer.to_owned());
    Index { name: name.to_owned(), lister: lister.to_owned(), source }
}
