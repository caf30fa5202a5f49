//! The status of every plugin: the source of `/plugins` and of the gauges in `/metrics`.
//!
//! The reloader and the dispatcher write state that changes rarely. State that changes with every event (the
//! backlogs, the work queue, the bytes that the host keeps) is not written here: [`StatusRegistry::snapshot`]
//! reads it from its owner. So a call that succeeds neither takes a lock of the registry nor reads the clock
//! for it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use oarlock_plugin::guest::HostBytes;
use oarlock_plugin::guest::host_bytes::HostBytesView;
use oarlock_plugin::record::{Progress, RecorderView};
use parking_lot::Mutex;
use serde::Serialize;

use crate::dispatch::Commands;
use crate::generations::{GenerationState, GenerationView, Generations};
use crate::report::Timestamp;
use crate::shadow::{Comparison, ShadowView};

/// The status of all plugins, by name. Cheap to clone: clones share the registry.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatusRegistry {
    plugins: Arc<Mutex<BTreeMap<Arc<str>, PluginStatusHandle>>>,
    refused_files: Arc<Mutex<Vec<RefusedFile>>>,
}

/// A file that defines no plugin, because it cannot be read or is invalid.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct RefusedFile {
    /// The path of the file or folder.
    pub(crate) file: String,
    /// Why the host refuses it.
    pub(crate) message: String,
}

/// Writes the status of one plugin. Cheap to clone: clones write the same status.
#[derive(Clone, Debug)]
pub(crate) struct PluginStatusHandle {
    record: Arc<Mutex<PluginRecord>>,
}

/// The status of one plugin.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PluginStatus {
    /// The name of the plugin.
    pub(crate) name: Arc<str>,
    /// The path of the plugin's file.
    pub(crate) file: String,
    /// The path of its component.
    pub(crate) component: String,
    /// The ServiceAccount that it acts as.
    pub(crate) service_account: String,
    /// What it is doing.
    pub(crate) phase: Phase,
    /// The number of the generation that serves, from 1; 0 while none serves.
    pub(crate) generation: u64,
    /// The version that the component states.
    pub(crate) version: Option<String>,
    /// The digest of the component.
    pub(crate) digest: Option<String>,
    /// Its newest generations, the newest last.
    pub(crate) generations: Vec<GenerationView>,
    /// How often a generation entered each state, in the order of [`GenerationState::ALL`].
    #[serde(skip)]
    pub(crate) transitions: [u64; GenerationState::ALL.len()],
    /// What the next generation waits for before it can serve.
    pub(crate) waits_for: Vec<String>,
    /// Its subscriptions.
    pub(crate) subscriptions: Vec<SubscriptionStatus>,
    /// Its work queue, if it has one.
    pub(crate) work_queue: Option<QueueStats>,
    /// The bytes that the host keeps for it, and the limit.
    pub(crate) host_bytes: HostBytesView,
    /// The record of its calls, if they are recorded.
    pub(crate) record: Option<RecorderView>,
    /// The comparison with its shadow, if it has one.
    pub(crate) shadow: Option<ShadowView>,
    /// Instances lost since the plugin was first loaded.
    pub(crate) instances_lost: u64,
    /// The last error of a call.
    pub(crate) last_error: Option<RecordedError>,
    /// Why the host refuses the newest version of its files.
    pub(crate) refused: Option<RecordedError>,
}

/// What a plugin is doing.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Phase {
    /// No generation serves yet. The host prepares one.
    #[default]
    Loading,
    /// No generation serves, and the host refuses the newest version: its files have to be changed.
    Refused,
    /// The host calls the plugin.
    Serving,
    /// The instance was lost. A fresh one waits for its back-off.
    Restarting,
    /// The host does not call the plugin, since a user has suspended it. Its backlogs grow.
    Suspended,
}

/// An error and its time.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct RecordedError {
    /// When it happened.
    pub(crate) time: Timestamp,
    /// The error.
    pub(crate) message: String,
}

/// The status of one subscription.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct SubscriptionStatus {
    /// The plugin's name for it.
    pub(crate) name: String,
    /// The resource that it watches.
    pub(crate) resource: String,
    /// The namespaces that it watches: none for all of them, an empty list when it is Forbidden.
    pub(crate) namespaces: Option<Vec<String>>,
    /// Why it is closed, if it is.
    pub(crate) forbidden: Option<String>,
    /// Whether `on-synced` was called for it: the plugin has all initial adds.
    pub(crate) synced: bool,
    /// Its backlog.
    pub(crate) backlog: BacklogStats,
}

/// The backlog of one Listener, and its counters.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct BacklogStats {
    /// Notifications that wait, the one in progress included.
    pub(crate) pending: u64,
    /// Objects that are parked.
    pub(crate) parked: u64,
    /// The keys of the first parked objects.
    pub(crate) parked_objects: Vec<String>,
    /// Notifications that the plugin handled.
    pub(crate) delivered: u64,
    /// Notifications that merged into others.
    pub(crate) merged: u64,
    /// The age of the oldest notification that waits.
    pub(crate) oldest_ms: u64,
}

/// The state of a work queue.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct QueueStats {
    /// Keys that wait.
    pub(crate) pending: u64,
    /// Keys that are parked.
    pub(crate) parked: u64,
    /// The first parked keys.
    pub(crate) parked_keys: Vec<String>,
    /// Keys that read too much through a lister that wakes, so that each of its changes queues them.
    pub(crate) wakes_by_any_change: u64,
}

/// How many parked objects or keys the status names.
pub(crate) const PARKED_SHOWN: usize = 20;

/// Reads the state of a Listener from its owner.
pub(crate) type ReadBacklog = Arc<dyn Fn() -> BacklogStats + Send + Sync>;
/// Reads the state of a work queue from its owner.
pub(crate) type ReadQueue = Arc<dyn Fn() -> QueueStats + Send + Sync>;

#[derive(Clone)]
struct PluginRecord {
    status: PluginStatus,
    /// One for each subscription of the status, in the same order.
    backlogs: Vec<ReadBacklog>,
    queue: Option<ReadQueue>,
    host_bytes: HostBytes,
    commands: Option<Commands>,
    generations: Option<Generations>,
    recording: Option<Progress>,
    shadow: Option<Arc<Comparison>>,
}

// === impl StatusRegistry ===

impl StatusRegistry {
    /// Adds a plugin, in place of one with the same name.
    pub(crate) fn register(&self, status: PluginStatus) -> PluginStatusHandle {
        let name = status.name.clone();
        let record = PluginRecord {
            status,
            backlogs: Vec::new(),
            queue: None,
            host_bytes: HostBytes::default(),
            commands: None,
            generations: None,
            recording: None,
            shadow: None,
        };
        let handle = PluginStatusHandle { record: Arc::new(Mutex::new(record)) };
        self.plugins.lock().insert(name, handle.clone());
        handle
    }

    /// Returns the handle of a plugin's status.
    pub(crate) fn handle(&self, name: &str) -> Option<PluginStatusHandle> {
        self.plugins.lock().get(name).cloned()
    }

    /// Returns the names of all plugins, sorted.
    pub(crate) fn names(&self) -> Vec<Arc<str>> {
        self.plugins.lock().keys().cloned().collect()
    }

    /// Removes a plugin.
    pub(crate) fn remove(&self, name: &str) {
        self.plugins.lock().remove(name);
    }

    /// Sets the last error of a plugin, if the registry has a plugin of that name.
    pub(crate) fn record_error(&self, name: &str, message: &str) {
        let handle = self.plugins.lock().get(name).cloned();
        if let Some(handle) = handle {
            handle.record_error(message);
        }
    }

    /// Sets the files that define no plugin.
    pub(crate) fn set_refused_files(&self, files: Vec<RefusedFile>) {
        *self.refused_files.lock() = files;
    }

    /// Returns the files that define no plugin.
    #[must_use]
    pub(crate) fn refused_files(&self) -> Vec<RefusedFile> {
        self.refused_files.lock().clone()
    }

    /// Returns the status of every plugin, sorted by name. No lock of the registry is held while backlogs are
    /// read.
    #[must_use]
    pub(crate) fn snapshot(&self) -> Vec<PluginStatus> {
        let handles: Vec<_> = self.plugins.lock().values().cloned().collect();
        handles.iter().map(PluginStatusHandle::snapshot).collect()
    }
}

// === impl PluginStatusHandle ===

impl PluginStatusHandle {
    /// Changes the status.
    pub(crate) fn update(&self, change: impl FnOnce(&mut PluginStatus)) {
        change(&mut self.record.lock().status);
    }

    /// Sets the subscriptions and the work queue of another generation.
    pub(crate) fn set_subscriptions(
        &self,
        subscriptions: Vec<(SubscriptionStatus, ReadBacklog)>,
        queue: Option<ReadQueue>,
    ) {
        // `unzip` would make room for at least four of each.
        let mut statuses = Vec::with_capacity(subscriptions.len());
        let mut backlogs = Vec::with_capacity(subscriptions.len());
        for (status, backlog) in subscriptions {
            statuses.push(status);
            backlogs.push(backlog);
        }
        let mut record = self.record.lock();
        record.status.subscriptions = statuses;
        record.backlogs = backlogs;
        record.queue = queue;
    }

    /// Sets the account of the bytes that the host keeps for the plugin.
    pub(crate) fn set_host_bytes(&self, host_bytes: HostBytes) {
        self.record.lock().host_bytes = host_bytes;
    }

    /// Sets where the commands for the plugin's dispatcher go.
    pub(crate) fn set_commands(&self, commands: Commands) {
        self.record.lock().commands = Some(commands);
    }

    /// Returns where the commands for the plugin's dispatcher go.
    pub(crate) fn commands(&self) -> Option<Commands> {
        self.record.lock().commands.clone()
    }

    /// Sets the list of the plugin's generations.
    pub(crate) fn set_generations(&self, generations: Generations) {
        self.record.lock().generations = Some(generations);
    }

    /// Sets the record of the plugin's calls.
    pub(crate) fn set_record(&self, recording: Progress) {
        self.record.lock().recording = Some(recording);
    }

    /// Sets the comparison with the plugin's shadow.
    pub(crate) fn set_shadow(&self, comparison: Arc<Comparison>) {
        self.record.lock().shadow = Some(comparison);
    }

    /// Sets the last error of a call, with the time of now.
    pub(crate) fn record_error(&self, message: &str) {
        let error = RecordedError { time: Timestamp::now(), message: message.to_owned() };
        self.update(|status| status.last_error = Some(error));
    }

    fn snapshot(&self) -> PluginStatus {
        let PluginRecord {
            mut status,
            backlogs,
            queue,
            host_bytes,
            commands: _,
            generations,
            recording,
            shadow,
        } = self.record.lock().clone();
        for (subscription, read) in status.subscriptions.iter_mut().zip(&backlogs) {
            subscription.backlog = read();
        }
        status.work_queue = queue.map(|read| read());
        status.host_bytes = host_bytes.view();
        status.shadow = shadow.and_then(|it| it.view());
        status.record = recording.map(|it| it.view());
        if let Some(generations) = generations {
            status.generations = generations.views();
            status.transitions = generations.transitions();
        }
        if status.phase == Phase::Loading && status.refused.is_some() {
            status.phase = Phase::Refused;
        }
        status
    }
}

// === impl PluginRecord ===

impl fmt::Debug for PluginRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.status.fmt(f)
    }
}

// === impl PluginStatus ===

impl PluginStatus {
    /// Returns how many objects and keys are parked.
    pub(crate) fn n_parked(&self) -> u64 {
        let objects = self.subscriptions.iter().map(|it| it.backlog.parked).sum::<u64>();
        objects + self.work_queue.as_ref().map_or(0, |queue| queue.parked)
    }

    /// Returns the status of a plugin of which no generation serves yet.
    pub(crate) fn loading(name: Arc<str>, file: String, component: String, service_account: String) -> Self {
        Self {
            name,
            file,
            component,
            service_account,
            phase: Phase::Loading,
            generation: 0,
            version: None,
            digest: None,
            generations: Vec::new(),
            transitions: [0; GenerationState::ALL.len()],
            waits_for: Vec::new(),
            subscriptions: Vec::new(),
            work_queue: None,
            host_bytes: HostBytesView::default(),
            record: None,
            shadow: None,
            instances_lost: 0,
            last_error: None,
            refused: None,
        }
    }
}
