//! The right to a resource's informer.

use std::collections::BTreeSet;
use std::sync::Arc;

use oarlock_informer::{
    GroupVersionResource, SharedInformer,
    object::{Content, ObjectKey},
};

use super::resource_entry::ResourceEntry;
use super::resource_state::{Trouble, TroubleKind};
use super::{InformersShared, Purpose};
use crate::access::KnownNamespaces;

/// The right to a resource's informer, with so much of each object. It runs while there is one; cloning makes another.
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

    /// Returns the informer; none while the resource has never been served. Whether its cache holds as much of each object as this handle is
    /// for, [`InformerHandle::synced`] says.
    #[must_use]
    pub fn informer(&self) -> Option<SharedInformer> {
        self.entry.informer.borrow().clone()
    }

    /// Waits until the resource is served, be it for ever, and returns its informer.
    pub async fn served(&self) -> SharedInformer {
        let mut informer = self.entry.informer.subscribe();
        loop {
            if let Some(informer) = informer.borrow_and_update().clone() {
                return informer;
            }
            if informer.changed().await.is_err() {
                // The sender is in what this handle holds.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until the cache holds everything there is, and of each object as much as this handle is for. It does so for as long
    /// as the handle lives.
    pub async fn synced(&self) -> SharedInformer {
        let informer = self.served().await;
        if !informer.wait_for_sync().await {
            // It has stopped, and with it the host or this handle's holder.
            std::future::pending::<()>().await;
        }
        // The sender is in what this handle holds.
        let _ = self.entry.held.subscribe().wait_for(|held| *held >= self.content).await;
        informer
    }

    /// Says, in a few words, what there is to wait for; none when [`InformerHandle::synced`] would not wait.
    #[must_use]
    pub fn waits_for(&self) -> Option<String> {
        let (trouble, over_budget) = {
            let state = self.entry.state.lock();
            (state.trouble.clone(), state.over_budget.clone())
        };
        let has_synced = self.informer().is_some_and(|it| it.has_synced());
        if has_synced && *self.entry.held.borrow() >= self.content {
            return None;
        }
        let resource = &self.entry.resource;
        if let Some(message) = over_budget {
            return Some(format!("room for {resource}: {message}"));
        }
        Some(match trouble {
            None if has_synced => format!("the full objects of {resource}"),
            None => format!("the first list of {resource}"),
            Some(Trouble { kind: TroubleKind::Absent, message, .. }) => format!("{resource}: {message}"),
            Some(Trouble { kind: TroubleKind::Forbidden, message, .. }) => {
                format!("{resource}, which the host may not watch: {message}")
            }
            Some(Trouble { message, .. }) => format!("{resource}: {message}"),
        })
    }
}

impl Clone for InformerHandle {
    fn clone(&self) -> Self {
        let id = self.entry.state.lock().enter(self.purpose.clone(), self.content);
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
        // Nobody may get a handle of an informer that is about to end: the lock is that of `Informers::acquire`.
        let mut entries = self.shared.entries.lock();
        let mut state = self.entry.state.lock();
        if state.leave(self.id) {
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
