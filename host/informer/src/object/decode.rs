//! The door: where bytes become an [`Object`], in the one form that the cache knows.
//!
//! Two ways lead through it. The quick one reads what API servers commonly write: it goes once over the text, reads type and
//! metadata to the letter, and only sees to it that the rest is closed. Whatever it finds unusual (escapes in a name, a field
//! that stands twice, white space where something is left out) or wrong, it leaves to the exact one, which has serde read
//! everything. So what the quick way takes in is what the exact one would, and in the same form; save that a text is taken in
//! whose fault lies deep in what nobody here reads: a wrong comma, literal or escape within an array or object.

mod fast;

mod strict;

use super::content::{Content, is_partial};
use super::metadata::Error;
use super::{Labels, Object, Pruning};
use crate::names::TypeMeta;

/// What the door has found out about an object.
pub(super) struct Parts<'a> {
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
    /// In its final form; less than 4 GiB.
    pub(super) text: String,
    /// How much of the object the text is.
    pub(super) content: Content,
    /// Where in the text the value of `metadata` begins.
    pub(super) metadata_start: usize,
}

/// What an object is to be when it is in.
#[derive(Clone, Copy)]
struct Terms<'a> {
    /// Its type, where it does not say it itself.
    type_meta: Option<&'a TypeMeta>,
    pruning: &'a Pruning,
    content: Content,
}

/// Checks the bytes, fills in and leaves out what is to be, and reads the metadata.
pub(super) fn decode(
    bytes: &[u8],
    type_meta: Option<&TypeMeta>,
    pruning: &Pruning,
    content: Content,
) -> Result<Object, Error> {
    let source = utf8(bytes)?.trim_ascii();
    if u32::try_from(source.len()).is_err() {
        return Err(Error::TooLarge(source.len()));
    }
    let terms = Terms { type_meta, pruning, content };
    let narrowed = pruning.fields.apply(source)?;
    let source = narrowed.as_deref().unwrap_or(source);
    match fast::decode(source, terms) {
        Some(object) => Ok(object),
        None => strict::decode(source, terms),
    }
}

/// Writes `kind` and `apiVersion` at the head of a JSON object (or of the beginning of one that goes on with an entry), in
/// the order in which Go writes them.
pub(super) fn with_type_meta(object: &str, api_version: Option<&str>, kind: Option<&str>) -> String {
    let mut filled = head_with(api_version, kind);
    filled.push_str(object.strip_prefix('{').unwrap_or(object));
    filled
}

/// Returns the beginning of an object up to where its other entries follow.
fn head_with(api_version: Option<&str>, kind: Option<&str>) -> String {
    let mut head = String::with_capacity(64);
    head.push('{');
    for (name, value) in [("\"kind\":", kind), ("\"apiVersion\":", api_version)] {
        if let Some(value) = value {
            head.push_str(name);
            push_text(&mut head, value);
            head.push(',');
        }
    }
    head
}

fn push_text(json: &mut String, text: &str) {
    if text.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        json.push_str(&serde_json::Value::from(text).to_string());
    } else {
        json.extend(["\"", text, "\""]);
    }
}

/// Returns the beginning of an object that has nothing but its metadata.
fn metadata_head(type_meta: &TypeMeta) -> String {
    head_with(Some(&type_meta.api_version), Some(&type_meta.kind)) + "\"metadata\":"
}

fn utf8(bytes: &[u8]) -> Result<&str, Error> {
    // The quick check does not say where, the slow one does.
    simdutf8::basic::from_utf8(bytes).or_else(|_| std::str::from_utf8(bytes)).map_err(Error::NotUtf8)
}

// === impl Terms ===

impl Terms<'_> {
    /// Returns the object's type, as one shared copy with what the caller expected wherever they agree.
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
            expected if self.content == Content::Metadata && is_partial(api_version, kind) => {
                expected.cloned().ok_or(Error::MissingType("kind of its own"))
            }
            _ => Ok(TypeMeta::new(api_version, kind)),
        }
    }
}

#[cfg(test)]
mod tests;
