//! The content of a copy, and the source that it belongs to.

use std::collections::BTreeSet;

use oarlock_sdk::{Error, event};
use serde_json::{Map, Value, json};

use crate::kind::Kind;
use crate::source::SourceKey;

/// The annotation of a copy: `namespace/name` of its source. mirror never changes an object without it.
pub(crate) const MIRRORED_FROM: &str = "oarlock.dev/mirrored-from";
pub(crate) const MIRRORED_FROM_POINTER: &str = "/metadata/annotations/oarlock.dev~1mirrored-from";

const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Returns the copy of `source` for a namespace.
pub(crate) fn of(kind: Kind, source: &Value, key: &SourceKey, namespace: &str) -> Value {
    let mut copy = json!({
        "apiVersion": "v1",
        "kind": kind.name(),
        "metadata": {
            "name": key.name,
            "namespace": namespace,
            "labels": {MANAGED_BY: "oarlock-mirror"},
            "annotations": {MIRRORED_FROM: key.annotation()},
        },
    });
    for &field in kind.content().iter().chain(&["type"]) {
        if let Some(value) = source.get(field) {
            copy[field] = value.clone();
        }
    }
    copy
}

/// Returns whether the object is annotated as a copy of this source.
pub(crate) fn belongs_to(object: &Value, source: &SourceKey) -> bool {
    object["metadata"]["annotations"][MIRRORED_FROM].as_str() == Some(&source.annotation())
}

/// Returns whether the type of a Secret differs. The API server does not allow to change it, so the copy must
/// be created again.
pub(crate) fn is_of_another_type(copy: &Value, source: &Value) -> bool {
    copy.get("type") != source.get("type")
}

/// Returns the merge patch that makes a copy equal to its source, or `None` if it is equal already.
pub(crate) fn difference(kind: Kind, copy: &Value, source: &Value) -> Option<Value> {
    let mut patch = Map::new();
    for &field in kind.content() {
        let changes = map_difference(&copy[field], &source[field]);
        if !changes.is_empty() {
            patch.insert(field.to_owned(), Value::Object(changes));
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

fn map_difference(old: &Value, new: &Value) -> Map<String, Value> {
    let empty = Map::new();
    let old = old.as_object().unwrap_or(&empty);
    let new = new.as_object().unwrap_or(&empty);
    let removed = old.keys().filter(|&name| !new.contains_key(name)).map(|name| (name.clone(), Value::Null));
    let changed = new.iter().filter(|&(name, value)| old.get(name) != Some(value));
    removed.chain(changed.map(|(name, value)| (name.clone(), value.clone()))).collect()
}

/// Returns the source that the copy in the current notification names.
pub(crate) fn source_in_event(which: event::Version) -> Result<Option<SourceKey>, Error> {
    let annotation: Option<String> = event::field(which, MIRRORED_FROM_POINTER)?;
    Ok(annotation.as_deref().and_then(SourceKey::parse))
}

/// Returns the sources that the copies of this kind name. Some may not exist any more.
pub(crate) fn all_sources(kind: Kind) -> Result<BTreeSet<SourceKey>, Error> {
    Ok(kind.copies_index().values()?.iter().filter_map(|value| SourceKey::parse(value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_content_and_the_origin_of_its_source_only() {
        let source = json!({"metadata": {"name": "settings", "namespace": "home", "uid": "1",
            "annotations": {"oarlock.dev/mirror-to": "*"}}, "data": {"a": "1"}, "immutable": true});
        let key = SourceKey { namespace: "home".into(), name: "settings".into() };
        let copy = of(Kind::ConfigMap, &source, &key, "team-a");
        assert_eq!(
            copy,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": "settings", "namespace": "team-a", "labels": {MANAGED_BY: "oarlock-mirror"},
            "annotations": {MIRRORED_FROM: "home/settings"}}, "data": {"a": "1"}})
        );
        assert!(belongs_to(&copy, &key));
    }

    #[test]
    fn the_patch_sets_changed_fields_and_nulls_removed_ones() {
        let copy = json!({"data": {"a": "1", "b": "2", "c": "3"}});
        let source = json!({"data": {"a": "1", "b": "two", "d": "4"}});
        let patch = difference(Kind::ConfigMap, &copy, &source);
        assert_eq!(patch, Some(json!({"data": {"b": "two", "c": null, "d": "4"}})));
        assert_eq!(difference(Kind::ConfigMap, &copy, &copy), None);
    }
}
