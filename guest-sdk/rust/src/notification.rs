//! Notifications of changes, as [`crate::Handler`] receives them.

use std::fmt::Display;

use oarlock_sdk_bindings::exports::oarlock::plugin::handler as wit;

use crate::event::{self, Version};
use crate::log::{Level, log};
use crate::{Error, Fields, ObjectRef};

/// An object exists, was created, or began to match the subscription.
#[derive(Clone, Debug, PartialEq)]
pub struct Added {
    /// The subscription's name.
    pub subscription: String,
    /// The object.
    pub object: ObjectRef,
    /// True for an object of the first list, of a replay to a new instance, or that the plugin's account may
    /// see only now; false for an object that was created or began to match.
    pub is_in_initial_list: bool,
    declared: Vec<Option<String>>,
}

/// An object changed, or a resync delivers it again (old and new state are then the same).
#[derive(Clone, Debug, PartialEq)]
pub struct Updated {
    /// The subscription's name.
    pub subscription: String,
    /// The new state.
    pub object: ObjectRef,
    /// The resourceVersion of the old state; that of `object` if a resync delivers it again.
    pub old_resource_version: String,
    /// The uid of the old state, if it differs: the object was deleted and created again, and the host missed
    /// the delete.
    pub old_uid: Option<String>,
    declared: Vec<Option<String>>,
    old_declared: Vec<Option<String>>,
}

/// An object was deleted, or ceased to match the subscription.
#[derive(Clone, Debug, PartialEq)]
pub struct Deleted {
    /// The subscription's name.
    pub subscription: String,
    /// The last state that the host knows.
    pub object: ObjectRef,
    /// True if the host missed the delete: the last known state may be stale.
    pub final_state_unknown: bool,
    declared: Vec<Option<String>>,
}

/// All initial adds of a subscription have been handled.
#[derive(Clone, Debug, PartialEq)]
pub struct Synced {
    /// The subscription's name.
    pub subscription: String,
    /// The number of the plugin's subscriptions that have not synced yet. At 0 the plugin knows every object.
    pub remaining: u32,
}

// === impl Added ===

impl Added {
    /// Returns the declared fields of the object. `F` is the type that the subscription declares.
    ///
    /// # Errors
    ///
    /// `invalid`, with the pointer, for a value of another type.
    pub fn fields<F: Fields>(&self) -> Result<F, Error> {
        parse(&self.declared, Version::New)
    }

    /// Logs the line `notified`, from which tests read which notifications a plugin received.
    pub fn log(&self, pairs: &[(&str, &dyn Display)]) {
        let initial = ("initial", &self.is_in_initial_list as _);
        line("add", &self.subscription, Some(&self.object), initial, pairs);
    }
}

impl From<wit::Added> for Added {
    fn from(added: wit::Added) -> Self {
        let wit::Added { subscription, object, is_in_initial_list, fields: declared } = added;
        Self { subscription, object, is_in_initial_list, declared }
    }
}

// === impl Updated ===

impl Updated {
    /// Returns the declared fields of the new state. `F` is the type that the subscription declares.
    ///
    /// # Errors
    ///
    /// `invalid`, with the pointer, for a value of another type.
    pub fn fields<F: Fields>(&self) -> Result<F, Error> {
        parse(&self.declared, Version::New)
    }

    /// Returns the declared fields of the old state.
    ///
    /// # Errors
    ///
    /// As [`fields`](Self::fields).
    pub fn old_fields<F: Fields>(&self) -> Result<F, Error> {
        parse(&self.old_declared, Version::Old)
    }

    /// Logs the line `notified`, from which tests read which notifications a plugin received.
    pub fn log(&self, pairs: &[(&str, &dyn Display)]) {
        let old = ("old-resource-version", &self.old_resource_version as _);
        line("update", &self.subscription, Some(&self.object), old, pairs);
    }
}

impl From<wit::Updated> for Updated {
    fn from(updated: wit::Updated) -> Self {
        let wit::Updated { subscription, object, old_resource_version, old_uid, fields, old_fields } =
            updated;
        Self {
            subscription,
            object,
            old_resource_version,
            old_uid,
            declared: fields,
            old_declared: old_fields,
        }
    }
}

// === impl Deleted ===

impl Deleted {
    /// Returns the declared fields of the last known state. `F` is the type that the subscription declares.
    ///
    /// # Errors
    ///
    /// `invalid`, with the pointer, for a value of another type.
    pub fn fields<F: Fields>(&self) -> Result<F, Error> {
        parse(&self.declared, Version::Old)
    }

    /// Logs the line `notified`, from which tests read which notifications a plugin received.
    pub fn log(&self, pairs: &[(&str, &dyn Display)]) {
        let unknown = ("unknown", &self.final_state_unknown as _);
        line("delete", &self.subscription, Some(&self.object), unknown, pairs);
    }
}

impl From<wit::Deleted> for Deleted {
    fn from(deleted: wit::Deleted) -> Self {
        let wit::Deleted { subscription, object, final_state_unknown, fields: declared } = deleted;
        Self { subscription, object, final_state_unknown, declared }
    }
}

// === impl Synced ===

impl Synced {
    /// Logs the line `notified`, from which tests read which notifications a plugin received.
    pub fn log(&self, pairs: &[(&str, &dyn Display)]) {
        line("synced", &self.subscription, None, ("remaining", &self.remaining), pairs);
    }
}

impl From<wit::Synced> for Synced {
    fn from(synced: wit::Synced) -> Self {
        let wit::Synced { subscription, remaining } = synced;
        Self { subscription, remaining }
    }
}

/// Parses the declared fields. If the notification does not carry them (they are longer than 1 MiB, or the
/// subscription declares others), asks the host for them.
fn parse<F: Fields>(declared: &[Option<String>], which: Version) -> Result<F, Error> {
    let asked;
    let texts = if declared.len() == F::POINTERS.len() {
        declared
    } else {
        asked = event::texts(which, F::POINTERS)?;
        &asked
    };
    F::parse(texts)
}

fn line(
    kind: &str,
    subscription: &str,
    object: Option<&ObjectRef>,
    of_kind: (&str, &dyn Display),
    pairs: &[(&str, &dyn Display)],
) {
    let mut all: Vec<(&str, &dyn Display)> = vec![("type", &kind), ("subscription", &subscription)];
    if let Some(object) = object {
        let ObjectRef { namespace, name, uid, resource_version } = object;
        all.extend::<[(&str, &dyn Display); 4]>([
            ("namespace", namespace),
            ("name", name),
            ("uid", uid),
            ("resource-version", resource_version),
        ]);
    }
    all.push(of_kind);
    all.extend_from_slice(pairs);
    log(Level::Info, "notified", &all);
}
