//! The fields of an object that serde parses: its type and parts of its metadata.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::value::RawValue;

use super::StringMap;

/// Why bytes cannot be decoded into an object.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes are not UTF-8.
    #[error("object is not UTF-8")]
    NotUtf8(#[source] std::str::Utf8Error),
    /// The text is not one JSON object, or its `apiVersion` or `kind` is not a string.
    #[error("object is not a JSON object")]
    Json(#[source] serde_json::Error),
    /// The object has no `apiVersion` or `kind`, and the caller expects no type.
    #[error("object has no {0}")]
    MissingType(&'static str),
    /// The object has no `metadata`.
    #[error("object has no metadata")]
    MissingMetadata,
    /// A field of the metadata does not have its Kubernetes type.
    #[error("object has malformed metadata")]
    Metadata(#[source] serde_json::Error),
    /// The object has no `metadata.name`.
    #[error("object has no name")]
    MissingName,
    /// The name or namespace has a slash, which would make the key ambiguous.
    #[error("object has a name with a slash: {0:?}")]
    BadName(String),
    /// The text is longer than 4 GiB.
    #[error("object has {0} bytes, more than the limit of 4 GiB")]
    TooLarge(usize),
}

/// An entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// The owner's `apiVersion`, such as `apps/v1`.
    pub api_version: String,
    /// The owner's kind, such as `ReplicaSet`.
    pub kind: String,
    /// The owner's name. The owner is in the object's namespace, or cluster-scoped.
    pub name: String,
    /// The owner's uid.
    pub uid: String,
    /// Whether the owner is the controller of the object. At most one owner is.
    #[serde(default, deserialize_with = "null_is_false")]
    pub controller: bool,
}

/// The top-level fields of an object.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "never_null")]
    pub(super) api_version: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "never_null")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) metadata: Option<&'a RawValue>,
}

/// The fields of `metadata`. Null is the same as absent, as in Go.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) namespace: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) uid: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) resource_version: Option<Text<'a>>,
    pub(super) generation: Option<i64>,
    #[serde(borrow)]
    pub(super) deletion_timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) labels: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) owner_references: Option<&'a RawValue>,
}

/// A JSON string. Borrowed unless it has escapes.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

// === impl Metadata ===

impl<'a> Metadata<'a> {
    /// Parses the metadata. Also checks the annotations and owner references, which readers parse on demand.
    pub(super) fn parse(text: &'a str) -> Result<Self, Error> {
        let metadata: Self = serde_json::from_str(text).map_err(Error::Metadata)?;
        if let Some(annotations) = metadata.annotations {
            serde_json::from_str::<StringMap>(annotations.get()).map_err(Error::Metadata)?;
        }
        if let Some(owners) = metadata.owner_references {
            serde_json::from_str::<Vec<OwnerReference>>(owners.get()).map_err(Error::Metadata)?;
        }
        Ok(metadata)
    }
}

// === impl Text ===

/// Returns the text of an optional field; empty if the field is absent.
pub(super) fn text<'a>(field: &'a Option<Text<'_>>) -> &'a str {
    field.as_ref().map_or("", |Text(text)| text)
}

fn never_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Text<'de>>, D::Error> {
    Text::deserialize(deserializer).map(Some)
}

fn null_is_false<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}
