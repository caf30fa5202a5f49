//! What one handler believes, from what it was told alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use oarlock_informer::{
    Listener, Notification, Object,
    listener::{ListenerHandle, ListenerStats, Outcome},
    object::{Namespaces, ObjectKey},
};
use serde_json::Value;

/// How a handler behaves.
#[derive(Clone, Copy)]
pub(super) enum Manner {
    Quick,
    Slow,
    Failing,
}

/// By key, the uid and version of what there is.
pub(super) type View = BTreeMap<String, (String, String)>;

#[derive(Clone)]
pub(super) struct SharedView {
    name: &'static str,
    listener: ListenerHandle,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    view: View,
    /// How many notifications did not follow from the one before.
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

    /// Whether nothing waits for the handler.
    pub(super) fn is_idle(&self) -> bool {
        let ListenerStats { pending, in_flight, backing_off, .. } = self.listener.stats();
        pending + in_flight + backing_off == 0
    }

    pub(super) fn is(&self, view: &View) -> bool {
        self.lock().view == *view
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one notification in, and looks whether it follows from what is known (promise 2).
    fn take_in(&self, key: &ObjectKey, notification: &Notification) {
        let mut state = self.lock();
        let known = match notification.new() {
            Some(object) => state.view.insert(key.to_string(), facts(object)),
            None => state.view.remove(&key.to_string()),
        };
        let old = match notification {
            Notification::Added { .. } => None,
            Notification::Updated { old, .. } => Some(facts(old)),
            // The last state may be newer than the one told before, since the deletion has a version, too; and of an add that was
            // initial or tried, and merged with the delete, only the delete is told.
            Notification::Deleted { .. } => known.clone(),
        };
        if known != old {
            state.n_breaks += 1;
            eprintln!("soak: {} was told {notification:?}, but knew {known:?}", self.name);
        }
    }
}

/// Handles until the informer stops.
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
            view.take_in(&delivery.key, &delivery.notification);
        }
        listener.finish(&delivery.key, outcome);
    }
}

/// What somebody who lists now, and sees these namespaces, knows.
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
