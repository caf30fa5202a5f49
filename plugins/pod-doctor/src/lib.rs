//! Explains in one Event why a Pod does not run.
//!
//! The subscription declares the three fields that say so. The host calls the plugin only when one of them
//! changes, and passes their old and new values, so the plugin never reads a Pod.
//!
//! [`diagnosis`]: what is wrong, from the status of a Pod.

#![deny(unsafe_code)]

mod diagnosis;

use oarlock_sdk::events::{self, EventType};
use oarlock_sdk::{
    Added, Description, Failure, GroupVersionResource, Handler, ObjectRef, Plugin, Subscription, Updated,
    gvr, info,
};

use diagnosis::Diagnosis;

/// The fields that a diagnosis is made of, in the order of the parameters of [`Diagnosis::of`].
const FIELDS: [&str; 3] =
    ["/status/initContainerStatuses", "/status/containerStatuses", "/status/conditions"];

/// The host truncates nothing: a longer note is refused.
const MAX_NOTE_BYTES: usize = 1_024;

struct PodDoctor;

// === impl PodDoctor ===

impl Plugin for PodDoctor {
    fn describe() -> Result<Description, String> {
        Ok(Description::new("pod-doctor", env!("CARGO_PKG_VERSION"))
            .stateless()
            .subscribe(Subscription::new("pods", pods()).fields(&FIELDS)))
    }

    fn start() -> Result<Self, Failure> {
        Ok(Self)
    }
}

impl Handler for PodDoctor {
    fn on_add(&mut self, added: &Added) -> Result<(), Failure> {
        explain(&added.object, &Diagnosis::default(), &diagnose(&added.fields)?)
    }

    fn on_update(&mut self, updated: &Updated) -> Result<(), Failure> {
        explain(&updated.object, &diagnose(&updated.old_fields)?, &diagnose(&updated.fields)?)
    }
}

fn pods() -> GroupVersionResource {
    gvr("", "v1", "pods")
}

fn diagnose(fields: &[Option<String>]) -> Result<Diagnosis, Failure> {
    let mut values = [const { serde_json::Value::Null }; FIELDS.len()];
    for ((value, text), pointer) in values.iter_mut().zip(fields).zip(FIELDS) {
        if let Some(text) = text {
            // The API server checks a Pod's status, so another try would not help.
            *value = serde_json::from_str(text)
                .map_err(|error| Failure::Terminal(format!("{pointer}: {error}")))?;
        }
    }
    let [init_containers, containers, conditions] = &values;
    Ok(Diagnosis::of(init_containers, containers, conditions))
}

/// Records an Event, if the diagnosis has changed and something is wrong.
fn explain(pod: &ObjectRef, before: &Diagnosis, now: &Diagnosis) -> Result<(), Failure> {
    let Some(reason) = now.reason().filter(|_| now != before) else { return Ok(()) };
    let mut note = now.to_string();
    note.truncate(note.floor_char_boundary(MAX_NOTE_BYTES));
    info!("explained", "namespace" = pod.namespace, "name" = pod.name, "reason" = reason);
    Ok(events::emit(&pods(), pod, "Pod", EventType::Warning, reason, &note)?)
}

oarlock_sdk::export_handler!(PodDoctor);
