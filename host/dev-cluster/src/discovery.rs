//! Discovery: `/api`, `/apis`, and their groups and versions, each by itself or aggregated.

use crate::catalog::{GroupVersion, Served};
use crate::negotiation::media_ranges;
use crate::resource::Resource;
use crate::respond::{self, Body};
use crate::subresources;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Response};
use serde_json::{Value, json};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The resources that are answered but not stored: group, plural, kind, namespaced.
pub(crate) const REVIEWS: &[(&str, &str, &str, bool)] = &[
    ("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", false),
    ("authentication.k8s.io", "tokenreviews", "TokenReview", false),
    ("authorization.k8s.io", "localsubjectaccessreviews", "LocalSubjectAccessReview", true),
    ("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview", false),
    ("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview", false),
    ("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview", false),
];

/// Answers `/api`, `/apis`, `/apis/GROUP`, `/api/v1` and `/apis/GROUP/VERSION`; `None` for any other path.
pub(crate) fn answer(
    served: &Served,
    path: &str,
    headers: &HeaderMap,
    address: &str,
) -> Option<Response<Body>> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let wants_aggregated = media_ranges(headers).iter().any(|range| {
        range.media_type == "application/json"
            && range.parameter("g") == Some("apidiscovery.k8s.io")
            && range.parameter("v") == Some("v2")
            && range.parameter("as") == Some("APIGroupDiscoveryList")
    });
    let versions = served.group_versions();
    let answer = match parts.as_slice() {
        ["api"] | ["apis"] if wants_aggregated => {
            let legacy = parts == ["api"];
            let mut response = respond::json(200, &aggregated(&versions, legacy));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(AGGREGATED));
            return Some(response);
        }
        ["api"] => json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
        }),
        ["apis"] => {
            let groups: Vec<Value> =
                groups(&versions).into_iter().map(|name| group(&versions, name)).collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
        ["api", "v1"] => resource_list(versions.iter().find(|gv| gv.group.is_empty())?),
        ["apis", name] if groups(&versions).contains(name) => {
            let mut group = group(&versions, name);
            group["kind"] = "APIGroup".into();
            group["apiVersion"] = "v1".into();
            group
        }
        ["apis", group, version] => resource_list(
            versions.iter().find(|gv| !group.is_empty() && gv.group == *group && gv.version == *version)?,
        ),
        _ => return None,
    };
    Some(respond::json(200, &answer))
}

/// Returns the named groups, without duplicates.
fn groups<'a>(versions: &[GroupVersion<'a>]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for gv in versions.iter().filter(|gv| !gv.group.is_empty()) {
        if !names.contains(&gv.group) {
            names.push(gv.group);
        }
    }
    names
}

fn group(versions: &[GroupVersion<'_>], name: &str) -> Value {
    let of_group: Vec<Value> = versions
        .iter()
        .filter(|gv| gv.group == name)
        .map(|gv| json!({"groupVersion": format!("{name}/{}", gv.version), "version": gv.version}))
        .collect();
    json!({"name": name, "versions": of_group, "preferredVersion": of_group.first()})
}

fn resource_list(gv: &GroupVersion<'_>) -> Value {
    let mut entries = Vec::new();
    if gv.group.is_empty() {
        entries.push(json!({
            "name": "bindings", "singularName": "binding", "namespaced": true, "kind": "Binding", "verbs": ["create"],
        }));
    }
    for resource in &gv.resources {
        entries.push(entry(resource));
        for below in subresources::of(resource) {
            let mut entry = json!({
                "name": format!("{}/{}", resource.plural, below.name), "singularName": "",
                "namespaced": resource.namespaced, "kind": below.kind, "verbs": below.verbs,
            });
            if let Some((group, version)) = below.of {
                entry["group"] = group.into();
                entry["version"] = version.into();
            }
            entries.push(entry);
        }
    }
    for (_, plural, kind, namespaced) in REVIEWS.iter().filter(|(group, ..)| *group == gv.group) {
        entries.push(json!({
            "name": plural, "singularName": kind.to_lowercase(), "namespaced": namespaced, "kind": kind,
            "verbs": ["create"],
        }));
    }
    let group_version = match gv.group {
        "" => gv.version.to_owned(),
        group => format!("{group}/{}", gv.version),
    };
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries,
    })
}

fn entry(resource: &Resource) -> Value {
    let mut entry = json!({
        "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
        "kind": resource.kind, "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    entry
}

fn aggregated(versions: &[GroupVersion<'_>], legacy: bool) -> Value {
    let names = if legacy { vec![""] } else { groups(versions) };
    let items: Vec<Value> = names
        .into_iter()
        .map(|name| {
            let of_group: Vec<Value> =
                versions.iter().filter(|gv| gv.group == name).map(aggregated_version).collect();
            let metadata = if name.is_empty() { json!({}) } else { json!({"name": name}) };
            json!({"metadata": metadata, "versions": of_group})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    })
}

fn aggregated_version(gv: &GroupVersion<'_>) -> Value {
    let kind = |kind: &str| json!({"group": "", "version": "", "kind": kind});
    let scope = |namespaced: bool| if namespaced { "Namespaced" } else { "Cluster" };
    let mut resources: Vec<Value> = gv
        .resources
        .iter()
        .map(|resource| {
            let mut entry = json!({
                "resource": resource.plural, "responseKind": kind(&resource.kind),
                "scope": scope(resource.namespaced), "singularResource": resource.singular, "verbs": resource.verbs,
            });
            if !resource.short_names.is_empty() {
                entry["shortNames"] = json!(resource.short_names);
            }
            if !resource.categories.is_empty() {
                entry["categories"] = json!(resource.categories);
            }
            let below: Vec<Value> = subresources::of(resource)
                .into_iter()
                .map(|below| {
                    let (group, version) = below.of.unwrap_or_default();
                    let of = json!({"group": group, "version": version, "kind": below.kind});
                    json!({"subresource": below.name, "responseKind": of, "verbs": below.verbs})
                })
                .collect();
            if !below.is_empty() {
                entry["subresources"] = below.into();
            }
            entry
        })
        .collect();
    if gv.group.is_empty() {
        resources.insert(
            0,
            json!({
                "resource": "bindings", "responseKind": kind("Binding"), "scope": scope(true),
                "singularResource": "binding", "verbs": ["create"],
            }),
        );
    }
    for (_, plural, of, namespaced) in REVIEWS.iter().filter(|(group, ..)| *group == gv.group) {
        resources.push(json!({
            "resource": plural, "responseKind": kind(of), "scope": scope(*namespaced),
            "singularResource": of.to_lowercase(), "verbs": ["create"],
        }));
    }
    json!({"version": gv.version, "resources": resources, "freshness": "Current"})
}
