//! Where a reflector puts what it learns.

use crate::names::ObjectKey;
use crate::object::Object;

/// Why a store did not take something.
pub type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// What a reflector writes into; the delta queue implements it.
///
/// All calls come from the reflector's one task, one after another, in the order in which the API server told.
pub trait ReflectorStore: Send + Sync {
    /// Takes an object that the watch says is new.
    fn add(&self, object: Object) -> Result<(), StoreError>;

    /// Takes an object that the watch says has changed.
    fn update(&self, object: Object) -> Result<(), StoreError>;

    /// Takes the last state of an object that the watch says is gone.
    fn delete(&self, object: Object) -> Result<(), StoreError>;

    /// Takes a whole list, at the version `resource_version`: what is not in it is gone. One critical section. The items are as
    /// [`transformed`](Self::transformed) and then [`arrived`](Self::arrived) made them.
    fn replace(&self, items: Vec<Object>, resource_version: &str) -> Result<(), StoreError>;

    /// Sends out again what is known, where nothing newer waits.
    fn resync(&self) -> Result<(), StoreError>;

    /// Whether a resync is due, asked each time the resync period has passed (RL-61).
    fn should_resync(&self) -> bool {
        true
    }

    /// Looks at an object of a list, or of the beginning of a watch that stands for one, as it arrives: returns the cached one
    /// if that is its equal, so that a relist does not hold everything twice (RL-71), else the object in the form in which it
    /// is going to be kept. It comes again with `replace`. It has been transformed.
    fn arrived(&self, object: Object) -> Object {
        object
    }

    /// Learns that what follows is from another [source](super::Sources), the how-many-th it is. What came from the one before is
    /// all there; the next `replace` is of the new one.
    fn source_changed(&self, number: u64) {
        let _ = number;
    }

    /// Returns what the store makes of an object before it keeps it (WL-02): asked for each object of a list, or of the beginning of a watch
    /// that stands for one. What comes by [`add`](Self::add), [`update`](Self::update) and [`delete`](Self::delete) it transforms itself.
    fn transformed(&self, object: Object) -> Result<Object, StoreError>;

    /// Returns the newest state that the store has of an object, be it stored already or on its way there; none where the newest is that the
    /// object is gone. It stands in for the object in a list that has it but cannot decode it.
    fn newest(&self, key: &ObjectKey) -> Option<Object> {
        let _ = key;
        None
    }

    /// Returns the keys of all objects of which the store has a [`newest`](Self::newest) state, and maybe of others.
    fn keys(&self) -> Vec<ObjectKey> {
        Vec::new()
    }

    /// Learns that nothing else has happened up to this version; told before the version itself (RL-54).
    fn bookmark(&self, resource_version: &str) {
        let _ = resource_version;
    }

    /// Learns that the watch has come to this version (RL-54).
    fn update_resource_version(&self, resource_version: &str) {
        let _ = resource_version;
    }
}
