//! How stored objects go over the wire: as they are, as metadata only, or as rows of a table.

use crate::negotiation::{Accepted, Notation, Shape};
use crate::resource::Resource;
use crate::respond::{self, Body, full};
use crate::status::StatusError;
use crate::store::Stored;
use crate::table;
use http::Response;
use http::header::{HeaderValue, WARNING};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The form that one request asked for, of one resource.
#[derive(Clone, Copy)]
pub(crate) struct Form<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) shape: Shape,
}

#[derive(Deserialize)]
struct MetadataOnly<'a> {
    #[serde(borrow)]
    metadata: &'a RawValue,
}

// === impl Form ===

impl Form<'_> {
    /// Writes one object. `in_list` leaves out apiVersion and kind where the real server does.
    pub(crate) fn write(&self, out: &mut Vec<u8>, object: &Stored, in_list: bool) -> Result<(), StatusError> {
        match self.shape {
            Shape::PartialMetadata => {
                out.extend_from_slice(
                    b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":",
                );
                out.extend_from_slice(metadata(object)?.as_bytes());
                out.push(b'}');
            }
            Shape::Object | Shape::Table => self.write_object(out, object, in_list)?,
        }
        Ok(())
    }

    fn write_object(&self, out: &mut Vec<u8>, object: &Stored, in_list: bool) -> Result<(), StatusError> {
        let resource = self.resource;
        if resource.custom.is_none() && in_list {
            out.push(b'{');
        } else {
            out.extend_from_slice(
                format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",", resource.kind, resource.api_version())
                    .as_bytes(),
            );
        }
        if resource.view.is_none() && !resource.is_another_version() {
            out.extend_from_slice(object.body());
            return Ok(());
        }
        let mut served = self.value(object)?;
        if let Value::Object(fields) = &mut served {
            fields.shift_remove("apiVersion");
            fields.shift_remove("kind");
        }
        let text = served.to_string();
        out.extend_from_slice(&text.as_bytes()[1..]);
        Ok(())
    }

    /// Returns an object as a tree, in the served version.
    pub(crate) fn value(&self, object: &Stored) -> Result<Value, StatusError> {
        self.resource.served(object)
    }
}

/// Returns the JSON of an object's metadata.
pub(crate) fn metadata(object: &Stored) -> Result<&str, StatusError> {
    let parsed: MetadataOnly<'_> = serde_json::from_slice(object.json()).map_err(StatusError::internal)?;
    Ok(parsed.metadata.get())
}

/// Answers with one object.
pub(crate) fn object(
    code: u16,
    resource: &Resource,
    accepted: Accepted,
    object: &Stored,
    include: table::Include,
) -> Result<Response<Body>, StatusError> {
    let form = Form { resource, shape: accepted.shape };
    if accepted.shape == Shape::Table {
        let meta = serde_json::json!({"resourceVersion": object.revision.to_string()});
        let table = table::table(resource, &[object], meta, table::Columns::Named, include)?;
        return Ok(respond::json(code, &table));
    }
    let mut json = Vec::with_capacity(1024);
    form.write(&mut json, object, false)?;
    Ok(notated(code, accepted.notation, json))
}

/// Answers with a JSON document, in YAML if that was asked for.
pub(crate) fn notated(code: u16, notation: Notation, json: Vec<u8>) -> Response<Body> {
    match notation {
        Notation::Json => {
            let mut json = json;
            json.push(b'\n');
            respond::with_type(code, "application/json", full(json))
        }
        Notation::Yaml => {
            let value: Value = serde_json::from_slice(&json).unwrap_or_default();
            let yaml = serde_norway::to_string(&sorted(value)).unwrap_or_default();
            respond::with_type(code, "application/yaml", full(yaml))
        }
    }
}

/// YAML is written in the order of keys.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<String, Value> =
                fields.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        plain => plain,
    }
}

/// Adds one `Warning` header for each warning.
pub(crate) fn add_warnings(response: &mut Response<Body>, warnings: &[String]) {
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(WARNING, value);
        }
    }
}
