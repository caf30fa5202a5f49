//! The door: where bytes become an [`Object`], in the one form that the cache knows.

use super::content::{Content, is_partial};
use super::metadata::{Envelope, Error, Metadata, text};
use super::{Labels, Object, Pruning};
use crate::names::TypeMeta;

/// Checks the bytes, fills in and leaves out what is to be, and reads the metadata.
pub(super) fn take_in(
    bytes: &[u8],
    type_meta: Option<&TypeMeta>,
    pruning: &Pruning,
    content: Content,
) -> Result<Object, Error> {
    let source = std::str::from_utf8(bytes).map_err(Error::NotUtf8)?.trim_ascii();
    // Read whole, so that nobody who looks into the text later meets anything but JSON.
    let envelope: Envelope<'_> = serde_json::from_str(source).map_err(Error::Json)?;
    let metadata = envelope.metadata.ok_or(Error::MissingMetadata)?.get();
    if !metadata.starts_with('{') {
        return Err(Error::MissingMetadata);
    }

    let own_api_version = envelope.api_version.as_ref().map(|text| &*text.0);
    let own_kind = envelope.kind.as_ref().map(|text| &*text.0);
    let filled_api_version = type_meta.filter(|_| own_api_version.is_none()).map(|meta| &*meta.api_version);
    let filled_kind = type_meta.filter(|_| own_kind.is_none()).map(|meta| &*meta.kind);
    let api_version = own_api_version.or(filled_api_version).unwrap_or_default();
    let kind = own_kind.or(filled_kind).unwrap_or_default();
    let own = share(type_meta, api_version, kind)?;
    let pruned = pruning.apply(metadata)?;
    if content == Content::Metadata {
        let type_meta = match type_meta {
            Some(expected) if is_partial(&own) => expected.clone(),
            None if is_partial(&own) => return Err(Error::MissingType("kind of its own")),
            _ => own,
        };
        return metadata_only(pruned.as_deref().unwrap_or(metadata), type_meta);
    }
    let type_meta = own;
    let start = offset(source, metadata);
    let (head, tail) = (&source[..start], &source[start + metadata.len()..]);
    let metadata = pruned.as_deref().unwrap_or(metadata);
    let head = with_type_meta(head, filled_api_version, filled_kind);
    let text = [&*head, metadata, tail].concat();
    read(text, type_meta, head.len(), metadata.len())
}

/// Makes an object of its metadata.
fn metadata_only(metadata: &str, type_meta: TypeMeta) -> Result<Object, Error> {
    let head = with_type_meta("{\"metadata\":", Some(&type_meta.api_version), Some(&type_meta.kind));
    let text = [&*head, metadata, "}"].concat();
    read(text, type_meta, head.len(), metadata.len())
}

/// Writes `kind` and `apiVersion` at the head of a JSON object (or of the beginning of one that goes on with an entry), in
/// the order in which Go writes them.
pub(super) fn with_type_meta(object: &str, api_version: Option<&str>, kind: Option<&str>) -> String {
    let mut filled = String::with_capacity(object.len() + 64);
    filled.push('{');
    for (name, value) in [("kind", kind), ("apiVersion", api_version)] {
        if let Some(value) = value {
            filled.push_str(&format!("\"{name}\":{},", serde_json::Value::from(value)));
        }
    }
    filled.push_str(object.strip_prefix('{').unwrap_or(object));
    filled
}

/// What the door has found out about an object.
pub(super) struct Parts<'a> {
    pub(super) type_meta: TypeMeta,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
    pub(super) resource_version: &'a str,
    pub(super) generation: Option<i64>,
    pub(super) deletion_timestamp: Option<&'a str>,
    pub(super) labels: Labels,
    /// In its final form; less than 4 GiB.
    pub(super) text: String,
    /// Where in the text the value of `metadata` begins.
    pub(super) metadata_start: usize,
}

/// Reads the metadata of a text in its final form.
fn read(json: String, type_meta: TypeMeta, start: usize, length: usize) -> Result<Object, Error> {
    if u32::try_from(json.len()).is_err() {
        return Err(Error::TooLarge(json.len()));
    }
    let own = json[start..start + length].to_owned();
    let metadata = Metadata::parse(&own)?;
    let (namespace, name) = (text(&metadata.namespace), text(&metadata.name));
    if name.is_empty() {
        return Err(Error::MissingName);
    }
    if let Some(bad) = [namespace, name].into_iter().find(|part| part.contains('/')) {
        return Err(Error::BadName(bad.to_owned()));
    }
    let labels = match metadata.labels {
        Some(labels) => Labels::from_json(labels.get()).map_err(Error::Metadata)?,
        None => Labels::default(),
    };
    Ok(Object::new(Parts {
        type_meta,
        namespace,
        name,
        uid: text(&metadata.uid),
        resource_version: text(&metadata.resource_version),
        generation: metadata.generation,
        deletion_timestamp: metadata.deletion_timestamp.as_ref().map(|text| &*text.0),
        labels,
        text: json,
        metadata_start: start,
    }))
}

/// Returns the object's type, as one shared copy with what the caller expected wherever they agree.
fn share(expected: Option<&TypeMeta>, api_version: &str, kind: &str) -> Result<TypeMeta, Error> {
    if api_version.is_empty() {
        return Err(Error::MissingType("apiVersion"));
    }
    if kind.is_empty() {
        return Err(Error::MissingType("kind"));
    }
    match expected {
        Some(expected) if *expected.api_version == *api_version && *expected.kind == *kind => {
            Ok(expected.clone())
        }
        _ => Ok(TypeMeta::new(api_version, kind)),
    }
}

/// Returns where `part`, a slice of `whole`, begins in it.
fn offset(whole: &str, part: &str) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}
