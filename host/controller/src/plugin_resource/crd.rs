//! The CustomResourceDefinitions of the two kinds, from their types.

use kube::CustomResourceExt;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::types::{ClusterPlugin, ClusterPluginSpec, Plugin, PluginSpec, PluginStatus};

/// The rule for the name of an object: the host's name of the plugin is made of it.
const NAME_RULE: &str = r"self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && self.metadata.name.size() <= 63 && self.metadata.name != 'shadow'";

/// Returns both definitions, in the order in which they are applied.
#[must_use]
pub fn definitions() -> Vec<Value> {
    vec![
        completed(
            json!(Plugin::crd()),
            schema_of::<PluginSpec>(),
            "A plugin that acts as a ServiceAccount of its namespace.",
        ),
        completed(
            json!(ClusterPlugin::crd()),
            schema_of::<ClusterPluginSpec>(),
            "A plugin that acts as a ServiceAccount of the host's namespace.",
        ),
    ]
}

/// Completes a definition: with the schema, and the rule for names.
///
/// `kube` would make the schema itself, but it does not know a size, which is a number or a text.
fn completed(mut definition: Value, spec: Value, description: &str) -> Value {
    let schema = json!({
        "type": "object",
        "description": description,
        "required": ["spec"],
        "properties": { "spec": spec, "status": schema_of::<PluginStatus>() },
        "x-kubernetes-validations": [{ "rule": NAME_RULE, "message": "the name must be a DNS label other than shadow" }],
    });
    for version in
        definition.pointer_mut("/spec/versions").and_then(Value::as_array_mut).into_iter().flatten()
    {
        version["schema"] = json!({ "openAPIV3Schema": schema });
    }
    definition
}

/// Returns the structural schema of a type.
fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    make_structural(&mut schema, false);
    schema
}

/// Replaces what JSON Schema has and structural schemas do not have. A default inside of `limits`,
/// `instances`, `probation` and `retry` is left out: it is the host's, and may change with its version.
fn make_structural(schema: &mut Value, is_within_settings: bool) {
    let Value::Object(object) = schema else { return };
    object.remove("title");
    // An optional member: its schema, or null.
    if let Some(Value::Array(mut choices)) = object.remove("anyOf")
        && let Some(Value::Object(only)) = choices.pop().filter(|_| choices.is_empty())
    {
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
    if let Some(range) = object.remove("x-range").as_ref().and_then(Value::as_str) {
        let description = object.get("description").and_then(Value::as_str).unwrap_or_default();
        let description = format!("{description} Range: {range}.").trim_start().to_owned();
        object.insert("description".to_owned(), Value::String(description));
    }
    if is_within_settings {
        object.remove("default");
    }
    if object.get("type").is_some_and(Value::is_array) {
        // A size: a number, or a text with a unit.
        for key in ["type", "format", "minimum"] {
            object.remove(key);
        }
        object.insert("x-kubernetes-int-or-string".to_owned(), Value::Bool(true));
    }
    match object.get("format").and_then(Value::as_str) {
        Some("uint8" | "uint16" | "int8" | "int16") => set_format(object, "int32"),
        Some("uint32" | "uint64" | "uint") => set_format(object, "int64"),
        Some("int32" | "int64" | "double" | "date-time") | None => {}
        Some(_) => _ = object.remove("format"),
    }
    if object.contains_key("properties") {
        // Unknown members are pruned. The API server refuses a schema that forbids them.
        object.remove("additionalProperties");
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        for (name, property) in properties {
            let is_settings = matches!(name.as_str(), "limits" | "instances" | "probation" | "retry");
            if is_settings && let Value::Object(property) = property {
                property.remove("default");
            }
            make_structural(property, is_within_settings || is_settings);
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = object.get_mut(key) {
            make_structural(inner, is_within_settings);
        }
    }
}

fn set_format(object: &mut Map<String, Value>, format: &str) {
    object.insert("format".to_owned(), Value::String(format.to_owned()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin_schema() -> Value {
        let definition = definitions().remove(0);
        definition.pointer("/spec/versions/0/schema/openAPIV3Schema").unwrap().clone()
    }

    /// Calls `visit` with each schema in a schema, and its path.
    fn walk(path: &str, schema: &Value, visit: &mut impl FnMut(&str, &Value)) {
        visit(path, schema);
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            walk(&format!("{path}.{name}"), property, visit);
        }
        if schema["items"].is_object() {
            walk(&format!("{path}[]"), &schema["items"], visit);
        }
    }

    #[test]
    fn every_schema_is_structural_and_described() {
        for definition in definitions() {
            let schema = definition.pointer("/spec/versions/0/schema/openAPIV3Schema").unwrap();
            walk("", schema, &mut |path, schema| {
                let object = schema.as_object().unwrap();
                for key in ["anyOf", "oneOf", "allOf", "not", "$ref", "x-range", "const"] {
                    assert!(!object.contains_key(key), "{path}: {key}");
                }
                let is_size = object.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
                let has_type = object.get("type").is_some_and(Value::is_string);
                assert!(has_type || is_size, "{path}: {object:?}");
                if !path.is_empty() && !path.ends_with("[]") {
                    assert!(object.contains_key("description"), "{path}");
                }
            });
        }
    }

    #[test]
    fn both_kinds_have_the_same_spec_and_status() {
        let both = definitions();
        let [plugin, cluster_plugin] = [&both[0], &both[1]]
            .map(|it| it.pointer("/spec/versions/0/schema/openAPIV3Schema/properties").unwrap());
        assert_eq!(plugin["status"], cluster_plugin["status"]);
        assert_eq!(plugin["spec"]["properties"], cluster_plugin["spec"]["properties"]);
        assert_eq!(plugin["spec"]["required"], cluster_plugin["spec"]["required"]);
    }

    #[test]
    fn defaults_of_the_host_are_not_stored_in_objects() {
        let mut defaults = Vec::new();
        walk("", &plugin_schema(), &mut |path, schema| {
            if let Some(default) = schema.get("default") {
                defaults.push(format!("{path}={default}"));
            }
        });
        let of_limits: Vec<_> = defaults.iter().filter(|it| it.contains("limits")).collect();
        assert!(of_limits.is_empty(), "{of_limits:?}");
        // It may be above the maximum of the host.
        assert!(!defaults.iter().any(|it| it.starts_with(".spec.weight")), "{defaults:?}");
        // The least value, which no maximum is below.
        assert!(defaults.contains(&".spec.concurrency=1".to_owned()), "{defaults:?}");
    }
}
