//! One line of a watch as an event.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Config, status};
use crate::list_watch::{Bookmark, DecodeError, WatchEvent};
use crate::names::TypeMeta;
use crate::object::Object;

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

/// Reads an event from its line.
pub(super) fn parse(line: &[u8], config: &Config) -> Result<WatchEvent, DecodeError> {
    if let Some(event) = common(line, config) {
        return Ok(event);
    }
    let text = std::str::from_utf8(line).map_err(|source| DecodeError::NotUtf8 { what: WHAT, source })?;
    let malformed = |source| DecodeError::Malformed { what: WHAT, source };
    let frame: Frame<'_> = serde_json::from_str(text).map_err(malformed)?;
    let Config { type_meta, pruning, content, .. } = config;
    let object =
        || Object::parse_content(frame.object.get().as_bytes(), type_meta.as_ref(), pruning, *content);
    let of = |to_event: fn(Object) -> WatchEvent| match object() {
        Ok(object) => to_event(object),
        // The next line may be better (RL-55).
        Err(error) => WatchEvent::Rejected(Arc::new(error.into())),
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
