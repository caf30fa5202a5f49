//! The schemas of a group version's objects, and of all types that they use.

use super::descriptions;
use crate::resource::Resource;
use crate::schema::{ListKind, Node, Shape, Struct, StructRef};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// OpenAPI 3.0, or 2.0 (Swagger), which can express less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    V2,
    V3,
}

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// Returns the name of a resource's schema: `io.k8s.api.apps.v1.Deployment`, `dev.sea.v1.Ship`.
pub(super) fn name_of(resource: &Resource) -> String {
    match (&resource.custom, resource.model.builtin_type()) {
        (None, Some(name)) => full_name(name),
        _ => {
            let group: Vec<&str> = resource.group.rsplit('.').collect();
            format!("{}.{}.{}", group.join("."), resource.version, resource.kind)
        }
    }
}

/// Returns the schemas of these resources and of their lists, with all schemas that they refer to.
pub(super) fn of(resources: &[&Arc<Resource>], dialect: Dialect) -> Map<String, Value> {
    let mut schemas = Schemas { dialect, found: BTreeMap::new() };
    for resource in resources {
        schemas.add_resource(resource);
    }
    schemas.found.into_iter().collect()
}

/// The names in the table of types lack their common prefixes.
fn full_name(short: &str) -> String {
    let prefix = match short.split('.').next() {
        Some("meta") => "io.k8s.apimachinery.pkg.apis",
        Some("apiextensions") => "io.k8s.apiextensions-apiserver.pkg.apis",
        _ => "io.k8s.api",
    };
    format!("{prefix}.{short}")
}

struct Schemas {
    dialect: Dialect,
    found: BTreeMap<String, Value>,
}

// === impl Schemas ===

impl Schemas {
    fn add_resource(&mut self, resource: &Resource) {
        let name = name_of(resource);
        let gvk = |kind: &str| json!([{"group": resource.group, "kind": kind, "version": resource.version}]);
        if resource.custom.is_some() {
            let schema = self.custom(resource);
            self.found.insert(name.clone(), schema);
        } else if let Shape::Struct(of) = &resource.model.root().shape {
            self.add_struct(of.get());
        }
        if let Some(schema) = self.found.get_mut(&name) {
            schema["x-kubernetes-group-version-kind"] = gvk(&resource.kind);
        }
        self.add_type(&format!("{META}.ListMeta"));
        let list = json!({
            "description": format!("{} is a list of {}", resource.list_kind, resource.kind),
            "type": "object", "required": ["items"],
            "properties": {
                "apiVersion": self.type_field("apiVersion"), "kind": self.type_field("kind"),
                "metadata": self.refer(&format!("{META}.ListMeta"), Some("Standard list metadata.")),
                "items": {"type": "array", "items": self.refer(&name, None), "description": "List of objects."},
            },
            "x-kubernetes-group-version-kind": gvk(&resource.list_kind),
        });
        self.found.insert(format!("{name}List"), list);
    }

    /// Adds a type by its full name: a struct of the table, or a type that is a scalar in JSON.
    fn add_type(&mut self, name: &str) {
        let short = name.trim_start_matches("io.k8s.apimachinery.pkg.apis.");
        if let Some(of) = StructRef::named(short) {
            self.add_struct(of.get());
            return;
        }
        let Some(described) = descriptions::of(name) else { return };
        let description = described.get("description").cloned().unwrap_or_default();
        let schema = match (name, self.dialect) {
            (INT_OR_STRING, Dialect::V2) => json!({"type": "string", "format": "int-or-string"}),
            (INT_OR_STRING, Dialect::V3) => {
                json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
            }
            (QUANTITY, Dialect::V2) => json!({"type": "string"}),
            (QUANTITY, Dialect::V3) => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            _ => {
                let mut schema = described.clone();
                self.rewrite(&mut schema);
                schema
            }
        };
        let schema = self.found.entry(name.to_owned()).or_insert(schema);
        schema["description"] = description;
    }

    fn add_struct(&mut self, of: &Struct) {
        let name = full_name(&of.name);
        if self.found.contains_key(&name) {
            return;
        }
        // Types may refer to themselves.
        self.found.insert(name.clone(), Value::Null);
        let described = descriptions::of(&name).unwrap_or(&Value::Null);
        let mut properties = Map::new();
        for (field, node) in &of.fields {
            properties.insert(field.clone(), self.place(node, &described["properties"][field]));
        }
        let required: Vec<&String> =
            of.fields.iter().filter(|(_, node)| node.required).map(|(name, _)| name).collect();
        let mut schema = json!({"type": "object", "properties": properties});
        if let Some(description) = described.get("description") {
            schema["description"] = description.clone();
        }
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        self.found.insert(name, schema);
    }

    /// Returns the schema of one field of a built-in type; `described` is k8s-openapi's schema.
    fn place(&mut self, node: &Node, described: &Value) -> Value {
        let description = described["description"].as_str();
        let mut schema = match &node.shape {
            Shape::Struct(of) => {
                self.add_struct(of.get());
                self.refer(&full_name(&of.get().name), description)
            }
            Shape::IntOrString => self.refer(INT_OR_STRING, description),
            Shape::Quantity => self.refer(QUANTITY, description),
            Shape::Time => self.refer(&format!("{META}.Time"), description),
            Shape::MicroTime => self.refer(&format!("{META}.MicroTime"), description),
            Shape::String => json!({"type": "string"}),
            Shape::Bytes => json!({"type": "string", "format": "byte"}),
            Shape::Boolean => json!({"type": "boolean"}),
            Shape::Integer => scalar("integer", described, "int32"),
            Shape::Number => scalar("number", described, "double"),
            Shape::Map(value) => {
                let inner = self.place(value, &described["additionalProperties"]);
                json!({"type": "object", "additionalProperties": inner})
            }
            Shape::List(item) => {
                let inner = self.place(item, &described["items"]);
                json!({"type": "array", "items": inner})
            }
            Shape::Any => {
                let mut schema = described.clone();
                self.rewrite(&mut schema);
                if schema.is_object() { schema } else { json!({}) }
            }
        };
        if let Some(description) = description {
            schema["description"] = description.into();
        }
        if let Some(default) = &node.default {
            schema["default"] = default.clone();
        }
        write_merge_extensions(&mut schema, node);
        schema
    }

    /// Returns a reference. OpenAPI 3 allows no fields beside a reference, so a described reference is in an
    /// `allOf`.
    fn refer(&mut self, name: &str, description: Option<&str>) -> Value {
        if !self.found.contains_key(name) {
            self.add_type(name);
        }
        let reference = json!({"$ref": self.dialect.reference(name)});
        match (self.dialect, description) {
            (_, None) => reference,
            (Dialect::V2, Some(description)) => {
                json!({"$ref": reference["$ref"], "description": description})
            }
            (Dialect::V3, Some(description)) => json!({"allOf": [reference], "description": description}),
        }
    }

    /// Rewrites the references in k8s-openapi's schemas to this document, and adds the schemas that they
    /// name.
    fn rewrite(&mut self, schema: &mut Value) {
        match schema {
            Value::Object(map) => {
                if let Some(Value::String(reference)) = map.get("$ref") {
                    let name = reference.rsplit('/').next().unwrap_or_default().to_owned();
                    let description = map.get("description").and_then(Value::as_str).map(str::to_owned);
                    *schema = self.refer(&name, description.as_deref());
                    return;
                }
                map.values_mut().for_each(|value| self.rewrite(value));
            }
            Value::Array(list) => list.iter_mut().for_each(|value| self.rewrite(value)),
            _ => {}
        }
    }

    fn type_field(&self, name: &str) -> Value {
        let described = descriptions::of("io.k8s.api.core.v1.ConfigMap").unwrap_or(&Value::Null);
        json!({"type": "string", "description": described["properties"][name]["description"]})
    }

    fn custom(&mut self, resource: &Resource) -> Value {
        let mut schema = resource.model.custom_schema().cloned().unwrap_or_else(|| json!({"type": "object"}));
        if self.dialect == Dialect::V2 {
            remove_unsupported_in_v2(&mut schema);
        }
        let metadata = self.refer(
            &format!("{META}.ObjectMeta"),
            Some("Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"),
        );
        let fields = [
            ("apiVersion", self.type_field("apiVersion")),
            ("kind", self.type_field("kind")),
            ("metadata", metadata),
        ];
        if !schema["properties"].is_object() {
            schema["properties"] = json!({});
        }
        for (name, of) in fields {
            schema["properties"][name] = of;
        }
        schema
    }
}

fn scalar(kind: &str, described: &Value, format: &str) -> Value {
    json!({"type": kind, "format": described["format"].as_str().unwrap_or(format)})
}

fn write_merge_extensions(schema: &mut Value, node: &Node) {
    if matches!(node.shape, Shape::List(_)) {
        match &node.list {
            ListKind::Atomic => schema["x-kubernetes-list-type"] = "atomic".into(),
            ListKind::Set => schema["x-kubernetes-list-type"] = "set".into(),
            ListKind::Map(keys) => {
                schema["x-kubernetes-list-type"] = "map".into();
                schema["x-kubernetes-list-map-keys"] = json!(keys);
            }
        }
    } else if node.atomic {
        schema["x-kubernetes-map-type"] = "atomic".into();
    }
    if let Some(merge) = &node.merge {
        let words = [(merge.merge, "merge"), (merge.retain_keys, "retainKeys")];
        let strategy: Vec<&str> = words.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
        schema["x-kubernetes-patch-strategy"] = strategy.join(",").into();
        if let Some(key) = &merge.key {
            schema["x-kubernetes-patch-merge-key"] = key.as_str().into();
        }
    }
}

/// Removes from a definition's schema what OpenAPI 2 cannot express.
fn remove_unsupported_in_v2(schema: &mut Value) {
    let is_nullable = schema.get("nullable") == Some(&Value::Bool(true));
    let keeps_unknown = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    let is_int_or_string = schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
    let Some(map) = schema.as_object_mut() else { return };
    for key in ["nullable", "oneOf", "anyOf", "allOf", "not", "x-kubernetes-validations"] {
        map.shift_remove(key);
    }
    if is_nullable || keeps_unknown || is_int_or_string {
        // A client that checks types must not refuse values that the server accepts.
        map.shift_remove("type");
        if keeps_unknown || is_nullable {
            map.shift_remove("items");
            map.shift_remove("properties");
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(key) {
            remove_unsupported_in_v2(inner);
        }
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(remove_unsupported_in_v2);
    }
}

// === impl Dialect ===

impl Dialect {
    /// Returns the path of a schema in the document.
    pub(super) fn reference(self, name: &str) -> String {
        match self {
            Self::V2 => format!("#/definitions/{name}"),
            Self::V3 => format!("#/components/schemas/{name}"),
        }
    }

    pub(super) fn response(self, description: &str, schema: Value) -> Value {
        match self {
            Self::V2 => json!({"description": description, "schema": schema}),
            Self::V3 => {
                json!({"description": description, "content": {"application/json": {"schema": schema}}})
            }
        }
    }

    pub(super) fn query_parameter(self, name: &str) -> Value {
        match self {
            Self::V2 => json!({"name": name, "in": "query", "type": "string", "uniqueItems": true}),
            Self::V3 => json!({"name": name, "in": "query", "schema": {"type": "string"}}),
        }
    }

    /// Adds a body of these media types to an operation.
    pub(super) fn take_body(self, operation: &mut Value, media_types: &[&str], schema: Value) {
        match self {
            Self::V2 => {
                operation["consumes"] = json!(media_types);
                let body = json!({"name": "body", "in": "body", "required": true, "schema": schema});
                if let Some(parameters) = operation["parameters"].as_array_mut() {
                    parameters.push(body);
                }
            }
            Self::V3 => {
                let content: Map<String, Value> =
                    media_types.iter().map(|name| ((*name).to_owned(), json!({"schema": schema}))).collect();
                operation["requestBody"] = json!({"content": content, "required": true});
            }
        }
    }
}
