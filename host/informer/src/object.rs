//! One Kubernetes object: its JSON text, and the few fields that the machinery itself needs.
//!
//! An [`Object`] is immutable and shared. It is never a tree of values: the text is checked and looked into once, when it
//! comes in; what else anyone wants of it is found by skipping over the text. This module alone knows how the text is
//! stored, and therefore hands out owned or guarded text, never a slice of its own storage.

mod content;
mod door;
mod metadata;
mod pruning;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

pub use content::Content;
pub use metadata::{Error, OwnerReference};
pub use pruning::Pruning;

use crate::json_pointer::{JsonPointer, PointerPattern, Segment, extract};
use crate::names::{ObjectKey, TypeMeta};

/// One object of one resource at one resourceVersion.
///
/// Cheap to clone (one reference count) and immutable. Two objects of one uid and resourceVersion that went through the same
/// [`Pruning`] have the same text, whether they came in a list or on a watch: a list's items are given the `apiVersion` and
/// `kind` that watch events carry. The text is otherwise kept as it came, byte for byte.
#[derive(Clone)]
pub struct Object(Arc<Inner>);

/// The JSON text of an object, for reading.
///
/// Keeps what it reads from alive; dereferences to `str`.
#[derive(Clone)]
pub struct Json(Arc<Inner>);

/// Labels or annotations.
pub type StringMap = BTreeMap<String, String>;

struct Inner {
    key: ObjectKey,
    type_meta: TypeMeta,
    uid: Box<str>,
    resource_version: Box<str>,
    generation: Option<i64>,
    deletion_timestamp: Option<Box<str>>,
    places: Places,
    text: Box<str>,
}

/// Where in the text the parts of the metadata stand.
#[derive(Clone, Debug, Default)]
struct Places {
    metadata: Place,
    labels: Option<Place>,
    annotations: Option<Place>,
    owner_references: Option<Place>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    start: u32,
    length: u32,
}

// === impl Object ===

impl Object {
    /// Takes an object in from its JSON text, whole.
    ///
    /// `type_meta` is what to fill in where the text lacks `apiVersion` or `kind`, as a list's items do. The bytes are
    /// copied, so that nothing keeps the buffer alive that they came in.
    ///
    /// # Errors
    ///
    /// When the bytes are not one JSON object in UTF-8, or its metadata is not what Kubernetes gives every object.
    pub fn parse(bytes: &[u8], type_meta: Option<&TypeMeta>) -> Result<Self, Error> {
        Self::parse_pruned(bytes, type_meta, &Pruning::none())
    }

    /// Takes an object in as [`parse`](Self::parse) does, but for what `pruning` leaves out.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn parse_pruned(
        bytes: &[u8],
        type_meta: Option<&TypeMeta>,
        pruning: &Pruning,
    ) -> Result<Self, Error> {
        Self::parse_content(bytes, type_meta, pruning, Content::Full)
    }

    /// Takes in so much of an object as `content` says, but for what `pruning` leaves out.
    ///
    /// With [`Content::Metadata`] it does not matter whether the text is of a whole object or of a `PartialObjectMetadata`: the object
    /// has the type in `type_meta`, and nothing but its metadata.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn parse_content(
        bytes: &[u8],
        type_meta: Option<&TypeMeta>,
        pruning: &Pruning,
        content: Content,
    ) -> Result<Self, Error> {
        door::take_in(bytes, type_meta, pruning, content)
    }

    /// Returns the object's namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.0.key
    }

    /// Returns the object's `apiVersion` and `kind`.
    pub fn type_meta(&self) -> &TypeMeta {
        &self.0.type_meta
    }

    /// Returns the uid; empty for the few things that have none, such as PartialObjectMetadata made by hand.
    pub fn uid(&self) -> &str {
        &self.0.uid
    }

    /// Returns the resourceVersion, an opaque text; empty if the object has none.
    pub fn resource_version(&self) -> &str {
        &self.0.resource_version
    }

    /// Returns the generation, where the resource counts any.
    pub fn generation(&self) -> Option<i64> {
        self.0.generation
    }

    /// Returns the time from which on the object is being deleted, if it is.
    pub fn deletion_timestamp(&self) -> Option<&str> {
        self.0.deletion_timestamp.as_deref()
    }

    /// Returns the labels, read from the text at each call.
    pub fn labels(&self) -> StringMap {
        self.string_map(self.0.places.labels)
    }

    /// Returns the annotations, read from the text at each call. What was pruned is not among them.
    pub fn annotations(&self) -> StringMap {
        self.string_map(self.0.places.annotations)
    }

    /// Returns the owners, read from the text at each call.
    pub fn owner_references(&self) -> Vec<OwnerReference> {
        self.at(self.0.places.owner_references)
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default()
    }

    /// Returns the whole object as JSON text, always with `apiVersion` and `kind`.
    pub fn json(&self) -> Json {
        Json(self.0.clone())
    }

    /// Returns an object with `apiVersion`, `kind` and the object's `metadata`, as JSON text.
    pub fn metadata_json(&self) -> String {
        let TypeMeta { api_version, kind } = &self.0.type_meta;
        let metadata = self.at(Some(self.0.places.metadata)).unwrap_or("{}");
        door::with_type_meta(&format!("{{\"metadata\":{metadata}}}"), Some(api_version), Some(kind))
    }

    /// Returns the JSON text at `pointer`, as it stands in the object; none where there is nothing.
    pub fn pointer(&self, pointer: &JsonPointer) -> Option<String> {
        self.extract(&[pointer.segments()]).pop().and_then(|mut found| found.pop())
    }

    /// Returns the JSON texts at several pointers, in their order, from one walk over the text.
    pub fn pointers(&self, pointers: &[JsonPointer]) -> Vec<Option<String>> {
        let segments: Vec<&[Segment]> = pointers.iter().map(JsonPointer::segments).collect();
        self.extract(&segments).into_iter().map(|mut found| found.pop()).collect()
    }

    /// Returns every JSON text that `pattern` points at, in the order in which they stand in the object.
    pub fn pattern(&self, pattern: &PointerPattern) -> Vec<String> {
        self.extract(&[pattern.segments()]).pop().unwrap_or_default()
    }

    /// Returns how many bytes the object's text has.
    pub fn json_length(&self) -> usize {
        self.0.text.len()
    }

    /// Whether the two are one and the same in memory.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn extract(&self, pointers: &[&[Segment]]) -> Vec<Vec<String>> {
        extract(&self.0.text, pointers)
    }

    fn string_map(&self, place: Option<Place>) -> StringMap {
        // The door has seen that it can be read.
        self.at(place).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    fn at(&self, place: Option<Place>) -> Option<&str> {
        self.0.text.get(place?.range())
    }
}

/// Key and resourceVersion only: an object may be a Secret.
impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({} {} at {})", self.0.type_meta.kind, self.0.key, self.0.resource_version)
    }
}

/// Equal when the whole text is.
impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.0.text == other.0.text
    }
}

impl Eq for Object {}

// === impl Json ===

impl Deref for Json {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl AsRef<str> for Json {
    fn as_ref(&self) -> &str {
        self
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

/// The length only: an object may be a Secret.
impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.len())
    }
}

// === impl Place ===

impl Place {
    fn range(self) -> Range<usize> {
        let start = self.start as usize;
        start..start + self.length as usize
    }
}

#[cfg(test)]
mod tests;
