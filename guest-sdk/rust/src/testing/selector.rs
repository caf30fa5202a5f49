//! Selectors and patches, as far as unit tests need them.

use serde_json::{Map, Value};

/// Returns whether labels match a selector such as `app=web,tier in (a,b),!legacy`.
pub(super) fn matches_labels(selector: &str, object: &Value) -> bool {
    requirements(selector).iter().all(|requirement| {
        let label = |name: &str| object["metadata"]["labels"][name.trim()].as_str();
        let is_in = |name: &str, list: &str| {
            let list = list.trim().trim_start_matches('(').trim_end_matches(')');
            label(name).is_some_and(|value| list.split(',').any(|other| other.trim() == value))
        };
        if let Some((name, list)) = requirement.split_once(" notin ") {
            !is_in(name, list)
        } else if let Some((name, list)) = requirement.split_once(" in ") {
            is_in(name, list)
        } else if let Some((name, value)) = requirement.split_once("!=") {
            label(name) != Some(value.trim())
        } else if let Some((name, value)) = requirement.split_once('=') {
            label(name) == Some(value.trim_start_matches('=').trim())
        } else if let Some(name) = requirement.strip_prefix('!') {
            label(name).is_none()
        } else {
            label(requirement).is_some()
        }
    })
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

/// Returns the requirements, which are separated by the commas outside of parentheses.
fn requirements(selector: &str) -> Vec<&str> {
    let mut depth = 0;
    let parts = selector.split(move |character| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        character == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
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
        let object = json!({"metadata": {"name": "web", "labels": {"app": "web", "tier": "a"}}});
        for selector in ["", "app=web", "app==web,tier in (a, b),!legacy", "app!=db,app,tier notin (c,d)"] {
            assert!(matches_labels(selector, &object), "{selector}");
        }
        for selector in ["app=db", "legacy", "!app", "tier in (b,c)", "tier notin (a)", "app=web,app!=web"] {
            assert!(!matches_labels(selector, &object), "{selector}");
        }
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
