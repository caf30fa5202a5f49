//! The store that a reflector writes to.

use super::SourceGeneration;
use crate::names::ObjectKey;
use crate::object::{Object, SharedPointers};

/// Why a store rejected a call.
pub type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// The store that a reflector writes to; [`DeltaFifo`](crate::delta_fifo::DeltaFifo) implements it.
///
/// All calls come from the reflector's one task, one after another, in the order of the API server's answers
/// and events.
pub trait ReflectorStore: Send + Sync {
    /// Adds an object of an `ADDED` event.
    fn add(&self, object: Object) -> Result<(), StoreError>;

    /// Updates an object of a `MODIFIED` event.
    fn update(&self, object: Object) -> Result<(), StoreError>;

    /// Deletes an object of a `DELETED` event; `object` is its last state.
    fn delete(&self, object: Object) -> Result<(), StoreError>;

    /// Replaces the contents, in one critical section, by a whole list at version `resource_version`. Objects
    /// that are not in the list are deleted. Each item went through [`transform`](Self::transform) and then
    /// [`intern`](Self::intern).
    fn replace(&self, items: Vec<Object>, resource_version: &str) -> Result<(), StoreError>;

    /// Queues every known object again, save those with a newer queued change.
    fn resync(&self) -> Result<(), StoreError>;

    /// Returns whether a resync is due. The reflector asks each time the resync period has passed (RL-61).
    fn should_resync(&self) -> bool {
        true
    }

    /// Returns the object in the form in which the store keeps it: the cached object if it is equal, so that
    /// a relist does not hold two copies of every object (RL-71).
    ///
    /// The reflector calls it for each object of a list or of the initial events, as soon as the object is
    /// decoded and transformed. The result is an item of the next [`replace`](Self::replace).
    fn intern(&self, object: Object) -> Object {
        object
    }

    /// Returns the pointers whose values the source may copy while it decodes an event.
    fn copied_pointers(&self) -> Option<SharedPointers> {
        None
    }

    /// Notes that all following calls are about another [source](super::Sources). The contents from the
    /// source before stay; the next `replace` brings the list of the new one.
    fn source_changed(&self, generation: SourceGeneration) {
        let _ = generation;
    }

    /// Applies the store's transformer to an object (WL-02).
    ///
    /// The reflector calls it for each object of a list or of the initial events. The store itself transforms
    /// the objects of [`add`](Self::add), [`update`](Self::update) and [`delete`](Self::delete).
    fn transform(&self, object: Object) -> Result<Object, StoreError>;

    /// Returns the newest state of an object, cached or queued; none if the newest state is a deletion. It
    /// stands in for an object that a list contains but that cannot be decoded.
    fn newest(&self, key: &ObjectKey) -> Option<Object> {
        let _ = key;
        None
    }

    /// Returns the keys of all objects that have a [`newest`](Self::newest) state, and possibly others.
    fn keys(&self) -> Vec<ObjectKey> {
        Vec::new()
    }

    /// Notes a bookmark of this version. The reflector calls it before
    /// [`update_resource_version`](Self::update_resource_version) (RL-54).
    fn bookmark(&self, resource_version: &str) {
        let _ = resource_version;
    }

    /// Notes that the watch has reached this version (RL-54).
    fn update_resource_version(&self, resource_version: &str) {
        let _ = resource_version;
    }
}
