//! The `events` import: records Kubernetes Events as the plugin's account, without waiting for the API
//! server.
//!
//! The crate `oarlock-event-recorder` counts equal Events, combines similar ones and drops spam. An Event may
//! be lost, but a plugin never waits for one.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use http::Method;
use k8s_openapi::api::core::v1::{Event, ObjectReference};
use oarlock_event_recorder::{
    Broadcaster, Dropped, EventRecorder, EventSink, EventType, Recording, RecordingConfig, SinkError,
    correlator,
};
use oarlock_plugin::{
    contract::{self, Error, GroupVersionResource, ObjectKey, ThrottledInfo},
    guest::{HostBytes, host_bytes::Use},
    kube_access::GuestEvent,
};
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::request::{Call, Requester};

/// The number of entries in each of the recorder's three caches, per plugin. An entry has at most about 2 KB,
/// so the three take at most 6 MB.
const REMEMBERED: usize = 1_024;

/// About the bytes of an Event without its texts, and with those texts that it contains twice.
const EVENT_COST: usize = 1_536;

/// Takes the Events of a plugin.
pub(super) struct Emitter {
    /// Made for the first Event: most plugins emit none.
    recorder: OnceLock<EventRecorder>,
    requester: Arc<Requester>,
    account: HostBytes,
    record: StartRecording,
}

/// Starts the task that a [`Recorder`] runs on.
pub(crate) type StartRecording = Box<dyn Fn(Recorder) + Send + Sync>;

/// Sends Events to the API server. Runs on a task of its own.
pub(crate) struct Recorder {
    recording: Recording<PluginSink>,
}

/// Writes Events as the plugin's account. The writes count as requests of the plugin.
struct PluginSink {
    requester: Arc<Requester>,
}

// === impl Emitter ===

impl Emitter {
    /// Returns an emitter. Its first Event starts the recording. Events that wait are charged to the plugin's
    /// host bytes.
    pub(super) fn new(requester: Arc<Requester>, record: StartRecording) -> Self {
        let account = requester.account.clone();
        Self { recorder: OnceLock::new(), requester, account, record }
    }

    fn recorder(&self) -> &EventRecorder {
        self.recorder.get_or_init(|| {
            let requester = self.requester.clone();
            let broadcaster = Broadcaster::new();
            let watch = broadcaster.watch();
            let recorder = EventRecorder::new(broadcaster, &requester.plugin, "").with_instance("oarlock");
            let correlator =
                correlator::Config { lru_cache_size: REMEMBERED, ..correlator::Config::default() };
            let config = RecordingConfig { correlator, ..RecordingConfig::default() };
            (self.record)(Recorder { recording: Recording::new(watch, PluginSink { requester }, config) });
            recorder
        })
    }

    pub(super) fn emit(&self, event: GuestEvent) -> Result<(), Error> {
        let charge = self.account.charge(Use::Events, cost(&event))?;
        let GuestEvent { target, regarding, kind, event_type, reason, note } = event;
        let api_version = match target.group.as_str() {
            "" => target.version,
            group => format!("{group}/{}", target.version),
        };
        let regarding = ObjectReference {
            api_version: Some(api_version),
            kind: Some(kind),
            namespace: Some(regarding.namespace).filter(|it| !it.is_empty()),
            name: Some(regarding.name),
            uid: Some(regarding.uid),
            resource_version: Some(regarding.resource_version),
            field_path: None,
        };
        let event_type = match event_type {
            contract::EventType::Normal => EventType::Normal,
            contract::EventType::Warning => EventType::Warning,
        };
        self.recorder().event_holding(regarding, event_type, &reason, &note, charge).map_err(|dropped| {
            match dropped {
                Dropped::Full => Error::Throttled(ThrottledInfo {
                    message: format!(
                        "the queue is full: {} Events wait to be recorded",
                        Broadcaster::<Event>::QUEUE
                    ),
                    retry_after_ms: None,
                }),
                Dropped::ShutDown => {
                    Error::Unavailable("the host records no more Events, because it is stopping".to_owned())
                }
            }
        })
    }
}

/// Returns about how many bytes an Event takes while it waits.
fn cost(event: &GuestEvent) -> usize {
    let GuestEvent { target, regarding, kind, event_type: _, reason, note } = event;
    let GroupVersionResource { group, version, plural: _ } = target;
    let contract::ObjectRef { namespace, name, uid, resource_version } = regarding;
    let texts = [group, version, kind, reason, note, namespace, name, uid, resource_version];
    // Namespace and name are also in the Event's own metadata.
    EVENT_COST + namespace.len() + name.len() + texts.iter().map(|it| it.len()).sum::<usize>()
}

// === impl Recorder ===

impl Recorder {
    /// Records Events until the token is cancelled or every emitter is dropped.
    pub(crate) async fn run(self, token: CancellationToken) {
        self.recording.run(token).await;
    }
}

// === impl PluginSink ===

#[async_trait]
impl EventSink<Event> for PluginSink {
    async fn create(&self, event: &Event) -> Result<Event, SinkError> {
        let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
        let path = self.requester.collection_path(&events(), namespace).await.map_err(sink_error)?;
        self.send(Method::POST, path, "application/json", event).await
    }

    async fn patch(&self, event: &Event, patch: &Value) -> Result<Event, SinkError> {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let key = ObjectKey { namespace: text(&event.metadata.namespace), name: text(&event.metadata.name) };
        let path = self.requester.object_path(&events(), &key, "").await.map_err(sink_error)?;
        self.send(Method::PATCH, path, "application/merge-patch+json", patch).await
    }
}

impl PluginSink {
    async fn send(
        &self,
        method: Method,
        path: String,
        content_type: &'static str,
        body: &(impl Serialize + Sync),
    ) -> Result<Event, SinkError> {
        let body = serde_json::to_vec(body).map_err(|error| SinkError::Construction(error.to_string()))?;
        let call = Call {
            method,
            path,
            query: &[("fieldManager", &*self.requester.plugin)],
            content_type,
            body,
            what: "record an Event",
            preconditions: false,
        };
        let stored = self.requester.send(call).await.map_err(sink_error)?;
        serde_json::from_slice(&stored).map_err(|error| SinkError::Unexpected(error.to_string()))
    }
}

/// Converts an error for the recorder. An Event is not lost when the plugin makes too many requests.
fn sink_error(error: Error) -> SinkError {
    match error {
        Error::NotFound(message) => SinkError::NotFound(message),
        Error::AlreadyExists(message) => SinkError::AlreadyExists(message),
        Error::Unavailable(message) | Error::Timeout(message) => SinkError::Transport(message),
        Error::Throttled(info) => SinkError::Transport(info.message),
        error => SinkError::Refused(format!("{error:?}")),
    }
}

fn events() -> GroupVersionResource {
    GroupVersionResource { group: String::new(), version: "v1".to_owned(), plural: "events".to_owned() }
}

#[cfg(test)]
mod tests;
