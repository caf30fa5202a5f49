//! One line of a watch as an event.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::glimpse::{Glimpse, has_no_identity};
use super::{Config, status};
use crate::list_watch::{Bookmark, DecodeError, WatchEvent};
use crate::names::TypeMeta;
use crate::object::{self, Object};

const WHAT: &str = "watch event";

/// How a line begins that brings an object, as API servers write it, and what becomes of the object.
type Beginning = (&'static [u8], fn(Object) -> WatchEvent);

const COMMON: [Beginning; 3] = [
    (br#"{"type":"MODIFIED","object":"#, WatchEvent::Modified),
    (br#"{"type":"ADDED","object":"#, WatchEvent::Added),
    (br#"{"type":"DELETED","object":"#, WatchEvent::Deleted),
];

/// Ends the initial events, where a watch asked for them.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type", borrow)]
    event_type: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// What is read of an object that need not be a whole one.
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

    /// Returns the event for a change whose object is no good.
    fn of_bad_object(&self, error: object::Error, expected: Option<&TypeMeta>) -> WatchEvent {
        let is_another_thing =
            has_no_identity(&error) || Glimpse::of(self.object.get().as_bytes()).is_of_another_type(expected);
        if is_another_thing {
            WatchEvent::Rejected(Arc::new(error.into()))
        } else {
            self.undecodable(error.into())
        }
    }

    fn undecodable(&self, error: DecodeError) -> WatchEvent {
        let object = Glimpse::of(self.object.get().as_bytes()).undecodable(error);
        WatchEvent::Undecodable { is_deleted: self.event_type == "DELETED", object }
    }
}

/// Reads an event from its line.
pub(super) fn parse(line: &[u8], config: &Config) -> Result<WatchEvent, DecodeError> {
    if let Some(event) = common(line, config) {
        return Ok(event);
    }
    let text = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(source) => {
            // Its JSON may be whole all the same, and say which object it is.
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
        Err(error) => frame.of_bad_object(error, type_meta.as_ref()),
    };
    Ok(match &*frame.event_type {
        "ADDED" => of(WatchEvent::Added),
        "MODIFIED" => of(WatchEvent::Modified),
        "DELETED" => of(WatchEvent::Deleted),
        "BOOKMARK" => {
            let partial: Partial = serde_json::from_str(frame.object.get()).map_err(malformed)?;
            WatchEvent::Bookmark(bookmark(partial)?)
        }
        "ERROR" => WatchEvent::Error(status::parse(frame.object.get()).map_err(malformed)?),
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

/// Reads a line that is written as most are, and good. What stands behind the object's end is left to it to find.
fn common(line: &[u8], config: &Config) -> Option<WatchEvent> {
    let begins = |(head, event): &Beginning| Some((line.strip_prefix(*head)?, *event));
    let (object, event) = COMMON.iter().find_map(begins)?;
    let object = object.trim_ascii_end().strip_suffix(b"}")?;
    let Config { type_meta, pruning, content, .. } = config;
    Object::parse_content(object, type_meta.as_ref(), pruning, *content).ok().map(event)
}

fn bookmark(partial: Partial) -> Result<Bookmark, DecodeError> {
    let metadata = partial.metadata.ok_or(DecodeError::Object(crate::object::Error::MissingMetadata))?;
    // Of metadata alone it says nothing about the objects (see `Content`).
    let has_type = !matches!(&*partial.kind, "" | "PartialObjectMetadata");
    let resource_version = metadata.resource_version.filter(|version| !version.is_empty());
    let annotations = metadata.annotations.unwrap_or_default();
    Ok(Bookmark {
        resource_version: resource_version.ok_or(DecodeError::NoVersion("bookmark"))?,
        type_meta: has_type.then(|| TypeMeta::new(&partial.api_version, &partial.kind)),
        is_initial_events_end: annotations.get(INITIAL_EVENTS_END).is_some_and(|value| value == "true"),
    })
}
