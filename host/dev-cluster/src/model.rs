//! One kind, as the API server knows it: how its objects are decoded, defaulted, reset, validated and patched.
//!
//! Everything here is a pure function on JSON. The order in a request is: `decode`, ownership (`managed_fields`),
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

/// What the API server knows of one version of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    root: Node,
    kind: GroupKind,
    api_version: String,
    has_status: bool,
    namespaced: bool,
    /// What a custom resource's definition says of this version.
    custom: Option<Arc<Custom>>,
}

#[derive(Debug)]
struct Custom {
    /// The `openAPIV3Schema`.
    schema: Option<Value>,
    rules: crd::Rules,
}

/// An object as decoded, and what is to be said about it in `Warning` headers.
#[derive(Clone, Debug)]
pub(crate) struct Decoded {
    pub object: Value,
    pub warnings: Vec<String>,
}

/// The built-in kinds that have a status of their own.
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

/// The built-in kinds that are in no namespace.
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

    /// Returns the model of one version of a custom resource; `None` when the definition has no such version.
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

    /// Returns the name that a built-in kind has in the table of types, such as `apps.v1.Deployment`.
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

    /// Refuses, with 422, an object that must not be created.
    pub(crate) fn validate_create(&self, object: &Value) -> Result<(), StatusError> {
        let mut causes = validation::metadata(object, self.namespaced, self.name_rule());
        match &self.custom {
            Some(custom) => causes.extend(custom.validate(object, None)),
            None => causes.extend(validation::builtin(&self.kind, object)),
        }
        self.refuse(object, causes)
    }

    /// Refuses, with 422, a change that must not be made.
    pub(crate) fn validate_update(&self, new: &Value, old: &Value) -> Result<(), StatusError> {
        let mut causes = validation::metadata_update(new, old, self.namespaced);
        match &self.custom {
            Some(custom) => causes.extend(custom.validate(new, Some(old))),
            None => {
                causes.extend(validation::builtin_update(&self.kind, new, old));
                // What was accepted once is not looked at again unless it changed.
                if new.get("spec") != old.get("spec") || new.get("spec").is_none() {
                    causes.extend(validation::builtin(&self.kind, new));
                }
            }
        }
        self.refuse(new, causes)
    }

    /// Refuses, with 422, a change of status that must not be made.
    pub(crate) fn validate_status_update(&self, new: &Value, old: &Value) -> Result<(), StatusError> {
        let mut causes = validation::metadata_update(new, old, self.namespaced);
        if let Some(custom) = &self.custom {
            causes.extend(custom.validate(new, Some(old)));
        }
        self.refuse(new, causes)
    }

    /// Readies a decision on a request for a certificate: what is asked stays.
    pub(crate) fn prepare_decision(&self, new: &mut Value, old: &Value) {
        new["spec"] = old["spec"].clone();
    }

    /// Refuses, with 422, a decision on a request for a certificate that takes another back.
    pub(crate) fn validate_decision(&self, new: &Value, old: &Value) -> Result<(), StatusError> {
        let mut causes = validation::metadata_update(new, old, self.namespaced);
        causes.extend(validation::certificate_decisions(new, old));
        self.refuse(new, causes)
    }

    /// Refuses, with 422, a change of a Pod's ephemeral containers that must not be made.
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
    /// Returns what is wrong with an object. With the object that it replaces, what a stricter schema finds and found before
    /// does not stand in the way of a change elsewhere.
    ///
    /// Rules are evaluated only when the object fits its schema, so that they see the types that they expect.
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
