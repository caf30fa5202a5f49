//! The paths of a group version, with their parameters and bodies.

use super::root;
use super::schemas::{self, Dialect};
use crate::catalog::GroupVersion;
use crate::discovery::REVIEWS;
use crate::resource::Resource;
use serde_json::{Map, Value, json};

const APPLY: &str = "application/apply-patch+yaml";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

/// Returns the paths of one group version.
pub(super) fn of(gv: &GroupVersion<'_>, dialect: Dialect) -> Map<String, Value> {
    let mut paths = Map::new();
    let root = root(gv);
    for resource in &gv.resources {
        let collection = if resource.namespaced {
            paths.insert(
                format!("/{root}/{}", resource.plural),
                json!({"get": operation(resource, "list", dialect)}),
            );
            format!("/{root}/namespaces/{{namespace}}/{}", resource.plural)
        } else {
            format!("/{root}/{}", resource.plural)
        };
        let object = format!("{collection}/{{name}}");
        if resource.has_status {
            let verbs = ["get", "put", "patch"];
            paths.insert(format!("{object}/status"), item(resource, &verbs, dialect));
        }
        paths.insert(object, item(resource, &["get", "put", "patch", "delete"], dialect));
        let mut of_collection = item(resource, &["post"], dialect);
        of_collection["get"] = operation(resource, "list", dialect);
        if resource.verbs.contains(&"deletecollection") {
            of_collection["delete"] = operation(resource, "deletecollection", dialect);
        }
        paths.insert(collection, of_collection);
    }
    for (group, plural, kind, namespaced) in REVIEWS.iter().filter(|(group, ..)| *group == gv.group) {
        let at = if *namespaced {
            format!("/{root}/namespaces/{{namespace}}/{plural}")
        } else {
            format!("/{root}/{plural}")
        };
        let operation = json!({
            "parameters": write_parameters(dialect), "responses": {"201": {"description": "Created"}},
            "x-kubernetes-action": "post",
            "x-kubernetes-group-version-kind": {"group": group, "version": gv.version, "kind": kind},
        });
        paths.insert(at, json!({"post": operation}));
    }
    paths
}

fn item(resource: &Resource, verbs: &[&str], dialect: Dialect) -> Value {
    verbs
        .iter()
        .map(|verb| ((*verb).to_owned(), operation(resource, verb, dialect)))
        .collect::<Map<_, _>>()
        .into()
}

fn operation(resource: &Resource, action: &str, dialect: Dialect) -> Value {
    let name = schemas::name_of(resource);
    let answer = match action {
        "list" => json!({"$ref": dialect.reference(&format!("{name}List"))}),
        _ => json!({"$ref": dialect.reference(&name)}),
    };
    let code = if action == "post" { "201" } else { "200" };
    let description = if action == "post" { "Created" } else { "OK" };
    let mut operation = json!({
        "responses": {code: dialect.response(description, answer)}, "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {
            "group": resource.group, "version": resource.version, "kind": resource.kind,
        },
    });
    if !matches!(action, "get" | "list") {
        operation["parameters"] = write_parameters(dialect);
    }
    let body = json!({"$ref": dialect.reference(&name)});
    match action {
        "post" | "put" => dialect.take_body(&mut operation, &["*/*"], body),
        "patch" => {
            let mut types = vec![APPLY, JSON_PATCH, MERGE_PATCH];
            if resource.custom.is_none() {
                types.push(STRATEGIC_PATCH);
            }
            dialect.take_body(&mut operation, &types, json!({"type": "object"}));
        }
        _ => {}
    }
    operation
}

fn write_parameters(dialect: Dialect) -> Value {
    let names = ["dryRun", "fieldManager", "fieldValidation", "force"];
    names.iter().map(|name| dialect.query_parameter(name)).collect()
}
