//! Selectors and patches, as far as unit tests need them.

use serde_json::{Map, Value};

use crate::selector::{self, requirements};

/// Returns whether the labels of an object match a selector.
pub(super) fn matches_labels(selector: &str, object: &Value) -> bool {
    selector::matches(selector, |name| object["metadata"]["labels"][name].as_str())
}

/// Returns whether an object matches a field selector such as `metadata.name=web,status.phase!=Running`.
pub(super) fn matches_fields(selector: &str, object: &Value) -> bool {
    requirements(selector).iter().all(|requirement| {
        let value = |path: &str| {
            let pointer = format!("/{}", path.trim().replace('.', "/"));
            match object.pointer(&pointer) {
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
                None => String::new(),
            }
        };
        match requirement.split_once("!=") {
            Some((path, other)) => value(path) != other.trim(),
            None => requirement
                .split_once('=')
                .is_some_and(|(path, other)| value(path) == other.trim_start_matches('=').trim()),
        }
    })
}

/// Applies a JSON merge patch (RFC 7396).
pub(super) fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(fields) = value else { return };
    for (name, change) in changes {
        if change.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name.clone()).or_insert(Value::Null), change);
        }
    }
}

/// Returns the scalars at a JSON pointer in which `*` stands for every element of a list.
pub(super) fn scalars(object: &Value, pointer: &str) -> Vec<String> {
    let mut found = vec![object];
    for segment in pointer.split('/').skip(1) {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        found = found
            .into_iter()
            .flat_map(|value| match value {
                Value::Array(elements) if segment == "*" => elements.iter().collect(),
                Value::Array(elements) => segment
                    .parse()
                    .ok()
                    .and_then(|idx: usize| elements.get(idx))
                    .into_iter()
                    .collect::<Vec<_>>(),
                value => value.get(&segment).into_iter().collect(),
            })
            .collect();
    }
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    };
    found.into_iter().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_are_those_of_kubernetes() {
        let object = json!({"metadata": {"name": "web", "labels": {"app": "web"}}});
        assert!(matches_labels("app=web", &object) && !matches_labels("app=db", &object));
        assert!(matches_fields("metadata.name=web,status.phase!=Running", &object));
        assert!(!matches_fields("metadata.name!=web", &object));
    }

    #[test]
    fn a_merge_patch_sets_and_removes_fields() {
        let mut value = json!({"a": {"b": 1, "c": 2}, "d": [1]});
        merge(&mut value, &json!({"a": {"b": null, "e": {"f": 3}}, "d": [2]}));
        assert_eq!(value, json!({"a": {"c": 2, "e": {"f": 3}}, "d": [2]}));
    }

    #[test]
    fn a_star_in_a_pointer_is_every_element() {
        let object = json!({"spec": {"volumes": [{"name": "a"}, {"name": "b"}, {}], "n": 1}});
        assert_eq!(scalars(&object, "/spec/volumes/*/name"), ["a", "b"]);
        assert_eq!(scalars(&object, "/spec/n"), ["1"]);
        assert_eq!(scalars(&object, "/spec"), [""; 0]);
    }
}
