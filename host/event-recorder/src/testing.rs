//! A sink that records its calls, and fails on request.

use std::sync::Arc;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::ObjectReference;
use parking_lot::Mutex;
use serde_json::Value;

use crate::sink::{EventSink, SinkError};

/// One call of a sink.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Written<E> {
    Created(E),
    Patched(E, Value),
}

type Answer<E> = Box<dyn FnMut(&Written<E>) -> Result<(), SinkError> + Send>;

/// Clones share the sink.
pub(crate) struct FakeSink<E> {
    calls: Arc<Mutex<Vec<Written<E>>>>,
    answer: Arc<Mutex<Answer<E>>>,
    /// Calls wait for a permit.
    gate: Arc<tokio::sync::Semaphore>,
}

// === impl Written ===

impl<E> Written<E> {
    pub(crate) fn event(&self) -> &E {
        match self {
            Self::Created(event) | Self::Patched(event, _) => event,
        }
    }

    pub(crate) fn patch(&self) -> Option<&Value> {
        match self {
            Self::Created(_) => None,
            Self::Patched(_, patch) => Some(patch),
        }
    }
}

// === impl FakeSink ===

impl<E: Clone + Send + Sync> FakeSink<E> {
    /// Returns a sink that accepts all writes.
    pub(crate) fn new() -> Self {
        Self::answering(|_| Ok(()))
    }

    pub(crate) fn answering(
        answer: impl FnMut(&Written<E>) -> Result<(), SinkError> + Send + 'static,
    ) -> Self {
        let gate = Arc::new(tokio::sync::Semaphore::new(tokio::sync::Semaphore::MAX_PERMITS));
        Self { calls: Arc::default(), answer: Arc::new(Mutex::new(Box::new(answer))), gate }
    }

    /// Returns a sink that blocks until the gate has permits.
    pub(crate) fn blocked() -> (Self, Arc<tokio::sync::Semaphore>) {
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        (Self { gate: gate.clone(), ..Self::new() }, gate)
    }

    /// Returns the calls since the last time.
    pub(crate) fn calls(&self) -> Vec<Written<E>> {
        std::mem::take(&mut self.calls.lock())
    }

    async fn call(&self, call: Written<E>) -> Result<E, SinkError> {
        self.calls.lock().push(call.clone());
        let permit = self.gate.acquire().await;
        permit.expect("a gate that is never closed").forget();
        (self.answer.lock())(&call)?;
        Ok(call.event().clone())
    }
}

impl<E> Clone for FakeSink<E> {
    fn clone(&self) -> Self {
        Self { calls: self.calls.clone(), answer: self.answer.clone(), gate: self.gate.clone() }
    }
}

#[async_trait]
impl<E: Clone + Send + Sync> EventSink<E> for FakeSink<E> {
    async fn create(&self, event: &E) -> Result<E, SinkError> {
        self.call(Written::Created(event.clone())).await
    }

    async fn patch(&self, event: &E, patch: &Value) -> Result<E, SinkError> {
        self.call(Written::Patched(event.clone(), patch.clone())).await
    }
}

pub(crate) fn transport() -> SinkError {
    SinkError::Transport("connection refused".to_owned())
}

/// The Pod `baz/foo`.
pub(crate) fn pod(uid: &str, field_path: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        namespace: Some("baz".to_owned()),
        name: Some("foo".to_owned()),
        uid: Some(uid.to_owned()),
        resource_version: None,
        field_path: Some(field_path.to_owned()).filter(|path| !path.is_empty()),
    }
}

/// Lets all ready tasks run.
pub(crate) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}
