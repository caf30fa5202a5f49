//! Objects as rows for `kubectl get`; the server decides the columns.

mod builtin;
mod cells;
mod columns;
mod json_path;
mod others;

use crate::resource::Resource;
use crate::status::StatusError;
use crate::store::Stored;
use serde_json::{Value, json};

/// The definition of one column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    /// 0 is always shown, 1 only with `-o wide`.
    pub(crate) priority: i64,
}

/// Whether a table defines its columns. In a watch only the first table does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    Named,
    Left,
}

/// The part of the object that comes with its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    None,
    Metadata,
    Object,
}

// === impl Include ===

impl Include {
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, StatusError> {
        match text {
            None | Some("" | "Metadata") => Ok(Self::Metadata),
            Some("None") => Ok(Self::None),
            Some("Object") => Ok(Self::Object),
            Some(other) => Err(StatusError::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', \
                 'Object', 'None', or empty"
            ))),
        }
    }
}

// === impl Column ===

impl Column {
    fn to_value(&self) -> Value {
        json!({
            "name": self.name, "type": self.kind, "format": self.format,
            "description": self.description, "priority": self.priority,
        })
    }
}

/// Returns the `meta.k8s.io/v1` Table of these objects; `meta` is the metadata of the table.
pub(crate) fn table(
    resource: &Resource,
    objects: &[&Stored],
    meta: Value,
    columns: Columns,
    include: Include,
) -> Result<Value, StatusError> {
    let custom = resource.custom.as_ref().map(|custom| custom.columns.as_deref());
    let heads = match custom {
        None => columns::columns(resource),
        Some(columns) => custom_columns(columns),
    };
    let now = jiff::Timestamp::now();
    let mut rows = Vec::with_capacity(objects.len());
    for object in objects {
        let value = resource.served(object)?;
        let cells = match custom {
            None => builtin::cells(resource, &value, now),
            Some(columns) => custom_cells(columns, &value, now),
        };
        let mut row = json!({"cells": cells});
        match include {
            Include::None => row["object"] = Value::Null,
            Include::Metadata => {
                row["object"] = json!({
                    "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                    "metadata": value.get("metadata"),
                });
            }
            Include::Object => row["object"] = value,
        }
        rows.push(row);
    }
    let definitions = match columns {
        Columns::Named => heads.iter().map(Column::to_value).collect(),
        Columns::Left => Value::Null,
    };
    Ok(json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta,
        "columnDefinitions": definitions, "rows": rows,
    }))
}

fn custom_columns(columns: Option<&[(Column, String)]>) -> Vec<Column> {
    let mut heads = vec![columns::name_column()];
    match columns {
        Some(columns) => heads.extend(columns.iter().map(|(column, _)| column.clone())),
        None => heads.push(columns::age_column("date")),
    }
    heads
}

fn custom_cells(columns: Option<&[(Column, String)]>, object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let name = object.pointer("/metadata/name").cloned().unwrap_or_default();
    let mut cells = vec![name];
    match columns {
        None => cells.push(cells::age(object, "/metadata/creationTimestamp", now).into()),
        Some(columns) => cells.extend(columns.iter().map(|(column, path)| {
            let found = json_path::first(object, path);
            match (found, column.kind.as_str()) {
                (None, _) => Value::Null,
                (Some(value), "date") => cells::age_of(value.as_str().unwrap_or_default(), now).into(),
                (Some(value @ Value::String(_)), _) => value.clone(),
                (Some(value), "string") => value.to_string().into(),
                (Some(value), _) => value.clone(),
            }
        })),
    }
    cells
}
