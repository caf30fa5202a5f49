//! Objects of a test before the server adds its fields.

use serde_json::{Value, json};

use crate::names::{ObjectKey, TypeMeta};
use crate::object::Object;

/// An object without the fields that the server adds, uid and resourceVersion. Made from a key, `"ns/name"`.
#[derive(Clone, Debug)]
pub struct Draft {
    pub(super) key: ObjectKey,
    metadata: Value,
    rest: Value,
    pub(super) uid: Option<String>,
}

// === impl Draft ===

impl Draft {
    /// Makes a draft with a key and no other field.
    ///
    /// # Panics
    ///
    /// If the text is not a key.
    pub fn new(key: &str) -> Self {
        let key = key.parse().unwrap_or_else(|error| panic!("{error}"));
        Self { key, metadata: json!({}), rest: json!({}), uid: None }
    }

    /// Adds a label.
    #[must_use]
    pub fn label(mut self, name: &str, value: &str) -> Self {
        self.metadata["labels"][name] = value.into();
        self
    }

    /// Adds an annotation.
    #[must_use]
    pub fn annotation(mut self, name: &str, value: &str) -> Self {
        self.metadata["annotations"][name] = value.into();
        self
    }

    /// Sets a field of the metadata, such as `deletionTimestamp` or `ownerReferences`.
    #[must_use]
    pub fn metadata(mut self, name: &str, value: Value) -> Self {
        self.metadata[name] = value;
        self
    }

    /// Sets a field at the top level, such as `spec`.
    #[must_use]
    pub fn field(mut self, name: &str, value: Value) -> Self {
        self.rest[name] = value;
        self
    }

    /// Sets the uid. Another uid than before makes it another object of the same name.
    #[must_use]
    pub fn uid(mut self, uid: &str) -> Self {
        self.uid = Some(uid.to_owned());
        self
    }

    /// Returns the object with this uid and version.
    ///
    /// # Panics
    ///
    /// If the draft is not a valid object.
    pub fn at(&self, type_meta: &TypeMeta, uid: &str, resource_version: &str) -> Object {
        let mut object = json!({ "kind": &*type_meta.kind, "apiVersion": &*type_meta.api_version });
        let metadata = &mut object["metadata"];
        metadata["name"] = self.key.name().into();
        if !self.key.namespace().is_empty() {
            metadata["namespace"] = self.key.namespace().into();
        }
        metadata["uid"] = uid.into();
        metadata["resourceVersion"] = resource_version.into();
        for (name, value) in self.metadata.as_object().into_iter().flatten() {
            metadata[name] = value.clone();
        }
        for (name, value) in self.rest.as_object().into_iter().flatten() {
            object[name] = value.clone();
        }
        let text = object.to_string();
        Object::parse(text.as_bytes(), None).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

impl From<&str> for Draft {
    fn from(key: &str) -> Self {
        Self::new(key)
    }
}
