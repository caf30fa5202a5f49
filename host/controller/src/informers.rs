//! One informer per resource, however many want it (promise 1), for as long as somebody does.
//!
//! Whoever wants a resource holds a [`Lease`]. The first lease starts the informer's task, the last one's end closes the watch. A
//! resource that the API server does not serve is a state, looked at again until it appears: the informer begins
//! then, and all who wait get it.

mod source;
mod view;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use oarlock_informer::reflector::Phase;
use oarlock_informer::shared_informer::Config;
use oarlock_informer::{GroupVersionResource, SharedInformer, TypeMeta};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::source::{ApiSource, ResourceSource};
pub use self::view::InformerView;
use crate::access::KnownNamespaces;
use crate::report::{Event, Reporter};
use crate::tasks::{Criticality, Task, Tasks};

/// The wait before a resource that is not served is looked for again; doubles up to [`LOOK_AT_MOST`].
const LOOK_FIRST: Duration = Duration::from_millis(500);
const LOOK_AT_MOST: Duration = Duration::from_secs(15);

/// How finely resyncs are timed: how often an informer looks whether a subscription's is due.
const RESYNC_CHECK: Duration = Duration::from_secs(15);

/// All informers of the host. Cheap to clone.
#[derive(Clone)]
pub struct Informers {
    shared: Arc<Shared>,
}

/// Who wants a resource.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Purpose {
    /// The host itself cannot do without it.
    Host,
    /// A plugin of this name.
    Plugin(Arc<str>),
}

/// The right to a resource's informer. It runs while there is one; cloning makes another.
pub struct Lease {
    shared: Arc<Shared>,
    entry: Arc<Entry>,
    id: u64,
    purpose: Purpose,
}

struct Shared {
    tasks: Tasks,
    reporter: Reporter,
    source: Arc<dyn ResourceSource>,
    entries: Mutex<HashMap<GroupVersionResource, Arc<Entry>>>,
}

/// One resource that somebody wants.
struct Entry {
    resource: GroupVersionResource,
    informer: watch::Sender<Option<SharedInformer>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next_id: u64,
    users: BTreeMap<u64, Purpose>,
    task: Option<Task>,
    trouble: Option<Trouble>,
}

/// What is wrong, and since when.
#[derive(Clone, Debug)]
struct Trouble {
    since: Instant,
    kind: TroubleKind,
    message: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum TroubleKind {
    Absent,
    Forbidden,
    Unreachable,
}

// === impl Informers ===

impl Informers {
    /// Makes a set without informers.
    #[must_use]
    pub fn new(tasks: Tasks, reporter: Reporter, source: Arc<dyn ResourceSource>) -> Self {
        Self { shared: Arc::new(Shared { tasks, reporter, source, entries: Mutex::default() }) }
    }

    /// Returns the right to a resource's informer, starting it if nobody had one.
    #[must_use]
    pub fn lease(&self, resource: &GroupVersionResource, purpose: Purpose) -> Lease {
        let mut entries = self.shared.entries.lock();
        let entry = entries.entry(resource.clone()).or_insert_with(|| Arc::new(Entry::new(resource))).clone();
        let mut state = entry.state.lock();
        let id = state.enter(purpose.clone());
        if state.task.is_none() {
            let (shared, entry) = (self.shared.clone(), entry.clone());
            let name = format!("informer {resource}");
            let start = |token| async move { entry.run(&shared, token).await };
            state.task = Some(self.shared.tasks.spawn(name, Criticality::Essential, start));
        }
        drop(state);
        Lease { shared: self.shared.clone(), entry, id, purpose }
    }

    /// Every informer's state, by resource.
    #[must_use]
    pub fn views(&self) -> Vec<InformerView> {
        let mut entries: Vec<_> = self.shared.entries.lock().values().cloned().collect();
        entries.sort_by(|left, right| left.resource.cmp(&right.resource));
        entries.iter().map(|entry| entry.view()).collect()
    }
}

// === impl Lease ===

impl Lease {
    /// Returns the resource.
    #[must_use]
    pub fn resource(&self) -> &GroupVersionResource {
        &self.entry.resource
    }

    /// Returns the informer; none while the resource has never been served.
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
                // The sender is in what this lease holds.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until the cache holds everything there is.
    pub async fn synced(&self) -> SharedInformer {
        let informer = self.served().await;
        if !informer.wait_for_sync().await {
            // It has stopped, and with it the host or this lease's holder.
            std::future::pending::<()>().await;
        }
        informer
    }

    /// Says, in a few words, what there is to wait for; none when the cache holds everything there is.
    #[must_use]
    pub fn waits_for(&self) -> Option<String> {
        let trouble = self.entry.state.lock().trouble.clone();
        if self.informer().is_some_and(|it| it.has_synced()) {
            return None;
        }
        let resource = &self.entry.resource;
        Some(match trouble {
            None => format!("the first list of {resource}"),
            Some(Trouble { kind: TroubleKind::Absent, .. }) => {
                format!("{resource}, which the API server does not serve (yet)")
            }
            Some(Trouble { kind: TroubleKind::Forbidden, message, .. }) => {
                format!("{resource}, which the host may not watch: {message}")
            }
            Some(Trouble { message, .. }) => format!("{resource}: {message}"),
        })
    }
}

impl Clone for Lease {
    fn clone(&self) -> Self {
        let id = self.entry.state.lock().enter(self.purpose.clone());
        Self { shared: self.shared.clone(), entry: self.entry.clone(), id, purpose: self.purpose.clone() }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Nobody may get a lease of an informer that is about to end: the lock is that of `Informers::lease`.
        let mut entries = self.shared.entries.lock();
        let mut state = self.entry.state.lock();
        state.users.remove(&self.id);
        if state.users.is_empty() {
            entries.remove(&self.entry.resource);
            if let Some(task) = &state.task {
                task.cancel();
            }
        }
    }
}

impl KnownNamespaces for Lease {
    fn names(&self) -> Option<BTreeSet<String>> {
        let informer = self.informer().filter(SharedInformer::has_synced)?;
        Some(informer.indexer().keys().iter().map(|key| key.name().to_owned()).collect())
    }
}

// === impl Entry ===

impl Entry {
    fn new(resource: &GroupVersionResource) -> Self {
        Self { resource: resource.clone(), informer: watch::Sender::new(None), state: Mutex::default() }
    }

    async fn run(&self, shared: &Shared, token: CancellationToken) {
        let type_meta = tokio::select! {
            biased;
            () = token.cancelled() => return,
            type_meta = self.find(shared) => type_meta,
        };
        let mut config = Config::new(self.resource.clone());
        config.resync_period = RESYNC_CHECK;
        let list_watch = shared.source.list_watch(&self.resource, &type_meta);
        config.reflector.type_meta = Some(type_meta);
        config.reflector.consistency_check = shared.source.consistency_check();
        let informer = SharedInformer::new(list_watch, config);
        self.informer.send_replace(Some(informer.clone()));
        let phases = self.follow_phases(shared, &informer);
        tokio::select! {
            biased;
            () = informer.run(token.clone()) => {}
            () = phases => {}
        }
    }

    /// Looks for the resource until it is served.
    async fn find(&self, shared: &Shared) -> TypeMeta {
        let mut wait = LOOK_FIRST;
        loop {
            match shared.source.type_of(&self.resource).await {
                Ok(Some(type_meta)) => {
                    self.recovered(shared);
                    return type_meta;
                }
                Ok(None) => self.in_trouble(
                    shared,
                    TroubleKind::Absent,
                    "the API server does not serve it".to_owned(),
                ),
                Err(message) => self.in_trouble(shared, TroubleKind::Unreachable, message),
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LOOK_AT_MOST);
        }
    }

    async fn follow_phases(&self, shared: &Shared, informer: &SharedInformer) {
        let mut phases = informer.phase();
        loop {
            let phase = phases.borrow_and_update().clone();
            let last_error =
                || informer.status().last_error.map_or_else(String::new, |failure| failure.message);
            match phase {
                Phase::Waiting | Phase::Listing => {}
                Phase::Watching => self.recovered(shared),
                Phase::Absent => self.in_trouble(shared, TroubleKind::Absent, last_error()),
                Phase::Forbidden => self.in_trouble(shared, TroubleKind::Forbidden, last_error()),
                Phase::Failing { message } => self.in_trouble(shared, TroubleKind::Unreachable, message),
            }
            if phases.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Notes that something is wrong, and says so if it was not known.
    fn in_trouble(&self, shared: &Shared, kind: TroubleKind, message: String) {
        let mut state = self.state.lock();
        let before = state.trouble.take();
        let since = before.as_ref().map_or_else(Instant::now, |it| it.since);
        state.trouble = Some(Trouble { since, kind, message: message.clone() });
        let is_known = before.is_some_and(|it| it.kind == kind);
        let wanted_by = state.wanted_by();
        drop(state);
        if is_known {
            return;
        }
        let resource = self.resource.to_string();
        shared.reporter.report(match kind {
            TroubleKind::Absent => Event::ResourceAbsent { resource, wanted_by },
            TroubleKind::Forbidden => Event::ResourceForbidden {
                resource,
                message,
                hint: "grant the host's own account what `oarlock rbac` prints for it".to_owned(),
            },
            TroubleKind::Unreachable => Event::WatchTrouble { resource, message },
        });
    }

    fn recovered(&self, shared: &Shared) {
        let Some(trouble) = self.state.lock().trouble.take() else { return };
        let resource = self.resource.to_string();
        shared.reporter.report(match trouble.kind {
            TroubleKind::Absent => Event::ResourceServed { resource },
            TroubleKind::Forbidden | TroubleKind::Unreachable => Event::WatchRecovered { resource },
        });
    }

    fn view(&self) -> InformerView {
        let informer = self.informer.borrow().clone();
        let state = self.state.lock();
        let needed_by_host = state.users.values().any(|it| *it == Purpose::Host);
        InformerView::of(
            &self.resource,
            informer.as_ref(),
            state.trouble.as_ref(),
            state.wanted_by(),
            needed_by_host,
        )
    }
}

// === impl State ===

impl State {
    fn enter(&mut self, purpose: Purpose) -> u64 {
        self.next_id += 1;
        self.users.insert(self.next_id, purpose);
        self.next_id
    }

    /// The plugins that want it, each once.
    fn wanted_by(&self) -> Vec<String> {
        let plugins: BTreeSet<_> = self
            .users
            .values()
            .filter_map(|purpose| match purpose {
                Purpose::Host => None,
                Purpose::Plugin(name) => Some(name.to_string()),
            })
            .collect();
        plugins.into_iter().collect()
    }
}

#[cfg(test)]
mod tests;
