//! Decodes Protobuf into the JSON of the same object.

use super::wire::{Wire, fields};
use super::{Error, MAGIC};
use crate::schema::{Node, ProtoForm, Shape};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Returns the object in a body as JSON, without unknown fields.
pub(crate) fn decode(body: &[u8], of: &Node) -> Result<Value, Error> {
    let envelope = body.strip_prefix(MAGIC).ok_or(Error::NoMagic)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for (number, wire) in fields(envelope)? {
        match (number, wire) {
            (1, Wire::Bytes(type_meta)) => {
                for (number, wire) in fields(type_meta)? {
                    match (number, text(wire, "typeMeta")?) {
                        (1, text) => api_version = text,
                        (2, text) => kind = text,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let mut object = Map::new();
    if !kind.is_empty() {
        object.insert("kind".into(), kind.into());
    }
    if !api_version.is_empty() {
        object.insert("apiVersion".into(), api_version.into());
    }
    message(raw, of, &[], &mut object)?;
    Ok(Value::Object(object))
}

/// Decodes a message into an object. `inlined` are the numbers of the enclosing messages that JSON does not
/// have.
fn message(bytes: &[u8], of: &Node, inlined: &[u32], object: &mut Map<String, Value>) -> Result<(), Error> {
    let Shape::Struct(of_struct) = &of.shape else {
        return Ok(());
    };
    let known = &of_struct.get().fields;
    for (number, wire) in fields(bytes)? {
        let path: Vec<u32> = inlined.iter().copied().chain([number]).collect();
        if let Some((name, node)) = known.iter().find(|(_, node)| node.proto == path) {
            field(object, name, node, wire)?;
        } else if let Wire::Bytes(inner) = wire
            && known.values().any(|node| node.proto.len() > path.len() && node.proto.starts_with(&path))
        {
            message(inner, of, &path, object)?;
        }
    }
    Ok(())
}

fn field(object: &mut Map<String, Value>, name: &str, node: &Node, wire: Wire<'_>) -> Result<(), Error> {
    match &node.shape {
        Shape::List(item) => {
            let item = value(wire, item, name)?;
            if let Some(list) = object.entry(name).or_insert_with(|| Value::Array(Vec::new())).as_array_mut()
            {
                list.push(item);
            }
        }
        Shape::Map(of_value) => {
            let Wire::Bytes(entry) = wire else {
                return Err(Error::Mismatch(name.to_owned()));
            };
            let (mut key, mut found) = (String::new(), empty(of_value));
            for (number, wire) in fields(entry)? {
                match number {
                    1 => key = text(wire, name)?,
                    _ => found = map_value(wire, of_value, name)?,
                }
            }
            if let Some(map) = object.entry(name).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
            {
                map.insert(key, found);
            }
        }
        _ => {
            object.insert(name.to_owned(), value(wire, node, name)?);
        }
    }
    Ok(())
}

/// A list as the value of a map is a message of its own.
fn map_value(wire: Wire<'_>, node: &Node, name: &str) -> Result<Value, Error> {
    let (Shape::List(item), Wire::Bytes(bytes)) = (&node.shape, wire) else {
        return value(wire, node, name);
    };
    fields(bytes)?.into_iter().map(|(_, wire)| value(wire, item, name)).collect()
}

/// The value of a map entry without a value.
fn empty(node: &Node) -> Value {
    match &node.shape {
        Shape::String | Shape::Bytes => "".into(),
        Shape::Integer | Shape::Number => 0.into(),
        Shape::Boolean => false.into(),
        Shape::List(_) => json!([]),
        Shape::Struct(_) | Shape::Map(_) => json!({}),
        _ => Value::Null,
    }
}

fn value(wire: Wire<'_>, node: &Node, name: &str) -> Result<Value, Error> {
    let mismatch = || Error::Mismatch(name.to_owned());
    if let (
        form @ (ProtoForm::SchemaOrBool | ProtoForm::SchemaOrList | ProtoForm::SchemaOrStrings),
        Wire::Bytes(bytes),
    ) = (node.form, wire)
    {
        return schema_or_other(bytes, form, name);
    }
    Ok(match (&node.shape, wire) {
        (Shape::String, wire) => text(wire, name)?.into(),
        (Shape::Bytes, Wire::Bytes(bytes)) => STANDARD.encode(bytes).into(),
        (Shape::Integer, Wire::Varint(number)) => number.cast_signed().into(),
        (Shape::Number, Wire::Fixed64(bits)) => f64::from_bits(bits).into(),
        (Shape::Number, Wire::Fixed32(bits)) => f64::from(f32::from_bits(bits)).into(),
        (Shape::Boolean, Wire::Varint(bit)) => (bit != 0).into(),
        (Shape::IntOrString, Wire::Bytes(bytes)) => int_or_string(bytes, name)?,
        (Shape::Quantity, Wire::Bytes(bytes)) => match fields(bytes)?.first() {
            Some((1, wire)) => text(*wire, name)?.into(),
            _ => "0".into(),
        },
        (Shape::Time, Wire::Bytes(bytes)) => time(bytes, "%Y-%m-%dT%H:%M:%SZ", name)?,
        (Shape::MicroTime, Wire::Bytes(bytes)) => time(bytes, "%Y-%m-%dT%H:%M:%S.%6fZ", name)?,
        (Shape::Any, Wire::Bytes(bytes)) => match fields(bytes)?.first() {
            // Raw JSON in a message.
            Some((1, Wire::Bytes(raw))) => serde_json::from_slice(raw).map_err(|_| mismatch())?,
            _ => Value::Null,
        },
        (Shape::Struct(_), Wire::Bytes(bytes)) => {
            let mut inner = Map::new();
            message(bytes, node, &[], &mut inner)?;
            Value::Object(inner)
        }
        _ => return Err(mismatch()),
    })
}

/// A field of a CustomResourceDefinition's schema that holds a schema or another value.
fn schema_or_other(bytes: &[u8], form: ProtoForm, name: &str) -> Result<Value, Error> {
    let (mut allows, mut schema, mut others) = (None, None, Vec::new());
    for (number, wire) in fields(bytes)? {
        // A boolean has a lower field number than the schema, other values a higher one.
        match (form, number, wire) {
            (ProtoForm::SchemaOrBool, 1, Wire::Varint(bit)) => allows = Some(bit != 0),
            (ProtoForm::SchemaOrBool, 2, wire) | (_, 1, wire) => {
                schema = Some(value(wire, Node::schema(), name)?);
            }
            (ProtoForm::SchemaOrList, 2, wire) => others.push(value(wire, Node::schema(), name)?),
            (ProtoForm::SchemaOrStrings, 2, wire) => others.push(text(wire, name)?.into()),
            _ => {}
        }
    }
    Ok(schema.unwrap_or_else(|| match form {
        ProtoForm::SchemaOrBool => allows.unwrap_or(false).into(),
        _ => others.into(),
    }))
}

fn text(wire: Wire<'_>, name: &str) -> Result<String, Error> {
    match wire {
        Wire::Bytes(bytes) => String::from_utf8(bytes.to_vec()).map_err(|_| Error::Mismatch(name.to_owned())),
        _ => Err(Error::Mismatch(name.to_owned())),
    }
}

fn int_or_string(bytes: &[u8], name: &str) -> Result<Value, Error> {
    let (mut is_text, mut number, mut string) = (false, 0, String::new());
    for (field, wire) in fields(bytes)? {
        match (field, wire) {
            (1, Wire::Varint(kind)) => is_text = kind == 1,
            (2, Wire::Varint(value)) => number = value.cast_signed(),
            (3, wire) => string = text(wire, name)?,
            _ => {}
        }
    }
    Ok(if is_text { string.into() } else { number.into() })
}

fn time(bytes: &[u8], format: &str, name: &str) -> Result<Value, Error> {
    let (mut seconds, mut nanos) = (0, 0);
    for (field, wire) in fields(bytes)? {
        match (field, wire) {
            (1, Wire::Varint(value)) => seconds = value.cast_signed(),
            (2, Wire::Varint(value)) => nanos = i32::try_from(value).unwrap_or(0),
            _ => {}
        }
    }
    if (seconds, nanos) == (0, 0) {
        // Go's zero time.
        return Ok(Value::Null);
    }
    let time = Timestamp::new(seconds, nanos).map_err(|_| Error::Mismatch(name.to_owned()))?;
    Ok(time.strftime(format).to_string().into())
}

#[cfg(test)]
mod tests {
    use super::super::Error;
    use super::*;
    use crate::schema::StructRef;

    fn bytes(number: u8, inner: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, u8::try_from(inner.len()).unwrap()];
        out.extend_from_slice(inner);
        out
    }

    fn enveloped(raw: &[u8]) -> Vec<u8> {
        let type_meta = [bytes(1, b"v1"), bytes(2, b"ConfigMap")].concat();
        [MAGIC.to_vec(), bytes(1, &type_meta), bytes(2, raw)].concat()
    }

    #[test]
    fn a_config_map_is_decoded() {
        let metadata = [bytes(1, b"a"), bytes(8, b"")].concat();
        let data = [bytes(1, b"k"), bytes(2, b"v")].concat();
        let raw = [bytes(1, &metadata), bytes(2, &data)].concat();
        let of = Node::from(StructRef::builtin("", "v1", "ConfigMap").unwrap());
        assert_eq!(
            decode(&enveloped(&raw), &of).unwrap(),
            json!({
                "kind": "ConfigMap", "apiVersion": "v1",
                "metadata": {"name": "a", "creationTimestamp": null}, "data": {"k": "v"},
            })
        );
    }

    #[test]
    fn structs_that_json_inlines_are_decoded() {
        // volumes[0] = {name: "x", volumeSource: {emptyDir: {medium: "m"}}}
        let source = bytes(2, &bytes(1, b"m"));
        let volume = [bytes(1, b"x"), bytes(2, &source)].concat();
        let raw = bytes(2, &bytes(1, &volume));
        let of = Node::from(StructRef::builtin("", "v1", "Pod").unwrap());
        let pod = decode(&enveloped(&raw), &of).unwrap();
        assert_eq!(pod["spec"]["volumes"], json!([{"name": "x", "emptyDir": {"medium": "m"}}]));
    }

    #[test]
    fn broken_bodies_are_errors() {
        let of = Node::from(StructRef::builtin("", "v1", "ConfigMap").unwrap());
        assert_eq!(decode(b"{}", &of), Err(Error::NoMagic));
        let whole = enveloped(&bytes(1, b"abc"));
        assert_eq!(decode(&whole[..whole.len() - 1], &of), Err(Error::Truncated));
    }
}
