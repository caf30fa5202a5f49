//! A Kubernetes object: its JSON text, and the few fields that the informer itself needs.
//!
//! An [`Object`] is immutable and shared. It is not a tree of values. Decoding checks the text once and reads
//! the fields that every event needs: key, type, uid, resourceVersion, generation, labels, deletionTimestamp.
//! They are stored beside the text. All other fields are found by skipping over the text when a reader asks
//! for them.
//!
//! **Hot and cold.** The text of a hot object is stored as it is. The text of a cold object is compressed
//! with a dictionary of its resource. Compression happens in place, for all holders of the object. It changes
//! nothing but the time that a read takes. The fields beside the text are never compressed.
//!
//! Only this module knows how the text is stored. So readers get owned or reference-counted text, never a
//! slice of that storage.

mod body;
mod compression;
mod content;
mod copied_values;
mod decode;
mod dictionary;
mod edit;
mod identity;
mod json;
mod labels;
mod lookup;
mod metadata;
mod pruning;
mod short_text;
mod splicer;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use oarlock_json::scan::Cursor;
use oarlock_json::{Segment, extract};
use oarlock_label_selector::LabelSelector;
use parking_lot::Mutex;

pub use crate::names::{Error as NameError, ObjectKey, TypeMeta, TypeNames};
pub use crate::namespaces::Namespaces;
pub use crate::resource_version::{NotComparable, ResourceVersion};
pub use content::Content;
pub use copied_values::SharedPointers;
pub(crate) use copied_values::{CopiedPointers, MAX_POINTERS, StateValues};
pub(crate) use dictionary::Dictionary;
pub use edit::EditError;
pub use json::Json;
pub(crate) use labels::LabelView;
pub use labels::Labels;
pub use metadata::{Error, OwnerReference};
pub use pruning::{Fields, FieldsError, Pruning};
pub use short_text::ShortText;
pub(crate) use short_text::parse_number;

use self::body::Body;
use self::decode::DecodedObject;
use self::short_text::parse_uuid;

/// One object of one resource at one resourceVersion.
///
/// An object is immutable. A clone costs one reference count. The text is the received text, byte for byte,
/// without the fields that [`Pruning`] leaves out. An object from a list gets the `apiVersion` and `kind`
/// that the list does not repeat for each item. So objects of one uid and resourceVersion that were pruned
/// alike have the same text, whether a list or a watch brought them.
#[derive(Clone)]
pub struct Object(triomphe::Arc<Inner>);

/// A map of labels or annotations.
pub type StringMap = BTreeMap<String, String>;

/// Takes 88 bytes. With the reference count these are 96, which is a size class of allocators.
struct Inner {
    key: ObjectKey,
    type_meta: TypeMeta,
    labels: Labels,
    /// The uid, if it is a UUID in lower case; otherwise `NO_UUID`.
    uid: [u8; 16],
    /// The resourceVersion, if it is a number without leading zeros; otherwise `NOT_A_NUMBER`.
    resource_version: u64,
    rare: Option<Box<RareFields>>,
    /// The length of the text.
    length: u32,
    /// One more than a small generation; otherwise zero. Its highest bit is [`METADATA_ONLY`].
    generation: u16,
    /// Where the value of `metadata` starts in the text; zero if that is not within the first 64 KiB.
    metadata_start: u16,
    body: Mutex<Body>,
}

/// Fields that few objects have.
#[derive(Default)]
struct RareFields {
    /// Empty if the uid is a UUID.
    uid: Box<str>,
    /// Empty if the resourceVersion is a number.
    resource_version: Box<str>,
    /// Set if the generation is large or negative.
    generation: Option<i64>,
    deletion_timestamp: Option<Box<str>>,
}

const NO_UUID: [u8; 16] = [0; 16];

const NOT_A_NUMBER: u64 = u64::MAX;

/// The bit of `Inner::generation` that is set in objects of [`Content::Metadata`].
const METADATA_ONLY: u16 = 1 << 15;

/// From this many requirements on, the labels are sorted once instead of searched for each requirement.
const MANY_REQUIREMENTS: usize = 8;

static METADATA: LazyLock<Box<[Segment]>> = LazyLock::new(|| Box::new([Segment::named("metadata".into())]));

// === impl Object ===

impl Object {
    /// Decodes a whole object from its JSON text.
    ///
    /// An object whose text lacks `apiVersion` or `kind`, such as the item of a list, gets them from
    /// `type_meta`. The bytes are copied, so that the object does not keep the received buffer alive.
    ///
    /// # Errors
    ///
    /// The bytes are not one JSON object in UTF-8, or its metadata is not that of a Kubernetes object.
    pub fn parse(bytes: &[u8], type_meta: Option<&TypeMeta>) -> Result<Self, Error> {
        Self::parse_pruned(bytes, type_meta, &Pruning::none())
    }

    /// Decodes an object like [`parse`](Self::parse), without the fields that `pruning` leaves out.
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

    /// Decodes the part of an object that `content` names, without the fields that `pruning` leaves out.
    ///
    /// With [`Content::Metadata`] the text may be that of a whole object or of a `PartialObjectMetadata`.
    /// Both give the same object: the type in `type_meta` and the metadata.
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
        decode::decode(bytes, type_meta, pruning, content, None)
    }

    /// Decodes an object like [`parse_content`](Self::parse_content), and copies the values at these
    /// pointers, if they are short. [`copied_values`](Self::copied_values) has them while the object is hot.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub(crate) fn parse_copying(
        bytes: &[u8],
        type_meta: Option<&TypeMeta>,
        pruning: &Pruning,
        content: Content,
        pointers: Option<&CopiedPointers>,
    ) -> Result<Self, Error> {
        decode::decode(bytes, type_meta, pruning, content, pointers)
    }

    fn new(decoded: DecodedObject<'_>) -> Self {
        let DecodedObject { type_meta, namespace, name, labels, text, .. } = decoded;
        let uid = parse_uuid(decoded.uid).filter(|uid| *uid != NO_UUID);
        let resource_version =
            parse_number(decoded.resource_version).filter(|version| *version != NOT_A_NUMBER);
        let small_generation = decoded
            .generation
            .and_then(|generation| u16::try_from(generation).ok())
            .and_then(|generation| generation.checked_add(1).filter(|one_more| *one_more < METADATA_ONLY));
        let metadata_only = match decoded.content {
            Content::Metadata => METADATA_ONLY,
            Content::Full => 0,
        };
        let rare = RareFields {
            uid: if uid.is_some() { "" } else { decoded.uid }.into(),
            resource_version: if resource_version.is_some() { "" } else { decoded.resource_version }.into(),
            generation: decoded.generation.filter(|_| small_generation.is_none()),
            deletion_timestamp: decoded.deletion_timestamp.map(Box::from),
        };
        Self(triomphe::Arc::new(Inner {
            key: ObjectKey::new(namespace, name),
            type_meta,
            labels,
            uid: uid.unwrap_or(NO_UUID),
            resource_version: resource_version.unwrap_or(NOT_A_NUMBER),
            rare: rare.is_needed().then(|| Box::new(rare)),
            // The decoders refuse longer texts.
            length: text.json.len() as u32,
            generation: small_generation.unwrap_or_default() | metadata_only,
            metadata_start: u16::try_from(text.metadata_start).unwrap_or_default(),
            body: Mutex::new(Body::hot(text.json.into_boxed_str(), decoded.values)),
        }))
    }

    /// Returns the values that the decoder copied at the pointers with this number. None if it copied none
    /// there, or the object is cold.
    pub(crate) fn copied_values(&self, pointers: u32) -> Option<StateValues> {
        self.0.body.lock().values().filter(|values| values.are_of(pointers)).cloned()
    }

    /// Returns the object's namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.0.key
    }

    /// Returns the object's `apiVersion` and `kind`.
    pub fn type_meta(&self) -> &TypeMeta {
        &self.0.type_meta
    }

    /// Returns the uid; empty if the object has none, such as a PartialObjectMetadata written by hand.
    pub fn uid(&self) -> ShortText<'_> {
        match &self.0.uid {
            &NO_UUID => ShortText::borrowed(self.0.rare.as_ref().map_or("", |rare| &rare.uid)),
            uid => ShortText::uuid(uid),
        }
    }

    /// Returns the resourceVersion, an opaque string; empty if the object has none.
    pub fn resource_version(&self) -> ShortText<'_> {
        match self.0.resource_version {
            NOT_A_NUMBER => {
                ShortText::borrowed(self.0.rare.as_ref().map_or("", |rare| &rare.resource_version))
            }
            number => ShortText::number(number),
        }
    }

    /// Returns the generation, if the resource has one.
    pub fn generation(&self) -> Option<i64> {
        match self.0.generation & !METADATA_ONLY {
            0 => self.0.rare.as_ref()?.generation,
            one_more => Some(i64::from(one_more) - 1),
        }
    }

    /// Returns whether the object was decoded in full, or only its metadata. A transformer does not change
    /// that.
    pub fn content(&self) -> Content {
        if self.0.generation & METADATA_ONLY == 0 { Content::Full } else { Content::Metadata }
    }

    /// Returns the deletionTimestamp, if the object is being deleted.
    pub fn deletion_timestamp(&self) -> Option<&str> {
        self.0.rare.as_ref()?.deletion_timestamp.as_deref()
    }

    /// Returns a copy of the labels. [`Object::label_set`] is cheaper.
    pub fn labels(&self) -> StringMap {
        self.0.labels.to_map()
    }

    /// Returns the labels. Objects with equal labels share one copy.
    pub fn label_set(&self) -> &Labels {
        &self.0.labels
    }

    /// Returns true if the selector matches the object's labels. Does not read the object's text.
    pub fn is_selected_by(&self, selector: &LabelSelector) -> bool {
        let labels = self.label_set();
        if selector.n_requirements() < MANY_REQUIREMENTS {
            selector.matches(labels)
        } else {
            selector.matches(&labels.view())
        }
    }

    /// Reads the annotations from the text, at each call. Pruned annotations are missing.
    pub fn annotations(&self) -> StringMap {
        self.in_metadata("annotations").unwrap_or_default()
    }

    /// Reads the owner references from the text, at each call.
    pub fn owner_references(&self) -> Vec<OwnerReference> {
        self.in_metadata("ownerReferences").unwrap_or_default()
    }

    /// Returns the whole object as JSON text, always with `apiVersion` and `kind`. Decompresses a cold text.
    pub fn json(&self) -> Json {
        let body = self.0.body.lock().clone();
        body.text(self.0.length as usize).unwrap_or_else(|| {
            // Memory was damaged, or the codec is wrong. The text is lost.
            tracing::error!(key = %self.key(), "the text of a cached object cannot be decompressed; readers see it without content");
            Json::owned(decode::with_type_meta("{\"metadata\":{}}", None, None))
        })
    }

    /// Returns `apiVersion`, `kind` and `metadata` of the object as JSON text.
    pub fn metadata_json(&self) -> String {
        let TypeNames { api_version, kind, .. } = &**self.type_meta();
        let json = self.json();
        let metadata = self.metadata_of(&json);
        let metadata = metadata.as_deref().unwrap_or("{}");
        decode::with_type_meta(&format!("{{\"metadata\":{metadata}}}"), Some(api_version), Some(kind))
    }

    /// Returns the length of the object's text in bytes, compressed or not.
    pub fn json_length(&self) -> usize {
        self.0.length as usize
    }

    /// Reads a field of the metadata, which the decoder has checked.
    fn in_metadata<T: serde::de::DeserializeOwned>(&self, name: &str) -> Option<T> {
        let json = self.json();
        let metadata = self.metadata_of(&json)?;
        let found = extract(&metadata, &[&[Segment::named(name.to_owned())]]).pop()?.pop()?;
        serde_json::from_str(&found).ok()
    }

    /// Returns the JSON text of the metadata.
    fn metadata_of<'j>(&self, json: &'j str) -> Option<Cow<'j, str>> {
        if self.0.metadata_start == 0 {
            return extract(json, &[&METADATA]).pop()?.pop().map(Cow::Owned);
        }
        let rest = json.get(usize::from(self.0.metadata_start)..)?;
        let mut cursor = Cursor::new(rest);
        cursor.skip_value()?;
        cursor.since(0).map(Cow::Borrowed)
    }
}

/// Shows key and resourceVersion only, since the object may be a Secret.
impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({} {} at {})", self.0.type_meta.kind, self.0.key, self.resource_version())
    }
}

/// Objects are equal when their texts are.
impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.0.length == other.0.length && *self.json() == *other.json()
    }
}

impl Eq for Object {}

// === impl RareFields ===

impl RareFields {
    fn is_needed(&self) -> bool {
        let Self { uid, resource_version, generation, deletion_timestamp } = self;
        !uid.is_empty()
            || !resource_version.is_empty()
            || generation.is_some()
            || deletion_timestamp.is_some()
    }
}

#[cfg(test)]
mod tests;
