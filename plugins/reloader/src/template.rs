//! The ConfigMaps and Secrets that a Pod template names.

use std::collections::BTreeSet;

use serde_json::Value;

/// What Pods read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    ConfigMap,
    Secret,
}

/// Where a part of a template names its sources: pointers to their names.
const IN_VOLUME: [(Source, &str); 2] =
    [(Source::ConfigMap, "/configMap/name"), (Source::Secret, "/secret/secretName")];
const IN_PROJECTION: [(Source, &str); 2] =
    [(Source::ConfigMap, "/configMap/name"), (Source::Secret, "/secret/name")];
const IN_ENV_FROM: [(Source, &str); 2] =
    [(Source::ConfigMap, "/configMapRef/name"), (Source::Secret, "/secretRef/name")];
const IN_ENV: [(Source, &str); 2] = [
    (Source::ConfigMap, "/valueFrom/configMapKeyRef/name"),
    (Source::Secret, "/valueFrom/secretKeyRef/name"),
];

/// Returns the names in the `spec` of a Pod template, sorted.
pub(crate) fn sources(pods: &Value) -> BTreeSet<(Source, String)> {
    let volumes = || items(&pods["volumes"]);
    let projections = volumes().flat_map(|volume| items(&volume["projected"]["sources"]));
    let containers = || items(&pods["containers"]).chain(items(&pods["initContainers"]));
    named(volumes(), IN_VOLUME)
        .chain(named(projections, IN_PROJECTION))
        .chain(named(containers().flat_map(|it| items(&it["envFrom"])), IN_ENV_FROM))
        .chain(named(containers().flat_map(|it| items(&it["env"])), IN_ENV))
        .collect()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn named<'a>(
    parts: impl Iterator<Item = &'a Value>,
    places: [(Source, &'static str); 2],
) -> impl Iterator<Item = (Source, String)> {
    parts.flat_map(move |part| {
        places
            .into_iter()
            .filter_map(move |(source, pointer)| Some((source, part.pointer(pointer)?.as_str()?.to_owned())))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_place_that_names_a_source_is_found_once() {
        let pods = json!({
            "volumes": [
                {"configMap": {"name": "a"}},
                {"secret": {"secretName": "b"}},
                {"projected": {"sources": [{"configMap": {"name": "c"}}, {"secret": {"name": "d"}}]}},
                {"emptyDir": {}},
            ],
            "containers": [{
                "envFrom": [{"configMapRef": {"name": "e"}}, {"secretRef": {"name": "f"}}],
                "env": [
                    {"valueFrom": {"configMapKeyRef": {"name": "a", "key": "k"}}},
                    {"valueFrom": {"secretKeyRef": {"name": "g", "key": "k"}}},
                    {"value": "h"},
                ],
            }],
            "initContainers": [{"envFrom": [{"secretRef": {"name": "i"}}]}],
        });
        let found: Vec<_> =
            sources(&pods).into_iter().map(|(source, name)| format!("{source:?} {name}")).collect();
        assert_eq!(
            found,
            [
                "ConfigMap a",
                "ConfigMap c",
                "ConfigMap e",
                "Secret b",
                "Secret d",
                "Secret f",
                "Secret g",
                "Secret i",
            ]
        );
        assert!(sources(&Value::Null).is_empty());
    }
}
