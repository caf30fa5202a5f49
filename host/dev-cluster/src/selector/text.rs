//! The selectors of workloads in the API's string syntax.

use serde_json::Value;

/// Writes a `metav1.LabelSelector`, or a map of labels, as text in the order of keys.
pub(crate) fn label_text(selector: &Value) -> String {
    let is_struct = selector.get("matchLabels").is_some_and(Value::is_object)
        || selector.get("matchExpressions").is_some_and(Value::is_array);
    let labels = if is_struct { selector.get("matchLabels") } else { Some(selector) };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let mut found: Vec<(String, String)> =
        labels.map(|(key, value)| (key.clone(), format!("{key}={}", text(value)))).collect();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for expression in expressions.into_iter().flatten() {
        let key = text(&expression["key"]);
        let mut values: Vec<String> =
            expression["values"].as_array().into_iter().flatten().map(&text).collect();
        values.sort();
        let values = values.join(",");
        let requirement = match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.clone(),
        };
        found.push((key, requirement));
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found.into_iter().map(|(_, requirement)| requirement).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_are_written_in_order_of_keys() {
        let selector = json!({
            "matchLabels": {"b": "2", "a": "1"},
            "matchExpressions": [
                {"key": "ab", "operator": "In", "values": ["y", "x"]}, {"key": "c", "operator": "Exists"},
                {"key": "d", "operator": "DoesNotExist"}, {"key": "e", "operator": "NotIn", "values": ["z"]},
            ],
        });
        assert_eq!(label_text(&selector), "a=1,ab in (x,y),b=2,c,!d,e notin (z)");
        assert_eq!(label_text(&json!({"app": "web"})), "app=web");
        assert_eq!(label_text(&json!({})), "");
    }
}
