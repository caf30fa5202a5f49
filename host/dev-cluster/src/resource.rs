//! One served resource: its names, its storage, and the options of its strategy.

use crate::model::{FieldValidation, Model};
use crate::status::{GroupResource, StatusError};
use crate::store::Stored;
use crate::subresources::ScalePaths;
use crate::table::Column;
use serde_json::Value;
use std::sync::Arc;

/// A resource in one version, as requests name it.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) namespaced: bool,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    /// The resource has a status subresource.
    pub(crate) has_status: bool,
    /// An update may omit the resourceVersion.
    pub(crate) unconditional_update: bool,
    /// A PUT creates a missing object.
    pub(crate) create_on_update: bool,
    /// A delete returns the object rather than a Status.
    pub(crate) returns_deleted: bool,
    /// Field selectors besides `metadata.name` and `metadata.namespace`, as paths in the stored form.
    pub(crate) selectable: Vec<String>,
    pub(crate) verbs: &'static [&'static str],
    /// The storage of the objects. Two versions or groups of a resource may share one.
    pub(crate) storage: GroupResource,
    /// The apiVersion of stored objects.
    pub(crate) storage_api_version: String,
    /// The rules for decoding, defaulting and validation.
    pub(crate) model: Model,
    /// Set for custom resources.
    pub(crate) custom: Option<Arc<CustomVersion>>,
    /// Set if the served form has other field names than the stored form.
    pub(crate) view: Option<View>,
}

/// The definition of one version of a custom resource.
#[derive(Debug)]
pub(crate) struct CustomVersion {
    /// The printer columns; `None` for the default columns.
    pub(crate) columns: Option<Vec<(Column, String)>>,
    pub(crate) scale: Option<ScalePaths>,
}

/// Converts between the served and the stored form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) to_served: fn(&mut Value),
    pub(crate) to_stored: fn(&mut Value),
}

/// The verbs of a resource with all operations.
pub(crate) const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// The same verbs for custom resources, in kube-apiserver's order.
pub(crate) const CUSTOM_VERBS: &[&str] =
    &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
/// Namespaces have no deletecollection.
pub(crate) const NAMESPACE_VERBS: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];

// === impl Resource ===

impl Resource {
    /// Returns `v1` or `group/version`.
    pub(crate) fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    pub(crate) fn group_resource(&self) -> GroupResource {
        GroupResource::new(&self.group, &self.plural)
    }

    /// Returns the storage key of an object, in etcd's order: `namespace/name` or `name`.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced { format!("{namespace}/{name}") } else { name.to_owned() }
    }

    /// Returns whether objects are stored in another version, which may have other fields.
    pub(crate) fn is_another_version(&self) -> bool {
        self.custom.is_some() && self.storage_api_version != self.api_version()
    }

    /// Returns a stored object in this version.
    pub(crate) fn served(&self, object: &Stored) -> Result<Value, StatusError> {
        let mut value = object.value()?;
        if let Some(view) = self.view {
            (view.to_served)(&mut value);
        }
        if self.is_another_version() {
            value = self.model.decode(value, FieldValidation::Ignore)?.object;
        }
        if let Value::Object(fields) = &mut value {
            fields.insert("apiVersion".into(), self.api_version().into());
        }
        Ok(value)
    }

    /// Converts an object of this version to its stored form.
    pub(crate) fn stored(&self, mut value: Value) -> Value {
        if let Some(view) = self.view {
            (view.to_stored)(&mut value);
        }
        value
    }

    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }
}
