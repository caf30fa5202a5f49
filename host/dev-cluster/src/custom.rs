//! Turns a CustomResourceDefinition into the resources that it serves.

use crate::crd::{self, Definition, Version};
use crate::model::Model;
use crate::resource::{CUSTOM_VERBS, CustomVersion, Resource};
use crate::status::GroupResource;
use crate::subresources::{ScalePaths, SelectorAt};
use crate::table::Column;
use serde_json::Value;
use std::sync::Arc;

/// Returns a resource for each served version of an established definition, the preferred version first.
pub(crate) fn resources(definition: &Value) -> Vec<Resource> {
    if !crd::established(definition) {
        return Vec::new();
    }
    let written = definition;
    let definition = Definition::read(written);
    let stored = definition.storage_version().map(|version| version.name.clone()).unwrap_or_default();
    let served = definition.versions.iter().filter(|version| version.served);
    let mut resources: Vec<Resource> =
        served.filter_map(|version| resource(written, &definition, version, &stored)).collect();
    resources.sort_by_key(|resource| std::cmp::Reverse(priority(&resource.version)));
    resources
}

fn resource(
    written: &Value,
    definition: &Definition,
    version: &Version,
    stored_version: &str,
) -> Option<Resource> {
    let Definition { group, kind, list_kind, plural, singular, short_names, categories, namespaced, .. } =
        definition;
    let columns = version.columns.iter().map(|column| {
        let head = Column {
            name: column.name.clone(),
            kind: column.of_type.clone(),
            format: column.format.clone(),
            description: column.description.clone(),
            priority: column.priority,
        };
        (head, column.json_path.clone())
    });
    let path = |path: &String| path.trim_start_matches('.').to_owned();
    Some(Resource {
        group: group.clone(),
        version: version.name.clone(),
        plural: plural.clone(),
        singular: singular.clone(),
        kind: kind.clone(),
        list_kind: list_kind.clone(),
        namespaced: *namespaced,
        short_names: short_names.clone(),
        categories: categories.clone(),
        has_status: version.has_status,
        unconditional_update: false,
        create_on_update: false,
        returns_deleted: false,
        selectable: version.selectable_fields.iter().map(path).collect(),
        verbs: CUSTOM_VERBS,
        storage: GroupResource::new(group, plural),
        storage_api_version: format!("{group}/{stored_version}"),
        model: Model::custom(definition, &version.name)?,
        custom: Some(Arc::new(CustomVersion {
            columns: Some(columns.collect()).filter(|c: &Vec<_>| !c.is_empty()),
            scale: scale(written, &version.name),
        })),
        view: None,
    })
}

/// Returns the replica paths of a version's scale subresource.
fn scale(definition: &Value, version: &str) -> Option<ScalePaths> {
    let versions = definition.pointer("/spec/versions")?.as_array()?;
    let scale = versions.iter().find(|one| one["name"] == version)?.pointer("/subresources/scale")?;
    let pointer = |field: &str| {
        let path = scale.get(field).and_then(Value::as_str).filter(|path| !path.is_empty())?;
        Some(format!("/{}", path.trim_start_matches('.').replace('.', "/")))
    };
    Some(ScalePaths {
        spec_replicas: pointer("specReplicasPath")?,
        status_replicas: pointer("statusReplicasPath")?,
        selector: pointer("labelSelectorPath").map_or(SelectorAt::Nowhere, SelectorAt::Text),
    })
}

/// Orders versions as Kubernetes does: v2, v1, v1beta1, v1alpha2, then all other names alphabetically.
fn priority(version: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let by_name = std::cmp::Reverse(version.to_owned());
    let Some(rest) = version.strip_prefix('v') else {
        return (0, 0, 0, by_name);
    };
    let (stage, major, minor) = match (rest.split_once("beta"), rest.split_once("alpha")) {
        (Some((major, minor)), _) => (2, major, minor),
        (_, Some((major, minor))) => (1, major, minor),
        _ => (3, rest, "0"),
    };
    match (major.parse(), minor.parse()) {
        (Ok(major), Ok(minor)) => (stage, major, minor, by_name),
        _ => (0, 0, 0, by_name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_in_kubernetes() {
        let mut versions = ["foo1", "v1alpha1", "v11beta2", "v2", "v10", "v1", "v3beta1", "bar"];
        versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
        assert_eq!(versions, ["v10", "v2", "v1", "v11beta2", "v3beta1", "v1alpha1", "bar", "foo1"]);
    }
}
