//! One informer per resource, however many want it (promise 1), for as long as somebody does.
//!
//! Whoever wants a resource holds a [`InformerHandle`], for full objects or for their metadata. The first handle starts the informer's task,
//! the last one's end closes the watch and gives the memory back. In between the informer holds full objects while anybody wants them, metadata
//! otherwise. A resource that the API server does not serve is a state, looked at again until it appears: the informer begins
//! then, or goes on, and all who wait get it.
//!
//! All informers together have a [budget](Limits), of which no plugin gets all.

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

use oarlock_informer::{GroupVersionResource, object::Content};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

pub use self::budget::{BudgetView, Excess, Limits, Refused, Usage};
use self::budget::{Ledger, Resource};
pub use self::informer_handle::InformerHandle;
pub use self::prunings::{GroupResource, Prunings};
use self::resource_entry::ResourceEntry;
pub use self::source::{ApiSource, ResourceSource};
pub use self::view::InformerView;
use crate::report::{HostEvent, Reporter};
use crate::tasks::{Criticality, Tasks};

/// How often it is looked whether the caches have grown beyond the budget.
const LOOK_AT_BUDGET: Duration = Duration::from_secs(5);

/// All informers of the host. Cheap to clone.
#[derive(Clone)]
pub struct Informers {
    shared: Arc<InformersShared>,
}

/// Who wants a resource.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Purpose {
    /// The host itself cannot do without it.
    Host,
    /// A plugin of this name.
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
    /// Makes a set without informers.
    #[must_use]
    pub fn new(tasks: Tasks, reporter: Reporter, source: Arc<dyn ResourceSource>, limits: Limits) -> Self {
        let entries = Mutex::default();
        let ledger = Ledger::default();
        Self { shared: Arc::new(InformersShared { tasks, reporter, source, limits, ledger, entries }) }
    }

    /// Returns the right to a resource's informer, starting it if nobody had one.
    ///
    /// # Errors
    ///
    /// When that would begin an informer, or full objects in place of metadata, and the budget has no room. The host itself is never refused.
    pub fn acquire(
        &self,
        resource: &GroupVersionResource,
        purpose: Purpose,
        content: Content,
    ) -> Result<InformerHandle, Refused> {
        let usage = self.shared.usage();
        // What a plugin wants alone already. The same resource again takes nothing more of its share.
        let share = match &purpose {
            Purpose::Host => None,
            Purpose::Plugin(_) => self.shared.usage_of(&purpose, resource),
        };
        let mut entries = self.shared.entries.lock();
        let is_new = !entries.contains_key(resource);
        let is_wider = || {
            entries.get(resource).is_some_and(|entry| {
                // What is held need not be made room for, even if nobody wants it at the moment.
                content > entry.state.lock().wanted().max(*entry.held.borrow())
            })
        };
        let excess = match purpose {
            Purpose::Host => None,
            Purpose::Plugin(_) if is_new => self.shared.limits.no_room_for_informer(&usage),
            Purpose::Plugin(_) if is_wider() => self.shared.limits.no_room_for_more(&usage),
            Purpose::Plugin(_) => None,
        };
        // What others want too costs nobody anything more.
        let no_share_left = || share.and_then(|usage| self.shared.limits.no_share_left(&usage));
        let excess = excess.or_else(|| if is_new { no_share_left() } else { None });
        if let Some(excess) = excess {
            self.shared.ledger.refuse();
            let objects = if content == Content::Full { "full objects of " } else { "" };
            return Err(Refused { what: format!("{objects}{resource}"), excess });
        }
        let entry =
            entries.entry(resource.clone()).or_insert_with(|| Arc::new(ResourceEntry::new(resource))).clone();
        let id = entry.enter(purpose.clone(), content);
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

    /// Every informer's state, by resource.
    #[must_use]
    pub fn views(&self) -> Vec<InformerView> {
        let mut entries = self.shared.entries();
        entries.sort_by(|left, right| left.resource.cmp(&right.resource));
        entries.iter().map(|entry| entry.view()).collect()
    }

    /// The budget, and what of it is used.
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

    /// Says when the caches have grown beyond the budget, and when they are back, until the token is cancelled.
    pub async fn watch_budget(&self, token: CancellationToken) {
        let mut told = None;
        loop {
            tokio::select! {
                biased;
                () = token.cancelled() => return,
                () = tokio::time::sleep(LOOK_AT_BUDGET) => {}
            }
            let excess = self.shared.limits.exceeded_by(&self.shared.usage());
            let now: Option<Resource> = excess.map(|excess| excess.of);
            if now == told {
                continue;
            }
            self.shared.reporter.report(match excess {
                Some(excess) => HostEvent::OverBudget { message: excess.to_string(), hint: excess.hint() },
                None => HostEvent::WithinBudget,
            });
            told = now;
        }
    }
}

// === impl InformersShared ===

impl InformersShared {
    fn entries(&self) -> Vec<Arc<ResourceEntry>> {
        self.entries.lock().values().cloned().collect()
    }

    /// What the informers take up that this user wants alone; none if it wants this resource already.
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

    /// What all caches take up together.
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
