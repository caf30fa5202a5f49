//! All the informers of one user: one for each resource, made alike, started and stopped together.
//!
//! ```no_run
//! # use oarlock_informer::{GroupVersionResource, toolkit::informers::{ApiSource, Config, InformerFactory}};
//! # use oarlock_label_selector::LabelSelector;
//! # use oarlock_informer::toolkit::wait::cancelled;
//! # async fn example(client: kube::Client) {
//! let factory = InformerFactory::new(ApiSource::new(client), Config::default());
//! let pods = GroupVersionResource::new("", "v1", "pods");
//! let lister = factory.lister(&pods); // Makes the informer.
//! let token = tokio_util::sync::CancellationToken::new();
//! factory.start(&token, |_, run| drop(tokio::spawn(run)));
//! factory.wait_for_cache_sync(cancelled(&token)).await.into_result().expect("nobody cancels");
//! println!("{} pods in default", lister.list(Some("default"), &LabelSelector::everything()).len());
//! token.cancel();
//! factory.shut_down().await;
//! # }
//! ```
//!
//! The factory runs nothing by itself: [`InformerFactory::start`] hands out a future for each informer, and the caller spawns it, or
//! joins it with others, where it likes.

mod source;
mod tweak;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::delta_fifo::Transformer;
use crate::names::GroupVersionResource;
use crate::reflector;
use crate::shared_informer::{self, SharedInformer};
use crate::toolkit::cache::Lister;
use crate::toolkit::metrics::{InformerMetrics, InformerName, Publisher};
use crate::toolkit::wait::{self, Cause, SyncResult, Syncing};

pub use source::{ApiSource, Source};
pub use tweak::{RequestOptions, Tweak};

/// How a factory makes its informers.
#[derive(Default)]
pub struct Config {
    /// Only this namespace. None: all.
    pub namespace: Option<String>,
    /// How often informers look whether a handler is due to be told everything again, see
    /// [`shared_informer::Config::resync_period`]. Zero: never.
    pub resync_period: Duration,
    /// The same for single resources.
    pub custom_resync: BTreeMap<GroupVersionResource, Duration>,
    /// Changes every object of every informer on its way in.
    pub transformer: Option<Transformer>,
    /// Changes the options of every list and watch, on their way out.
    pub tweak: Option<Tweak>,
    /// How the informers list, watch and wait after failures.
    pub reflector: reflector::Config,
    /// What the informers are called in metrics. Without a name they publish none.
    pub name: Option<InformerName>,
    /// Who is told the informers' figures.
    pub metrics: Option<Arc<dyn InformerMetrics>>,
}

/// Makes informers, one for each resource, and looks after them. Clones are handles on the same factory.
///
/// Asking for a resource ([`InformerFactory::informer`], [`InformerFactory::lister`]) makes its informer; it does not run before the next
/// [`InformerFactory::start`]. Any resource may be asked for: whether the API server has it, its informer finds out.
#[derive(Clone)]
pub struct InformerFactory {
    shared: Arc<Shared>,
}

struct Shared {
    source: Box<dyn Source>,
    config: Config,
    state: Mutex<State>,
    /// The futures that were handed out and have not ended.
    running: TaskTracker,
}

#[derive(Default)]
struct State {
    informers: BTreeMap<GroupVersionResource, Made>,
    is_shut_down: bool,
}

struct Made {
    informer: SharedInformer,
    is_started: bool,
}

// === impl InformerFactory ===

impl InformerFactory {
    /// Makes a factory without informers.
    #[must_use]
    pub fn new(source: impl Source + 'static, config: Config) -> Self {
        let source = Box::new(source);
        let shared = Shared { source, config, state: Mutex::default(), running: TaskTracker::new() };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the informer of a resource, making it if nobody asked for it before.
    #[must_use]
    pub fn informer(&self, resource: &GroupVersionResource) -> SharedInformer {
        let Shared { source, config, .. } = &*self.shared;
        self.informer_by(resource, |informer_config| {
            let list_watch = source.list_watch(resource, config.namespace.as_deref());
            let list_watch = match &config.tweak {
                Some(tweak) => tweak.clone().apply_to(list_watch),
                None => list_watch,
            };
            SharedInformer::new(list_watch, informer_config)
        })
    }

    /// Returns the informer of a resource, making it with `make` if nobody asked for it before: the first one wins.
    ///
    /// `make` is given the config that the factory would use, and may use it or not. It must not ask the factory for anything.
    #[must_use]
    pub fn informer_by(
        &self,
        resource: &GroupVersionResource,
        make: impl FnOnce(shared_informer::Config) -> SharedInformer,
    ) -> SharedInformer {
        match self.shared.state.lock().informers.entry(resource.clone()) {
            Entry::Occupied(made) => made.get().informer.clone(),
            Entry::Vacant(vacant) => {
                let informer = make(self.informer_config(resource));
                vacant.insert(Made { informer: informer.clone(), is_started: false });
                informer
            }
        }
    }

    /// Returns a lister over the cache of a resource, making its informer if nobody asked for it before.
    #[must_use]
    pub fn lister(&self, resource: &GroupVersionResource) -> Lister {
        self.informer(resource).lister()
    }

    /// Begins to run the informers that were made and not yet begun, until `token` is cancelled. Does not wait.
    ///
    /// For each of them `spawn` is given a future that has to be polled, mostly by spawning it; dropping it stops the informer.
    /// Calling this again begins those that were made since, with the token given then; an informer that has stopped stays so. After
    /// [`InformerFactory::shut_down`] it does nothing.
    pub fn start(
        &self,
        token: &CancellationToken,
        mut spawn: impl FnMut(&GroupVersionResource, BoxFuture<'static, ()>),
    ) {
        let mut runs = Vec::new();
        {
            let mut state = self.shared.state.lock();
            if state.is_shut_down {
                return;
            }
            for (resource, made) in &mut state.informers {
                if !std::mem::replace(&mut made.is_started, true) {
                    let (informer, token) = (made.informer.clone(), token.clone());
                    let run = async move { informer.run(token).await };
                    runs.push((resource.clone(), self.shared.running.track_future(run).boxed()));
                }
            }
        }
        for (resource, run) in runs {
            spawn(&resource, run);
        }
    }

    /// Waits until all informers that were started so far have synced, or until `stop` ends, which says why;
    /// [`cancelled`](crate::toolkit::wait::cancelled) makes one of a token.
    pub async fn wait_for_cache_sync<C: Into<Cause>>(&self, stop: impl Future<Output = C>) -> SyncResult {
        let started: Vec<_> = {
            let state = self.shared.state.lock();
            let started = state.informers.iter().filter(|(_, made)| made.is_started);
            started.map(|(resource, made)| (resource.clone(), made.informer.clone())).collect()
        };
        let all: Vec<&dyn Syncing> = started.iter().map(|(_, informer)| informer as &dyn Syncing).collect();
        let waited = wait::wait_for(None, &all, stop).await;
        let synced =
            started.iter().map(|(resource, informer)| (resource.clone(), informer.has_synced())).collect();
        SyncResult { synced, cause: waited.err().map(|not_synced| not_synced.cause) }
    }

    /// Starts nothing from now on, and waits until all informers that were started have stopped, which their token makes them do.
    ///
    /// May be called several times, also at once. At the end the factory's name is free again.
    pub async fn shut_down(&self) {
        self.shared.state.lock().is_shut_down = true;
        self.shared.running.close();
        self.shared.running.wait().await;
        if let Some(name) = &self.shared.config.name {
            name.release();
        }
    }

    fn informer_config(&self, resource: &GroupVersionResource) -> shared_informer::Config {
        let config = &self.shared.config;
        let publisher = match (&config.name, &config.metrics) {
            (Some(name), Some(metrics)) => {
                Some(Publisher { identity: name.identify(resource), metrics: metrics.clone() })
            }
            _ => None,
        };
        shared_informer::Config {
            reflector: config.reflector.clone(),
            resync_period: config.custom_resync.get(resource).copied().unwrap_or(config.resync_period),
            transformer: config.transformer.clone(),
            publisher,
            ..shared_informer::Config::new(resource.clone())
        }
    }
}

#[cfg(test)]
mod tests;
