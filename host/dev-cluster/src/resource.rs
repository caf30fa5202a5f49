//! One served resource: how it is called, where its objects are kept, and which rules of the strategy apply to it.

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
    /// There is a status subresource.
    pub(crate) has_status: bool,
    /// An update without a resourceVersion is taken.
    pub(crate) unconditional_update: bool,
    /// A PUT of a name that is not there creates it.
    pub(crate) create_on_update: bool,
    /// A delete answers with the object, not with a Status.
    pub(crate) returns_deleted: bool,
    /// Field selectors beyond `metadata.name` and `metadata.namespace`, as paths into the stored form.
    pub(crate) selectable: Vec<String>,
    pub(crate) verbs: &'static [&'static str],
    /// Where the objects are kept: resources of two versions or groups may share it.
    pub(crate) storage: GroupResource,
    /// The apiVersion that stored objects carry.
    pub(crate) storage_api_version: String,
    /// How objects are decoded, defaulted and checked.
    pub(crate) model: Model,
    /// Set for custom resources.
    pub(crate) custom: Option<Arc<CustomVersion>>,
    /// Set where the served form has other field names than the stored one.
    pub(crate) view: Option<View>,
}

/// What a CustomResourceDefinition says about one version.
#[derive(Debug)]
pub(crate) struct CustomVersion {
    /// The printer columns; `None` for the default ones.
    pub(crate) columns: Option<Vec<(Column, String)>>,
    pub(crate) scale: Option<ScalePaths>,
}

/// Translates between the served and the stored form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) to_served: fn(&mut Value),
    pub(crate) to_stored: fn(&mut Value),
}

/// The verbs of a resource that can do everything.
pub(crate) const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// The same for custom resources, in the order in which the real server has them there.
pub(crate) const CUSTOM_VERBS: &[&str] =
    &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
/// Namespaces cannot be deleted by collection.
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

    /// Returns the key that an object of this resource is kept under, in etcd's order: `namespace/name` or `name`.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced { format!("{namespace}/{name}") } else { name.to_owned() }
    }

    /// Returns whether objects are stored in another version, whose fields this one need not have.
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

    /// Turns an object of this version into its stored form.
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
