//! The arguments of the handler's functions, with borrowed texts.
//!
//! The host holds these texts anyway. So a call copies each of them once, into the guest, and allocates none.
//! They serialise as the generated types of the contract do.

use serde::Serialize;
use wasmtime::component::{ComponentType, Lower};

use super::{Added, Deleted, ObjectRef, Updated};

/// The values of declared fields, in the order of the declaration.
pub type FieldTexts<'a> = [Option<&'a str>];

/// `types.object-ref`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ComponentType, Lower)]
#[component(record)]
pub struct ObjectRefArgument<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
    /// The uid.
    pub uid: &'a str,
    /// The resourceVersion.
    #[component(name = "resource-version")]
    pub resource_version: &'a str,
}

/// `handler.added`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ComponentType, Lower)]
#[component(record)]
pub struct AddedArgument<'a> {
    /// The subscription's name.
    pub subscription: &'a str,
    /// The object.
    pub object: ObjectRefArgument<'a>,
    /// Whether the add is part of the first list, or of a replay.
    #[component(name = "is-in-initial-list")]
    pub is_in_initial_list: bool,
    /// The values of the declared fields.
    pub fields: &'a FieldTexts<'a>,
}

/// `handler.updated`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ComponentType, Lower)]
#[component(record)]
pub struct UpdatedArgument<'a> {
    /// The subscription's name.
    pub subscription: &'a str,
    /// The new state.
    pub object: ObjectRefArgument<'a>,
    /// The resourceVersion of the old state.
    #[component(name = "old-resource-version")]
    pub old_resource_version: &'a str,
    /// The uid of the old state, if it differs.
    #[component(name = "old-uid")]
    pub old_uid: Option<&'a str>,
    /// The values of the declared fields in the new state.
    pub fields: &'a FieldTexts<'a>,
    /// Those in the old state.
    #[component(name = "old-fields")]
    pub old_fields: &'a FieldTexts<'a>,
}

/// `handler.deleted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ComponentType, Lower)]
#[component(record)]
pub struct DeletedArgument<'a> {
    /// The subscription's name.
    pub subscription: &'a str,
    /// The last known state.
    pub object: ObjectRefArgument<'a>,
    /// Whether the delete event was missed.
    #[component(name = "final-state-unknown")]
    pub final_state_unknown: bool,
    /// The values of the declared fields in the last known state.
    pub fields: &'a FieldTexts<'a>,
}

/// A notification whose texts are borrowed, so that an argument has the values of its own fields.
#[derive(Clone, Debug)]
pub struct Borrowed<'a, N> {
    notification: &'a N,
    fields: Vec<Option<&'a str>>,
    /// Of the old state; empty unless the notification is an update.
    old_fields: Vec<Option<&'a str>>,
}

// === impl ObjectRef ===

impl ObjectRef {
    /// Borrows its texts.
    #[must_use]
    pub fn as_argument(&self) -> ObjectRefArgument<'_> {
        let Self { namespace, name, uid, resource_version } = self;
        ObjectRefArgument { namespace, name, uid, resource_version }
    }
}

// === impl Added ===

impl Added {
    /// Borrows its texts, for an argument.
    #[must_use]
    pub fn borrowed(&self) -> Borrowed<'_, Self> {
        Borrowed { notification: self, fields: texts(&self.fields), old_fields: Vec::new() }
    }
}

// === impl Updated ===

impl Updated {
    /// Borrows its texts, for an argument.
    #[must_use]
    pub fn borrowed(&self) -> Borrowed<'_, Self> {
        Borrowed { notification: self, fields: texts(&self.fields), old_fields: texts(&self.old_fields) }
    }
}

// === impl Deleted ===

impl Deleted {
    /// Borrows its texts, for an argument.
    #[must_use]
    pub fn borrowed(&self) -> Borrowed<'_, Self> {
        Borrowed { notification: self, fields: texts(&self.fields), old_fields: Vec::new() }
    }
}

// === impl Borrowed ===

impl Borrowed<'_, Added> {
    /// Returns the argument of `on-add`.
    #[must_use]
    pub fn argument(&self) -> AddedArgument<'_> {
        let Added { subscription, object, is_in_initial_list, fields: _ } = self.notification;
        let object = object.as_argument();
        AddedArgument { subscription, object, is_in_initial_list: *is_in_initial_list, fields: &self.fields }
    }
}

impl Borrowed<'_, Updated> {
    /// Returns the argument of `on-update`.
    #[must_use]
    pub fn argument(&self) -> UpdatedArgument<'_> {
        let Updated { subscription, object, old_resource_version, old_uid, fields: _, old_fields: _ } =
            self.notification;
        let (object, old_uid) = (object.as_argument(), old_uid.as_deref());
        let (fields, old_fields) = (&*self.fields, &*self.old_fields);
        UpdatedArgument { subscription, object, old_resource_version, old_uid, fields, old_fields }
    }
}

impl Borrowed<'_, Deleted> {
    /// Returns the argument of `on-delete`.
    #[must_use]
    pub fn argument(&self) -> DeletedArgument<'_> {
        let Deleted { subscription, object, final_state_unknown, fields: _ } = self.notification;
        let (object, final_state_unknown) = (object.as_argument(), *final_state_unknown);
        DeletedArgument { subscription, object, final_state_unknown, fields: &self.fields }
    }
}

fn texts(fields: &[Option<String>]) -> Vec<Option<&str>> {
    fields.iter().map(Option::as_deref).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(version: &str) -> ObjectRef {
        let [namespace, name, uid, resource_version] = ["ns", "a", "u", version].map(str::to_owned);
        ObjectRef { namespace, name, uid, resource_version }
    }

    /// Records hold notifications, and arguments as well: both serialise alike.
    #[test]
    fn an_argument_has_everything_that_its_notification_has() {
        fn json(value: &impl Serialize) -> serde_json::Value {
            serde_json::to_value(value).unwrap()
        }
        let (subscription, fields) = ("pods".to_owned(), vec![Some("\"1\"".to_owned()), None]);
        let added = Added {
            subscription: subscription.clone(),
            object: object("1"),
            is_in_initial_list: true,
            fields: fields.clone(),
        };
        assert_eq!(json(&added.borrowed().argument()), json(&added));
        let updated = Updated {
            subscription: subscription.clone(),
            object: object("2"),
            old_resource_version: "1".to_owned(),
            old_uid: Some("v".to_owned()),
            fields: vec![Some("2".to_owned())],
            old_fields: fields.clone(),
        };
        assert_eq!(json(&updated.borrowed().argument()), json(&updated));
        let deleted = Deleted { subscription, object: object("2"), final_state_unknown: true, fields };
        assert_eq!(json(&deleted.borrowed().argument()), json(&deleted));
    }
}
