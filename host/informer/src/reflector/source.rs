//! The source that a reflector lists and watches, and the way to replace it while the reflector runs.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use crate::list_watch::ListWatch;
use crate::names::TypeMeta;

/// Where a reflector lists and watches.
#[derive(Clone)]
pub struct Source {
    /// Answers lists and watches. None: the reflector makes no request, and its store keeps its contents.
    pub list_watch: Option<Arc<dyn ListWatch>>,
    /// The type that the watch's objects must have; the reflector drops an event with an object of another
    /// type (RL-05). None: every type is accepted.
    pub type_meta: Option<TypeMeta>,
}

/// Holds the current [`Source`] of a reflector. Clones share it.
///
/// A reflector switches to another source at once: it drops its request, watch or back-off, and lists from
/// the new source at a version that is not older than the last one it saw. So the store has no gap: objects
/// that differ in the new list are added, updated or deleted, and objects at the same version stay as they
/// are.
#[derive(Clone)]
pub struct Sources {
    sender: Arc<watch::Sender<CurrentSource>>,
}

/// Counts the sources of one reflector: the first is generation 0, and each switch adds 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceGeneration(u64);

/// The source in force and its generation.
#[derive(Clone)]
pub(super) struct CurrentSource {
    pub(super) generation: SourceGeneration,
    pub(super) source: Source,
}

// === impl Source ===

impl Source {
    /// Returns a source that answers nothing.
    #[must_use]
    pub fn none() -> Self {
        Self { list_watch: None, type_meta: None }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { list_watch, type_meta } = self;
        f.debug_struct("Source")
            .field("is_some", &list_watch.is_some())
            .field("type_meta", type_meta)
            .finish()
    }
}

// === impl SourceGeneration ===

impl SourceGeneration {
    /// Returns the generation as a number.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

impl From<u64> for SourceGeneration {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for SourceGeneration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Sources ===

impl Sources {
    /// Makes a holder of this source, which is generation 0.
    #[must_use]
    pub fn new(source: Source) -> Self {
        let current = CurrentSource { generation: SourceGeneration::default(), source };
        Self { sender: Arc::new(watch::channel(current).0) }
    }

    /// Replaces the source and returns the new generation. The reflector passes the generation to
    /// [`ReflectorStore::source_changed`](super::ReflectorStore::source_changed).
    pub fn switch(&self, source: Source) -> SourceGeneration {
        let mut generation = SourceGeneration::default();
        self.sender.send_modify(|current| {
            generation = SourceGeneration(current.generation.0 + 1);
            *current = CurrentSource { generation, source };
        });
        generation
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<CurrentSource> {
        self.sender.subscribe()
    }
}
