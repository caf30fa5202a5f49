//! The key of equal Events.

use k8s_openapi::api::{core::v1::ObjectReference, events::v1::Event};

/// All fields except the note and the time (EV-01).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Key {
    event_type: Option<String>,
    action: Option<String>,
    reason: Option<String>,
    reporting_controller: Option<String>,
    reporting_instance: Option<String>,
    regarding: Reference,
    related: Reference,
}

/// All fields of a reference.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct Reference([Option<String>; 7]);

// === impl Key ===

impl Key {
    pub(super) fn of(event: &Event) -> Self {
        let reference = |it: &Option<ObjectReference>| it.as_ref().map(Reference::of).unwrap_or_default();
        Self {
            event_type: event.type_.clone(),
            action: event.action.clone(),
            reason: event.reason.clone(),
            reporting_controller: event.reporting_controller.clone(),
            reporting_instance: event.reporting_instance.clone(),
            regarding: reference(&event.regarding),
            related: reference(&event.related),
        }
    }
}

// === impl Reference ===

impl Reference {
    fn of(reference: &ObjectReference) -> Self {
        let ObjectReference { api_version, field_path, kind, name, namespace, resource_version, uid } =
            reference.clone();
        Self([api_version, field_path, kind, name, namespace, resource_version, uid])
    }
}
