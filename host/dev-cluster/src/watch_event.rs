//! Encodes the events of a watch.

use crate::form::Form;
use crate::negotiation::{Accepted, Notation, Shape};
use crate::protobuf;
use crate::resource::Resource;
use crate::schema::Node;
use crate::status::StatusError;
use crate::store::{ChangeKind, Stored};
use crate::table;
use serde_json::{Value, json};
use std::sync::Arc;

/// Encodes events in the form that one watch asked for.
pub(crate) struct Encoder {
    resource: Arc<Resource>,
    shape: Shape,
    notation: Notation,
    include: table::Include,
    /// The columns are sent once.
    columns: table::Columns,
}

// === impl Encoder ===

impl Encoder {
    pub(crate) fn new(resource: Arc<Resource>, accepted: Accepted, include: table::Include) -> Self {
        let Accepted { shape, notation } = accepted;
        Self { resource, shape, notation, include, columns: table::Columns::Named }
    }

    pub(crate) fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Encodes one event; `at` replaces the object's own version.
    pub(crate) fn event(
        &mut self,
        out: &mut Vec<u8>,
        kind: ChangeKind,
        object: &Stored,
        at: Option<u64>,
    ) -> Result<(), StatusError> {
        let kind = match kind {
            ChangeKind::Added => "ADDED",
            ChangeKind::Modified => "MODIFIED",
            ChangeKind::Deleted => "DELETED",
        };
        let moved;
        let object = match at {
            None => object,
            Some(at) => {
                moved = Stored::new(&self.resource, &object.key, object.value()?, at);
                &moved
            }
        };
        if self.notation == Notation::Protobuf {
            let form = Form { resource: &self.resource, shape: self.shape };
            out.extend_from_slice(&protobuf::event(kind, &form.enveloped(object)?));
            return Ok(());
        }
        out.extend_from_slice(format!("{{\"type\":\"{kind}\",\"object\":").as_bytes());
        if self.shape == Shape::Table {
            let meta = json!({"resourceVersion": object.revision.to_string()});
            let table = table::table(&self.resource, &[object], meta, self.columns, self.include)?;
            self.columns = table::Columns::Left;
            out.extend_from_slice(table.to_string().as_bytes());
        } else {
            let form = Form { resource: &self.resource, shape: self.shape };
            form.write(out, object, false)?;
        }
        out.extend_from_slice(b"}\n");
        Ok(())
    }

    /// Encodes a bookmark: all changes up to this version were sent. `initial_end` marks the end of the
    /// initial events.
    pub(crate) fn bookmark(&mut self, out: &mut Vec<u8>, revision: u64, initial_end: bool) {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        if self.notation == Notation::Protobuf && self.shape == Shape::PartialMetadata {
            let object = protobuf::partial_metadata_enveloped(&protobuf::partial_metadata(&metadata));
            out.extend_from_slice(&protobuf::event("BOOKMARK", &object));
            return;
        }
        let object = match self.shape {
            Shape::Object => {
                let mut object = json!({
                    "kind": self.resource.kind, "apiVersion": self.resource.api_version(), "metadata": metadata,
                });
                if self.resource.is("", "pods") {
                    object["spec"] = json!({"containers": null});
                    object["status"] = json!({});
                }
                object
            }
            Shape::PartialMetadata => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
            }
            Shape::Table => self.bookmark_row(metadata, revision),
        };
        self.write(out, "BOOKMARK", &object, self.resource.model.root());
    }

    /// Encodes a bookmark as kube-apiserver does in a table: a row whose object has only these metadata.
    fn bookmark_row(&mut self, metadata: Value, revision: u64) -> Value {
        let version = json!({"resourceVersion": revision.to_string()});
        let object = Stored::new(&self.resource, "", json!({"metadata": metadata}), revision);
        let columns = std::mem::replace(&mut self.columns, table::Columns::Left);
        table::table(&self.resource, &[&object], version.clone(), columns, self.include).unwrap_or_else(
            |_| {
                json!({
                    "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": version,
                    "columnDefinitions": null, "rows": [],
                })
            },
        )
    }

    pub(crate) fn error(&self, out: &mut Vec<u8>, error: &StatusError) {
        let of = Node::message("meta.v1.Status").unwrap_or_default();
        self.write(out, "ERROR", &error.to_status(), &of);
    }

    fn write(&self, out: &mut Vec<u8>, kind: &str, object: &Value, of: &Node) {
        if self.notation == Notation::Protobuf {
            out.extend_from_slice(&protobuf::event(kind, &protobuf::enveloped(object, of)));
        } else {
            out.extend_from_slice(format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n").as_bytes());
        }
    }
}
