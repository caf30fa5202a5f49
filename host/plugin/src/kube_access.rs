//! The interface between this crate and the rest of the host: the access of one plugin to Kubernetes.
//!
//! The controller implements it for each plugin, with the plugin's ServiceAccount, its declared listers and
//! indices, and its work queue. There is one trait for each interface of the contract, so that an access that
//! wraps another one, such as that of a shadow, implements the interfaces that it changes and passes on the
//! others as they are. This crate first checks everything that does not require Kubernetes: sizes, counts,
//! and that a replaced object was fetched before.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::contract::{
    Error, EventType, GroupVersionResource, Namespaces, ObjectKey, ObjectRef, Page, PageRequest, PatchKind,
    Preconditions, Projection, Propagation, Row, WorkKey, Written,
};

/// The access of one plugin to Kubernetes. Clones are handles on the same access.
///
/// The deadline of the guest's call drops the future of a method at an await point, so an implementation must
/// be safe to drop there. The guest receives an `Err` unchanged; its text is for people.
#[derive(Clone)]
pub struct KubeAccess {
    /// Answers the imports of `cache`.
    pub cache: Arc<dyn CacheAccess>,
    /// Answers the imports of `client`.
    pub client: Arc<dyn ClientAccess>,
    /// Answers the imports of `work-queue`.
    pub work_queue: Arc<dyn WorkQueueAccess>,
    /// Answers the imports of `events`.
    pub events: Arc<dyn EventsAccess>,
}

/// Reads of the cache.
#[async_trait]
pub trait CacheAccess: Send + Sync + 'static {
    /// A run of `reconcile` begins. Returns the access for the reads of that run, if the implementation has
    /// to know the run in which a guest reads.
    fn run_begins(&self, _key: &WorkKey) -> Option<Arc<dyn CacheAccess>> {
        None
    }

    /// The run that this access is for ended with success. A run whose access is dropped without this call
    /// failed.
    fn run_succeeded(&self) {}

    /// Answers `cache.get`. The projection has at most 64 pointers.
    async fn get(&self, lister: &str, key: &ObjectKey, projection: &Projection) -> Result<Row, Error>;

    /// Answers `cache.list`. The page's limit is between 1 and 1,000.
    async fn list(
        &self,
        lister: &str,
        namespaces: &Namespaces,
        label_selector: &str,
        projection: &Projection,
        page: &PageRequest,
    ) -> Result<Page, Error>;

    /// Answers `cache.by-index`. The page's limit is between 1 and 1,000.
    async fn by_index(
        &self,
        index: &str,
        value: &str,
        namespaces: &Namespaces,
        projection: &Projection,
        page: &PageRequest,
    ) -> Result<Page, Error>;

    /// Answers `cache.index-values`.
    async fn index_values(&self, index: &str) -> Result<Vec<String>, Error>;

    /// Answers `cache.has-synced`.
    async fn has_synced(&self, lister: &str) -> Result<bool, Error>;

    /// Answers `cache.wait-until-seen`. The implementation must return at `timeout`, which is at most five
    /// seconds.
    async fn wait_until_seen(
        &self,
        lister: &str,
        resource_version: &str,
        timeout: Duration,
    ) -> Result<(), Error>;
}

/// Requests to the API server.
#[async_trait]
pub trait ClientAccess: Send + Sync + 'static {
    /// Answers `client.get` with the JSON text of the object or of its subresource.
    async fn get(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
    ) -> Result<String, Error>;

    /// Answers `client.list`. The page's limit is between 1 and 1,000.
    async fn list(
        &self,
        target: &GroupVersionResource,
        namespaces: &Namespaces,
        selectors: Selectors<'_>,
        projection: &Projection,
        page: &PageRequest,
    ) -> Result<Page, Error>;

    /// Answers `client.create`.
    async fn create(
        &self,
        target: &GroupVersionResource,
        namespace: &str,
        json: String,
    ) -> Result<Written, Error>;

    /// Answers `client.apply`.
    async fn apply(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
        json: String,
        force: bool,
        preconditions: &Preconditions,
    ) -> Result<Written, Error>;

    /// Answers `client.patch`.
    async fn patch(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
        kind: PatchKind,
        body: String,
        preconditions: &Preconditions,
    ) -> Result<Written, Error>;

    /// Answers `client.replace`.
    ///
    /// The caller has checked that the text has the name and namespace of the key, and a
    /// `metadata.resourceVersion` that [`get`](Self::get) returned to this instance.
    async fn replace(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
        json: String,
    ) -> Result<Written, Error>;

    /// Answers `client.delete`.
    async fn delete(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        propagation: Propagation,
        grace_period_seconds: Option<u32>,
        preconditions: &Preconditions,
    ) -> Result<(), Error>;
}

/// The plugin's work queue.
pub trait WorkQueueAccess: Send + Sync + 'static {
    /// Answers `work-queue.add` (no delay) and `work-queue.add-after`. Never waits.
    fn add(&self, key: WorkKey, delay: Option<Duration>) -> Result<(), Error>;
}

/// Kubernetes Events.
pub trait EventsAccess: Send + Sync + 'static {
    /// Answers `events.emit`. Never waits. The caller has checked the size and form of reason and note.
    fn emit(&self, event: GuestEvent) -> Result<(), Error>;
}

/// The selectors of a live list, in the syntax of Kubernetes; the empty text matches all objects.
#[derive(Debug, Clone, Copy)]
pub struct Selectors<'a> {
    /// The label selector.
    pub labels: &'a str,
    /// The field selector.
    pub fields: &'a str,
}

/// A Kubernetes Event that a guest emits.
#[derive(Debug, Clone, PartialEq)]
pub struct GuestEvent {
    /// The resource of the object that the Event is about.
    pub target: GroupVersionResource,
    /// The object that the Event is about.
    pub regarding: ObjectRef,
    /// That object's kind, such as `ConfigMap`.
    pub kind: String,
    /// Normal or warning.
    pub event_type: EventType,
    /// One CamelCase word of at most 128 characters.
    pub reason: String,
    /// At most 1,024 bytes.
    pub note: String,
}

/// One state of the object of a notification, which a guest reads field by field.
///
/// It is called within the guest's call, on a runtime worker, and must not block.
pub trait EventObject: Send + Sync + 'static {
    /// Returns the JSON text at an RFC 6901 pointer, or `None` if there is no value; `invalid` for a
    /// malformed pointer.
    fn field(&self, pointer: &str) -> Result<Option<String>, Error>;

    /// Returns the JSON texts at several pointers (at most 64), in their order.
    fn fields(&self, pointers: &[String]) -> Result<Vec<Option<String>>, Error>;

    /// Returns the whole object as JSON text, with `apiVersion` and `kind`.
    fn json(&self) -> Result<String, Error>;

    /// Returns the object's name for the log, as NAMESPACE/NAME, or NAME if it has no namespace.
    fn name(&self) -> Option<String> {
        None
    }
}

// === impl KubeAccess ===

impl KubeAccess {
    /// Returns an access of which one value answers all imports.
    pub fn of<T: CacheAccess + ClientAccess + WorkQueueAccess + EventsAccess>(access: Arc<T>) -> Self {
        Self { cache: access.clone(), client: access.clone(), work_queue: access.clone(), events: access }
    }
}
