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
    /// The old state.
    pub old: ObjectRefArgument<'a>,
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

/// Borrows the values of declared fields, for an argument.
#[must_use]
pub fn field_texts(fields: &[Option<String>]) -> Vec<Option<&str>> {
    fields.iter().map(Option::as_deref).collect()
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
    /// Borrows its texts. `fields` are those of [`field_texts`].
    #[must_use]
    pub fn as_argument<'a>(&'a self, fields: &'a FieldTexts<'a>) -> AddedArgument<'a> {
        let Self { subscription, object, is_in_initial_list, fields: _ } = self;
        let object = object.as_argument();
        AddedArgument { subscription, object, is_in_initial_list: *is_in_initial_list, fields }
    }
}

// === impl Updated ===

impl Updated {
    /// Borrows its texts. `fields` and `old_fields` are those of [`field_texts`].
    #[must_use]
    pub fn as_argument<'a>(
        &'a self,
        fields: &'a FieldTexts<'a>,
        old_fields: &'a FieldTexts<'a>,
    ) -> UpdatedArgument<'a> {
        let Self { subscription, object, old, fields: _, old_fields: _ } = self;
        let (object, old) = (object.as_argument(), old.as_argument());
        UpdatedArgument { subscription, object, old, fields, old_fields }
    }
}

// === impl Deleted ===

impl Deleted {
    /// Borrows its texts. `fields` are those of [`field_texts`].
    #[must_use]
    pub fn as_argument<'a>(&'a self, fields: &'a FieldTexts<'a>) -> DeletedArgument<'a> {
        let Self { subscription, object, final_state_unknown, fields: _ } = self;
        let object = object.as_argument();
        DeletedArgument { subscription, object, final_state_unknown: *final_state_unknown, fields }
    }
}
