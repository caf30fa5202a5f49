//! Converts JSON to CEL values, by the schema.

use super::super::text;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// Returns a root schema with the fields that rules see in every object: type, name and generateName.
pub(super) fn with_type_and_metadata(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let string = json!({"type": "string"});
    let metadata =
        json!({"type": "object", "properties": {"name": string.clone(), "generateName": string.clone()}});
    if let Some(of) = schema.as_object_mut() {
        let properties = of.entry("properties").or_insert_with(|| json!({}));
        properties["apiVersion"] = string.clone();
        properties["kind"] = string;
        properties["metadata"] = metadata;
    }
    schema
}

/// Returns a schema with the types of `around`, and the rules and lists of `alternative`.
pub(super) fn overlaid(around: &Value, alternative: &Value) -> Value {
    let mut merged = around.clone();
    if let Some(merged) = merged.as_object_mut() {
        merged.shift_remove("allOf");
        if let Some(inner) = alternative.get("allOf") {
            merged.insert("allOf".into(), inner.clone());
        }
    }
    merged
}

/// Returns whether only the named fields can be selected from values of this schema.
pub(super) fn is_struct(schema: &Value) -> bool {
    schema.get("additionalProperties").is_none_or(|value| value == false)
        && schema.get("x-kubernetes-int-or-string").is_none()
}

/// Returns the CEL value of a JSON value.
pub(super) fn of(schema: &Value, value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(value) => cel::Value::Bool(*value),
        Value::Number(number) => match (text(schema, "/type"), number.as_i64()) {
            ("number", _) | (_, None) => cel::Value::Float(number.as_f64().unwrap_or_default()),
            (_, Some(integer)) => cel::Value::Int(integer),
        },
        Value::String(value) => of_string(schema, value),
        Value::Array(items) => {
            let inner = schema.get("items").unwrap_or(&Value::Null);
            cel::Value::List(Arc::new(items.iter().map(|item| of(inner, item)).collect()))
        }
        Value::Object(map) => of_object(schema, map),
    }
}

fn of_string(schema: &Value, value: &str) -> cel::Value {
    let string = || cel::Value::String(Arc::new(value.to_owned()));
    match text(schema, "/format") {
        "byte" => {
            STANDARD.decode(value).map_or_else(|_| string(), |bytes| cel::Value::Bytes(Arc::new(bytes)))
        }
        "date" => timestamp(&format!("{value}T00:00:00Z")).unwrap_or_else(string),
        "date-time" | "datetime" => timestamp(value).unwrap_or_else(string),
        "duration" => super::library::duration(value).unwrap_or_else(string),
        _ => string(),
    }
}

fn timestamp(text: &str) -> Option<cel::Value> {
    let rfc3339 = Arc::new(text.to_owned());
    super::library::convert("timestamp(self)", cel::Value::String(rfc3339))
}

fn of_object(schema: &Value, map: &Map<String, Value>) -> cel::Value {
    let embedded;
    let schema = if schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        embedded = with_type_and_metadata(schema);
        &embedded
    } else {
        schema
    };
    let mut fields: HashMap<String, cel::Value> = HashMap::with_capacity(map.len());
    let additional = schema.get("additionalProperties").filter(|additional| **additional != false);
    for (name, value) in map {
        let property = schema.get("properties").and_then(|properties| properties.get(name));
        match (property, additional) {
            (Some(property), _) => {
                // A null that the schema does not allow is an absent field.
                if !value.is_null() || property.get("nullable") == Some(&Value::Bool(true)) {
                    fields.insert(escaped(name), of(property, value));
                }
            }
            (None, Some(additional)) => {
                fields.insert(name.clone(), of(additional, value));
            }
            // Fields outside the schema are stored, but rules do not see them.
            (None, None) => {}
        }
    }
    cel::Value::Map(fields.into())
}

/// The reserved words of CEL.
const KEYWORDS: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
];

/// Returns the escaped name of a field in rules, as the Kubernetes documentation of validation rules defines
/// it.
pub(super) fn escaped(name: &str) -> String {
    if KEYWORDS.contains(&name) {
        return format!("__{name}__");
    }
    if name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return name.to_owned();
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

/// Returns the field of a schema by its escaped name.
pub(super) fn field<'a>(schema: &'a Value, escaped_name: &str) -> Option<&'a Value> {
    let properties = schema.get("properties")?.as_object()?;
    properties.iter().find(|(name, _)| escaped(name) == escaped_name).map(|(_, of)| of)
}

/// Returns the schema of a list's items or of a map's values.
pub(super) fn element(schema: &Value) -> Option<&Value> {
    schema.get("items").or_else(|| schema.get("additionalProperties")).filter(|of| of.is_object())
}

/// Returns whether the items of a list have an identity across updates, so that each has an `oldSelf`.
pub(in crate::crd) fn has_identity(schema: &Value) -> bool {
    text(schema, "/x-kubernetes-list-type") == "map"
}
