//! CustomResourceDefinitions: decoding, validation, and the defaulting and pruning of their objects.

mod defaults;
mod definition;
mod names;
mod object;
mod rules;

pub(crate) use defaults::fill_in;
pub(crate) use definition::validate;
pub(crate) use names::{establish, established};
pub(crate) use object::{is_same_at, validate as validate_object};
pub(crate) use rules::Rules;

use serde_json::Value;

/// A decoded definition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Definition {
    pub group: String,
    pub kind: String,
    pub list_kind: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    pub versions: Vec<Version>,
}

/// One version of a custom resource.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Version {
    pub name: String,
    pub served: bool,
    pub storage: bool,
    pub has_status: bool,
    pub columns: Vec<Column>,
    /// The JSON paths that field selectors may name.
    pub selectable_fields: Vec<String>,
    pub schema: Option<Value>,
}

/// One printer column, as `kubectl get` shows it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub name: String,
    pub of_type: String,
    pub format: String,
    pub description: String,
    pub priority: i64,
    pub json_path: String,
}

// === impl Definition ===

impl Definition {
    /// Decodes a CustomResourceDefinition that passed `validate`.
    pub(crate) fn read(crd: &Value) -> Self {
        let text = |pointer: &str| text(crd, pointer).to_owned();
        Self {
            group: text("/spec/group"),
            kind: text("/spec/names/kind"),
            list_kind: text("/spec/names/listKind"),
            plural: text("/spec/names/plural"),
            singular: text("/spec/names/singular"),
            short_names: strings(crd, "/spec/names/shortNames"),
            categories: strings(crd, "/spec/names/categories"),
            namespaced: text("/spec/scope") == "Namespaced",
            versions: list(crd, "/spec/versions").iter().map(Version::read).collect(),
        }
    }

    /// Returns the storage version.
    pub(crate) fn storage_version(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.storage)
    }
}

// === impl Version ===

impl Version {
    fn read(version: &Value) -> Self {
        let flag = |key: &str| version.get(key) == Some(&Value::Bool(true));
        Self {
            name: text(version, "/name").to_owned(),
            served: flag("served"),
            storage: flag("storage"),
            has_status: version.pointer("/subresources/status").is_some(),
            columns: list(version, "/additionalPrinterColumns").iter().map(Column::read).collect(),
            selectable_fields: list(version, "/selectableFields")
                .iter()
                .map(|field| text(field, "/jsonPath").to_owned())
                .collect(),
            schema: version.pointer("/schema/openAPIV3Schema").cloned(),
        }
    }
}

// === impl Column ===

impl Column {
    fn read(column: &Value) -> Self {
        Self {
            name: text(column, "/name").to_owned(),
            of_type: text(column, "/type").to_owned(),
            format: text(column, "/format").to_owned(),
            description: text(column, "/description").to_owned(),
            priority: column.get("priority").and_then(Value::as_i64).unwrap_or_default(),
            json_path: text(column, "/jsonPath").to_owned(),
        }
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn strings(object: &Value, pointer: &str) -> Vec<String> {
    list(object, pointer).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
pub(crate) mod tests;
