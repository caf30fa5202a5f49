//! The handle by which a user keeps an informer running and reads it.

use std::collections::BTreeSet;
use std::sync::Arc;

use oarlock_informer::{
    GroupVersionResource, SharedInformer,
    object::{Content, ObjectKey},
};

use super::resource_entry::ResourceEntry;
use super::resource_state::{Problem, ProblemKind};
use super::{InformersShared, Purpose};
use crate::access::KnownNamespaces;

/// A handle of a resource's informer, for full objects or for metadata. The informer runs while a handle
/// exists. A clone is another handle.
pub struct InformerHandle {
    pub(super) shared: Arc<InformersShared>,
    pub(super) entry: Arc<ResourceEntry>,
    pub(super) id: u64,
    pub(super) purpose: Purpose,
    pub(super) content: Content,
}

// === impl InformerHandle ===

impl InformerHandle {
    /// Returns the resource.
    #[must_use]
    pub fn resource(&self) -> &GroupVersionResource {
        &self.entry.resource
    }

    /// Returns the informer; none if the resource was never served. Its cache may have metadata only, even
    /// for a handle for full objects: wait for [`InformerHandle::synced`].
    #[must_use]
    pub fn informer(&self) -> Option<SharedInformer> {
        self.entry.informer.borrow().clone()
    }

    /// Waits until the resource is served, without a limit of time, and returns its informer.
    pub async fn served(&self) -> SharedInformer {
        let mut informer = self.entry.informer.subscribe();
        loop {
            if let Some(informer) = informer.borrow_and_update().clone() {
                return informer;
            }
            if informer.changed().await.is_err() {
                // The sender lives as long as this handle.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until the cache has all objects, with the content that this handle is for. The cache keeps that
    /// content while the handle lives.
    pub async fn synced(&self) -> SharedInformer {
        let informer = self.served().await;
        if !informer.wait_for_sync().await {
            // The informer stopped, because the host is stopping.
            std::future::pending::<()>().await;
        }
        // The sender lives as long as this handle.
        let _ = self.entry.content.subscribe().wait_for(|content| *content >= self.content).await;
        informer
    }

    /// Returns why [`InformerHandle::synced`] waits, for people; none if it does not wait.
    #[must_use]
    pub fn waits_for(&self) -> Option<String> {
        let (problem, over_budget) = {
            let state = self.entry.state.lock();
            (state.problem.clone(), state.over_budget.clone())
        };
        let has_synced = self.informer().is_some_and(|it| it.has_synced());
        if has_synced && *self.entry.content.borrow() >= self.content {
            return None;
        }
        let resource = &self.entry.resource;
        if let Some(message) = over_budget {
            return Some(format!("room in the budget for {resource}: {message}"));
        }
        Some(match problem {
            None if has_synced => format!("the full objects of {resource}"),
            None => format!("the first list of {resource}"),
            Some(Problem { kind: ProblemKind::Forbidden, message, .. }) => {
                format!("{resource}, which the host's account may not watch: {message}")
            }
            Some(Problem { message, .. }) => format!("{resource}: {message}"),
        })
    }
}

impl Clone for InformerHandle {
    fn clone(&self) -> Self {
        let id = self.entry.state.lock().add_user(self.purpose.clone(), self.content);
        Self {
            shared: self.shared.clone(),
            entry: self.entry.clone(),
            id,
            purpose: self.purpose.clone(),
            content: self.content,
        }
    }
}

impl Drop for InformerHandle {
    fn drop(&mut self) {
        // With this lock `Informers::acquire` cannot return a handle of an informer that is about to end.
        let mut entries = self.shared.entries.lock();
        let mut state = self.entry.state.lock();
        if state.remove_user(self.id) {
            entries.remove(&self.entry.resource);
            if let Some(task) = &state.task {
                task.cancel();
            }
        } else {
            self.entry.changed.notify_one();
        }
    }
}

impl KnownNamespaces for InformerHandle {
    fn names(&self) -> Option<BTreeSet<String>> {
        let informer = self.informer().filter(SharedInformer::has_synced)?;
        Some(informer.indexer().keys().iter().map(|key| key.name().to_owned()).collect())
    }

    fn has(&self, name: &str) -> Option<bool> {
        let informer = self.informer().filter(SharedInformer::has_synced)?;
        Some(informer.indexer().get(&ObjectKey::new("", name)).is_some())
    }
}
