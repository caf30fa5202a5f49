//! The defaults in a custom resource's schema.

use serde_json::Value;

/// Fills in the defaults of missing fields, outer objects first.
pub(crate) fn fill_in(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(map) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            for (name, property) in properties.into_iter().flatten() {
                let nullable = property.get("nullable") == Some(&Value::Bool(true));
                let missing = map.get(name).is_none_or(|value| value.is_null() && !nullable);
                if missing && let Some(default) = property.get("default") {
                    map.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in map.iter_mut() {
                let property = properties.and_then(|properties| properties.get(name));
                if let Some(schema) = property.or_else(|| schema.get("additionalProperties")) {
                    fill_in(schema, value);
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = schema.get("items") {
                list.iter_mut().for_each(|item| fill_in(items, item));
            }
        }
        _ => {}
    }
}
