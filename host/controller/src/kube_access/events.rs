//! Kubernetes Events, recorded as the plugin's account and never waited for.
//!
//! Events go through a bounded queue to one task, which creates them or, for one like the last of its kind, counts it
//! up. Beyond the spam filter of client-go (25 at once for one object, then one in five minutes) they are dropped. Losing an
//! Event is allowed; slowing a plugin down for one is not.

mod filter;

use std::{collections::HashMap, sync::Arc};

use http::Method;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use oarlock_plugin::{
    contract::{Error, EventType, GroupVersionResource, ObjectKey, Part},
    kube_access::GuestEvent,
};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::filter::SpamFilter;
use super::request::{Call, Requester};

/// How many Events may wait.
pub(super) const QUEUE: usize = 1_000;

/// How many kinds of Events are remembered in order to be counted up.
const REMEMBERED: usize = 4_096;

/// After this long an Event like an earlier one is a new one.
const COUNTED_FOR: SignedDuration = SignedDuration::from_mins(10);

/// The longest a generated name may be before its suffix.
const LONGEST_NAME: usize = 200;

/// Where a plugin puts Events in.
pub(super) struct Emitter {
    queue: mpsc::Sender<GuestEvent>,
}

/// Sends them to the API server. Run it on a task of its own.
pub struct Recorder {
    requester: Arc<Requester>,
    queue: mpsc::Receiver<GuestEvent>,
    filter: SpamFilter,
    remembered: HashMap<Likeness, Recorded>,
}

/// What two Events have in common that are counted as one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Likeness {
    uid: String,
    namespace: String,
    name: String,
    warning: bool,
    reason: String,
    note: String,
}

/// An Event in the API server.
struct Recorded {
    name: String,
    count: u32,
    last: Timestamp,
}

/// Makes the two ends.
pub(super) fn channel(requester: Arc<Requester>) -> (Emitter, Recorder) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let recorder =
        Recorder { requester, queue: receiver, filter: SpamFilter::default(), remembered: HashMap::new() };
    (Emitter { queue: sender }, recorder)
}

// === impl Emitter ===

impl Emitter {
    pub(super) fn emit(&self, event: GuestEvent) -> Result<(), Error> {
        self.queue
            .try_send(event)
            .map_err(|_| Error::LimitExceeded(format!("{QUEUE} Events wait to be recorded already")))
    }
}

// === impl Recorder ===

impl Recorder {
    /// Records Events until the token is cancelled or no plugin is left to emit any.
    pub async fn run(mut self, token: CancellationToken) {
        loop {
            let event = tokio::select! {
                biased;
                () = token.cancelled() => return,
                event = self.queue.recv() => event,
            };
            let Some(event) = event else { return };
            tokio::select! {
                biased;
                () = token.cancelled() => return,
                () = self.record(event) => {}
            }
        }
    }

    async fn record(&mut self, event: GuestEvent) {
        if !self.filter.passes(&event.regarding) {
            tracing::debug!(plugin = %self.requester.plugin, reason = event.reason, "dropped an Event: too many for one object");
            return;
        }
        let likeness = Likeness::of(&event);
        let now = Timestamp::now();
        let known = self.remembered.get(&likeness).filter(|it| now.duration_since(it.last) < COUNTED_FOR);
        let recorded = match known {
            Some(Recorded { name, count, .. }) => {
                let (name, count) = (name.clone(), count.saturating_add(1));
                match self.count_up(&event, &name, count, now).await {
                    Ok(()) => Ok(Recorded { name, count, last: now }),
                    // Events expire in the API server: then it is a new one.
                    Err(Error::NotFound(_)) => self.create(&event, now).await,
                    Err(error) => Err(error),
                }
            }
            None => self.create(&event, now).await,
        };
        match recorded {
            Ok(recorded) => self.remember(likeness, recorded),
            Err(error) => {
                tracing::warn!(plugin = %self.requester.plugin, reason = event.reason, ?error, "an Event was not recorded");
            }
        }
    }

    async fn create(&self, event: &GuestEvent, now: Timestamp) -> Result<Recorded, Error> {
        let GuestEvent { target, regarding, kind, event_type, reason, note } = event;
        let stem: String = regarding.name.chars().take(LONGEST_NAME).collect();
        let name = format!("{stem}.{:x}", now.as_nanosecond());
        let api_version = match target.group.as_str() {
            "" => target.version.clone(),
            group => format!("{group}/{}", target.version),
        };
        let body = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": { "name": name, "namespace": namespace(event) },
            "involvedObject": {
                "apiVersion": api_version,
                "kind": kind,
                "namespace": regarding.namespace,
                "name": regarding.name,
                "uid": regarding.uid,
                "resourceVersion": regarding.resource_version,
            },
            "type": match event_type { EventType::Normal => "Normal", EventType::Warning => "Warning" },
            "reason": reason,
            "message": note,
            "count": 1,
            "firstTimestamp": seconds(now),
            "lastTimestamp": seconds(now),
            "source": { "component": &*self.requester.plugin },
            "reportingComponent": &*self.requester.plugin,
            "reportingInstance": "oarlock",
        });
        let path = self.requester.collection_path(&events(), namespace(event)).await?;
        self.send(Method::POST, path, "application/json", body).await?;
        Ok(Recorded { name, count: 1, last: now })
    }

    async fn count_up(
        &self,
        event: &GuestEvent,
        name: &str,
        count: u32,
        now: Timestamp,
    ) -> Result<(), Error> {
        let key = ObjectKey { namespace: namespace(event).to_owned(), name: name.to_owned() };
        let path = self.requester.object_path(&events(), &key, Part::Object).await?;
        let body = json!({ "count": count, "lastTimestamp": seconds(now) });
        self.send(Method::PATCH, path, "application/merge-patch+json", body).await
    }

    async fn send(
        &self,
        method: Method,
        path: String,
        content_type: &'static str,
        body: serde_json::Value,
    ) -> Result<(), Error> {
        let call = Call {
            method,
            path,
            query: &[("fieldManager", &*self.requester.plugin)],
            content_type,
            body: body.to_string().into_bytes(),
            what: "record an Event",
            preconditions: false,
        };
        self.requester.send(call).await?;
        Ok(())
    }

    fn remember(&mut self, likeness: Likeness, recorded: Recorded) {
        if self.remembered.len() >= REMEMBERED && !self.remembered.contains_key(&likeness) {
            let now = recorded.last;
            self.remembered.retain(|_, it| now.duration_since(it.last) < COUNTED_FOR);
            if self.remembered.len() >= REMEMBERED {
                self.remembered.clear();
            }
        }
        self.remembered.insert(likeness, recorded);
    }
}

/// Events about cluster-scoped objects stand in the namespace `default`.
fn namespace(event: &GuestEvent) -> &str {
    match event.regarding.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    }
}

fn events() -> GroupVersionResource {
    GroupVersionResource { group: String::new(), version: "v1".to_owned(), plural: "events".to_owned() }
}

/// The API's `Time` has whole seconds.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

// === impl Likeness ===

impl Likeness {
    fn of(event: &GuestEvent) -> Self {
        let GuestEvent { regarding, event_type, reason, note, .. } = event;
        Self {
            uid: regarding.uid.clone(),
            namespace: regarding.namespace.clone(),
            name: regarding.name.clone(),
            warning: matches!(event_type, EventType::Warning),
            reason: reason.clone(),
            note: note.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
