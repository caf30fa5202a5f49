//! The exact way in: serde reads all of the text.

use super::super::metadata::{Envelope, Error, Metadata, text};
use super::super::{Content, Labels, Object};
use super::{Parts, Terms, metadata_head, with_type_meta};
use crate::names::TypeMeta;

/// Takes in whatever may be taken in, and says what is wrong with anything else.
pub(super) fn decode(source: &str, terms: Terms<'_>) -> Result<Object, Error> {
    let envelope: Envelope<'_> = serde_json::from_str(source).map_err(Error::Json)?;
    let metadata = envelope.metadata.ok_or(Error::MissingMetadata)?.get();
    if !metadata.starts_with('{') {
        return Err(Error::MissingMetadata);
    }

    let own_api_version = envelope.api_version.as_ref().map(|text| &*text.0);
    let own_kind = envelope.kind.as_ref().map(|text| &*text.0);
    let filled_api_version =
        terms.type_meta.filter(|_| own_api_version.is_none()).map(|meta| &*meta.api_version);
    let filled_kind = terms.type_meta.filter(|_| own_kind.is_none()).map(|meta| &*meta.kind);
    let api_version = own_api_version.or(filled_api_version).unwrap_or_default();
    let kind = own_kind.or(filled_kind).unwrap_or_default();
    let type_meta = terms.share(api_version, kind)?;

    let pruned = terms.pruning.apply(metadata)?;
    let start = offset(source, metadata);
    let (head, tail) = (&source[..start], &source[start + metadata.len()..]);
    let metadata = pruned.as_deref().unwrap_or(metadata);
    let (head, tail) = match terms.content {
        Content::Full => (with_type_meta(head, filled_api_version, filled_kind), tail),
        Content::Metadata => (metadata_head(&type_meta), "}"),
    };
    read([&*head, metadata, tail].concat(), metadata, type_meta, terms.content, head.len())
}

/// Makes an object of a text in its final form, in which `metadata` begins at `start`.
fn read(
    json: String,
    metadata: &str,
    type_meta: TypeMeta,
    content: Content,
    start: usize,
) -> Result<Object, Error> {
    if u32::try_from(json.len()).is_err() {
        return Err(Error::TooLarge(json.len()));
    }
    let metadata = Metadata::parse(metadata)?;
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
        content,
        metadata_start: start,
    }))
}

/// Returns where `part`, a slice of `whole`, begins in it.
fn offset(whole: &str, part: &str) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}
