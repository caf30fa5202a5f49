//! The recorder: makes Events and emits them.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};

use crate::broadcaster::{Broadcaster, Dropped};
use crate::name::Names;

/// The type of an Event; there are no others (ER-01).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum EventType {
    /// Information.
    Normal,
    /// A problem that an operator should look at.
    Warning,
}

/// Creates Events with their source, and emits them. Cheap to clone.
#[derive(Clone)]
pub struct EventRecorder {
    broadcaster: Broadcaster<Event>,
    source: EventSource,
    instance: Arc<str>,
    names: Arc<Names>,
}

// === impl EventType ===

impl EventType {
    /// Returns its name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

// === impl EventRecorder ===

impl EventRecorder {
    /// Returns a recorder for a component. The host may be empty.
    #[must_use]
    pub fn new(broadcaster: Broadcaster<Event>, component: &str, host: &str) -> Self {
        let unless_empty = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let source = EventSource { component: unless_empty(component), host: unless_empty(host) };
        Self { broadcaster, source, instance: host.into(), names: Arc::default() }
    }

    /// Sets the reporting instance; without it, the host.
    #[must_use]
    pub fn with_instance(self, instance: &str) -> Self {
        Self { instance: instance.into(), ..self }
    }

    /// Emits an Event about an object. Never blocks.
    ///
    /// # Errors
    ///
    /// When the Event is dropped at once. Events that are dropped later are counted.
    pub fn event(
        &self,
        regarding: ObjectReference,
        event_type: EventType,
        reason: &str,
        message: &str,
    ) -> Result<(), Dropped> {
        self.event_with_annotations(BTreeMap::new(), regarding, event_type, reason, message)
    }

    /// Emits an Event with annotations; see [`event`](Self::event).
    pub fn event_with_annotations(
        &self,
        annotations: BTreeMap<String, String>,
        regarding: ObjectReference,
        event_type: EventType,
        reason: &str,
        message: &str,
    ) -> Result<(), Dropped> {
        self.broadcaster.emit(self.make(annotations, regarding, event_type, reason, message))
    }

    /// Emits an Event with a value that is dropped when the Event is recorded or abandoned; see
    /// [`event`](Self::event).
    pub fn event_holding(
        &self,
        regarding: ObjectReference,
        event_type: EventType,
        reason: &str,
        message: &str,
        held: impl Send + Sync + 'static,
    ) -> Result<(), Dropped> {
        let event = self.make(BTreeMap::new(), regarding, event_type, reason, message);
        self.broadcaster.emit_holding(event, held)
    }

    fn make(
        &self,
        annotations: BTreeMap<String, String>,
        regarding: ObjectReference,
        event_type: EventType,
        reason: &str,
        message: &str,
    ) -> Event {
        let (now, metadata) = self.names.metadata(&regarding);
        Event {
            metadata: ObjectMeta { annotations: Some(annotations).filter(|it| !it.is_empty()), ..metadata },
            involved_object: regarding,
            type_: Some(event_type.as_str().to_owned()),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            count: Some(1),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            source: Some(self.source.clone()),
            reporting_component: self.source.component.clone(),
            reporting_instance: Some(self.instance.to_string()),
            ..Event::default()
        }
    }
}

#[cfg(test)]
mod tests;
