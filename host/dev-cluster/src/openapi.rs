//! `/openapi/v3` and `/openapi/v2`: the served paths and the schemas of their objects.
//!
//! The schemas of built-in types come from the table that decodes requests (`schema/builtin.txt`), their
//! descriptions from the crate k8s-openapi. A custom resource has the schema of its definition.

mod descriptions;
mod paths;
mod schemas;
mod v2;

use crate::catalog::{GroupVersion, Served};
use crate::negotiation::media_ranges;
use crate::respond::{self, Body};
use crate::status::StatusError;
use http::{HeaderMap, Response};
use schemas::Dialect;
use serde_json::{Map, Value, json};

/// Answers below `/openapi`; `None` for an unknown path.
pub(crate) fn answer(
    served: &Served,
    path: &str,
    headers: &HeaderMap,
) -> Option<Result<Response<Body>, StatusError>> {
    if path.trim_end_matches('/') == "/openapi/v2" {
        return Some(v2::answer(served, headers));
    }
    let path = path.strip_prefix("/openapi/v3")?.trim_matches('/');
    let versions = served.group_versions();
    let document = if path.is_empty() {
        let paths = versions.iter().map(|gv| {
            let root = root(gv);
            (root.clone(), json!({"serverRelativeURL": format!("/openapi/v3/{root}")}))
        });
        json!({"paths": paths.collect::<Map<String, Value>>()})
    } else {
        document(versions.iter().find(|gv| root(gv) == path)?)
    };
    let takes_json = |media_type: &str| matches!(media_type, "application/json" | "application/*" | "*/*");
    let ranges = media_ranges(headers);
    if !ranges.is_empty() && !ranges.iter().any(|range| takes_json(range.media_type)) {
        return Some(Err(StatusError::not_acceptable(&["application/json"])));
    }
    Some(Ok(respond::json(200, &document)))
}

fn root(gv: &GroupVersion<'_>) -> String {
    match gv.group {
        "" => format!("api/{}", gv.version),
        group => format!("apis/{group}/{}", gv.version),
    }
}

fn document(gv: &GroupVersion<'_>) -> Value {
    json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": crate::service::VERSION},
        "paths": paths::of(gv, Dialect::V3),
        "components": {"schemas": schemas::of(&gv.resources, Dialect::V3)},
    })
}

#[cfg(test)]
mod tests;
