//! The bodies of responses, and responses without an object.

use crate::negotiation::Notation;
use crate::protobuf;
use crate::schema::Node;
use crate::status::StatusError;
use bytes::Bytes;
use futures::Stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::Value;
use std::collections::BTreeMap;
use std::convert::Infallible;

/// The body of every response. An error in it breaks the response, like a lost connection.
pub(crate) type Body = UnsyncBoxBody<Bytes, BodyCut>;

/// The server stops in the middle of a body.
#[derive(Debug, thiserror::Error)]
#[error("the response ends early because of a fault")]
pub(crate) struct BodyCut;

pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never: Infallible| match never {}).boxed_unsync()
}

pub(crate) fn streamed(chunks: impl Stream<Item = Result<Bytes, BodyCut>> + Send + 'static) -> Body {
    use futures::TryStreamExt;
    StreamBody::new(chunks.map_ok(Frame::data)).boxed_unsync()
}

pub(crate) fn with_type(code: u16, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

pub(crate) fn json(code: u16, value: &Value) -> Response<Body> {
    with_type(code, "application/json", full(format!("{value}\n")))
}

/// A plain text, as for health checks and unknown paths.
pub(crate) fn text(code: u16, text: &'static str) -> Response<Body> {
    with_type(code, "text/plain; charset=utf-8", full(text))
}

/// A document in the negotiated encoding. `of` is its type, which Protobuf needs.
pub(crate) fn document(code: u16, notation: Notation, value: &Value, of: Option<&Node>) -> Response<Body> {
    match (notation, of) {
        (Notation::Protobuf, Some(of)) => {
            with_type(code, protobuf::MEDIA_TYPE, full(protobuf::enveloped(value, of)))
        }
        (Notation::Yaml, _) => {
            let yaml = serde_norway::to_string(&sorted(value.clone())).unwrap_or_default();
            with_type(code, "application/yaml", full(yaml))
        }
        (Notation::Json | Notation::Protobuf, _) => json(code, value),
    }
}

/// YAML keys are sorted.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<String, Value> =
                fields.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        plain => plain,
    }
}

/// A Status of a success or a failure.
pub(crate) fn status(code: u16, notation: Notation, status: &Value) -> Response<Body> {
    document(code, notation, status, Node::message("meta.v1.Status").as_ref())
}

pub(crate) fn error(error: &StatusError, notation: Notation) -> Response<Body> {
    let mut response = status(error.code, notation, &error.to_status());
    let retry_after = error.details.as_ref().and_then(|details| details.retry_after_seconds);
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
