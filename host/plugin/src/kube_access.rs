//! Kubernetes as one plugin sees it: the seam between this crate and the rest of the host.
//!
//! The controller implements [`KubeAccess`] once per plugin, bound to that plugin's ServiceAccount, its declared listers and
//! indices and its queue. This crate checks what can be checked without knowing Kubernetes (sizes, counts, the origin of
//! what is replaced) and hands the rest through.

use std::time::Duration;

use async_trait::async_trait;

use crate::contract::{
    Error, EventType, GroupVersionResource, Namespaces, ObjectKey, ObjectRef, Page, PageRequest, Part,
    PatchKind, Preconditions, Projection, Propagation, Row, WorkKey, Written,
};

/// What a plugin may read, write and enqueue.
///
/// Every method answers within reason or is dropped: the call's deadline cancels it at its next await point, so an
/// implementation must be safe to drop there. An `Err` goes to the guest as it is; its text is for people.
#[async_trait]
pub trait KubeAccess: Send + Sync + 'static {
    /// Answers `cache.get`. The projection has at most 64 pointers.
    async fn cache_get(&self, lister: &str, key: &ObjectKey, projection: &Projection) -> Result<Row, Error>;

    /// Answers `cache.list`. The page's limit is between 1 and 1,000.
    async fn cache_list(
        &self,
        lister: &str,
        namespaces: &Namespaces,
        label_selector: &str,
        projection: &Projection,
        page: &PageRequest,
    ) -> Result<Page, Error>;

    /// Answers `cache.by-index`. The page's limit is between 1 and 1,000.
    async fn cache_by_index(
        &self,
        index: &str,
        value: &str,
        namespaces: &Namespaces,
        projection: &Projection,
        page: &PageRequest,
    ) -> Result<Page, Error>;

    /// Answers `cache.index-values`.
    async fn cache_index_values(&self, index: &str) -> Result<Vec<String>, Error>;

    /// Answers `cache.has-synced`.
    async fn cache_has_synced(&self, lister: &str) -> Result<bool, Error>;

    /// Answers `cache.wait-until-seen`. The time-out is at most five seconds; keeping it is the implementation's task.
    async fn cache_wait_until_seen(
        &self,
        lister: &str,
        resource_version: &str,
        timeout: Duration,
    ) -> Result<(), Error>;

    /// Answers `client.get` with the object's JSON text.
    async fn client_get(&self, target: &GroupVersionResource, key: &ObjectKey) -> Result<String, Error>;

    /// Answers `client.create`.
    async fn client_create(
        &self,
        target: &GroupVersionResource,
        namespace: &str,
        json: String,
    ) -> Result<Written, Error>;

    /// Answers `client.apply`.
    async fn client_apply(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        part: Part,
        json: String,
        force: bool,
        preconditions: &Preconditions,
    ) -> Result<Written, Error>;

    /// Answers `client.patch`.
    async fn client_patch(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        part: Part,
        kind: PatchKind,
        body: String,
        preconditions: &Preconditions,
    ) -> Result<Written, Error>;

    /// Answers `client.replace`.
    ///
    /// That the text's `metadata.resourceVersion` is one that `client_get` answered to this very instance, and that its name and
    /// namespace are those of the key, has been checked.
    async fn client_replace(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        part: Part,
        json: String,
    ) -> Result<Written, Error>;

    /// Answers `client.delete`.
    async fn client_delete(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        propagation: Propagation,
        preconditions: &Preconditions,
    ) -> Result<(), Error>;

    /// Answers `work-queue.add` (no delay) and `work-queue.add-after`. Never waits.
    fn queue_add(&self, key: WorkKey, delay: Option<Duration>) -> Result<(), Error>;

    /// Answers `events.emit`. Never waits. Reason and note have been checked for their size and form.
    fn event_emit(&self, event: GuestEvent) -> Result<(), Error>;
}

/// A Kubernetes Event that a guest asks for.
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

/// One version of the object of a notification, pulled field by field.
///
/// Called from inside the guest's call, on a runtime worker: it must not block.
pub trait EventObject: Send + Sync + 'static {
    /// Returns the JSON text at an RFC 6901 pointer, none where there is nothing; `invalid` for a malformed pointer.
    fn field(&self, pointer: &str) -> Result<Option<String>, Error>;

    /// Returns the JSON texts at several pointers (at most 64), in their order.
    fn fields(&self, pointers: &[String]) -> Result<Vec<Option<String>>, Error>;

    /// Returns the whole object as JSON text, with `apiVersion` and `kind`.
    fn json(&self) -> Result<String, Error>;
}
