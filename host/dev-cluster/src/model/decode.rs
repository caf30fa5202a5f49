//! Decodes the JSON of a client into the form that the API server stores.
//!
//! For built-in kinds the result equals that of Go's decoder and encoder: without unknown fields and nulls,
//! empty values omitted or written as their structs define, quantities and times in canonical form. Custom
//! resources are pruned to their schema; only their metadata has a built-in type.

use super::{Decoded, Model, defaults, quantity};
use crate::schema::{Empty, Node, Shape};
use crate::status::StatusError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// The treatment of unknown fields (`?fieldValidation=`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

// === impl Model ===

impl Model {
    /// Decodes an object of this kind, and fills in its defaults.
    pub(crate) fn decode(&self, body: Value, fields: FieldValidation) -> Result<Decoded, StatusError> {
        let kind = &self.kind.kind;
        let version = self.api_version.rsplit('/').next().unwrap_or_default();
        self.decode_or(body, fields, |why| {
            StatusError::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
            ))
        })
    }

    /// Decodes an object; the caller words the error.
    pub(crate) fn decode_or(
        &self,
        body: Value,
        fields: FieldValidation,
        cannot: impl Fn(String) -> StatusError,
    ) -> Result<Decoded, StatusError> {
        let mut decoder = Decoder::default();
        let decoded = if self.is_custom() {
            decoder.custom(&self.root, body)
        } else {
            decoder.typed(&self.root, body, "")
        };
        let mut object = decoded.map_err(&cannot)?;
        if self.is_custom() {
            decoder.unknown.sort();
        }
        if fields == FieldValidation::Strict && !decoder.unknown.is_empty() {
            return Err(cannot(format!("strict decoding error: {}", decoder.unknown.join(", "))));
        }
        if let Some(map) = object.as_object_mut() {
            map.insert("kind".into(), self.kind.kind.clone().into());
            map.insert("apiVersion".into(), self.api_version.clone().into());
        }
        self.fill_in(&mut object);
        let warnings = match fields {
            FieldValidation::Warn => decoder.unknown,
            _ => Vec::new(),
        };
        Ok(Decoded { object, warnings })
    }

    /// Returns an object of this kind in which no field was set.
    pub(crate) fn zero_object(&self) -> Value {
        if self.is_custom() { Value::Object(Map::new()) } else { zero(&self.root) }
    }

    /// Fills in defaults. Called again for the result of a patch or an apply.
    pub(crate) fn fill_in(&self, object: &mut Value) {
        match &self.custom {
            Some(custom) => {
                if let Some(schema) = &custom.schema {
                    crate::crd::fill_in(schema, object);
                }
            }
            None => defaults::fill_in(&self.root, &self.kind.kind, object),
        }
    }
}

/// The state of one decoding: the current path, and the unknown fields.
#[derive(Default)]
struct Decoder {
    path: Vec<String>,
    unknown: Vec<String>,
}

// === impl Decoder ===

impl Decoder {
    fn note_unknown(&mut self, name: &str) {
        self.path.push(format!(".{name}"));
        self.unknown.push(format!("unknown field {:?}", self.here()));
        self.path.pop();
    }

    fn here(&self) -> String {
        self.path.concat().trim_start_matches('.').to_owned()
    }

    /// The error of Go's decoder, which names the innermost struct and the path of the field.
    fn mismatch(&self, value: &Value, owner: &str, wanted: &str) -> String {
        let got = match value {
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
            Value::Null => "null",
        };
        let path: Vec<&str> =
            self.path.iter().filter(|step| step.starts_with('.')).map(String::as_str).collect();
        let path = path.concat();
        if path.is_empty() {
            return format!("json: cannot unmarshal {got} into Go value of type {wanted}");
        }
        format!("json: cannot unmarshal {got} into Go struct field {owner}{path} of type {wanted}")
    }

    /// Decodes one place; `owner` is the enclosing Go struct.
    fn typed(&mut self, node: &Node, value: Value, owner: &str) -> Result<Value, String> {
        let mismatch = |this: &Self, value: &Value| Err(this.mismatch(value, owner, &go_type(node)));
        match (&node.shape, value) {
            (Shape::Any, value) => Ok(value),
            (Shape::Struct(of), Value::Object(map)) => {
                let of = of.get();
                let name = of.name.rsplit('.').next().unwrap_or_default();
                let mut out = Map::new();
                for (key, value) in map {
                    let Some(field) = of.fields.get(&key) else {
                        self.note_unknown(&key);
                        continue;
                    };
                    if value.is_null() {
                        continue;
                    }
                    self.path.push(format!(".{key}"));
                    let value = self.typed(field, value, name)?;
                    self.path.pop();
                    if field.empty == Empty::Kept || field.empty == Empty::Written || !is_empty(&value) {
                        out.insert(key, value);
                    }
                }
                if name == "Secret" {
                    move_string_data(&mut out);
                }
                write_empties(of, &mut out);
                Ok(Value::Object(out))
            }
            (Shape::Map(inner), Value::Object(map)) => {
                let mut out = Map::new();
                for (key, value) in map {
                    // A null in a map of strings is an empty string.
                    let value = if value.is_null() { json!("") } else { self.typed(inner, value, owner)? };
                    out.insert(key, value);
                }
                Ok(Value::Object(out))
            }
            (Shape::List(inner), Value::Array(list)) => {
                let mut out = Vec::with_capacity(list.len());
                for (index, value) in list.into_iter().enumerate() {
                    self.path.push(format!("[{index}]"));
                    out.push(self.typed(inner, value, owner)?);
                    self.path.pop();
                }
                Ok(Value::Array(out))
            }
            (Shape::String, value @ Value::String(_)) | (Shape::Boolean, value @ Value::Bool(_)) => Ok(value),
            (Shape::Integer, Value::Number(number)) if number.is_i64() || number.is_u64() => {
                Ok(Value::Number(number))
            }
            (Shape::Integer, Value::Number(number)) => {
                // 3.0 is an integer, 3.5 is not.
                let float = number.as_f64().unwrap_or_default();
                if float.fract() == 0.0 && float.abs() < 9e15 {
                    return Ok(json!(float as i64));
                }
                Err(self.mismatch(&json!(0), owner, "int32").replace("number", &format!("number {number}")))
            }
            (Shape::Number, value @ Value::Number(_)) => Ok(value),
            (Shape::IntOrString, value @ (Value::Number(_) | Value::String(_))) => Ok(value),
            (Shape::Bytes, Value::String(text)) => match STANDARD.decode(&text) {
                Ok(_) => Ok(Value::String(text)),
                Err(
                    base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _),
                ) => Err(format!("illegal base64 data at input byte {at}")),
                Err(_) => {
                    Err(format!("illegal base64 data at input byte {}", text.len().saturating_sub(1) / 4 * 4))
                }
            },
            (Shape::Quantity, Value::String(text)) => quantity::canonical(&text).map(Value::String),
            (Shape::Quantity, Value::Number(number)) => {
                quantity::canonical(&number.to_string()).map(Value::String)
            }
            (Shape::Time, Value::String(text)) => time(&text, 0),
            (Shape::MicroTime, Value::String(text)) => time(&text, 6),
            (_, Value::Null) => Ok(zero(node)),
            (_, value) => mismatch(self, &value),
        }
    }

    /// Prunes a custom resource to its schema.
    fn custom(&mut self, root: &Node, value: Value) -> Result<Value, String> {
        let Value::Object(map) = value else {
            return mismatch_root(&value);
        };
        let mut out = Map::new();
        for (key, value) in map {
            self.path.push(format!(".{key}"));
            if key == "metadata" {
                if let Some(metadata) = root.field("metadata")
                    && !value.is_null()
                {
                    let decoded = self.typed(metadata, value, "ObjectMeta");
                    // kube-apiserver decodes metadata by itself, so its errors start there.
                    out.insert(
                        key,
                        decoded.map_err(|why| why.replace("ObjectMeta.metadata.", "ObjectMeta."))?,
                    );
                }
            } else if let Some(field) = root.field(&key) {
                out.insert(key, self.pruned(field, value)?);
            } else {
                self.path.pop();
                self.note_unknown(&key);
                continue;
            }
            self.path.pop();
        }
        Ok(Value::Object(out))
    }

    fn pruned(&mut self, node: &Node, value: Value) -> Result<Value, String> {
        match (&node.shape, value) {
            (Shape::Struct(_) | Shape::Map(_), Value::Object(map)) => {
                let mut out = Map::new();
                for (key, value) in map {
                    let Some(field) = node.field(&key) else {
                        self.note_unknown(&key);
                        continue;
                    };
                    self.path.push(format!(".{key}"));
                    out.insert(key, self.pruned(field, value)?);
                    self.path.pop();
                }
                Ok(Value::Object(out))
            }
            (Shape::List(inner), Value::Array(list)) => {
                let mut out = Vec::with_capacity(list.len());
                for (index, value) in list.into_iter().enumerate() {
                    self.path.push(format!("[{index}]"));
                    out.push(self.pruned(inner, value)?);
                    self.path.pop();
                }
                Ok(Value::Array(out))
            }
            (_, value) => Ok(value),
        }
    }
}

fn mismatch_root(value: &Value) -> Result<Value, String> {
    let got = if value.is_array() { "array" } else { "scalar" };
    Err(format!("json: cannot unmarshal {got} into Go value of type map[string]interface {{}}"))
}

/// Adds the empty fields that Go writes.
fn write_empties(of: &crate::schema::Struct, out: &mut Map<String, Value>) {
    for (name, field) in &of.fields {
        if field.empty == Empty::Written && !out.contains_key(name) {
            out.insert(name.clone(), zero(field));
        }
    }
}

/// Returns the object with the empty fields that Go writes.
pub(super) fn written(node: &Node, mut value: Value) -> Value {
    if let (Shape::Struct(of), Some(map)) = (&node.shape, value.as_object_mut()) {
        write_empties(of.get(), map);
    }
    value
}

/// Returns the value that Go writes for a value that was never set.
fn zero(node: &Node) -> Value {
    match &node.shape {
        Shape::String => json!(""),
        Shape::Integer | Shape::Number | Shape::IntOrString => json!(0),
        Shape::Boolean => json!(false),
        Shape::Quantity => json!("0"),
        Shape::Struct(of) => {
            let mut out = Map::new();
            write_empties(of.get(), &mut out);
            Value::Object(out)
        }
        _ => Value::Null,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

fn move_string_data(secret: &mut Map<String, Value>) {
    let Some(Value::Object(strings)) = secret.shift_remove("stringData") else {
        return;
    };
    let data = secret.entry("data").or_insert_with(|| json!({}));
    for (key, value) in strings {
        data[key] = STANDARD.encode(value.as_str().unwrap_or_default()).into();
    }
}

fn time(text: &str, digits: u8) -> Result<Value, String> {
    let parsed: Result<jiff::Timestamp, _> = text.parse();
    let Ok(parsed) = parsed else {
        let fraction = if digits == 0 { "" } else { ".000000" };
        return Err(format!(
            "parsing time {text:?} as \"2006-01-02T15:04:05{fraction}Z07:00\": cannot parse {text:?} as \"2006\""
        ));
    };
    let parsed = parsed
        .round(if digits == 0 { jiff::Unit::Second } else { jiff::Unit::Microsecond })
        .unwrap_or(parsed);
    Ok(if digits == 0 { format!("{parsed:.0}").into() } else { format!("{parsed:.6}").into() })
}

/// Returns the Go type of a place, as in error messages.
fn go_type(node: &Node) -> String {
    match &node.shape {
        Shape::String | Shape::Bytes => "string".into(),
        Shape::Integer => "int32".into(),
        Shape::Number => "float64".into(),
        Shape::Boolean => "bool".into(),
        Shape::Map(inner) => format!("map[string]{}", go_type(inner)),
        Shape::List(inner) => format!("[]{}", go_type(inner)),
        Shape::Struct(of) => {
            let mut parts = of.get().name.rsplit('.');
            let name = parts.next().unwrap_or_default();
            let version = parts.next().unwrap_or_default();
            format!("{version}.{name}")
        }
        Shape::Any | Shape::IntOrString | Shape::Quantity | Shape::Time | Shape::MicroTime => "string".into(),
    }
}
