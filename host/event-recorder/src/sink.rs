//! The destination of Events.

use std::{error::Error, fmt::Debug, future::Future, time::Duration};

use async_trait::async_trait;
use k8s_openapi::{NamespaceResourceScope, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Writes Events of one version of the API. One call is one request.
#[async_trait]
pub trait EventSink<E>: Send + Sync {
    /// Creates an Event, and returns the stored one.
    async fn create(&self, event: &E) -> Result<E, SinkError>;

    /// Applies a merge patch to the Event with this name and namespace, and returns the stored one.
    async fn patch(&self, event: &E, patch: &Value) -> Result<E, SinkError>;
}

/// The reason why an Event was not written. After [`Transport`](Self::Transport) it may have been.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SinkError {
    /// The Event or its namespace does not exist.
    #[error("not found: {0}")]
    NotFound(String),
    /// An Event with this name exists.
    #[error("exists already: {0}")]
    AlreadyExists(String),
    /// The API server refused it for another reason.
    #[error("refused: {0}")]
    Refused(String),
    /// It cannot be made into a request.
    #[error("no request could be made: {0}")]
    Construction(String),
    /// The answer is not an Event.
    #[error("unexpected answer: {0}")]
    Unexpected(String),
    /// The API server was not reached, or its answer was lost.
    #[error("the API server was not reached: {0}")]
    Transport(String),
}

/// Writes Events to the API server with a client.
#[derive(Clone)]
pub struct KubeSink {
    client: kube::Client,
}

// === impl SinkError ===

impl SinkError {
    /// Returns true if a retry may succeed (ER-06).
    #[must_use]
    pub fn is_retried(&self) -> bool {
        matches!(self, Self::Unexpected(_) | Self::Transport(_))
    }

    fn from_kube(error: &kube::Error) -> Self {
        let text = with_causes(error);
        match error {
            kube::Error::Api(status) if status.reason == "AlreadyExists" => Self::AlreadyExists(text),
            kube::Error::Api(status) if status.code == 404 => Self::NotFound(text),
            kube::Error::Api(_) => Self::Refused(text),
            kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => Self::Construction(text),
            kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => Self::Unexpected(text),
            _ => Self::Transport(text),
        }
    }
}

// === impl KubeSink ===

impl KubeSink {
    /// Returns a sink.
    #[must_use]
    pub fn new(client: kube::Client) -> Self {
        Self { client }
    }

    fn api<E>(&self, metadata: &ObjectMeta) -> Api<E>
    where
        E: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), metadata.namespace.as_deref().unwrap_or("default"))
    }
}

#[async_trait]
impl<E> EventSink<E> for KubeSink
where
    E: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + Sync
        + 'static,
{
    async fn create(&self, event: &E) -> Result<E, SinkError> {
        answer(self.api::<E>(event.meta()).create(&PostParams::default(), event)).await
    }

    async fn patch(&self, event: &E, patch: &Value) -> Result<E, SinkError> {
        let name = event.meta().name.as_deref().unwrap_or_default();
        answer(self.api::<E>(event.meta()).patch(name, &PatchParams::default(), &Patch::Merge(patch))).await
    }
}

/// Joins the messages of an error and of its causes. Leaves out a message that the one before contains.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source()).map(ToString::to_string);
    causes.fold(
        error.to_string(),
        |text, cause| if text.contains(&cause) { text } else { format!("{text}: {cause}") },
    )
}

async fn answer<E>(request: impl Future<Output = Result<E, kube::Error>>) -> Result<E, SinkError> {
    match tokio::time::timeout(TIMEOUT, request).await {
        Ok(answer) => answer.map_err(|error| SinkError::from_kube(&error)),
        Err(_) => Err(SinkError::Transport(format!("no answer within {TIMEOUT:?}"))),
    }
}
