//! What the machinery reads of every object: its type and the fields of its metadata.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::StringMap;

/// Why a text is not taken in as an object.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes are not UTF-8.
    #[error("object is not UTF-8")]
    NotUtf8(#[source] std::str::Utf8Error),
    /// The text is not one JSON object, or what should be text in it is not.
    #[error("object is not a JSON object")]
    Json(#[source] serde_json::Error),
    /// There is neither an `apiVersion` and `kind` nor anything to fill them in from.
    #[error("object has no {0}")]
    MissingType(&'static str),
    /// There is no `metadata`.
    #[error("object has no metadata")]
    MissingMetadata,
    /// A field of the metadata is not of the type that it has in Kubernetes.
    #[error("object has malformed metadata")]
    Metadata(#[source] serde_json::Error),
    /// There is no `metadata.name`.
    #[error("object has no name")]
    MissingName,
    /// Name or namespace has a slash, so that no key could be made of it.
    #[error("object has a name with a slash: {0:?}")]
    BadName(String),
    /// The text is longer than 4 GiB.
    #[error("object has {0} bytes, too many to keep")]
    TooLarge(usize),
}

/// One of an object's owners.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// `apps/v1` …
    pub api_version: String,
    /// `ReplicaSet` …
    pub kind: String,
    /// The owner's name, in the object's namespace unless the owner's kind is cluster-scoped.
    pub name: String,
    /// The owner's uid.
    pub uid: String,
    /// Whether the owner is the one controller of the object.
    #[serde(default, deserialize_with = "null_is_false")]
    pub controller: bool,
}

/// The top level of an object.
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

/// What is read of `metadata`. Null is the same as absent, as in Go.
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

/// A JSON string, borrowed where it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// The entries of a JSON object, each key and value as it stands in the text.
pub(super) struct Entries<'a>(pub(super) Vec<(&'a RawValue, &'a RawValue)>);

// === impl Metadata ===

impl<'a> Metadata<'a> {
    /// Reads the metadata and sees to it that what is read later on demand can be read.
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

/// The text of an optional field, empty where there is none.
pub(super) fn text<'a>(field: &'a Option<Text<'_>>) -> &'a str {
    field.as_ref().map_or("", |Text(text)| text)
}

// === impl Entries ===

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;

        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(EntriesVisitor)
    }
}

fn never_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Text<'de>>, D::Error> {
    Text::deserialize(deserializer).map(Some)
}

fn null_is_false<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}
