//! One request for a resource, with everything that its handler needs.

use crate::authorizer::Authorizer;
use crate::cluster::Cluster;
use crate::faults::{Action, Subject};
use crate::model::{FieldValidation, Model};
use crate::negotiation::{self, Accepted};
use crate::query::Query;
use crate::request_info::Target;
use crate::resource::Resource;
use crate::selector::{FieldSelector, Selection};
use crate::status::{Cause, GroupKind, StatusError};
use crate::user::UserInfo;
use bytes::Bytes;
use http::HeaderMap;
use oarlock_label_selector::ParseError;
use serde_json::Value;
use std::sync::Arc;

pub(crate) struct Call {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) user: UserInfo,
    /// The snapshot of the rights at the time of the request.
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) headers: HeaderMap,
    pub(crate) query: Query,
    pub(crate) target: Target,
    pub(crate) resource: Arc<Resource>,
    pub(crate) accepted: Accepted,
    pub(crate) body: Bytes,
    /// The attributes that faults match, for faults that happen later in a watch.
    pub(crate) subject: Subject,
    /// The faults to apply to the body of the response.
    pub(crate) faults: Vec<Action>,
}

// === impl Call ===

impl Call {
    pub(crate) fn model(&self) -> &Model {
        &self.resource.model
    }

    /// Returns the key of the object that the path names.
    pub(crate) fn key(&self) -> String {
        self.resource.key(&self.target.namespace, &self.target.name)
    }

    /// Returns the current time in Kubernetes' format, in whole seconds.
    pub(crate) fn now(&self) -> String {
        self.cluster.store.generated().now()
    }

    pub(crate) fn is_status(&self) -> bool {
        self.target.subresource == "status"
    }

    pub(crate) fn not_found(&self) -> StatusError {
        StatusError::not_found(&self.resource.group_resource(), &self.target.name)
    }

    /// Decodes the object in the body.
    pub(crate) fn decode_body(&self) -> Result<Value, StatusError> {
        let of = self.resource.custom.is_none().then(|| self.model().root());
        negotiation::decode(&self.headers, &self.body, &self.resource.kind, of)
    }

    /// Returns the field manager of this request.
    pub(crate) fn manager(&self) -> String {
        self.query.manager(&self.headers)
    }

    pub(crate) fn field_validation(&self) -> Result<FieldValidation, StatusError> {
        match self.query.get("fieldValidation") {
            None | Some("" | "Warn") => Ok(FieldValidation::Warn),
            Some("Ignore") => Ok(FieldValidation::Ignore),
            Some("Strict") => Ok(FieldValidation::Strict),
            Some(other) => Err(StatusError::invalid(
                &GroupKind::new("meta.k8s.io", "CreateOptions"),
                "",
                vec![Cause::new(
                    "FieldValueNotSupported",
                    "fieldValidation",
                    format!(
                        "Unsupported value: {other:?}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""
                    ),
                )],
            )),
        }
    }

    /// Returns the objects that a list, a watch or a deletecollection selects.
    pub(crate) fn selection(&self) -> Result<Selection, StatusError> {
        let text = |name: &str| self.query.get(name).unwrap_or_default();
        Ok(Selection {
            labels: text("labelSelector")
                .parse()
                .map_err(|error: ParseError| StatusError::bad_request(error.to_string()))?,
            fields: FieldSelector::parse(text("fieldSelector"), &self.resource)?,
            namespace: self.target.namespace.clone(),
        })
    }
}
