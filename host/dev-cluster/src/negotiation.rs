//! Content negotiation: the form that a client accepts, and the form of the body that it sent.

use crate::protobuf;
use crate::schema::Node;
use crate::status::StatusError;
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};
use serde_json::Value;
use serde_json::error::Category;

/// The shape of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Object,
    /// `as=Table`, for kubectl.
    Table,
    /// `as=PartialObjectMetadata`, or its list.
    PartialMetadata,
}

/// The encoding of a response. CBOR is not supported; Protobuf exists for built-in types only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    Json,
    Yaml,
    Protobuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) shape: Shape,
    pub(crate) notation: Notation,
}

/// The encodings of custom resources.
const WITHOUT_PROTOBUF: &[&str] = &["application/json", "application/yaml"];
/// The encodings of built-in types.
const ALL: &[&str] = &["application/json", "application/yaml", protobuf::MEDIA_TYPE];

/// One media range of an Accept header.
pub(crate) struct MediaRange<'a> {
    pub(crate) media_type: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

// === impl Accepted ===

impl Accepted {
    /// Returns the first form in the Accept header that this server supports. `has_protobuf` is whether the
    /// type has a Protobuf form.
    pub(crate) fn negotiate(headers: &HeaderMap, has_protobuf: bool) -> Result<Self, StatusError> {
        let ranges = media_ranges(headers);
        if ranges.is_empty() {
            return Ok(Self { shape: Shape::Object, notation: Notation::Json });
        }
        let found = ranges.iter().filter_map(Self::of);
        let mut found = found.filter(|form| has_protobuf || form.notation != Notation::Protobuf);
        found.next().ok_or_else(|| {
            let mut error = StatusError::not_acceptable(ALL);
            if !has_protobuf || ranges.iter().any(|range| range.notation().is_some()) {
                // The server has this encoding, but not for this type.
                return error;
            }
            error.details = Some(Box::default());
            error.message = format!("406: Not Acceptable\n\nAvailable representations: {}", ALL.join(", "));
            error
        })
    }

    fn of(range: &MediaRange<'_>) -> Option<Self> {
        let notation = range.notation()?;
        let shape = match range.parameter("as") {
            None => Shape::Object,
            // Clients that accept v1beta1 always accept v1 too, and both have the same form.
            Some(_) if range.parameter("g") != Some("meta.k8s.io") || range.parameter("v") != Some("v1") => {
                return None;
            }
            Some("Table") if notation == Notation::Protobuf => return None,
            Some("Table") => Shape::Table,
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") => Shape::PartialMetadata,
            Some(_) => return None,
        };
        Some(Self { shape, notation })
    }
}

// === impl MediaRange ===

impl MediaRange<'_> {
    fn notation(&self) -> Option<Notation> {
        match self.media_type {
            "application/json" | "*/*" | "application/*" => Some(Notation::Json),
            "application/yaml" => Some(Notation::Yaml),
            protobuf::MEDIA_TYPE => Some(Notation::Protobuf),
            _ => None,
        }
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }
}

/// Returns the media ranges that the client accepts, in its order.
pub(crate) fn media_ranges(headers: &HeaderMap) -> Vec<MediaRange<'_>> {
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let media_type = parts.next().unwrap_or_default();
            MediaRange { media_type, parameters: parts.filter_map(|part| part.split_once('=')).collect() }
        })
        .filter(|range| !range.media_type.is_empty())
        .collect()
}

/// Returns the media type of the request's body, without parameters.
pub(crate) fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

/// Decodes a body by its content type; without one it is JSON. `of` is the type of the object, if Protobuf
/// has one.
pub(crate) fn decode(
    headers: &HeaderMap,
    body: &[u8],
    kind: &str,
    of: Option<&Node>,
) -> Result<Value, StatusError> {
    let unrecognized = |why: String| {
        let body_text = if body.is_empty() { "<empty>".into() } else { String::from_utf8_lossy(body) };
        StatusError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse \
             error: {why} ({body_text})"
        ))
    };
    match content_type(headers) {
        "application/json" | "" => serde_json::from_slice(body).map_err(|error| {
            unrecognized(match error.classify() {
                Category::Eof => "unexpected end of JSON input".to_owned(),
                _ => error.to_string(),
            })
        }),
        "application/yaml" => serde_norway::from_slice(body).map_err(|error| unrecognized(error.to_string())),
        protobuf::MEDIA_TYPE if let Some(of) = of => protobuf::decode(body, of).map_err(|error| {
            StatusError::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): {error}"
            ))
        }),
        _ => Err(StatusError::unsupported_media_type(if of.is_some() { ALL } else { WITHOUT_PROTOBUF })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn negotiate(accept: &str) -> Option<(Shape, Notation)> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        Accepted::negotiate(&headers, true).ok().map(|accepted| (accepted.shape, accepted.notation))
    }

    #[test]
    fn the_first_supported_form_is_chosen() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(negotiate(table), Some((Shape::Table, Notation::Json)));
        let protobuf = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(negotiate(protobuf), Some((Shape::Object, Notation::Protobuf)));
        let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        assert_eq!(negotiate(metadata), Some((Shape::PartialMetadata, Notation::Json)));
        assert_eq!(negotiate("application/yaml"), Some((Shape::Object, Notation::Yaml)));
        assert_eq!(negotiate("*/*"), Some((Shape::Object, Notation::Json)));
        assert_eq!(negotiate("application/cbor"), None);
        let table = "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(negotiate(table), Some((Shape::Object, Notation::Json)));
    }

    #[test]
    fn custom_resources_have_no_protobuf() {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, "application/vnd.kubernetes.protobuf, */*".parse().unwrap());
        let negotiate = |headers: &HeaderMap| Accepted::negotiate(headers, false);
        assert_eq!(negotiate(&headers).unwrap().notation, Notation::Json);
        headers.insert(ACCEPT, "application/vnd.kubernetes.protobuf".parse().unwrap());
        assert_eq!(negotiate(&headers).unwrap_err().code, 406);
    }
}
