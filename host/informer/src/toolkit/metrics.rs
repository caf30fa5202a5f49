//! The metrics of informers, and their names in metrics.
//!
//! The rules are client-go's: a program gives a group of informers a unique name, and the first informer of
//! each resource reserves the resource under that name. A second informer of the same resource works, but
//! publishes no metrics: they would overwrite those of the first.

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

/// The names in use in this process.
static NAMES: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

/// The name of a group of informers, such as those of a factory. Releasing or dropping it frees the name.
#[derive(Debug)]
pub struct InformerName {
    name: Arc<str>,
    is_reserved: Arc<AtomicBool>,
    resources: Mutex<HashSet<GroupVersionResource>>,
}

/// The identity of one informer in metrics.
#[derive(Clone, Debug)]
pub struct Identity {
    name: Arc<str>,
    resource: GroupVersionResource,
    /// None if another informer has reserved the resource.
    is_reserved: Option<Arc<AtomicBool>>,
}

/// The reason why a name is not available.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name is empty.
    #[error("an informer name cannot be empty")]
    Empty,
    /// The name is in use.
    #[error("the informer name {0:?} is in use already")]
    Taken(String),
}

/// Receives the metrics of informers, on their tasks. The methods must be fast; by default they do nothing.
pub trait InformerMetrics: Send + Sync {
    /// The number of objects with queued changes. Called whenever it may have changed.
    fn queued(&self, informer: &Identity, n_keys: usize) {
        let _ = (informer, n_keys);
    }
    /// The informer has stored the changes of one object and delivered them to the listeners.
    fn processed(&self, informer: &Identity, took: Duration) {
        let _ = (informer, took);
    }
    /// The resourceVersion of the cache.
    fn resource_version(&self, informer: &Identity, resource_version: &str) {
        let _ = (informer, resource_version);
    }
}

/// The receiver of the metrics of one informer, and its identity there.
#[derive(Clone)]
pub struct Publisher {
    /// The identity of the informer. Without a reservation it publishes nothing.
    pub identity: Identity,
    /// The receiver.
    pub metrics: Arc<dyn InformerMetrics>,
}

// === impl InformerName ===

impl InformerName {
    /// Reserves a name that is unique in this process.
    ///
    /// # Errors
    ///
    /// When the name is empty or in use.
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

    /// Returns the identity of an informer of a resource. The first call reserves the resource.
    #[must_use]
    pub fn identify(&self, resource: &GroupVersionResource) -> Identity {
        let is_first = self.resources.lock().insert(resource.clone());
        let is_reserved = is_first.then(|| self.is_reserved.clone());
        Identity { name: self.name.clone(), resource: resource.clone(), is_reserved }
    }

    /// Releases the name: its informers publish nothing any more, and the name is free. A second call does
    /// nothing.
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

    /// Returns true if this informer has reserved its resource, so that it publishes metrics.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.is_reserved.as_ref().is_some_and(|is_reserved| is_reserved.load(Ordering::Relaxed))
    }
}

// === impl Publisher ===

impl Publisher {
    pub(crate) fn queued(&self, fifo: &DeltaFifo) {
        if self.identity.is_reserved() {
            self.publish(|metrics| metrics.queued(&self.identity, fifo.len()));
        }
    }

    pub(crate) fn processed(&self, took: Duration, indexer: &Indexer) {
        if self.identity.is_reserved() {
            self.publish(|metrics| {
                metrics.processed(&self.identity, took);
                metrics.resource_version(&self.identity, &indexer.resource_version());
            });
        }
    }

    /// Calls the receiver. A panic of it is counted and logged.
    fn publish(&self, publish: impl FnOnce(&dyn InformerMetrics)) {
        let _ =
            user_function::call(UserFunction::Metrics, &self.identity.resource, || publish(&*self.metrics));
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
    fn a_name_is_unique_until_it_is_released_mx_01() {
        assert_eq!(InformerName::new("").unwrap_err(), NameError::Empty);
        let name = InformerName::new("mx-01").unwrap();
        assert_eq!(InformerName::new("mx-01").unwrap_err(), NameError::Taken("mx-01".into()));
        let pods = GroupVersionResource::new("", "v1", "pods");
        let (first, second) = (name.identify(&pods), name.identify(&pods));
        assert!(first.is_reserved() && !second.is_reserved());
        assert!(name.identify(&GroupVersionResource::new("", "v1", "nodes")).is_reserved());
        name.release();
        assert!(!first.is_reserved(), "its identities lose their reservation");
        let again = InformerName::new("mx-01").unwrap();
        // Dropping the old name does not release the new one.
        drop(name);
        assert!(InformerName::new("mx-01").is_err() && again.identify(&pods).is_reserved());
        drop(again);
        assert!(InformerName::new("mx-01").is_ok());
    }
}
