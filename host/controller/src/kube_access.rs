//! The access of one plugin to Kubernetes: the imports `cache`, `client`, `work-queue` and `events`.
//!
//! Reads of the cache pass the gate; live requests impersonate the plugin's account; the work queue and the
//! Events are the plugin's own. A [`PluginAccess`] belongs to one generation of a plugin and allows what its
//! `describe` declared.

mod cache;
mod continue_token;
mod events;
mod failure;
mod head;
mod list;
mod own_versions;
mod own_writes;
mod pages;
mod rate;
mod request;
mod rows;
mod secret_values;
mod slices;
#[cfg(test)]
mod testing;
mod waking;
mod write;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use oarlock_plugin::{
    contract::{
        Error, GroupVersionResource, Index, Namespaces, ObjectKey, Page, PageRequest, PatchKind,
        Preconditions, Projection, Propagation, Row, WorkKey, Written,
    },
    guest::HostBytes,
    kube_access::{CacheAccess, ClientAccess, EventsAccess, GuestEvent, Selectors, WorkQueueAccess},
};

use self::{cache::Cache, events::Emitter, own_writes::Before, request::Requester};
pub(crate) use self::{
    cache::{Reader, Readers, index_source},
    events::StartRecording,
    own_writes::{Decision as OwnWriteDecision, OwnWrites},
    rate::Rate,
    waking::Waking,
};
use crate::{
    access::Gate, discovery::Discovery, dispatch::PluginQueue, identity::Identity, leadership::Leadership,
    metrics::Writes, write_settings::WriteSettings,
};

/// The parts of a plugin's access.
pub(crate) struct Parts {
    /// The name of the plugin: the field manager of its writes, the source of its Events.
    pub(crate) plugin: Arc<str>,
    /// The generation of the plugin.
    pub(crate) generation: u64,
    /// The account that it acts as.
    pub(crate) identity: Identity,
    /// The client of the host. Every request impersonates the account.
    pub(crate) client: kube::Client,
    /// Decides which reads are allowed.
    pub(crate) gate: Arc<Gate>,
    /// Resolves resources.
    pub(crate) discovery: Arc<Discovery>,
    /// The declared reads, by name.
    pub(crate) readers: Readers,
    /// The declared indices.
    pub(crate) indices: Vec<Index>,
    /// The plugin's work queue.
    pub(crate) queue: PluginQueue,
    /// The rate of its requests.
    pub(crate) rate: Rate,
    /// The account of the bytes that the host keeps for it.
    pub(crate) host_bytes: HostBytes,
    /// The counters of its writes.
    pub(crate) writes: Writes,
    /// Decides whether this host may write.
    pub(crate) leadership: Leadership,
    /// Its own writes, of which subscriptions may skip the notifications.
    pub(crate) own_writes: OwnWrites,
    /// Starts the task that records its Events.
    pub(crate) record: StartRecording,
    /// Whether its writes are stored.
    pub(crate) settings: WriteSettings,
}

/// The reads, writes and queue of one generation of a plugin.
pub(crate) struct PluginAccess {
    cache: Cache,
    requester: Arc<Requester>,
    emitter: Emitter,
    queue: PluginQueue,
    own_writes: OwnWrites,
    settings: WriteSettings,
}

// === impl PluginAccess ===

impl PluginAccess {
    /// Returns the access.
    ///
    /// # Errors
    ///
    /// If an index is declared over an undeclared read, or with a malformed pointer.
    pub(crate) fn new(parts: Parts) -> Result<Self, Error> {
        let Parts {
            plugin,
            generation,
            identity,
            client,
            gate,
            discovery,
            readers,
            indices,
            queue,
            rate,
            host_bytes,
            writes,
            leadership,
            own_writes,
            record,
            settings,
        } = parts;
        let cache = Cache::new(&format!("{plugin}#{generation}"), identity.clone(), gate, readers, indices)?;
        let requester =
            Requester::new(client, discovery, Arc::clone(&plugin), identity, rate, writes, leadership);
        let requester = Arc::new(requester.charged_to(host_bytes).with_settings(settings.clone()));
        let emitter = Emitter::new(Arc::clone(&requester), record);
        Ok(Self { cache, requester, emitter, queue, own_writes, settings })
    }

    /// Builds the declared indices of caches that exist already. Otherwise the first read through an index
    /// builds it.
    pub(crate) async fn build_indices(&self) {
        self.cache.build_indices().await;
    }

    /// Makes a write. Records the version that it returned, so that the plugin can wait for it, and so that
    /// its notification can be skipped. `before` is what the write demands of the version before.
    async fn write(
        &self,
        target: &GroupVersionResource,
        namespace: &str,
        name: &str,
        before: &Before,
        write: impl Future<Output = Result<Written, Error>>,
    ) -> Result<Written, Error> {
        self.may_write()?;
        let in_flight = self.own_writes.begins(target, namespace, name);
        let written = write.await;
        in_flight.ends(&written, before);
        if let Ok(written) = &written {
            self.cache.own_versions.record(target, &written.resource_version);
        }
        written
    }

    fn may_write(&self) -> Result<(), Error> {
        if self.settings.suspends() {
            let plugin = &self.requester.plugin;
            return Err(Error::Suspended(format!("the operator suspended the writes of plugin {plugin}")));
        }
        Ok(())
    }
}

#[async_trait]
impl CacheAccess for PluginAccess {
    async fn get(&self, lister: &str, key: &ObjectKey, projection: &Projection) -> Result<Row, Error> {
        self.cache.get(lister, key, projection).await
    }

    async fn list(
        &self,
        lister: &str,
        namespaces: &Namespaces,
        label_selector: &str,
        projection: &Projection,
        page: &PageRequest,
    ) -> Result<Page, Error> {
        self.cache.list(lister, namespaces, label_selector, projection, page).await
    }

    async fn by_index(
        &self,
        index: &str,
        value: &str,
        namespaces: &Namespaces,
        projection: &Projection,
        page: &PageRequest,
    ) -> Result<Page, Error> {
        self.cache.by_index(index, value, namespaces, projection, page).await
    }

    async fn index_values(&self, index: &str) -> Result<Vec<String>, Error> {
        self.cache.index_values(index).await
    }

    async fn has_synced(&self, lister: &str) -> Result<bool, Error> {
        self.cache.has_synced(lister)
    }

    async fn wait_until_seen(
        &self,
        lister: &str,
        resource_version: &str,
        timeout: Duration,
    ) -> Result<(), Error> {
        self.cache.wait_until_seen(lister, resource_version, timeout).await
    }
}

#[async_trait]
impl ClientAccess for PluginAccess {
    async fn get(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
    ) -> Result<String, Error> {
        let text = self.requester.get(target, key, subresource).await?;
        self.cache.own_versions.record(target, &write::version_of(&text).await);
        Ok(text)
    }

    async fn list(
        &self,
        target: &GroupVersionResource,
        namespaces: &Namespaces,
        selectors: Selectors<'_>,
        projection: &Projection,
        page: &PageRequest,
    ) -> Result<Page, Error> {
        self.requester.list(target, namespaces, selectors, projection, page).await
    }

    async fn create(
        &self,
        target: &GroupVersionResource,
        namespace: &str,
        json: String,
    ) -> Result<Written, Error> {
        let name = write::name_of(&json).await;
        let written = self.requester.create(target, namespace, json);
        self.write(target, namespace, &name, &Before::NoObject, written).await
    }

    async fn apply(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
        json: String,
        force: bool,
        preconditions: &Preconditions,
    ) -> Result<Written, Error> {
        let before = write::version_before(&json, preconditions).await;
        let written = self.requester.apply(target, key, subresource, json, force, preconditions);
        self.write(target, &key.namespace, &key.name, &before, written).await
    }

    async fn patch(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
        kind: PatchKind,
        body: String,
        preconditions: &Preconditions,
    ) -> Result<Written, Error> {
        // The text of a JSON patch is no object.
        let object = if matches!(kind, PatchKind::JsonPatch) { "" } else { &body };
        let before = write::version_before(object, preconditions).await;
        let written = self.requester.patch(target, key, subresource, kind, body, preconditions);
        self.write(target, &key.namespace, &key.name, &before, written).await
    }

    async fn replace(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        subresource: &str,
        json: String,
    ) -> Result<Written, Error> {
        let before = Before::Version(write::version_of(&json).await);
        let written = self.requester.replace(target, key, subresource, json);
        self.write(target, &key.namespace, &key.name, &before, written).await
    }

    async fn delete(
        &self,
        target: &GroupVersionResource,
        key: &ObjectKey,
        propagation: Propagation,
        grace_period_seconds: Option<u32>,
        preconditions: &Preconditions,
    ) -> Result<(), Error> {
        self.may_write()?;
        self.requester.delete(target, key, propagation, grace_period_seconds, preconditions).await
    }
}

impl WorkQueueAccess for PluginAccess {
    fn add(&self, key: WorkKey, delay: Option<Duration>) -> Result<(), Error> {
        self.queue.add(key, delay)
    }
}

impl EventsAccess for PluginAccess {
    fn emit(&self, event: GuestEvent) -> Result<(), Error> {
        self.may_write()?;
        self.emitter.emit(event)
    }
}
