//! `/openapi/v3`, as far as kubectl needs it to create and apply: the paths of each group version, with the parameters
//! that they take. There are no schemas of types in it, so `kubectl explain` finds nothing, and `/openapi/v2`, which
//! kubectl speaks in Protobuf only, is not served at all.

use crate::catalog::{GroupVersion, Served};
use crate::discovery::REVIEWS;
use crate::resource::Resource;
use crate::respond::{self, Body};
use http::Response;
use serde_json::{Map, Value, json};

/// Answers below `/openapi/v3`; `None` for what is not there.
pub(crate) fn answer(served: &Served, path: &str) -> Option<Response<Body>> {
    let path = path.strip_prefix("/openapi/v3")?.trim_matches('/');
    let versions = served.group_versions();
    if path.is_empty() {
        let paths: Map<String, Value> = versions
            .iter()
            .map(|gv| {
                let root = root(gv);
                (root.clone(), json!({"serverRelativeURL": format!("/openapi/v3/{root}")}))
            })
            .collect();
        return Some(respond::json(200, &json!({"paths": paths})));
    }
    let gv = versions.iter().find(|gv| root(gv) == path)?;
    Some(respond::json(200, &document(gv)))
}

fn root(gv: &GroupVersion<'_>) -> String {
    match gv.group {
        "" => format!("api/{}", gv.version),
        group => format!("apis/{group}/{}", gv.version),
    }
}

fn document(gv: &GroupVersion<'_>) -> Value {
    let mut paths = Map::new();
    let root = root(gv);
    for resource in &gv.resources {
        let collection = if resource.namespaced {
            format!("/{root}/namespaces/{{namespace}}/{}", resource.plural)
        } else {
            format!("/{root}/{}", resource.plural)
        };
        let object = format!("{collection}/{{name}}");
        if resource.has_status {
            paths.insert(format!("{object}/status"), object_path(resource));
        }
        paths.insert(object, object_path(resource));
        paths.insert(collection, json!({"get": read(resource, "list"), "post": write(resource, "post")}));
    }
    for (group, plural, kind, namespaced) in REVIEWS.iter().filter(|(group, ..)| *group == gv.group) {
        let at = if *namespaced {
            format!("/{root}/namespaces/{{namespace}}/{plural}")
        } else {
            format!("/{root}/{plural}")
        };
        let operation = json!({
            "parameters": write_parameters(), "responses": {"201": {"description": "Created"}},
            "x-kubernetes-action": "post",
            "x-kubernetes-group-version-kind": {"group": group, "version": gv.version, "kind": kind},
        });
        paths.insert(at, json!({"post": operation}));
    }
    json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths, "components": {"schemas": {}},
    })
}

fn object_path(resource: &Resource) -> Value {
    json!({
        "get": read(resource, "get"), "put": write(resource, "put"), "patch": write(resource, "patch"),
        "delete": write(resource, "delete"),
    })
}

fn read(resource: &Resource, action: &str) -> Value {
    json!({
        "responses": {"200": {"description": "OK"}}, "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": kind(resource),
    })
}

fn write(resource: &Resource, action: &str) -> Value {
    let mut operation = read(resource, action);
    operation["parameters"] = write_parameters();
    if action == "patch" {
        // Strategic merge patch is taken, but not announced: without schemas kubectl must use the types it has built in.
        let types =
            ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
        let content: Map<String, Value> =
            types.iter().map(|name| ((*name).to_owned(), json!({"schema": {}}))).collect();
        operation["requestBody"] = json!({"content": content, "required": true});
    }
    operation
}

fn kind(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

fn write_parameters() -> Value {
    let names = ["dryRun", "fieldManager", "fieldValidation", "force"];
    names.iter().map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}})).collect()
}
