//! Encodes JSON as Protobuf, like the Go types: fields in order of their numbers, maps in order of their
//! keys, and fields that are not pointers even if they are empty.

use super::MAGIC;
use super::wire::{put_bytes, put_double, put_varint};
use crate::schema::{Empty, Node, ProtoForm, Shape};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Returns an object in its envelope.
pub(crate) fn enveloped(object: &Value, of: &Node) -> Vec<u8> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    envelope(text("apiVersion"), text("kind"), &bare(object, of))
}

/// Returns an object without its envelope, as in a list.
pub(crate) fn bare(object: &Value, of: &Node) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    message(&mut out, object.as_object(), of, &[]);
    out
}

/// Returns a list of objects, in its envelope.
pub(crate) fn list(api_version: &str, kind: &str, metadata: &Value, items: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    let of_metadata = Node::message("meta.v1.ListMeta").unwrap_or_default();
    put_bytes(&mut out, 1, &bare(metadata, &of_metadata));
    for item in items {
        put_bytes(&mut out, 2, item);
    }
    envelope(api_version, kind, &out)
}

/// Returns an object's metadata as a PartialObjectMetadata, without an envelope.
pub(crate) fn partial_metadata(metadata: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    let of_metadata = Node::message("meta.v1.ObjectMeta").unwrap_or_default();
    put_bytes(&mut out, 1, &bare(metadata, &of_metadata));
    out
}

/// Returns the result of [`partial_metadata`] in its envelope.
pub(crate) fn partial_metadata_enveloped(bare: &[u8]) -> Vec<u8> {
    envelope("meta.k8s.io/v1", "PartialObjectMetadata", bare)
}

/// Returns one watch event with an enveloped object, length-delimited.
pub(crate) fn event(kind: &str, object: &[u8]) -> Vec<u8> {
    let mut raw = Vec::with_capacity(object.len() + 8);
    put_bytes(&mut raw, 1, object);
    let mut event = Vec::with_capacity(raw.len() + 16);
    put_bytes(&mut event, 1, kind.as_bytes());
    put_bytes(&mut event, 2, &raw);
    let mut framed = u32::try_from(event.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    framed.extend_from_slice(&event);
    framed
}

fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut type_meta = Vec::new();
    put_bytes(&mut type_meta, 1, api_version.as_bytes());
    put_bytes(&mut type_meta, 2, kind.as_bytes());
    let mut out = MAGIC.to_vec();
    put_bytes(&mut out, 1, &type_meta);
    put_bytes(&mut out, 2, raw);
    // Encoding and type of the content, which are empty for Protobuf.
    put_bytes(&mut out, 3, b"");
    put_bytes(&mut out, 4, b"");
    out
}

/// Encodes the fields of a struct. `inlined` are the numbers of the enclosing messages that JSON does not
/// have.
fn message(out: &mut Vec<u8>, object: Option<&Map<String, Value>>, of: &Node, inlined: &[u32]) {
    let Shape::Struct(of_struct) = &of.shape else {
        return;
    };
    let depth = inlined.len();
    let mut here: BTreeMap<u32, (&str, &Node)> = BTreeMap::new();
    let mut below: BTreeSet<u32> = BTreeSet::new();
    for (name, node) in of_struct.get().fields.iter().filter(|(_, node)| node.proto.starts_with(inlined)) {
        match node.proto[depth..] {
            [] => {}
            [number] => {
                here.insert(number, (name, node));
            }
            [number, ..] => {
                below.insert(number);
            }
        }
    }
    let numbers: BTreeSet<u32> = here.keys().copied().chain(below.iter().copied()).collect();
    for number in numbers {
        if let Some((name, node)) = here.get(&number) {
            let value = object.and_then(|object| object.get(*name)).filter(|value| !value.is_null());
            field(out, number, value, node);
        } else {
            let mut inner = Vec::new();
            message(&mut inner, object, of, &[inlined, &[number]].concat());
            put_bytes(out, number, &inner);
        }
    }
}

fn field(out: &mut Vec<u8>, number: u32, found: Option<&Value>, node: &Node) {
    match (&node.shape, found) {
        (Shape::List(item), Some(Value::Array(list))) => {
            for entry in list {
                value(out, number, Some(entry), item);
            }
        }
        (Shape::Map(of_value), Some(Value::Object(map))) => {
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            for (key, entry) in sorted {
                let mut pair = Vec::new();
                put_bytes(&mut pair, 1, key.as_bytes());
                match (&of_value.shape, entry) {
                    // A list as the value of a map is a message of its own.
                    (Shape::List(item), Value::Array(list)) => {
                        let mut items = Vec::new();
                        for entry in list {
                            value(&mut items, 1, Some(entry), item);
                        }
                        put_bytes(&mut pair, 2, &items);
                    }
                    _ => value(&mut pair, 2, Some(entry), of_value),
                }
                put_bytes(out, number, &pair);
            }
        }
        (Shape::List(_) | Shape::Map(_) | Shape::Bytes | Shape::Any, None) => {}
        // Absent pointers are omitted, all other fields are written.
        (_, None) if node.empty == Empty::Kept => {}
        (_, found) => value(out, number, found, node),
    }
}

/// Encodes one value, the zero value of its type if there is none.
fn value(out: &mut Vec<u8>, number: u32, found: Option<&Value>, node: &Node) {
    let text = found.and_then(Value::as_str).unwrap_or_default();
    match &node.shape {
        Shape::String => put_bytes(out, number, text.as_bytes()),
        Shape::Bytes => put_bytes(out, number, &STANDARD.decode(text).unwrap_or_default()),
        Shape::Integer => {
            let integer = found.and_then(Value::as_i64).unwrap_or_default();
            put_varint(out, number, integer.cast_unsigned());
        }
        Shape::Number => put_double(out, number, found.and_then(Value::as_f64).unwrap_or_default()),
        Shape::Boolean => put_varint(out, number, u64::from(found == Some(&Value::Bool(true)))),
        Shape::IntOrString => put_bytes(out, number, &int_or_string(found)),
        Shape::Quantity => {
            let text = match found {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Number(number)) => number.to_string(),
                _ => "0".to_owned(),
            };
            let mut quantity = Vec::new();
            put_bytes(&mut quantity, 1, text.as_bytes());
            put_bytes(out, number, &quantity);
        }
        Shape::Time | Shape::MicroTime => put_bytes(out, number, &time(text)),
        Shape::Any => put_bytes(out, number, &untyped(found.unwrap_or(&Value::Null), node.form)),
        Shape::Struct(_) => {
            let mut inner = Vec::new();
            message(&mut inner, found.and_then(Value::as_object), node, &[]);
            put_bytes(out, number, &inner);
        }
        // No Kubernetes type has a list of lists or a map of maps.
        Shape::List(_) | Shape::Map(_) => {}
    }
}

fn int_or_string(found: Option<&Value>) -> Vec<u8> {
    let text = found.and_then(Value::as_str);
    let mut out = Vec::new();
    put_varint(&mut out, 1, u64::from(text.is_some()));
    put_varint(&mut out, 2, found.and_then(Value::as_i64).unwrap_or_default().cast_unsigned());
    put_bytes(&mut out, 3, text.unwrap_or_default().as_bytes());
    out
}

/// Go's zero time is a message without fields.
fn time(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    if let Ok(time) = text.parse::<Timestamp>() {
        put_varint(&mut out, 1, time.as_second().cast_unsigned());
        put_varint(&mut out, 2, i64::from(time.subsec_nanosecond()).cast_unsigned());
    }
    out
}

/// JSON in a message, or a field of a schema that holds a schema or another value.
fn untyped(found: &Value, form: ProtoForm) -> Vec<u8> {
    let mut out = Vec::new();
    let schema = |schema: &Value| bare(schema, Node::schema());
    match (form, found) {
        (ProtoForm::OfShape, found) => put_bytes(&mut out, 1, found.to_string().as_bytes()),
        (ProtoForm::SchemaOrBool, Value::Bool(allows)) => put_varint(&mut out, 1, u64::from(*allows)),
        (ProtoForm::SchemaOrBool, found) => {
            put_varint(&mut out, 1, 1);
            put_bytes(&mut out, 2, &schema(found));
        }
        (ProtoForm::SchemaOrList, Value::Array(schemas)) => {
            schemas.iter().for_each(|one| put_bytes(&mut out, 2, &schema(one)));
        }
        (ProtoForm::SchemaOrStrings, Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).for_each(|name| put_bytes(&mut out, 2, name.as_bytes()));
        }
        (ProtoForm::SchemaOrList | ProtoForm::SchemaOrStrings, found) => {
            put_bytes(&mut out, 1, &schema(found))
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::decode;
    use super::*;
    use crate::schema::StructRef;
    use serde_json::json;

    fn of(group: &str, kind: &str) -> Node {
        StructRef::builtin(group, "v1", kind).unwrap().into()
    }

    /// Asserts that an encoded object is decoded as the same object, apart from empty fields that Go writes.
    fn assert_survives_encoding(object: &Value, of: &Node) {
        let read = decode(&enveloped(object, of), of).unwrap();
        contains(&read, object, "");
    }

    fn contains(read: &Value, object: &Value, at: &str) {
        match (read, object) {
            (Value::Object(read), Value::Object(object)) => {
                for (name, value) in object {
                    contains(read.get(name).unwrap_or(&Value::Null), value, &format!("{at}/{name}"));
                }
            }
            (Value::Array(read), Value::Array(object)) => {
                assert_eq!(read.len(), object.len(), "{at}");
                read.iter().zip(object).for_each(|(read, object)| contains(read, object, at));
            }
            _ => assert_eq!(read, object, "{at}"),
        }
    }

    #[test]
    fn a_pod_survives_its_encoding() {
        let pod = json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {
                "name": "p", "creationTimestamp": "2026-01-02T03:04:05Z", "labels": {"b": "2", "a": "1"},
                "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}],
            },
            "spec": {
                "terminationGracePeriodSeconds": -1,
                "volumes": [{"name": "x", "emptyDir": {"medium": "m", "sizeLimit": "1Gi"}}],
                "containers": [{
                    "name": "c", "image": "i", "resources": {"limits": {"cpu": "100m"}},
                    "livenessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 3},
                    "readinessProbe": {"tcpSocket": {"port": 80}},
                }],
            },
        });
        assert_survives_encoding(&pod, &of("", "Pod"));
    }

    #[test]
    fn a_definition_with_its_schema_survives_its_encoding() {
        let schema = json!({
            "type": "object", "additionalProperties": false, "default": {"a": [1]},
            "properties": {
                "open": {"type": "object", "additionalProperties": {"type": "string"}, "maximum": 1.5},
                "list": {"type": "array", "items": {"type": "integer"}},
                "either": {"items": [{"type": "integer"}], "dependencies": {"a": ["b"], "c": {"type": "string"}}},
            },
        });
        let definition = json!({
            "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "a.b"},
            "spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]},
        });
        assert_survives_encoding(&definition, &of("apiextensions.k8s.io", "CustomResourceDefinition"));
    }

    #[test]
    fn secrets_reviews_and_quantities_survive_their_encoding() {
        let secret = json!({"metadata": {"name": "s"}, "data": {"k": "AAEC"}});
        assert_survives_encoding(&secret, &of("", "Secret"));
        let review = json!({"spec": {"user": "u", "extra": {"scopes": ["a", "b"]}}});
        assert_survives_encoding(&review, &of("authorization.k8s.io", "SubjectAccessReview"));
        let lease = json!({"spec": {"renewTime": "2026-01-02T03:04:05.678901Z"}});
        assert_survives_encoding(&lease, &of("coordination.k8s.io", "Lease"));
    }

    #[test]
    fn the_encoding_equals_that_of_go() {
        // ConfigMap{ObjectMeta: {Name: "a"}, Data: {"k": "v"}}, marshalled by k8s.io/api v0.36.2.
        let map = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
        let metadata = b"\x0a\x01a\x12\0\x1a\0\x22\0\x2a\0\x32\0\x38\0\x42\0";
        let mut wanted = vec![0x0a, u8::try_from(metadata.len()).unwrap()];
        wanted.extend_from_slice(metadata);
        wanted.extend_from_slice(b"\x12\x06\x0a\x01k\x12\x01v");
        assert_eq!(bare(&map, &of("", "ConfigMap")), wanted);
    }
}
