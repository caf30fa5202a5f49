//! Decodes one line of a watch into an event.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::identity::{ObjectIdentity, has_no_identity};
use super::{Config, answer};
use crate::list_watch::{Bookmark, DecodeError, WatchEvent};
use crate::names::TypeMeta;
use crate::object::{self, Object, SharedPointers};

const WHAT: &str = "watch event";

/// The beginning of a line with an object, as API servers write it, and the event that the line becomes.
type LinePrefix = (&'static [u8], fn(Object) -> WatchEvent);

const LINE_PREFIXES: [LinePrefix; 3] = [
    (br#"{"type":"MODIFIED","object":"#, WatchEvent::Modified),
    (br#"{"type":"ADDED","object":"#, WatchEvent::Added),
    (br#"{"type":"DELETED","object":"#, WatchEvent::Deleted),
];

/// The annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type", borrow)]
    event_type: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// The fields that a bookmark or an unknown event needs; the object need not be a whole one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Partial {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    metadata: Option<PartialMetadata>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartialMetadata {
    resource_version: Option<String>,
    annotations: Option<crate::object::StringMap>,
}

// === impl Frame ===

impl Frame<'_> {
    fn is_change(&self) -> bool {
        matches!(&*self.event_type, "ADDED" | "MODIFIED" | "DELETED")
    }

    /// Returns the event of a change whose object cannot be decoded.
    fn with_bad_object(&self, error: object::Error, expected: Option<&TypeMeta>) -> WatchEvent {
        let is_of_another_type = has_no_identity(&error)
            || ObjectIdentity::of(self.object.get().as_bytes()).is_of_another_type(expected);
        if is_of_another_type {
            WatchEvent::Rejected(Arc::new(error.into()))
        } else {
            self.undecodable(error.into())
        }
    }

    fn undecodable(&self, error: DecodeError) -> WatchEvent {
        let object = ObjectIdentity::of(self.object.get().as_bytes()).undecodable(error);
        WatchEvent::Undecodable { is_deleted: self.event_type == "DELETED", object }
    }
}

/// Decodes a line of a watch. `copied` are the pointers whose values are copied, in lines in the usual
/// spelling.
pub(super) fn decode(
    line: &[u8],
    config: &Config,
    copied: Option<&SharedPointers>,
) -> Result<WatchEvent, DecodeError> {
    if let Some(event) = decode_common(line, config, copied) {
        return Ok(event);
    }
    let text = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(source) => {
            // The JSON may still be valid, and name the object.
            let lossy = String::from_utf8_lossy(line);
            let error = DecodeError::NotUtf8 { what: WHAT, source };
            return match serde_json::from_str::<Frame<'_>>(&lossy) {
                Ok(frame) if frame.is_change() => Ok(frame.undecodable(error)),
                _ => Err(error),
            };
        }
    };
    let malformed = |source| DecodeError::Malformed { what: WHAT, source };
    let frame: Frame<'_> = serde_json::from_str(text).map_err(malformed)?;
    let Config { type_meta, pruning, content, .. } = config;
    let object =
        || Object::parse_content(frame.object.get().as_bytes(), type_meta.as_ref(), pruning, *content);
    let of = |to_event: fn(Object) -> WatchEvent| match object() {
        Ok(object) => to_event(object),
        Err(error) => frame.with_bad_object(error, type_meta.as_ref()),
    };
    Ok(match &*frame.event_type {
        "ADDED" => of(WatchEvent::Added),
        "MODIFIED" => of(WatchEvent::Modified),
        "DELETED" => of(WatchEvent::Deleted),
        "BOOKMARK" => {
            let partial: Partial = serde_json::from_str(frame.object.get()).map_err(malformed)?;
            WatchEvent::Bookmark(decode_bookmark(partial)?)
        }
        "ERROR" => WatchEvent::Error(answer::parse_status(frame.object.get()).map_err(malformed)?),
        other => {
            let partial: Option<Partial> = serde_json::from_str(frame.object.get()).ok();
            let metadata = partial.and_then(|partial| partial.metadata);
            WatchEvent::Unknown {
                event_type: other.to_owned(),
                resource_version: metadata.and_then(|metadata| metadata.resource_version),
            }
        }
    })
}

/// Decodes a valid line in the spelling of API servers, without a scan of its frame; none if it is not one.
/// The object's decoder rejects anything after the end of the object.
fn decode_common(line: &[u8], config: &Config, copied: Option<&SharedPointers>) -> Option<WatchEvent> {
    let strip = |(prefix, event): &LinePrefix| Some((line.strip_prefix(*prefix)?, *event));
    let (object, event) = LINE_PREFIXES.iter().find_map(strip)?;
    let object = object.trim_ascii_end().strip_suffix(b"}")?;
    let Config { type_meta, pruning, content, .. } = config;
    let copied = copied.and_then(SharedPointers::get);
    Object::parse_copying(object, type_meta.as_ref(), pruning, *content, copied.as_deref()).ok().map(event)
}

fn decode_bookmark(partial: Partial) -> Result<Bookmark, DecodeError> {
    let metadata = partial.metadata.ok_or(DecodeError::Object(crate::object::Error::MissingMetadata))?;
    // `PartialObjectMetadata` does not tell the type of the objects (see `Content`).
    let has_type = !matches!(&*partial.kind, "" | "PartialObjectMetadata");
    let resource_version = metadata.resource_version.filter(|version| !version.is_empty());
    let annotations = metadata.annotations.unwrap_or_default();
    Ok(Bookmark {
        resource_version: resource_version.ok_or(DecodeError::NoVersion("bookmark"))?,
        type_meta: has_type.then(|| TypeMeta::new(&partial.api_version, &partial.kind)),
        is_initial_events_end: annotations.get(INITIAL_EVENTS_END).is_some_and(|value| value == "true"),
    })
}
