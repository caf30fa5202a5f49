//! The strict decoder: serde parses the whole text.

use oarlock_json::scan::{Cursor, Quoted};
use serde::de::Error as _;

use super::super::metadata::{Envelope, Error, Metadata, text};
use super::super::pruning::FieldReader;
use super::super::{Labels, Object};
use super::{DecodedObject, Options};

/// Skips every field: serde reads them from the pruned text.
struct SkipFields;

/// Decodes an object, or says why it cannot be decoded.
pub(super) fn decode(source: &str, options: Options<'_>) -> Result<Object, Error> {
    let envelope: Envelope<'_> = serde_json::from_str(source).map_err(Error::Json)?;
    let metadata = envelope.metadata.ok_or(Error::MissingMetadata)?.get();
    if !metadata.starts_with('{') {
        return Err(Error::MissingMetadata);
    }
    let api_version = envelope.api_version.as_ref().map(|text| &*text.0);
    let kind = envelope.kind.as_ref().map(|text| &*text.0);
    let resolved = options.resolve_type(api_version, kind)?;

    let Some(pruned) = options.pruning.prune(source, options.content, &mut SkipFields) else {
        // A duplicate field ends the walk, and serde names it.
        Metadata::parse(metadata)?;
        return Err(inseparable());
    };
    let metadata_length = pruned.pruned_metadata.len();
    let kept_text = options.copy(source, &pruned, &resolved).ok_or_else(inseparable)?;
    if u32::try_from(kept_text.json.len()).is_err() {
        return Err(Error::TooLarge(kept_text.json.len()));
    }
    let metadata_end = kept_text.metadata_start + metadata_length;
    let kept_metadata =
        kept_text.json.get(kept_text.metadata_start..metadata_end).ok_or_else(inseparable)?.to_owned();
    let metadata = Metadata::parse(&kept_metadata)?;
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
    Ok(Object::new(DecodedObject {
        type_meta: resolved.type_meta,
        namespace,
        name,
        uid: text(&metadata.uid),
        resource_version: text(&metadata.resource_version),
        generation: metadata.generation,
        deletion_timestamp: metadata.deletion_timestamp.as_ref().map(|text| &*text.0),
        labels,
        text: kept_text,
        content: options.content,
        values: None,
    }))
}

/// The error for a text that serde parses and the walk does not.
fn inseparable() -> Error {
    Error::Json(serde_json::Error::custom("the fields of the object cannot be separated"))
}

// === impl SkipFields ===

impl<'t> FieldReader<'t> for SkipFields {
    fn field(&mut self, cursor: &mut Cursor<'t>, _: Quoted<'t>) -> Option<()> {
        cursor.skip_value()
    }

    fn metadata_field(&mut self, cursor: &mut Cursor<'t>, _: Quoted<'t>) -> Option<()> {
        cursor.skip_value()
    }

    fn annotation(&mut self, cursor: &mut Cursor<'t>, _: Quoted<'t>) -> Option<()> {
        cursor.skip_value()
    }

    fn pruned_metadata_field(&mut self, _: &str, _: Quoted<'t>) -> Option<()> {
        Some(())
    }
}
