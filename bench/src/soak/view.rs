//! The view of one handler, built from its notifications alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use oarlock_informer::{
    Listener, Notification, Object,
    listener::{ListenerHandle, ListenerStats, Outcome},
    object::{Namespaces, ObjectKey},
};
use serde_json::Value;

/// The behaviour of a handler.
#[derive(Clone, Copy)]
pub(super) enum Manner {
    Quick,
    Slow,
    Failing,
}

/// The uid and version of each object, by key.
pub(super) type View = BTreeMap<String, (String, String)>;

#[derive(Clone)]
pub(super) struct SharedView {
    name: &'static str,
    listener: ListenerHandle,
    state: Arc<Mutex<ViewState>>,
}

#[derive(Default)]
struct ViewState {
    view: View,
    /// The number of notifications that do not follow from the one before.
    n_breaks: u64,
}

// === impl SharedView ===

impl SharedView {
    pub(super) fn new(name: &'static str, listener: ListenerHandle) -> Self {
        Self { name, listener, state: Arc::default() }
    }

    pub(super) fn name(&self) -> &str {
        self.name
    }

    pub(super) fn namespaces(&self) -> Namespaces {
        self.listener.namespaces()
    }

    pub(super) fn n_breaks(&self) -> u64 {
        self.lock().n_breaks
    }

    /// Returns true if the backlog of the handler is empty.
    pub(super) fn is_idle(&self) -> bool {
        let ListenerStats { pending, in_flight, backing_off, .. } = self.listener.stats();
        pending + in_flight + backing_off == 0
    }

    pub(super) fn is(&self, view: &View) -> bool {
        self.lock().view == *view
    }

    fn lock(&self) -> MutexGuard<'_, ViewState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a notification, and checks that it follows from the view (promise 2).
    fn apply(&self, key: &ObjectKey, notification: &Notification) {
        let mut state = self.lock();
        let known = match notification.new() {
            Some(object) => state.view.insert(key.to_string(), facts(object)),
            None => state.view.remove(&key.to_string()),
        };
        let old = match notification {
            Notification::Added { .. } => None,
            Notification::Updated { old, .. } => Some(facts(old)),
            // The last state may be newer than the view, since a deletion has its own version. A delete that
            // merged with an initial or retried add comes alone.
            Notification::Deleted { .. } => known.clone(),
        };
        if known != old {
            state.n_breaks += 1;
            eprintln!("soak: {} received {notification:?}, but its view has {known:?}", self.name);
        }
    }
}

/// Handles notifications until the informer stops.
pub(super) async fn handle(mut listener: Listener, manner: Manner, view: SharedView) {
    let mut n: u64 = 0;
    while let Some(delivery) = listener.next().await {
        n += 1;
        let outcome = match manner {
            Manner::Failing if n.is_multiple_of(101) => Outcome::Retry { after: Duration::from_millis(3) },
            Manner::Slow if n.is_multiple_of(16) => {
                tokio::time::sleep(Duration::from_millis(2)).await;
                Outcome::Done
            }
            _ => Outcome::Done,
        };
        if outcome == Outcome::Done {
            view.apply(&delivery.key, &delivery.notification);
        }
        listener.finish(&delivery.key, outcome);
    }
}

/// Returns the view of a fresh list of these namespaces.
pub(super) fn fresh(list: &Value, namespaces: Namespaces) -> View {
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    items
        .iter()
        .map(|item| &item["metadata"])
        .filter(|metadata| namespaces.contains(metadata["namespace"].as_str().unwrap_or_default()))
        .map(|metadata| {
            let key = ObjectKey::new(text(&metadata["namespace"]), text(&metadata["name"]));
            (key.to_string(), (text(&metadata["uid"]), text(&metadata["resourceVersion"])))
        })
        .collect()
}

fn facts(object: &Object) -> (String, String) {
    (object.uid().to_owned(), object.resource_version().to_owned())
}
