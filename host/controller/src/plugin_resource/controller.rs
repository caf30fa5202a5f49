//! The controller of Plugin and ClusterPlugin objects: resolves their specs, and follows their changes.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use oarlock_component_source::{CachedComponent, Fetcher};
use oarlock_event_recorder::{Broadcaster, EventRecorder, KubeSink, Recording, RecordingConfig};
use oarlock_flow_control::KeyedPermits;
use oarlock_informer::object::ObjectKey;
use oarlock_informer::toolkit::{cache::HandlerFunctions, workqueue::WorkQueue};
use oarlock_informer::{GroupVersionResource, ListenerConfig, Object, object::Content};
use oarlock_plugin::Limits;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::at_once;
use super::authorization::Authorization;
use super::conditions::Stage;
use super::definitions::{Definitions, PluginKey};
use super::good_versions;
use super::record::{FetchedAt, Record, Writes, delay_after};
use super::resolve::{Problem, Resolved, Resolver, Subject};
use super::rolled_back;
use super::status_writer::StatusWriter;
use super::statuses;
use super::types::{self, PluginSpec};
use crate::config::settings::{MAX_CONCURRENCY, MAX_WEIGHT};
use crate::informers::Purpose;
use crate::reload::Host;
use crate::report::HostEvent;
use crate::shadow;
use crate::status::RefusedFile;

/// How the host runs Plugin objects.
pub struct Config {
    /// Fetches components.
    pub fetcher: Fetcher,
    /// The namespace of the host, and of the accounts of ClusterPlugins.
    pub namespace: String,
    /// What no Plugin object may exceed.
    pub maxima: Maxima,
}

/// What no Plugin object may exceed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Maxima {
    /// The highest `limits`.
    pub limits: Limits,
    /// The highest `concurrency`.
    pub concurrency: u32,
    /// The highest `weight`.
    pub weight: u32,
}

/// How many specs are resolved at once: in all, and of one namespace or of the ClusterPlugins. Most of the
/// time is spent waiting for registries.
const TURNS: usize = 256;
const TURNS_PER_NAMESPACE: usize = 4;

/// How often what a spec refers to in the API server, and the opt-in of its namespace, is read again.
pub(super) const READ_AGAIN: Duration = Duration::from_secs(30);

/// The longest delay before the host asks again whether it may act as an account.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// The controller.
pub(crate) struct PluginResources {
    pub(super) host: Arc<Host>,
    config: Arc<Config>,
    pub(super) definitions: Definitions,
    queue: WorkQueue<PluginKey>,
    /// The objects whose shadows are to be fetched.
    pub(super) shadows: WorkQueue<PluginKey>,
    good_versions: Mutex<mpsc::Receiver<good_versions::Request>>,
    /// By namespace: none for ClusterPlugins. So the slow registry of one tenant does not delay the plugins
    /// of the others.
    pub(super) turns: KeyedPermits<Option<Arc<str>>>,
    turns_of_shadows: KeyedPermits<Option<Arc<str>>>,
    authorization: Authorization,
    pub(super) records: Mutex<BTreeMap<PluginKey, Record>>,
}

/// The members of an object that the controller reads.
#[derive(Deserialize)]
struct Read {
    spec: PluginSpec,
}

// === impl Maxima ===

impl Maxima {
    /// Returns the maxima of a host that bounds nothing further.
    #[must_use]
    pub fn highest() -> Self {
        Self { limits: Limits::highest(), concurrency: MAX_CONCURRENCY, weight: MAX_WEIGHT }
    }
}

// === impl PluginResources ===

impl PluginResources {
    /// `requests` are for the [versions that passed their probation](good_versions).
    pub(crate) fn new(
        host: Arc<Host>,
        config: Arc<Config>,
        requests: mpsc::Receiver<good_versions::Request>,
    ) -> Self {
        Self {
            definitions: host.definitions.clone(),
            host,
            config,
            queue: WorkQueue::default(),
            shadows: WorkQueue::default(),
            good_versions: Mutex::new(requests),
            turns: KeyedPermits::new(TURNS, TURNS_PER_NAMESPACE),
            turns_of_shadows: KeyedPermits::new(TURNS, TURNS_PER_NAMESPACE),
            authorization: Authorization::default(),
            records: Mutex::default(),
        }
    }

    /// Runs until the token is cancelled.
    pub(crate) async fn run(self, token: CancellationToken) {
        let broadcaster = Broadcaster::new();
        let sink = KubeSink::new(self.host.client.clone());
        let recording = Recording::new(broadcaster.watch(), sink, RecordingConfig::default());
        let recorder = EventRecorder::new(broadcaster.clone(), "oarlock", "");
        let writer = StatusWriter::new(self.host.client.clone(), recorder);
        let work = async {
            tokio::join!(
                self.follow("plugins"),
                self.follow("clusterplugins"),
                self.work(),
                self.write_statuses(&writer),
                recording.run(token.clone()),
            )
        };
        tokio::select! {
            biased;
            () = token.cancelled() => {}
            _ = work => {}
        }
    }

    /// Queues the objects of a resource when they change. A deletion, another account, `suspend`,
    /// `suspendWrites` and the removal of a shadow take effect at once, also while the spec is resolved.
    async fn follow(&self, resource: &str) {
        let resource = GroupVersionResource::new(types::GROUP, types::VERSION, resource);
        // The host itself is never refused.
        let Ok(handle) = self.host.informers.acquire(&resource, Purpose::Host, Content::Full) else { return };
        let informer = handle.served().await;
        let [adds, updates, deletes] = [(); 3].map(|()| self.queue.clone());
        let [added, changed, deleted] = [(); 3].map(|()| self.definitions.clone());
        let config = self.config.clone();
        let note_status = |definitions: &Definitions, object: &Object| {
            let name = key_of(object.key()).host_name();
            definitions.note_rolled_back(&name, rolled_back::read(&object.json()));
        };
        let handler = HandlerFunctions::new()
            .on_add(move |object, _| {
                note_status(&added, object);
                adds.add(key_of(object.key()));
            })
            .on_update(move |old, new| {
                let is_same = old.has_uid_of(new);
                let is_ending = new.deletion_timestamp().is_some();
                note_status(&changed, new);
                // A write of the status is no reason to resolve the spec again.
                if is_same && !is_ending && old.generation() == new.generation() {
                    return;
                }
                let key = key_of(new.key());
                if !is_same || is_ending {
                    changed.remove(&key.host_name());
                } else if let Some(at_once) = at_once::read(&key, &new.json(), &config.namespace) {
                    changed.apply_at_once(&key.host_name(), at_once);
                }
                updates.add(key);
            })
            .on_delete(move |object, _| {
                let key = key_of(object.key());
                deleted.remove(&key.host_name());
                deleted.note_rolled_back(&key.host_name(), None);
                deletes.add(key);
            });
        let Ok(deliver) = informer.add_event_handler(ListenerConfig::default(), handler) else { return };
        deliver.await;
    }

    /// Resolves the specs whose keys are queued, fetches shadows, and fetches good versions.
    async fn work(&self) {
        let mut running = FuturesUnordered::new();
        let mut of_shadows = FuturesUnordered::new();
        let mut fetching = FuturesUnordered::new();
        let mut requests = std::mem::replace(&mut *self.good_versions.lock(), mpsc::channel(1).1);
        loop {
            tokio::select! {
                Some(()) = running.next() => {}
                Some(()) = of_shadows.next() => {}
                Some(()) = fetching.next() => {}
                Some(request) = requests.recv() => fetching.push(self.answer(request)),
                Some(key) = self.shadows.get() => {
                    let fetch = async |key: &PluginKey| self.fetch_shadow(key).await;
                    of_shadows.push(in_turn(&self.shadows, &self.turns_of_shadows, key, fetch));
                }
                key = self.queue.get() => match key {
                    Some(key) => {
                        let reconcile = async |key: &PluginKey| self.reconcile(key).await;
                        running.push(in_turn(&self.queue, &self.turns, key, reconcile));
                    }
                    None => return,
                },
            }
        }
    }

    /// Resolves the spec of one object. Returns when to do it again.
    async fn reconcile(&self, key: &PluginKey) -> Option<Duration> {
        let Some(object) = self.object(key) else {
            self.records.lock().remove(key);
            self.definitions.remove(&key.host_name());
            self.host.statuses.set_refused_object(&key.host_name(), None);
            self.host.statuses.set_refused_object(&shadow::name_of(&key.host_name()), None);
            self.host.metrics.forget_object(&key.host_name());
            return None;
        };
        let uid = object.uid().to_string();
        let json = object.json();
        let invalid =
            |reason, message: String| Problem { stage: Stage::Read, reason, message, is_unknown: false };
        if let Some(at_once) = at_once::read(key, &json, &self.config.namespace) {
            self.forget_shadow_that_is_gone(key, &at_once);
            // The event may have come before the definition of an older spec was set.
            self.definitions.apply_at_once(&key.host_name(), at_once);
        }
        let read: Result<Read, _> = serde_json::from_str(&json);
        let (resolution, fetched, spec) = match read {
            _ if !key.is_valid() => {
                let message = "the name must be a DNS label other than shadow".to_owned();
                (Err(invalid("InvalidName", message)), None, None)
            }
            Ok(Read { spec }) => {
                let (resolution, fetched) = self.resolve(key, &object, &spec).await;
                (resolution, fetched, Some(spec))
            }
            Err(error) => {
                let message = format!("the spec cannot be read: {error}");
                (Err(invalid("InvalidSpec", message)), None, None)
            }
        };
        if resolution.is_err() {
            // Before the problem is noted, so that no status names it beside a version that may not serve.
            self.check_serving(key).await;
        }
        // It may have changed while it was resolved: then its key is queued again already.
        let is_same = |now: &Object| *now.uid() == *uid && now.generation() == object.generation();
        if !self.object(key).is_some_and(|now| is_same(&now)) {
            return None;
        }
        let (n_failures, shadow) = self.note(key, &object, &json, resolution.clone(), fetched, spec.as_ref());
        match resolution {
            Ok(Resolved { file, component, .. }) => {
                self.definitions.set(file, component, shadow);
                let poll = spec.and_then(|it| it.source.poll_interval());
                Some(poll.map_or(READ_AGAIN, |poll| poll.min(READ_AGAIN)))
            }
            Err(problem) => {
                self.definitions.set_shadow(&key.host_name(), shadow);
                let delay = delay_after(n_failures);
                Some(if problem.stage == Stage::Authorized { delay.min(ASK_AGAIN) } else { delay })
            }
        }
    }

    pub(super) fn resolver(&self) -> Resolver<'_> {
        let Config { fetcher, namespace, maxima } = &*self.config;
        let (host, authorization) = (&*self.host, &self.authorization);
        Resolver { host, fetcher, authorization, host_namespace: namespace, maxima }
    }

    /// Resolves a spec. Meanwhile the account of the version that serves is checked.
    async fn resolve(
        &self,
        key: &PluginKey,
        object: &Object,
        spec: &PluginSpec,
    ) -> (Result<Resolved, Problem>, Option<FetchedAt>) {
        let mut fetched = self.records.lock().get(key).and_then(|it| it.fetched_before(object));
        let resolver = self.resolver();
        let uid = object.uid();
        let subject = Subject { key, uid: &uid, spec };
        let resolution = tokio::select! {
            biased;
            resolution = resolver.resolve(&subject, &mut fetched) => resolution,
            never = self.keep_checking(key) => match never {},
        };
        (resolution, fetched)
    }

    /// Notes a resolution, and reports a new problem. Returns the failures in sequence, and the component
    /// that is to run as the shadow.
    fn note(
        &self,
        key: &PluginKey,
        object: &Object,
        json: &str,
        resolution: Result<Resolved, Problem>,
        fetched: Option<FetchedAt>,
        spec: Option<&PluginSpec>,
    ) -> (u32, Option<CachedComponent>) {
        let uid = object.uid();
        self.host.metrics.object(&key.host_name(), self.why_unresolved(key, &resolution));
        let mut records = self.records.lock();
        let before = records.remove(key).filter(|record| *record.uid == *uid);
        let n_failures = before.as_ref().map_or(0, |it| it.n_failures);
        let n_failures = if resolution.is_err() { n_failures.saturating_add(1) } else { 0 };
        let older_version_serves = self.definitions.get(&key.host_name()).is_some();
        let refused = resolution.as_ref().err().filter(|_| !older_version_serves);
        let refused = refused.map(|it| RefusedFile { file: key.to_string(), message: it.message.clone() });
        self.host.statuses.set_refused_object(&key.host_name(), refused);
        if let Err(problem) = &resolution
            && before.as_ref().and_then(|it| it.resolution.as_ref().err()) != Some(problem)
        {
            self.host.reporter.report(HostEvent::PluginRefused {
                file: key.to_string(),
                message: problem.message.clone(),
                hint: None,
                older_version_serves,
            });
        }
        let (written, writes, shadow) = match before {
            Some(before) => (before.written, before.writes, before.shadow),
            // What another host has written.
            None => (statuses::read(json).unwrap_or_default(), Writes::default(), None),
        };
        let shadow = self.note_shadow(key, spec, shadow);
        let component = shadow.as_ref().and_then(|it| it.component.clone());
        let record = Record {
            uid: uid.to_string(),
            generation: object.generation(),
            resolution,
            n_failures,
            fetched,
            shadow,
            written,
            seen_changes: None,
            seen_good: None,
            writes,
        };
        records.insert(key.clone(), record);
        (n_failures, component)
    }

    /// Unloads the version before, which goes on serving while the newest spec cannot be used, if the host
    /// may not act as its account any more.
    async fn check_serving(&self, key: &PluginKey) {
        let name = key.host_name();
        let Some(serving) = self.definitions.get(&name) else { return };
        let Host { client, gate, .. } = &*self.host;
        if let Err(problem) = self.authorization.check(client, gate, &serving.service_account).await
            && !problem.is_unknown
        {
            self.definitions.remove(&name);
        }
    }

    async fn keep_checking(&self, key: &PluginKey) -> Infallible {
        loop {
            tokio::time::sleep(READ_AGAIN).await;
            self.check_serving(key).await;
        }
    }

    /// Returns the object of a key, if it exists and is not being deleted.
    pub(super) fn object(&self, key: &PluginKey) -> Option<Object> {
        let resource = if key.namespace.is_some() { "plugins" } else { "clusterplugins" };
        let resource = GroupVersionResource::new(types::GROUP, types::VERSION, resource);
        let informer = self.host.informers.informer(&resource)?;
        let object = informer.indexer().get_named(key.namespace.as_deref().unwrap_or(""), &key.name)?;
        object.deletion_timestamp().is_none().then_some(object)
    }
}

/// Works on a key when it is the turn of its namespace. Queues it again after the time that `work` returns.
async fn in_turn(
    queue: &WorkQueue<PluginKey>,
    turns: &KeyedPermits<Option<Arc<str>>>,
    key: PluginKey,
    work: impl AsyncFnOnce(&PluginKey) -> Option<Duration>,
) {
    let turn = turns.acquire(&key.namespace).await;
    // In a box, so that a key that waits for its turn is small.
    let again = Box::pin(work(&key)).await;
    drop(turn);
    queue.done(&key);
    if let Some(again) = again {
        queue.add_after(key, again);
    }
}

fn key_of(key: &ObjectKey) -> PluginKey {
    let namespace = Some(key.namespace()).filter(|it| !it.is_empty()).map(Into::into);
    PluginKey { namespace, name: key.name().into() }
}
