//! One Kubernetes object: its JSON text, and the few fields that the machinery itself needs.
//!
//! An [`Object`] is immutable and shared. It is never a tree of values: the text is checked and looked into once, when it
//! comes in; what else anyone wants of it is found by skipping over the text. This module alone knows how the text is
//! stored, and therefore hands out owned or guarded text, never a slice of its own storage.
//!
//! **Hot and cold.** The text is kept as it is, or compressed with a dictionary of its resource; it changes from one form to
//! the other in place, under everybody who holds the object, and nobody can tell but by the time that reading takes. What the
//! machinery needs for every event (key, type, uid, resourceVersion, labels, deletionTimestamp) stands beside the text
//! and is never compressed.

mod body;
mod content;
mod decode;
mod dictionary;
mod edit;
mod json;
mod labels;
mod metadata;
mod pruning;
mod short_text;
mod splicer;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use oarlock_json::scan::Cursor;
use oarlock_json::{Finding, Found, JsonPointer, PointerPattern, PointerSet, Segment, extract};
use oarlock_label_selector::LabelSelector;
use parking_lot::Mutex;

pub use crate::names::{Error as NameError, ObjectKey, TypeMeta, TypeNames};
pub use crate::namespaces::Namespaces;
pub use crate::resource_version::{NotComparable, ResourceVersion};
pub use content::Content;
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
use self::decode::Parts;
use self::short_text::parse_uuid;

/// One object of one resource at one resourceVersion.
///
/// Cheap to clone (one reference count) and immutable. Two objects of one uid and resourceVersion that went through the same
/// [`Pruning`] have the same text, whether they came in a list or on a watch: a list's items are given the `apiVersion` and
/// `kind` that watch events carry. The text is otherwise kept as it came, byte for byte.
#[derive(Clone)]
pub struct Object(triomphe::Arc<Inner>);

/// Labels or annotations.
pub type StringMap = BTreeMap<String, String>;

/// 88 bytes: with the count of references, 96, for which allocators have a size.
struct Inner {
    key: ObjectKey,
    type_meta: TypeMeta,
    labels: Labels,
    /// The uid, if it is a UUID in its usual form; else zeros.
    uid: [u8; 16],
    /// The resourceVersion, if it is a number in its usual form; else `NOT_A_NUMBER`.
    resource_version: u64,
    rare: Option<Box<Rare>>,
    /// How long the text is.
    length: u32,
    /// One more than the generation, where there is one and it is small; else zero. Beside it [`METADATA_ALONE`].
    generation: u16,
    /// Where in the text the metadata stands; zero where that is not within the first 64 KiB.
    metadata_start: u16,
    body: Mutex<Body>,
}

/// What few objects have.
#[derive(Default)]
struct Rare {
    uid: Box<str>,
    resource_version: Box<str>,
    generation: Option<i64>,
    deletion_timestamp: Option<Box<str>>,
}

const NO_UUID: [u8; 16] = [0; 16];

const NOT_A_NUMBER: u64 = u64::MAX;

/// The bit beside a small generation that says that the object is kept as [`Content::Metadata`].
const METADATA_ALONE: u16 = 1 << 15;

/// From this many requirements on, the labels are sorted once instead of searched for each requirement.
const MANY_REQUIREMENTS: usize = 8;

static METADATA: LazyLock<Box<[Segment]>> = LazyLock::new(|| Box::new([Segment::named("metadata".into())]));

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
        decode::decode(bytes, type_meta, pruning, content)
    }

    /// Makes an object of what the door has found in its text.
    fn new(parts: Parts<'_>) -> Self {
        let Parts { type_meta, namespace, name, labels, text, metadata_start, .. } = parts;
        let uid = parse_uuid(parts.uid).filter(|uid| *uid != NO_UUID);
        let resource_version =
            parse_number(parts.resource_version).filter(|version| *version != NOT_A_NUMBER);
        let small_generation = parts
            .generation
            .and_then(|generation| u16::try_from(generation).ok())
            .and_then(|generation| generation.checked_add(1).filter(|one_more| *one_more < METADATA_ALONE));
        let metadata_alone = match parts.content {
            Content::Metadata => METADATA_ALONE,
            Content::Full => 0,
        };
        let rare = Rare {
            uid: if uid.is_some() { "" } else { parts.uid }.into(),
            resource_version: if resource_version.is_some() { "" } else { parts.resource_version }.into(),
            generation: parts.generation.filter(|_| small_generation.is_none()),
            deletion_timestamp: parts.deletion_timestamp.map(Box::from),
        };
        Self(triomphe::Arc::new(Inner {
            key: ObjectKey::new(namespace, name),
            type_meta,
            labels,
            uid: uid.unwrap_or(NO_UUID),
            resource_version: resource_version.unwrap_or(NOT_A_NUMBER),
            rare: rare.is_needed().then(|| Box::new(rare)),
            // The door has seen that it fits.
            length: text.len() as u32,
            generation: small_generation.unwrap_or_default() | metadata_alone,
            metadata_start: u16::try_from(metadata_start).unwrap_or_default(),
            body: Mutex::new(Body::plain(text.into_boxed_str())),
        }))
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
    pub fn uid(&self) -> ShortText<'_> {
        match &self.0.uid {
            &NO_UUID => ShortText::lent(self.0.rare.as_ref().map_or("", |rare| &rare.uid)),
            uid => ShortText::uuid(uid),
        }
    }

    /// Returns the resourceVersion, an opaque text; empty if the object has none.
    pub fn resource_version(&self) -> ShortText<'_> {
        match self.0.resource_version {
            NOT_A_NUMBER => ShortText::lent(self.0.rare.as_ref().map_or("", |rare| &rare.resource_version)),
            number => ShortText::number(number),
        }
    }

    /// Returns the generation, where the resource counts any.
    pub fn generation(&self) -> Option<i64> {
        match self.0.generation & !METADATA_ALONE {
            0 => self.0.rare.as_ref()?.generation,
            one_more => Some(i64::from(one_more) - 1),
        }
    }

    /// Returns how much of the object this is, which what changes objects on their way in does not change.
    pub fn content(&self) -> Content {
        if self.0.generation & METADATA_ALONE == 0 { Content::Full } else { Content::Metadata }
    }

    /// Returns the time from which on the object is being deleted, if it is.
    pub fn deletion_timestamp(&self) -> Option<&str> {
        self.0.rare.as_ref()?.deletion_timestamp.as_deref()
    }

    /// Returns the labels, as a map of the caller's own; [`Object::label_set`] is cheaper.
    pub fn labels(&self) -> StringMap {
        self.0.labels.to_map()
    }

    /// Returns the labels, which objects with equal ones share.
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

    /// Returns the annotations, read from the text at each call. What was pruned is not among them.
    pub fn annotations(&self) -> StringMap {
        self.in_metadata("annotations").unwrap_or_default()
    }

    /// Returns the owners, read from the text at each call.
    pub fn owner_references(&self) -> Vec<OwnerReference> {
        self.in_metadata("ownerReferences").unwrap_or_default()
    }

    /// Returns the whole object as JSON text, always with `apiVersion` and `kind`.
    pub fn json(&self) -> Json {
        let body = self.0.body.lock().clone();
        body.text(self.0.length as usize).unwrap_or_else(|| {
            // Memory was damaged, or the codec is wrong. There is no object any more to be shown.
            tracing::error!(key = %self.key(), "a compressed object cannot be read");
            Json::own(decode::with_type_meta("{\"metadata\":{}}", None, None))
        })
    }

    /// Returns an object with `apiVersion`, `kind` and the object's `metadata`, as JSON text.
    pub fn metadata_json(&self) -> String {
        let TypeNames { api_version, kind, .. } = &**self.type_meta();
        let json = self.json();
        let metadata = self.metadata_of(&json);
        let metadata = metadata.as_deref().unwrap_or("{}");
        decode::with_type_meta(&format!("{{\"metadata\":{metadata}}}"), Some(api_version), Some(kind))
    }

    /// Returns the JSON text at `pointer`, as it stands in the object; none where there is nothing.
    pub fn pointer(&self, pointer: &JsonPointer) -> Option<String> {
        self.extract(&[pointer.segments()]).pop().and_then(|mut found| found.pop())
    }

    /// Returns the JSON texts at several pointers, in their order, from one walk over the text.
    pub fn pointers(&self, pointers: &[JsonPointer]) -> Vec<Option<String>> {
        self.find(&PointerSet::new(pointers)).iter().map(|found| found.map(str::to_owned)).collect()
    }

    /// Finds what the pointers of a set point at, in one walk over the text. Nothing is copied but a text that is kept compressed.
    pub fn find(&self, set: &PointerSet) -> Found<Json> {
        self.finding(set).finish()
    }

    /// Begins the walk of [`find`](Self::find), for a caller who takes it a slice at a time since the text may be long.
    pub fn finding<'s>(&self, set: &'s PointerSet) -> Finding<'s, Json> {
        Finding::new(set, self.json())
    }

    /// Returns the same as [`pointers`](Self::pointers) if it has no more than `most` bytes together, else
    /// how many it has.
    ///
    /// # Errors
    ///
    /// When it has more. Nothing was copied then.
    pub fn pointers_within(
        &self,
        pointers: &[JsonPointer],
        most: usize,
    ) -> Result<Vec<Option<String>>, usize> {
        let found = self.find(&PointerSet::new(pointers));
        let n_bytes = found.n_bytes();
        if n_bytes > most {
            return Err(n_bytes);
        }
        Ok(found.iter().map(|found| found.map(str::to_owned)).collect())
    }

    /// Returns every JSON text that `pattern` points at, in the order in which they stand in the object.
    pub fn pattern(&self, pattern: &PointerPattern) -> Vec<String> {
        self.extract(&[pattern.segments()]).pop().unwrap_or_default()
    }

    /// Returns how many bytes the object's text has.
    pub fn json_length(&self) -> usize {
        self.0.length as usize
    }

    /// Whether the two are one and the same in memory.
    pub fn is_same(&self, other: &Self) -> bool {
        triomphe::Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether the two have the same resourceVersion.
    pub fn is_at_version_of(&self, other: &Self) -> bool {
        match (self.0.resource_version, other.0.resource_version) {
            (NOT_A_NUMBER, NOT_A_NUMBER) => self.resource_version() == other.resource_version(),
            (number, other) => number == other,
        }
    }

    /// Whether the two have the same uid.
    pub fn has_uid_of(&self, other: &Self) -> bool {
        self.0.uid == other.0.uid && (self.0.uid != NO_UUID || self.uid() == other.uid())
    }

    /// Gives the object the uid, resourceVersion and content of another, whatever its text says: nobody who changes objects on their
    /// way in can take these away (PD-43).
    pub(crate) fn identified_as(self, original: &Self) -> Self {
        if self.is_at_version_of(original)
            && self.has_uid_of(original)
            && self.content() == original.content()
        {
            return self;
        }
        let (own, other) = (self.0.rare.as_deref(), original.0.rare.as_deref());
        let rare = Rare {
            uid: other.map(|rare| rare.uid.clone()).unwrap_or_default(),
            resource_version: other.map(|rare| rare.resource_version.clone()).unwrap_or_default(),
            generation: own.and_then(|rare| rare.generation),
            deletion_timestamp: own.and_then(|rare| rare.deletion_timestamp.clone()),
        };
        Self(triomphe::Arc::new(Inner {
            key: self.0.key.clone(),
            type_meta: self.0.type_meta.clone(),
            labels: self.0.labels.clone(),
            uid: original.0.uid,
            resource_version: original.0.resource_version,
            rare: rare.is_needed().then(|| Box::new(rare)),
            length: self.0.length,
            generation: self.0.generation & !METADATA_ALONE | original.0.generation & METADATA_ALONE,
            metadata_start: self.0.metadata_start,
            body: Mutex::new(self.0.body.lock().clone()),
        }))
    }

    /// Whether the two are one version of one object: the same uid and resourceVersion. The text may be another all the same, since the
    /// server makes it from what it has stored: after a change of a CRD's conversion or defaults, for instance.
    pub(crate) fn is_version_of(&self, other: &Self) -> bool {
        self.is_at_version_of(other) && self.has_uid_of(other) && !self.resource_version().is_empty()
    }

    /// Whether the two are one version of one object in one form, to the last byte. A compressed text is read for that, and stays as it is.
    pub(crate) fn is_equal_version_of(&self, other: &Self) -> bool {
        self.is_same(other) || self.is_version_of(other) && self.content() == other.content() && self == other
    }

    /// Returns the resourceVersion as a number, if it is one.
    pub(crate) fn version_number(&self) -> Option<u64> {
        (self.0.resource_version != NOT_A_NUMBER).then_some(self.0.resource_version)
    }

    /// Returns how many bytes the text takes in the form in which it is kept at the moment.
    pub fn kept_length(&self) -> usize {
        self.cold_length().unwrap_or_else(|| self.json_length())
    }

    /// Returns how many bytes the text takes compressed; none while it is plain.
    pub(crate) fn cold_length(&self) -> Option<usize> {
        self.0.body.lock().cold_length()
    }

    /// Whether the text is compressed with this dictionary.
    pub(crate) fn is_cold_with(&self, dictionary: &Arc<Dictionary>) -> bool {
        self.0.body.lock().is_cold_with(dictionary)
    }

    /// Compresses the text, wherever the object is held, unless it is compressed already; answers how many bytes it takes
    /// then, none if it stays plain.
    pub(crate) fn compress(&self, dictionary: &Arc<Dictionary>) -> Option<usize> {
        let body = self.0.body.lock().clone();
        match &body {
            Body::Plain(text) => self.become_cold(text, dictionary),
            Body::Cold(_) => body.cold_length(),
        }
    }

    /// Returns how many bytes the text would take with this dictionary; none if it would stay plain.
    pub(crate) fn length_with(&self, dictionary: &Arc<Dictionary>) -> Option<usize> {
        Body::compressed(&self.json(), dictionary)?.cold_length()
    }

    /// Compresses the text with this dictionary, also if it is compressed with another.
    pub(crate) fn recompress(&self, dictionary: &Arc<Dictionary>) -> Option<usize> {
        self.become_cold(&self.json(), dictionary)
    }

    /// The work is done without the lock: no reader waits for it.
    fn become_cold(&self, text: &str, dictionary: &Arc<Dictionary>) -> Option<usize> {
        let cold = Body::compressed(text, dictionary)?;
        let length = cold.cold_length();
        // What was there is freed without the lock.
        let _old = std::mem::replace(&mut *self.0.body.lock(), cold);
        length
    }

    fn extract(&self, pointers: &[&[Segment]]) -> Vec<Vec<String>> {
        extract(&self.json(), pointers)
    }

    /// Reads a field of the metadata. The door has seen that it can be read.
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

/// Key and resourceVersion only: an object may be a Secret.
impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({} {} at {})", self.0.type_meta.kind, self.0.key, self.resource_version())
    }
}

/// Equal when the whole text is.
impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.0.length == other.0.length && *self.json() == *other.json()
    }
}

impl Eq for Object {}

// === impl Rare ===

impl Rare {
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
