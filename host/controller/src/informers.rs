//! The informers of the host: one for each resource, shared by all its users (promise 1).
//!
//! A user of a resource has an [`InformerHandle`], for full objects or for metadata. The first handle starts
//! the informer's task; when the last one is dropped, the watch is closed and the memory freed. In between,
//! the cache has full objects while a handle wants them, metadata otherwise. A resource that the API server
//! does not serve is a state and not an error: the host probes until it is served, then the informer starts
//! or continues.
//!
//! All informers together have a [budget](Limits). One plugin alone may use only a part of it.

mod budget;
mod informer_handle;
mod metered;
mod prunings;
mod resource_entry;
mod resource_probe;
mod resource_state;
mod source;
mod source_controller;
mod view;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use oarlock_informer::{GroupVersionResource, SharedInformer, object::Content};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use self::budget::Ledger;
pub use self::budget::{BudgetView, Excess, Limits, Refused, Resource, Usage};
pub use self::informer_handle::InformerHandle;
pub use self::prunings::{GroupResource, Prunings};
use self::resource_entry::ResourceEntry;
pub use self::source::{ApiSource, ResourceSource};
pub use self::view::InformerView;
use crate::report::{HostEvent, Reporter};
use crate::tasks::{Criticality, Tasks};

/// The interval at which the size of the caches is compared with the budget.
const BUDGET_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// All informers of the host. Cheap to clone.
#[derive(Clone)]
pub struct Informers {
    shared: Arc<InformersShared>,
}

/// The user of an informer.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Purpose {
    /// The host itself, which needs it.
    Host,
    /// The plugin of this name.
    Plugin(Arc<str>),
}

struct InformersShared {
    tasks: Tasks,
    reporter: Reporter,
    source: Arc<dyn ResourceSource>,
    limits: Limits,
    ledger: Ledger,
    entries: Mutex<HashMap<GroupVersionResource, Arc<ResourceEntry>>>,
}

// === impl Informers ===

impl Informers {
    /// Makes an empty set of informers.
    #[must_use]
    pub fn new(tasks: Tasks, reporter: Reporter, source: Arc<dyn ResourceSource>, limits: Limits) -> Self {
        let entries = Mutex::default();
        let ledger = Ledger::default();
        Self { shared: Arc::new(InformersShared { tasks, reporter, source, limits, ledger, entries }) }
    }

    /// Returns a handle of a resource's informer, and starts the informer if this is the first handle.
    ///
    /// # Errors
    ///
    /// If that would start an informer, or load full objects in place of metadata, and the budget has no
    /// room. The host itself is never refused.
    pub fn acquire(
        &self,
        resource: &GroupVersionResource,
        purpose: Purpose,
        content: Content,
    ) -> Result<InformerHandle, Refused> {
        let usage = self.shared.usage();
        // The usage of the plugin alone. Another handle of a resource that it already has takes nothing more.
        let share = match &purpose {
            Purpose::Host => None,
            Purpose::Plugin(_) => self.shared.usage_of(&purpose, resource),
        };
        let mut entries = self.shared.entries.lock();
        let is_new = !entries.contains_key(resource);
        let is_wider = || {
            entries.get(resource).is_some_and(|entry| {
                // Full objects that are still cached need no more room, even if no handle wants them now.
                content > entry.state.lock().wanted().max(*entry.content.borrow())
            })
        };
        let excess = match purpose {
            Purpose::Host => None,
            Purpose::Plugin(_) if is_new => self.shared.limits.no_room_for_informer(&usage),
            Purpose::Plugin(_) if is_wider() => self.shared.limits.no_room_for_more(&usage),
            Purpose::Plugin(_) => None,
        };
        // An informer that other users share takes nothing from this plugin's share.
        let no_share_left = || share.and_then(|usage| self.shared.limits.no_share_left(&usage));
        let excess = excess.or_else(|| if is_new { no_share_left() } else { None });
        if let Some(excess) = excess {
            self.shared.ledger.count_refusal();
            let objects = if content == Content::Full { "full objects of " } else { "" };
            return Err(Refused { wanted: format!("{objects}{resource}"), excess });
        }
        let entry =
            entries.entry(resource.clone()).or_insert_with(|| Arc::new(ResourceEntry::new(resource))).clone();
        let id = entry.add_user(purpose.clone(), content);
        let mut state = entry.state.lock();
        if state.task.is_none() {
            let (shared, entry) = (self.shared.clone(), entry.clone());
            let name = format!("informer {resource}");
            let start = |token| async move { entry.run(&shared, token).await };
            state.task = Some(self.shared.tasks.spawn(name, Criticality::Essential, start));
        }
        drop(state);
        Ok(InformerHandle { shared: self.shared.clone(), entry, id, purpose, content })
    }

    /// Returns the informer of a resource; none if no handle of it exists, or the resource was never served.
    pub(crate) fn informer(&self, resource: &GroupVersionResource) -> Option<SharedInformer> {
        self.shared.entries.lock().get(resource).and_then(|entry| entry.informer.borrow().clone())
    }

    /// Returns the status of every informer, sorted by resource.
    #[must_use]
    pub fn views(&self) -> Vec<InformerView> {
        let mut entries = self.shared.entries();
        entries.sort_by(|left, right| left.resource.cmp(&right.resource));
        entries.iter().map(|entry| entry.view()).collect()
    }

    /// Returns the budget and its usage.
    #[must_use]
    pub fn budget(&self) -> BudgetView {
        let usage = self.shared.usage();
        let limits = self.shared.limits;
        BudgetView {
            informers: usage.informers,
            max_informers: limits.informers,
            objects: usage.objects,
            max_objects: limits.objects,
            bytes: usage.bytes,
            max_bytes: limits.bytes,
            over: limits.exceeded_by(&usage).is_some(),
            refusals: self.shared.ledger.refusals(),
        }
    }

    /// Reports when the caches exceed the budget and when they are within it again, until the token is
    /// cancelled.
    pub async fn watch_budget(&self, token: CancellationToken) {
        let mut reported = None;
        loop {
            tokio::select! {
                biased;
                () = token.cancelled() => return,
                () = tokio::time::sleep(BUDGET_CHECK_INTERVAL) => {}
            }
            let excess = self.shared.limits.exceeded_by(&self.shared.usage());
            let now: Option<Resource> = excess.map(|excess| excess.of);
            if now == reported {
                continue;
            }
            self.shared.reporter.report(match excess {
                Some(excess) => HostEvent::OverBudget { message: excess.to_string(), hint: excess.hint() },
                None => HostEvent::WithinBudget,
            });
            reported = now;
        }
    }
}

// === impl InformersShared ===

impl InformersShared {
    fn entries(&self) -> Vec<Arc<ResourceEntry>> {
        self.entries.lock().values().cloned().collect()
    }

    /// Returns the usage of the informers that only this user has; none if it has this resource already.
    fn usage_of(&self, user: &Purpose, resource: &GroupVersionResource) -> Option<Usage> {
        let mut sum = Usage::default();
        for entry in self.entries() {
            let users = entry.state.lock().users();
            if users.contains(user) && entry.resource == *resource {
                return None;
            }
            if users.iter().all(|it| it == user) {
                let Usage { informers, objects, bytes } = entry.usage();
                sum = Usage { informers: sum.informers + informers, ..sum.and(objects, bytes) };
            }
        }
        Some(sum)
    }

    /// Returns the usage of all informers together.
    fn usage(&self) -> Usage {
        let entries = self.entries();
        let sum = |sum: Usage, entry: &Arc<ResourceEntry>| {
            let Usage { informers, objects, bytes } = entry.usage();
            Usage { informers: sum.informers + informers, ..sum.and(objects, bytes) }
        };
        entries.iter().fold(Usage::default(), sum)
    }
}

#[cfg(test)]
mod tests;
