//! `/openapi/v2`: all group versions in one Swagger document, as JSON or in gnostic's Protobuf, the only form
//! that client-go accepts.

mod gnostic;

use super::paths;
use super::schemas::{self, Dialect};
use crate::catalog::Served;
use crate::negotiation::media_ranges;
use crate::respond::{self, Body};
use crate::status::StatusError;
use http::{HeaderMap, Response};
use serde_json::{Map, Value, json};

/// Clients send either of two spellings of the media type.
const PROTOBUF: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
];

/// Answers `/openapi/v2`.
pub(super) fn answer(served: &Served, headers: &HeaderMap) -> Result<Response<Body>, StatusError> {
    let ranges = media_ranges(headers);
    let mut wanted = ranges.iter().map(|range| range.media_type);
    let is_json = |media_type: &str| matches!(media_type, "application/json" | "application/*" | "*/*");
    match wanted.find(|media_type| is_json(media_type) || PROTOBUF.contains(media_type)) {
        Some(media_type) if PROTOBUF.contains(&media_type) => {
            let bytes = gnostic::encode(&document(served));
            Ok(respond::with_type(200, PROTOBUF[0], respond::full(bytes)))
        }
        None if !ranges.is_empty() => Err(StatusError::not_acceptable(&["application/json", PROTOBUF[0]])),
        _ => Ok(respond::json(200, &document(served))),
    }
}

fn document(served: &Served) -> Value {
    let mut paths = Map::new();
    let mut definitions = Map::new();
    for gv in served.group_versions() {
        paths.extend(paths::of(&gv, Dialect::V2));
        definitions.extend(schemas::of(&gv.resources, Dialect::V2));
    }
    json!({
        "swagger": "2.0", "info": {"title": "Kubernetes", "version": crate::service::VERSION},
        "paths": paths, "definitions": definitions,
    })
}
