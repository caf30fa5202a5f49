//! The types of objects, as patches, field ownership, pruning and decoding need them.
//!
//! Built-in types come from a generated table (`schema/builtin.txt`), those of custom resources from their
//! definition (`schema/structural.rs`). Validation rules are elsewhere: see `validation` and `crd::validate`.

mod builtin;
mod structural;

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

pub(crate) use structural::root_of_version;

/// The type of a place in an object: a field, a list item, a map value, or the object itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub shape: Shape,
    /// The value is replaced as a whole: its parts have no owners.
    pub atomic: bool,
    pub list: ListKind,
    /// The strategy of strategic merge patches; `None` is "replace".
    pub merge: Option<Merge>,
    pub default: Option<Value>,
    pub required: bool,
    pub empty: Empty,
    /// The field number in Protobuf. A field of a struct that only JSON inlines has several.
    pub proto: Vec<u32>,
    pub form: ProtoForm,
}

/// The Protobuf form of a place whose shape is [`Shape::Any`] in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ProtoForm {
    /// The form that follows from the shape. A place without a shape is JSON in a separate message.
    #[default]
    OfShape,
    SchemaOrBool,
    SchemaOrList,
    SchemaOrStrings,
}

/// How an empty field is written. For built-in types this follows their Go structs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Empty {
    /// As the client sent it: absent, or present and empty.
    #[default]
    Kept,
    /// Absent, even if the client sent `""`, `0`, `false`, `[]` or `{}`.
    Omitted,
    /// Present, even if the client omitted it.
    Written,
}

/// The kind of value.
#[derive(Clone, Debug, Default)]
pub(crate) enum Shape {
    String,
    /// Base64 in JSON.
    Bytes,
    Integer,
    Number,
    Boolean,
    IntOrString,
    Quantity,
    Time,
    MicroTime,
    /// No type is known: maps are granular, lists atomic.
    #[default]
    Any,
    Struct(StructRef),
    Map(Box<Node>),
    List(Box<Node>),
}

/// The key of list items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListKind {
    #[default]
    Atomic,
    /// The item itself.
    Set,
    /// These fields of the item.
    Map(Vec<String>),
}

/// The strategy of a strategic merge patch for a list or a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Merge {
    pub merge: bool,
    pub retain_keys: bool,
    /// The merge key of items; `None` for lists of scalars.
    pub key: Option<String>,
}

/// An object with named fields.
#[derive(Clone, Debug, Default)]
pub(crate) struct Struct {
    pub name: String,
    pub fields: BTreeMap<String, Node>,
    /// Unknown fields are kept, as with `x-kubernetes-preserve-unknown-fields`.
    pub open: bool,
}

/// A struct: an index into the table of built-in structs (which may refer to themselves), or a struct of its
/// own.
#[derive(Clone, Debug)]
pub(crate) enum StructRef {
    Builtin(usize),
    Own(Arc<Struct>),
}

// === impl StructRef ===

impl StructRef {
    /// Returns the root type of a built-in kind.
    pub(crate) fn builtin(group: &str, version: &str, kind: &str) -> Option<Self> {
        builtin::kind(group, version, kind).map(Self::Builtin)
    }

    /// Returns a built-in type by its name in the table.
    pub(crate) fn named(name: &str) -> Option<Self> {
        builtin::named(name).map(Self::Builtin)
    }

    pub(crate) fn get(&self) -> &Struct {
        match self {
            Self::Builtin(index) => builtin::at(*index),
            Self::Own(inner) => inner,
        }
    }
}

impl From<StructRef> for Node {
    fn from(of: StructRef) -> Self {
        Self { shape: Shape::Struct(of), ..Self::default() }
    }
}

// === impl Node ===

impl Node {
    /// The type of a place without a description.
    pub(crate) const UNTYPED: &Node = &Node {
        shape: Shape::Any,
        atomic: false,
        list: ListKind::Atomic,
        merge: None,
        default: None,
        required: false,
        empty: Empty::Kept,
        proto: Vec::new(),
        form: ProtoForm::OfShape,
    };

    /// Returns a built-in type that is not a kind, by its name in the table.
    pub(crate) fn message(name: &str) -> Option<Self> {
        StructRef::named(name).map(Self::from)
    }

    /// Returns the type of a schema in a CustomResourceDefinition.
    pub(crate) fn schema() -> &'static Self {
        static SCHEMA: LazyLock<Node> =
            LazyLock::new(|| Node::message("apiextensions.v1.JSONSchemaProps").unwrap_or_default());
        &SCHEMA
    }

    /// Returns the type of a field of this object; `None` if the type is closed and has no such field.
    pub(crate) fn field(&self, name: &str) -> Option<&Node> {
        match &self.shape {
            Shape::Struct(of) => {
                let of = of.get();
                of.fields.get(name).or(of.open.then_some(Self::UNTYPED))
            }
            Shape::Map(value) => Some(value),
            Shape::Any => Some(Self::UNTYPED),
            _ => None,
        }
    }

    /// Returns whether `name` is a field of a struct here, not a key of a map.
    pub(crate) fn has_named_field(&self, name: &str) -> bool {
        matches!(&self.shape, Shape::Struct(of) if of.get().fields.contains_key(name))
    }

    /// Returns the value that Go writes for a scalar that is not a pointer and was never set.
    pub(crate) fn zero_value(&self) -> Option<Value> {
        if self.empty != Empty::Written {
            return None;
        }
        match self.shape {
            Shape::String => Some("".into()),
            Shape::Integer => Some(0.into()),
            Shape::Boolean => Some(false.into()),
            _ => None,
        }
    }

    /// Returns the type of the items of this list.
    pub(crate) fn item(&self) -> &Node {
        match &self.shape {
            Shape::List(item) => item,
            _ => Self::UNTYPED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_merge_keys_and_list_keys() {
        let pod = Node::from(StructRef::builtin("", "v1", "Pod").unwrap());
        let containers = pod.field("spec").unwrap().field("containers").unwrap();
        assert_eq!(containers.list, ListKind::Map(vec!["name".into()]));
        assert_eq!(containers.merge.as_ref().unwrap().key.as_deref(), Some("name"));
        let ports = containers.item().field("ports").unwrap();
        assert_eq!(ports.list, ListKind::Map(vec!["containerPort".into(), "protocol".into()]));
        assert!(pod.field("spec").unwrap().field("nodeSelector").unwrap().atomic);
        assert!(pod.field("spec").unwrap().field("contianers").is_none());
    }

    #[test]
    fn every_stored_kind_has_metadata() {
        for (group, version, kind) in [
            ("", "v1", "ConfigMap"),
            ("apps", "v1", "Deployment"),
            ("batch", "v1", "CronJob"),
            ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
            ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        ] {
            let root = Node::from(StructRef::builtin(group, version, kind).unwrap());
            assert!(root.field("metadata").unwrap().field("labels").is_some(), "{kind}");
        }
    }
}
