//! The forms of stored objects in responses: complete, metadata only, or rows of a table.

use crate::negotiation::{Accepted, Notation, Shape};
use crate::protobuf;
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
use std::sync::Arc;

/// The form that a request asked for, for one resource.
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
    /// Writes one object. `in_list` omits apiVersion and kind where kube-apiserver does.
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

    /// Returns one object in Protobuf, without an envelope, as in a list.
    pub(crate) fn bare(&self, object: &Stored) -> Result<Vec<u8>, StatusError> {
        Ok(match self.shape {
            Shape::PartialMetadata => {
                let metadata = serde_json::from_str(metadata(object)?).map_err(StatusError::internal)?;
                protobuf::partial_metadata(&metadata)
            }
            Shape::Object | Shape::Table => protobuf::bare(&self.value(object)?, self.resource.model.root()),
        })
    }

    /// Returns one object in Protobuf, in an envelope.
    pub(crate) fn enveloped(&self, object: &Stored) -> Result<Vec<u8>, StatusError> {
        if self.shape == Shape::PartialMetadata {
            return Ok(protobuf::partial_metadata_enveloped(&self.bare(object)?));
        }
        let mut value = self.value(object)?;
        value["kind"] = self.resource.kind.as_str().into();
        Ok(protobuf::enveloped(&value, self.resource.model.root()))
    }

    /// Returns the kind and apiVersion of a list in this form.
    pub(crate) fn of_list(&self) -> (String, String) {
        match self.shape {
            Shape::PartialMetadata => ("PartialObjectMetadataList".into(), "meta.k8s.io/v1".into()),
            Shape::Object | Shape::Table => (self.resource.list_kind.clone(), self.resource.api_version()),
        }
    }

    /// Returns a list in Protobuf.
    pub(crate) fn list(&self, metadata: &Value, objects: &[Arc<Stored>]) -> Result<Vec<u8>, StatusError> {
        let items: Result<Vec<_>, _> = objects.iter().map(|object| self.bare(object)).collect();
        let (kind, api_version) = self.of_list();
        Ok(protobuf::list(&api_version, &kind, metadata, &items?))
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

/// Returns the response for one object.
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
    if accepted.notation == Notation::Protobuf {
        return Ok(respond::with_type(code, protobuf::MEDIA_TYPE, full(form.enveloped(object)?)));
    }
    let mut json = Vec::with_capacity(1024);
    form.write(&mut json, object, false)?;
    if accepted.notation == Notation::Yaml {
        let value: Value = serde_json::from_slice(&json).unwrap_or_default();
        return Ok(respond::document(code, Notation::Yaml, &value, None));
    }
    json.push(b'\n');
    Ok(respond::with_type(code, "application/json", full(json)))
}

/// Adds one `Warning` header per warning.
pub(crate) fn add_warnings(response: &mut Response<Body>, warnings: &[String]) {
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(WARNING, value);
        }
    }
}
