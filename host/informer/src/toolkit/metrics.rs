//! What informers are called in metrics, and who is told their figures.
//!
//! client-go's rules: a program gives its informers a name that no other part of it uses; under that name each resource is
//! reserved once. A second informer of the same resource works, but publishes nothing, since its figures would overwrite the first one's.

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::Mutex;

use crate::delta_fifo::DeltaFifo;
use crate::indexer::Indexer;
use crate::names::GroupVersionResource;
use crate::user_function;

pub use crate::user_function::{Panicked, UserFunction, n_panics};

/// The names that are in use in this process.
static NAMES: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

/// A name for a group of informers, such as those of a factory. It is free again when this is released or dropped.
#[derive(Debug)]
pub struct InformerName {
    name: Arc<str>,
    is_reserved: Arc<AtomicBool>,
    resources: Mutex<HashSet<GroupVersionResource>>,
}

/// What one informer is called.
#[derive(Clone, Debug)]
pub struct Identity {
    name: Arc<str>,
    resource: GroupVersionResource,
    /// None for a duplicate.
    is_reserved: Option<Arc<AtomicBool>>,
}

/// Why a name cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is empty.
    #[error("an informer name cannot be empty")]
    Empty,
    /// It is in use.
    #[error("the informer name {0:?} is in use already")]
    Taken(String),
}

/// Is told how informers are doing, on their tasks: it must be quick. Every method does nothing unless said otherwise.
pub trait InformerMetrics: Send + Sync {
    /// How many objects' changes wait to be put into the cache. Told whenever that may have changed.
    fn queued(&self, informer: &Identity, n_keys: usize) {
        let _ = (informer, n_keys);
    }
    /// The changes of one object were put into the cache and handed to the listeners, which took so long.
    fn processed(&self, informer: &Identity, took: Duration) {
        let _ = (informer, took);
    }
    /// The cache is at this version.
    fn resource_version(&self, informer: &Identity, resource_version: &str) {
        let _ = (informer, resource_version);
    }
}

/// Where one informer publishes its figures.
#[derive(Clone)]
pub struct Publisher {
    /// What the informer is called. Nothing is published for one that is not reserved.
    pub identity: Identity,
    /// Who is told.
    pub metrics: Arc<dyn InformerMetrics>,
}

// === impl InformerName ===

impl InformerName {
    /// Takes a name that nobody in this process has.
    ///
    /// # Errors
    ///
    /// When it is empty or somebody has it.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        let name = name.into();
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if !NAMES.lock().insert(name.clone()) {
            return Err(NameError::Taken(name));
        }
        let is_reserved = Arc::new(AtomicBool::new(true));
        Ok(Self { name: name.into(), is_reserved, resources: Mutex::default() })
    }

    /// Returns what the informer of a resource is called: reserved the first time, a duplicate afterwards.
    #[must_use]
    pub fn identify(&self, resource: &GroupVersionResource) -> Identity {
        let is_first = self.resources.lock().insert(resource.clone());
        let is_reserved = is_first.then(|| self.is_reserved.clone());
        Identity { name: self.name.clone(), resource: resource.clone(), is_reserved }
    }

    /// Gives the name back: the informers called by it publish nothing any more, and others may take it. Harmless a second time.
    pub fn release(&self) {
        if self.is_reserved.swap(false, Ordering::Relaxed) {
            NAMES.lock().remove(&*self.name);
        }
    }
}

impl Drop for InformerName {
    fn drop(&mut self) {
        self.release();
    }
}

// === impl Identity ===

impl Identity {
    /// Returns the name of the group.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the resource.
    #[must_use]
    pub fn resource(&self) -> &GroupVersionResource {
        &self.resource
    }

    /// Whether this is the one informer of that name and resource whose figures count.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.is_reserved.as_ref().is_some_and(|is_reserved| is_reserved.load(Ordering::Relaxed))
    }
}

// === impl Publisher ===

impl Publisher {
    pub(crate) fn queued(&self, fifo: &DeltaFifo) {
        if self.identity.is_reserved() {
            self.tell(|metrics| metrics.queued(&self.identity, fifo.len()));
        }
    }

    pub(crate) fn processed(&self, took: Duration, indexer: &Indexer) {
        if self.identity.is_reserved() {
            self.tell(|metrics| {
                metrics.processed(&self.identity, took);
                metrics.resource_version(&self.identity, &indexer.resource_version());
            });
        }
    }

    /// Metrics that panic have been counted and logged, and that is all.
    fn tell(&self, tell: impl FnOnce(&dyn InformerMetrics)) {
        let _ = user_function::call(UserFunction::Metrics, &self.identity.resource, || tell(&*self.metrics));
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("identity", &self.identity).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_had_once_until_it_is_released_mx_01() {
        assert_eq!(InformerName::new("").unwrap_err(), NameError::Empty);
        let name = InformerName::new("mx-01").unwrap();
        assert_eq!(InformerName::new("mx-01").unwrap_err(), NameError::Taken("mx-01".into()));
        let pods = GroupVersionResource::new("", "v1", "pods");
        let (first, second) = (name.identify(&pods), name.identify(&pods));
        assert!(first.is_reserved() && !second.is_reserved());
        assert!(name.identify(&GroupVersionResource::new("", "v1", "nodes")).is_reserved());
        name.release();
        assert!(!first.is_reserved(), "what was issued is not reserved any more");
        let again = InformerName::new("mx-01").unwrap();
        // The old one's end does not take the name from the new one.
        drop(name);
        assert!(InformerName::new("mx-01").is_err() && again.identify(&pods).is_reserved());
        drop(again);
        assert!(InformerName::new("mx-01").is_ok());
    }
}
