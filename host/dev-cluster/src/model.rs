//! The rules of one kind: decoding, defaulting, resetting, validation and patching.
//!
//! Everything here is a pure function of JSON. A request calls, in this order: `decode`, `managed_fields`,
//! `prepare_…`, `validate_…`.

mod decode;
mod defaults;
mod prepare;
mod quantity;

use crate::crd;
use crate::schema::{self, Node, Shape, StructRef};
use crate::status::{Cause, GroupKind, StatusError};
use crate::validation;
use serde_json::Value;
use std::sync::Arc;

pub(crate) use decode::FieldValidation;
pub(crate) use quantity::nanos as quantity_nanos;

/// The rules of one version of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    root: Node,
    kind: GroupKind,
    api_version: String,
    has_status: bool,
    namespaced: bool,
    /// The definition of this version, for custom resources.
    custom: Option<Arc<Custom>>,
}

#[derive(Debug)]
struct Custom {
    /// The `openAPIV3Schema`.
    schema: Option<Value>,
    rules: crd::Rules,
}

/// A decoded object, and the texts of its `Warning` headers.
#[derive(Clone, Debug)]
pub(crate) struct Decoded {
    pub object: Value,
    pub warnings: Vec<String>,
}

/// The built-in kinds with a status subresource.
const WITH_STATUS: &[&str] = &[
    "CertificateSigningRequest",
    "CronJob",
    "CustomResourceDefinition",
    "DaemonSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "Ingress",
    "Job",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "ReplicaSet",
    "ReplicationController",
    "ResourceQuota",
    "Service",
    "StatefulSet",
];

/// The cluster-scoped built-in kinds.
const CLUSTER_SCOPED: &[&str] = &[
    "CertificateSigningRequest",
    "ClusterRole",
    "ClusterRoleBinding",
    "CSIDriver",
    "CSINode",
    "CustomResourceDefinition",
    "IngressClass",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "StorageClass",
    "VolumeAttachment",
];

// === impl Model ===

impl Model {
    /// Returns the model of a built-in kind.
    pub(crate) fn builtin(group: &str, version: &str, kind: &str) -> Option<Self> {
        Some(Self {
            root: StructRef::builtin(group, version, kind)?.into(),
            kind: GroupKind::new(group, kind),
            api_version: api_version(group, version),
            has_status: WITH_STATUS.contains(&kind),
            namespaced: !CLUSTER_SCOPED.contains(&kind),
            custom: None,
        })
    }

    /// Returns the model of one version of a custom resource; `None` if the definition has no such version.
    pub(crate) fn custom(definition: &crd::Definition, version: &str) -> Option<Self> {
        let of_version = definition.versions.iter().find(|v| v.name == version)?;
        Some(Self {
            root: schema::root_of_version(of_version.schema.as_ref()).into(),
            kind: GroupKind::new(definition.group.as_str(), definition.kind.as_str()),
            api_version: api_version(&definition.group, version),
            has_status: of_version.has_status,
            namespaced: definition.namespaced,
            custom: Some(Arc::new(Custom {
                rules: of_version.schema.as_ref().map(crd::Rules::compile).unwrap_or_default(),
                schema: of_version.schema.clone(),
            })),
        })
    }

    pub(crate) fn root(&self) -> &Node {
        &self.root
    }

    pub(crate) fn kind(&self) -> &GroupKind {
        &self.kind
    }

    pub(crate) fn api_version(&self) -> &str {
        &self.api_version
    }

    pub(crate) fn has_status(&self) -> bool {
        self.has_status
    }

    /// Returns the name of a built-in kind in the table of types, such as `apps.v1.Deployment`.
    pub(crate) fn builtin_type(&self) -> Option<&str> {
        match &self.root.shape {
            Shape::Struct(of @ StructRef::Builtin(_)) => Some(&of.get().name),
            _ => None,
        }
    }

    /// Returns the `openAPIV3Schema` of a custom resource's version.
    pub(crate) fn custom_schema(&self) -> Option<&Value> {
        self.custom.as_ref()?.schema.as_ref()
    }

    pub(crate) fn is_custom(&self) -> bool {
        self.custom.is_some()
    }

    /// Returns a 422 for an invalid new object.
    pub(crate) fn validate_create(&self, object: &Value) -> Result<(), StatusError> {
        let mut causes = validation::metadata(object, self.namespaced, self.name_rule());
        match &self.custom {
            Some(custom) => causes.extend(custom.validate(object, None)),
            None => causes.extend(validation::builtin(&self.kind, object)),
        }
        self.refuse(object, causes)
    }

    /// Returns a 422 for an invalid update.
    pub(crate) fn validate_update(&self, new: &Value, old: &Value) -> Result<(), StatusError> {
        let mut causes = validation::metadata_update(new, old, self.namespaced);
        match &self.custom {
            Some(custom) => causes.extend(custom.validate(new, Some(old))),
            None => {
                causes.extend(validation::builtin_update(&self.kind, new, old));
                // An accepted spec is not validated again unless it changed.
                if new.get("spec") != old.get("spec") || new.get("spec").is_none() {
                    causes.extend(validation::builtin(&self.kind, new));
                }
            }
        }
        self.refuse(new, causes)
    }

    /// Returns a 422 for an invalid update of the status.
    pub(crate) fn validate_status_update(&self, new: &Value, old: &Value) -> Result<(), StatusError> {
        let mut causes = validation::metadata_update(new, old, self.namespaced);
        if let Some(custom) = &self.custom {
            causes.extend(custom.validate(new, Some(old)));
        }
        self.refuse(new, causes)
    }

    /// Prepares an approval of a CertificateSigningRequest: the spec stays.
    pub(crate) fn prepare_decision(&self, new: &mut Value, old: &Value) {
        new["spec"] = old["spec"].clone();
    }

    /// Returns a 422 for an approval that revokes an earlier decision.
    pub(crate) fn validate_decision(&self, new: &Value, old: &Value) -> Result<(), StatusError> {
        let mut causes = validation::metadata_update(new, old, self.namespaced);
        causes.extend(validation::certificate_decisions(new, old));
        self.refuse(new, causes)
    }

    /// Returns a 422 for an invalid update of a Pod's ephemeral containers.
    pub(crate) fn validate_ephemeral_containers(&self, new: &Value, old: &Value) -> Result<(), StatusError> {
        let mut causes = validation::metadata_update(new, old, self.namespaced);
        causes.extend(validation::ephemeral_containers(new, old));
        self.refuse(new, causes)
    }

    fn name_rule(&self) -> validation::NameRule {
        validation::NameRule::of(&self.kind)
    }

    fn refuse(&self, object: &Value, causes: Vec<Cause>) -> Result<(), StatusError> {
        if causes.is_empty() {
            return Ok(());
        }
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        Err(StatusError::invalid(&self.kind, name, causes))
    }
}

// === impl Custom ===

impl Custom {
    /// Returns the errors of an object. With an old object, an unchanged field that violates a stricter
    /// schema does not block changes elsewhere.
    ///
    /// Rules are evaluated only for an object that matches its schema, so that they see the types that they
    /// expect.
    fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let mut causes = crd::validate_object(self.schema.as_ref(), object);
        if let Some(old) = old.filter(|_| !causes.is_empty()) {
            let before = crd::validate_object(self.schema.as_ref(), old);
            causes.retain(|cause| !(before.contains(cause) && crd::is_same_at(&cause.field, object, old)));
        }
        match &self.schema {
            Some(schema) if !self.rules.is_empty() => {
                if causes.iter().any(Cause::blocks_rules) {
                    causes.push(Cause::invalid("<nil>", &Value::Null, RULES_NOT_CHECKED));
                } else {
                    causes.extend(self.rules.evaluate(schema, object, old));
                }
            }
            _ => {}
        }
        causes
    }
}

const RULES_NOT_CHECKED: &str = "some validation rules were not checked because the object was invalid; correct the existing \
                                 errors to complete validation";

fn api_version(group: &str, version: &str) -> String {
    match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    }
}

#[cfg(test)]
mod tests;
