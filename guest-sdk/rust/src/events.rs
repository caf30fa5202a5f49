//! Kubernetes Events about an object, as `kubectl events` and `kubectl describe` show them.

pub use oarlock_sdk_bindings::oarlock::plugin::events::EventType;

use crate::imports::events;
use crate::{Error, GroupVersionResource, ObjectRef, Resource};

/// The host refuses a longer note.
const MAX_NOTE_BYTES: usize = 1_024;

/// Records a normal Event about an object of the resource that a type stands for.
///
/// # Errors
///
/// As [`record`].
pub fn normal<T: Resource>(regarding: &ObjectRef, reason: &str, note: &str) -> Result<(), Error> {
    record(&T::gvr(), T::KIND, regarding, EventType::Normal, reason, note)
}

/// Records a warning about an object of the resource that a type stands for.
///
/// # Errors
///
/// As [`record`].
pub fn warning<T: Resource>(regarding: &ObjectRef, reason: &str, note: &str) -> Result<(), Error> {
    record(&T::gvr(), T::KIND, regarding, EventType::Warning, reason, note)
}

/// Records an Event about an object. `reason` is one CamelCase word; of the note, the first 1,024 bytes are
/// shown. Returns without waiting for the API server. The host counts similar Events as one.
///
/// # Errors
///
/// Those of `events.emit` in the contract: `invalid`, and `throttled` if too many Events wait.
pub fn record(
    target: &GroupVersionResource,
    kind: &str,
    regarding: &ObjectRef,
    event_type: EventType,
    reason: &str,
    note: &str,
) -> Result<(), Error> {
    let note = &note[..note.floor_char_boundary(MAX_NOTE_BYTES)];
    events::emit(target, regarding, kind, event_type, reason, note)
}
