//! The lock of Kubernetes: a Lease of `coordination.k8s.io/v1`. The crate has no other kind (LL-01).

use std::collections::BTreeMap;

use async_trait::async_trait;
use k8s_openapi::{
    api::{coordination::v1::Lease, core::v1::ObjectReference},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::api::{Api, PostParams};
use parking_lot::Mutex;

use crate::{
    lock::{Fetched, Lock, LockError},
    record::Record,
};

/// A Lease in the API server.
pub struct LeaseLock {
    api: Api<Lease>,
    namespace: String,
    name: String,
    identity: String,
    labels: BTreeMap<String, String>,
    recorder: Option<Box<RecordEvent>>,
    /// The Lease last read or written.
    lease: Mutex<Option<Lease>>,
}

/// Records an Event about the Lease: its reference, a reason and a message.
type RecordEvent = dyn Fn(ObjectReference, &str, &str) + Send + Sync;

// === impl LeaseLock ===

impl LeaseLock {
    /// Returns a lock of the Lease with this name. Sends no request.
    #[must_use]
    pub fn new(client: kube::Client, namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            labels: BTreeMap::new(),
            recorder: None,
            lease: Mutex::new(None),
        }
    }

    /// Sets labels that every write adds. Other labels of the Lease stay.
    #[must_use]
    pub fn with_labels(self, labels: BTreeMap<String, String>) -> Self {
        Self { labels, ..self }
    }

    /// Calls `recorder` with each Event about the Lease: a reference to the Lease, the reason and the
    /// message. It must not block.
    #[must_use]
    pub fn with_recorder(
        self,
        recorder: impl Fn(ObjectReference, &str, &str) + Send + Sync + 'static,
    ) -> Self {
        Self { recorder: Some(Box::new(recorder)), ..self }
    }

    fn keep(&self, lease: Lease) {
        *self.lease.lock() = Some(lease);
    }
}

#[async_trait]
impl Lock for LeaseLock {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn describe(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    async fn get(&self) -> Result<Fetched, LockError> {
        let lease = self.api.get(&self.name).await.map_err(LockError::from_kube)?;
        let record = lease.spec.as_ref().map(Record::from_spec).unwrap_or_default();
        self.keep(lease);
        let raw = serde_json::to_vec(&record).unwrap_or_default();
        Ok(Fetched { record, raw })
    }

    async fn create(&self, record: &Record) -> Result<(), LockError> {
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(self.namespace.clone()),
            labels: Some(self.labels.clone()).filter(|labels| !labels.is_empty()),
            ..ObjectMeta::default()
        };
        let lease = Lease { metadata, spec: Some(record.to_spec()) };
        let created = self.api.create(&PostParams::default(), &lease).await;
        self.keep(created.map_err(LockError::from_kube)?);
        Ok(())
    }

    async fn update(&self, record: &Record) -> Result<(), LockError> {
        let mut lease = self.lease.lock().clone().ok_or(LockError::NotInitialized)?;
        lease.spec = Some(record.to_spec());
        if !self.labels.is_empty() {
            lease.metadata.labels.get_or_insert_default().extend(self.labels.clone());
        }
        let updated = self.api.replace(&self.name, &PostParams::default(), &lease).await;
        self.keep(updated.map_err(LockError::from_kube)?);
        Ok(())
    }

    fn record_event(&self, message: &str) {
        let Some(recorder) = &self.recorder else { return };
        let metadata = self.lease.lock().as_ref().map(|lease| lease.metadata.clone()).unwrap_or_default();
        let regarding = ObjectReference {
            api_version: Some("coordination.k8s.io/v1".to_owned()),
            kind: Some("Lease".to_owned()),
            namespace: Some(self.namespace.clone()),
            name: Some(self.name.clone()),
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            field_path: None,
        };
        let message = format!("{} {message}", self.identity);
        recorder(regarding, "LeaderElection", &message);
    }
}

// === impl LockError ===

impl LockError {
    fn from_kube(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if status.reason == "AlreadyExists" => {
                Self::AlreadyExists(status.message.clone())
            }
            kube::Error::Api(status) if status.code == 409 => Self::Conflict(status.message.clone()),
            kube::Error::Api(status) if status.code == 404 && status.reason == "NotFound" => Self::NotFound,
            error @ kube::Error::Api(_) => Self::Refused(error),
            error @ (kube::Error::SerdeError(_) | kube::Error::FromUtf8(_)) => Self::Malformed(error),
            error => Self::Unreachable(error),
        }
    }
}

#[cfg(test)]
mod tests;
