//! A factory of informers: one for each resource, with the same configuration, started and stopped together
//! (client-go: `SharedInformerFactory`).
//!
//! ```no_run
//! # use oarlock_informer::{GroupVersionResource, toolkit::informers::{ApiSource, Config, InformerFactory}};
//! # use oarlock_label_selector::LabelSelector;
//! # use oarlock_informer::toolkit::wait::cancelled;
//! # async fn example(client: kube::Client) {
//! let factory = InformerFactory::new(ApiSource::new(client), Config::default());
//! let pods = GroupVersionResource::new("", "v1", "pods");
//! let lister = factory.lister(&pods); // Creates the informer.
//! let token = tokio_util::sync::CancellationToken::new();
//! factory.start(&token, |_, run| drop(tokio::spawn(run)));
//! factory.wait_for_cache_sync(cancelled(&token)).await.into_result().expect("not cancelled");
//! println!("{} pods in default", lister.list(Some("default"), &LabelSelector::everything()).len());
//! token.cancel();
//! factory.shut_down().await;
//! # }
//! ```
//!
//! The factory spawns no task: [`InformerFactory::start`] passes a future for each informer to the caller,
//! who spawns it or joins it with others.

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

/// The configuration of a factory.
#[derive(Default)]
pub struct Config {
    /// The namespace of all informers. None: all namespaces.
    pub namespace: Option<String>,
    /// The period of resyncs, see [`shared_informer::Config::resync_period`]. Zero: never.
    pub resync_period: Duration,
    /// The resync periods of single resources.
    pub custom_resync: BTreeMap<GroupVersionResource, Duration>,
    /// Transforms every object before it is queued.
    pub transformer: Option<Transformer>,
    /// Changes the options of every list and watch request.
    pub tweak: Option<Tweak>,
    /// The configuration of the reflectors.
    pub reflector: reflector::Config,
    /// The name of the informers in metrics. None: they publish no metrics.
    pub name: Option<InformerName>,
    /// The receiver of the metrics.
    pub metrics: Option<Arc<dyn InformerMetrics>>,
}

/// Creates informers, one for each resource, and starts and stops them. Clones share the factory.
///
/// [`InformerFactory::informer`] and [`InformerFactory::lister`] create the informer of a resource; it runs
/// after the next [`InformerFactory::start`]. The factory does not check that the API server serves the
/// resource.
#[derive(Clone)]
pub struct InformerFactory {
    shared: Arc<FactoryShared>,
}

struct FactoryShared {
    source: Box<dyn Source>,
    config: Config,
    state: Mutex<FactoryState>,
    /// The futures of started informers that have not ended.
    running: TaskTracker,
}

#[derive(Default)]
struct FactoryState {
    informers: BTreeMap<GroupVersionResource, FactoryInformer>,
    is_shut_down: bool,
}

struct FactoryInformer {
    informer: SharedInformer,
    is_started: bool,
}

// === impl InformerFactory ===

impl InformerFactory {
    /// Returns a factory without informers.
    #[must_use]
    pub fn new(source: impl Source + 'static, config: Config) -> Self {
        let source = Box::new(source);
        let shared = FactoryShared { source, config, state: Mutex::default(), running: TaskTracker::new() };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the informer of a resource; creates it at the first call.
    #[must_use]
    pub fn informer(&self, resource: &GroupVersionResource) -> SharedInformer {
        let FactoryShared { source, config, .. } = &*self.shared;
        self.informer_by(resource, |informer_config| {
            let list_watch = source.list_watch(resource, config.namespace.as_deref());
            let list_watch = match &config.tweak {
                Some(tweak) => tweak.clone().apply_to(list_watch),
                None => list_watch,
            };
            SharedInformer::new(list_watch, informer_config)
        })
    }

    /// Returns the informer of a resource; creates it with `make` if the factory does not have it.
    ///
    /// `make` gets the configuration that the factory would use. It must not call the factory.
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
                vacant.insert(FactoryInformer { informer: informer.clone(), is_started: false });
                informer
            }
        }
    }

    /// Returns a lister of the cache of a resource; creates the informer if the factory does not have it.
    #[must_use]
    pub fn lister(&self, resource: &GroupVersionResource) -> Lister {
        self.informer(resource).lister()
    }

    /// Starts the informers that are not yet started; they run until `token` is cancelled. Does not wait.
    ///
    /// `spawn` gets a future for each informer and must have it polled; dropping it stops the informer. A
    /// second call starts the informers that were created since, with its own token. A stopped informer does
    /// not start again. After [`InformerFactory::shut_down`] the call does nothing.
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

    /// Waits until all started informers have synced, or until `stop` ends with a cause;
    /// [`cancelled`](crate::toolkit::wait::cancelled) is such a future for a token.
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

    /// Waits until all started informers have stopped, and starts no more. The caller cancels their tokens.
    ///
    /// It may be called several times, also concurrently. Then it releases the name of the factory.
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
