//! One entry of `metadata.managedFields`.

use super::field_set::FieldSet;
use serde_json::{Map, Value};

/// The operation that took the ownership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// One manager, and the fields that it owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub manager: String,
    pub operation: Operation,
    pub api_version: String,
    pub subresource: String,
    pub time: Option<String>,
    pub fields: FieldSet,
}

// === impl Entry ===

impl Entry {
    /// Returns whether this is the entry of that manager. The entry of an apply does not depend on the
    /// applied version.
    pub(super) fn is(
        &self,
        operation: Operation,
        manager: &str,
        api_version: &str,
        subresource: &str,
    ) -> bool {
        self.operation == operation
            && self.manager == manager
            && self.subresource == subresource
            && (operation == Operation::Apply || self.api_version == api_version)
    }

    /// Returns the manager's description in conflicts.
    pub(super) fn describe(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text = format!("{text} with subresource {:?}", self.subresource);
        }
        if self.operation == Operation::Update {
            text = format!("{text} using {}", self.api_version);
        }
        text
    }

    fn encode(&self) -> Value {
        let mut out = Map::new();
        out.insert("manager".into(), self.manager.clone().into());
        let operation = match self.operation {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        };
        out.insert("operation".into(), operation.into());
        out.insert("apiVersion".into(), self.api_version.clone().into());
        if let Some(time) = &self.time {
            out.insert("time".into(), time.clone().into());
        }
        out.insert("fieldsType".into(), "FieldsV1".into());
        out.insert("fieldsV1".into(), self.fields.encode());
        if !self.subresource.is_empty() {
            out.insert("subresource".into(), self.subresource.clone().into());
        }
        Value::Object(out)
    }

    fn decode(encoded: &Value) -> Option<Self> {
        let text = |key: &str| encoded.get(key).and_then(Value::as_str);
        if text("fieldsType") != Some("FieldsV1") {
            return None;
        }
        Some(Self {
            manager: text("manager").unwrap_or_default().to_owned(),
            operation: match text("operation")? {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return None,
            },
            api_version: text("apiVersion")?.to_owned(),
            subresource: text("subresource").unwrap_or_default().to_owned(),
            time: text("time").map(str::to_owned),
            fields: match encoded.get("fieldsV1") {
                Some(fields) => FieldSet::decode(fields)?,
                None => FieldSet::default(),
            },
        })
    }
}

/// Returns the entries of an object; `None` if they cannot be decoded.
pub(super) fn of(object: &Value) -> Option<Vec<Entry>> {
    match object.pointer("/metadata/managedFields") {
        Some(encoded) => decode(encoded),
        None => Some(Vec::new()),
    }
}

/// Decodes a list of entries.
pub(super) fn decode(encoded: &Value) -> Option<Vec<Entry>> {
    encoded.as_array()?.iter().map(Entry::decode).collect()
}

/// Encodes the entries in kube-apiserver's order.
pub(super) fn encode(entries: &[Entry]) -> Value {
    let mut entries: Vec<&Entry> = entries.iter().collect();
    entries.sort_by(|a, b| {
        let key = |e: &Entry| {
            (e.operation, e.time.clone(), e.manager.clone(), e.api_version.clone(), e.subresource.clone())
        };
        key(a).cmp(&key(b))
    });
    Value::Array(entries.into_iter().map(Entry::encode).collect())
}
