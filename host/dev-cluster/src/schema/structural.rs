//! Converts a CustomResourceDefinition's `openAPIV3Schema` to the types of patches, ownership and pruning.

use super::{ListKind, Node, Shape, Struct, StructRef};
use serde_json::Value;
use std::sync::Arc;

/// Returns the root type of one version of a custom resource. Without a schema every field is kept.
pub(crate) fn root_of_version(schema: Option<&Value>) -> StructRef {
    let mut root = match schema.map(|schema| node(schema).shape) {
        Some(Shape::Struct(StructRef::Own(root))) => (*root).clone(),
        _ => Struct { open: true, ..Struct::default() },
    };
    add_type_and_metadata(&mut root);
    StructRef::Own(Arc::new(root))
}

fn add_type_and_metadata(of: &mut Struct) {
    for name in ["apiVersion", "kind"] {
        let string = Node { shape: Shape::String, ..Node::default() };
        of.fields.insert(name.into(), string);
    }
    if let Some(metadata) = StructRef::named("meta.v1.ObjectMeta") {
        of.fields.insert("metadata".into(), metadata.into());
    }
}

fn node(schema: &Value) -> Node {
    let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
    let flag = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or_default();
    let mut node = Node { default: schema.get("default").cloned(), ..Node::default() };
    node.shape = match text("type") {
        _ if flag("x-kubernetes-int-or-string") => Shape::IntOrString,
        "object" => {
            node.atomic = text("x-kubernetes-map-type") == "atomic";
            object(schema)
        }
        "array" => {
            node.list = match text("x-kubernetes-list-type") {
                "set" => ListKind::Set,
                "map" => ListKind::Map(strings(schema.get("x-kubernetes-list-map-keys"))),
                _ => ListKind::Atomic,
            };
            Shape::List(Box::new(schema.get("items").map(self::node).unwrap_or_default()))
        }
        "string" => Shape::String,
        "integer" => Shape::Integer,
        "number" => Shape::Number,
        "boolean" => Shape::Boolean,
        _ => Shape::Any,
    };
    node
}

fn object(schema: &Value) -> Shape {
    let open = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    let properties = schema.get("properties").and_then(Value::as_object);
    match schema.get("additionalProperties") {
        Some(additional) if properties.is_none_or(serde_json::Map::is_empty) => match additional {
            Value::Bool(false) => {}
            Value::Bool(true) => return Shape::Map(Box::default()),
            value => return Shape::Map(Box::new(node(value))),
        },
        _ => {}
    }
    let mut fields = Struct { open, ..Struct::default() };
    let required = strings(schema.get("required"));
    for (name, property) in properties.into_iter().flatten() {
        let mut field = node(property);
        field.required = required.contains(name);
        fields.fields.insert(name.clone(), field);
    }
    if schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        add_type_and_metadata(&mut fields);
    }
    Shape::Struct(StructRef::Own(Arc::new(fields)))
}

fn strings(list: Option<&Value>) -> Vec<String> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}
