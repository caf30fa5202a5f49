//! Decodes bytes into an [`Object`].
//!
//! Two decoders give the same objects. The fast decoder handles what API servers usually write: it walks over
//! the text once, decodes the type and the metadata strictly, and only checks that every other value is
//! closed. When it finds something unusual (an escape in a name, a field that occurs twice) or wrong, the
//! strict decoder starts again: it has serde parse the whole text, and reports the error.
//!
//! So both accept the same texts, with one exception: the fast decoder does not notice a wrong comma, literal
//! or escape inside of an array or object that it only skips.

mod fast;
mod strict;

use super::content::{Content, is_partial};
use super::copied_values::{CopiedPointers, StateValues};
use super::metadata::Error;
use super::pruning::{Fields, Pruned};
use super::{Labels, Object, Pruning};
use crate::names::TypeMeta;

/// The decoded fields of an object.
pub(super) struct DecodedObject<'a> {
    pub(super) type_meta: TypeMeta,
    /// Has no slash.
    pub(super) namespace: &'a str,
    /// Not empty, and has no slash.
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
    pub(super) resource_version: &'a str,
    pub(super) generation: Option<i64>,
    pub(super) deletion_timestamp: Option<&'a str>,
    pub(super) labels: Labels,
    pub(super) text: KeptText,
    pub(super) content: Content,
    /// The values at the pointers to copy. None from the strict decoder.
    pub(super) values: Option<StateValues>,
}

/// The text that an object keeps.
pub(super) struct KeptText {
    /// Shorter than 4 GiB.
    pub(super) json: String,
    /// Where the value of `metadata` starts.
    pub(super) metadata_start: usize,
}

/// How an object is decoded.
#[derive(Clone, Copy)]
struct Options<'a> {
    /// The type of an object that does not name its type.
    type_meta: Option<&'a TypeMeta>,
    pruning: &'a Pruning,
    content: Content,
    /// The pointers whose values are copied, if that is possible.
    copied: Option<&'a CopiedPointers>,
}

/// An object's type, and the parts of it that its text lacks.
struct ResolvedType<'a> {
    type_meta: TypeMeta,
    missing_api_version: Option<&'a str>,
    missing_kind: Option<&'a str>,
}

/// Decodes an object, adds its type where that is missing, and prunes it.
pub(super) fn decode(
    bytes: &[u8],
    type_meta: Option<&TypeMeta>,
    pruning: &Pruning,
    content: Content,
    copied: Option<&CopiedPointers>,
) -> Result<Object, Error> {
    let source = utf8(bytes)?.trim_ascii();
    if u32::try_from(source.len()).is_err() {
        return Err(Error::TooLarge(source.len()));
    }
    // The text that is kept has no other values than the received one.
    let keeps_values = content == Content::Full && pruning.fields == Fields::all();
    let copied = copied.filter(|pointers| keeps_values && pointers.can_decode());
    let options = Options { type_meta, pruning, content, copied };
    match fast::decode(source, options) {
        Some(object) => Ok(object),
        None => strict::decode(source, options),
    }
}

/// Writes `kind` and `apiVersion` at the start of a JSON object, in the order in which Go writes them.
pub(super) fn with_type_meta(object: &str, api_version: Option<&str>, kind: Option<&str>) -> String {
    let mut filled = head_with(api_version, kind);
    filled.push_str(object.strip_prefix('{').unwrap_or(object));
    filled
}

/// Returns the start of a JSON object, to be followed by its other entries.
fn head_with(api_version: Option<&str>, kind: Option<&str>) -> String {
    let mut head = String::with_capacity(64);
    head.push('{');
    for (name, value) in [("\"kind\":", kind), ("\"apiVersion\":", api_version)] {
        if let Some(value) = value {
            head.push_str(name);
            push_string(&mut head, value);
            head.push(',');
        }
    }
    head
}

fn push_string(json: &mut String, text: &str) {
    if text.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        json.push_str(&serde_json::Value::from(text).to_string());
    } else {
        json.extend(["\"", text, "\""]);
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, Error> {
    // The fast check does not say where the fault is, the slow one does.
    simdutf8::basic::from_utf8(bytes).or_else(|_| std::str::from_utf8(bytes)).map_err(Error::NotUtf8)
}

// === impl Options ===

impl<'a> Options<'a> {
    /// Returns the type of an object whose text names these parts of it.
    fn resolve_type(&self, api_version: Option<&str>, kind: Option<&str>) -> Result<ResolvedType<'a>, Error> {
        let missing_api_version =
            self.type_meta.filter(|_| api_version.is_none()).map(|expected| &*expected.api_version);
        let missing_kind = self.type_meta.filter(|_| kind.is_none()).map(|expected| &*expected.kind);
        let api_version = api_version.or(missing_api_version).unwrap_or_default();
        let kind = kind.or(missing_kind).unwrap_or_default();
        Ok(ResolvedType { type_meta: self.share(api_version, kind)?, missing_api_version, missing_kind })
    }

    /// Returns the type with these names. It is the expected type's copy where both are equal.
    fn share(&self, api_version: &str, kind: &str) -> Result<TypeMeta, Error> {
        if api_version.is_empty() {
            return Err(Error::MissingType("apiVersion"));
        }
        if kind.is_empty() {
            return Err(Error::MissingType("kind"));
        }
        match self.type_meta {
            Some(expected) if *expected.api_version == *api_version && *expected.kind == *kind => {
                Ok(expected.clone())
            }
            Some(expected) if self.content == Content::Metadata && is_partial(api_version, kind) => {
                Ok(expected.clone())
            }
            _ => Ok(TypeMeta::new(api_version, kind)),
        }
    }

    /// Copies the kept ranges of the text, and adds the missing parts of the type. So the copy may be longer
    /// than the text.
    fn copy(&self, source: &str, pruned: &Pruned<'_>, resolved: &ResolvedType<'_>) -> Option<KeptText> {
        let ResolvedType { type_meta, missing_api_version, missing_kind } = resolved;
        let is_filled = missing_api_version.is_some() || missing_kind.is_some();
        let (head, start, end, tail) = match self.content {
            Content::Metadata => {
                let head = head_with(Some(&type_meta.api_version), Some(&type_meta.kind)) + "\"metadata\":";
                (head, pruned.metadata.start, pruned.metadata.end, "}")
            }
            Content::Full if is_filled => {
                (head_with(*missing_api_version, *missing_kind), 1, source.len(), "")
            }
            Content::Full => (String::new(), 0, source.len(), ""),
        };
        let metadata_start = head.len() + pruned.pruned_metadata.start - start;
        let json = pruned.splicer.copy(&head, start, end, tail)?;
        Some(KeptText { json, metadata_start })
    }
}

#[cfg(test)]
mod tests;
