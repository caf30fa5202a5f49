//! The JSON paths of printer columns: `.spec.replicas`, `.status.conditions[0].type`,
//! `.status.conditions[?(@.type=="Ready")].status`.

use serde_json::Value;

/// Returns the first value at a path.
pub(super) fn first<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut at = object;
    let mut rest = path.trim();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let (inside, after) = after.split_once(']')?;
            at = element(at, inside)?;
            rest = after;
        } else {
            let step = rest.trim_start_matches('.');
            // Names may contain escaped dots, such as `.metadata.annotations.example\.com/x`.
            let end = step
                .char_indices()
                .find(|(i, c)| (*c == '.' && !step[..*i].ends_with('\\')) || *c == '[')
                .map_or(step.len(), |(i, _)| i);
            at = at.get(step[..end].replace("\\.", "."))?;
            rest = &step[end..];
        }
    }
    Some(at).filter(|value| !value.is_null())
}

fn element<'a>(value: &'a Value, inside: &str) -> Option<&'a Value> {
    if let Ok(at) = inside.parse::<usize>() {
        return value.get(at);
    }
    if let Some(name) = inside.strip_prefix('\'').and_then(|name| name.strip_suffix('\'')) {
        return value.get(name);
    }
    if inside == "*" {
        return value.get(0);
    }
    let condition = inside.strip_prefix("?(@")?.strip_suffix(')')?;
    let (path, wanted) = condition.split_once("==")?;
    let wanted = wanted.trim().trim_matches(['"', '\'']);
    value.as_array()?.iter().find(|item| first(item, path.trim()).and_then(Value::as_str) == Some(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_value_at_a_path_is_found() {
        let object = json!({"spec": {"n": 3}, "status": {"conditions": [
            {"type": "A", "status": "False"}, {"type": "Ready", "status": "True"}
        ]}, "metadata": {"annotations": {"a.b/c": "d"}}});
        assert_eq!(first(&object, ".spec.n"), Some(&json!(3)));
        assert_eq!(first(&object, ".status.conditions[0].type"), Some(&json!("A")));
        let ready = r#".status.conditions[?(@.type=="Ready")].status"#;
        assert_eq!(first(&object, ready), Some(&json!("True")));
        assert_eq!(first(&object, r".metadata.annotations.a\.b/c"), Some(&json!("d")));
        assert_eq!(first(&object, ".spec.missing"), None);
    }
}
