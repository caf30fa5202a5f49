//! One stored object: its JSON, and the fields that lists and watches filter by.

use crate::collector::{FOREGROUND, ORPHAN};
use crate::resource::Resource;
use crate::status::StatusError;
use crate::write::finalizers;
use bytes::Bytes;
use serde_json::{Map, Value};
use std::sync::Arc;

/// An immutable object. The JSON always starts with apiVersion, kind and metadata, in this order.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) key: Arc<str>,
    pub(crate) revision: u64,
    pub(crate) uid: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) labels: Vec<(String, String)>,
    /// The values of the resource's selectable fields, in the resource's order; empty for missing fields.
    pub(crate) fields: Vec<String>,
    /// The uids of its owners.
    pub(crate) owners: Vec<String>,
    /// The object is being deleted in the foreground, or with its dependents orphaned.
    pub(crate) waits_for_dependents: bool,
    json: Bytes,
    /// The offset of `"metadata":`.
    body_at: usize,
}

// === impl Stored ===

impl Stored {
    /// Serializes an object, and sets its apiVersion, kind and resourceVersion (none for revision 0).
    pub(crate) fn new(resource: &Resource, key: &str, mut value: Value, revision: u64) -> Self {
        let text = |value: &Value, pointer: &str| {
            value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        if let Some(metadata) = metadata_mut(&mut value) {
            match revision {
                0 => metadata.shift_remove("resourceVersion"),
                revision => metadata.insert("resourceVersion".into(), revision.to_string().into()),
            };
            order_metadata(metadata);
        }
        let labels = value.pointer("/metadata/labels").and_then(Value::as_object);
        let labels = labels.map(|labels| {
            let label =
                |(key, value): (&String, &Value)| (key.clone(), value.as_str().unwrap_or("").to_owned());
            labels.iter().map(label).collect()
        });
        let fields = resource.selectable.iter().map(|path| field(&value, path)).collect();
        let (json, body_at) = serialize(resource, &value);
        Self {
            key: key.into(),
            revision,
            uid: text(&value, "/metadata/uid"),
            namespace: text(&value, "/metadata/namespace"),
            name: text(&value, "/metadata/name"),
            labels: labels.unwrap_or_default(),
            fields,
            owners: owners(&value),
            waits_for_dependents: value.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string)
                && finalizers(&value).iter().any(|name| matches!(*name, ORPHAN | FOREGROUND)),
            json,
            body_at,
        }
    }

    /// Decodes the object into a tree.
    pub(crate) fn value(&self) -> Result<Value, StatusError> {
        serde_json::from_slice(&self.json).map_err(StatusError::internal)
    }

    /// Returns the JSON in the stored version.
    pub(crate) fn json(&self) -> &Bytes {
        &self.json
    }

    /// Returns the JSON from `"metadata":` on, without the opening brace.
    pub(crate) fn body(&self) -> &[u8] {
        &self.json[self.body_at..]
    }
}

fn owners(value: &Value) -> Vec<String> {
    let references = value.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let uids = references.into_iter().flatten().filter_map(|reference| reference.get("uid")?.as_str());
    uids.map(str::to_owned).collect()
}

/// Returns the mutable metadata of an object, and creates it if it is missing.
pub(crate) fn metadata_mut(value: &mut Value) -> Option<&mut Map<String, Value>> {
    let metadata = value.as_object_mut()?.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    metadata.as_object_mut()
}

/// Puts metadata into kube-apiserver's order.
fn order_metadata(metadata: &mut Map<String, Value>) {
    const ORDER: &[&str] = &[
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
    ];
    let place = |key: &str| ORDER.iter().position(|known| *known == key).unwrap_or(ORDER.len());
    let mut entries: Vec<(String, Value)> = std::mem::take(metadata).into_iter().collect();
    entries.sort_by_key(|(key, _)| place(key));
    metadata.extend(entries);
}

/// Returns the value at a field selector's path, empty if it is missing.
fn field(value: &Value, path: &str) -> String {
    // The field `source` of an Event selects by its component.
    let path = if path == "source" { "source.component" } else { path };
    let mut at = value;
    for step in path.split('.') {
        match at.get(step) {
            Some(next) => at = next,
            None => return default_of(path).into(),
        }
    }
    match at {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Object(_) | Value::Array(_) => String::new(),
        plain => plain.to_string(),
    }
}

/// Missing booleans and counts match as false and zero.
fn default_of(path: &str) -> &'static str {
    match path {
        "spec.unschedulable" | "spec.hostNetwork" => "false",
        "status.replicas" | "status.successful" => "0",
        _ => "",
    }
}

fn serialize(resource: &Resource, value: &Value) -> (Bytes, usize) {
    let mut json = Vec::with_capacity(1024);
    json.extend_from_slice(
        format!("{{\"apiVersion\":\"{}\",\"kind\":\"{}\",", resource.storage_api_version, resource.kind)
            .as_bytes(),
    );
    let body_at = json.len();
    json.extend_from_slice(b"\"metadata\":");
    write(&mut json, value.get("metadata").unwrap_or(&Value::Null));
    for (name, field) in value.as_object().into_iter().flatten() {
        if matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        json.push(b',');
        json.extend_from_slice(Value::from(name.as_str()).to_string().as_bytes());
        json.push(b':');
        write(&mut json, field);
    }
    json.push(b'}');
    // Bytes would keep the unused capacity.
    json.shrink_to_fit();
    (json.into(), body_at)
}

#[expect(clippy::expect_used, reason = "a Value has string keys only, and writing to memory does not fail")]
fn write(out: &mut Vec<u8>, value: &Value) {
    serde_json::to_writer(out, value).expect("a tree can be written to memory");
}
