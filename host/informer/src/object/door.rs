//! The door: where bytes become an [`Object`], in the one form that the cache knows.

use std::sync::Arc;

use super::content::{Content, is_partial};
use super::metadata::{Envelope, Error, Metadata, text};
use super::{Inner, Object, Place, Places, Pruning};
use crate::names::{ObjectKey, TypeMeta};

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
    let text = [&*head, metadata, tail].concat().into_boxed_str();
    read(text, type_meta, head.len(), metadata.len())
}

/// Makes an object of its metadata.
fn metadata_only(metadata: &str, type_meta: TypeMeta) -> Result<Object, Error> {
    let head = with_type_meta("{\"metadata\":", Some(&type_meta.api_version), Some(&type_meta.kind));
    let text = [&*head, metadata, "}"].concat().into_boxed_str();
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

/// Reads the metadata of a text in its final form.
fn read(json: Box<str>, type_meta: TypeMeta, start: usize, length: usize) -> Result<Object, Error> {
    if u32::try_from(json.len()).is_err() {
        return Err(Error::TooLarge(json.len()));
    }
    let metadata = Metadata::parse(&json[start..start + length])?;
    let (namespace, name) = (text(&metadata.namespace), text(&metadata.name));
    if name.is_empty() {
        return Err(Error::MissingName);
    }
    if let Some(bad) = [namespace, name].into_iter().find(|part| part.contains('/')) {
        return Err(Error::BadName(bad.to_owned()));
    }
    let key = ObjectKey::new(namespace, name);
    let place_of = |part: &serde_json::value::RawValue| place(offset(&json, part.get()), part.get().len());
    let places = Places {
        metadata: place(start, length),
        labels: metadata.labels.map(place_of),
        annotations: metadata.annotations.map(place_of),
        owner_references: metadata.owner_references.map(place_of),
    };
    let uid = Box::from(text(&metadata.uid));
    let resource_version = Box::from(text(&metadata.resource_version));
    let generation = metadata.generation;
    let deletion_timestamp = metadata.deletion_timestamp.as_ref().map(|text| Box::from(&*text.0));
    Ok(Object(Arc::new(Inner {
        key,
        type_meta,
        uid,
        resource_version,
        generation,
        deletion_timestamp,
        places,
        text: json,
    })))
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

/// Both fit: the whole text was seen to be shorter than 4 GiB.
fn place(start: usize, length: usize) -> Place {
    Place { start: start as u32, length: length as u32 }
}
