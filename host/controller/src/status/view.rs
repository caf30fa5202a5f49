//! What the status of a plugin says.

use std::sync::Arc;
use std::time::Duration;

use oarlock_plugin::guest::host_bytes::HostBytesView;
use oarlock_plugin::record::RecorderView;
use serde::Serialize;

use crate::config::PluginFile;
use crate::generations::{GenerationState, GenerationView};
use crate::report::Timestamp;
use crate::shadow::ShadowView;
use crate::state_folder::Entry;

/// The status of one plugin. It is kept for each plugin, so what few of them have is in boxes.
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
    /// What becomes of the writes of the generation that serves.
    pub(crate) writes: Writes,
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
    pub(crate) work_queue: Option<Box<QueueStats>>,
    /// The bytes that the host keeps for it, and the limit.
    pub(crate) host_bytes: HostBytesView,
    /// The record of its calls, if they are recorded.
    pub(crate) record: Option<Box<RecorderView>>,
    /// The comparison with its shadow, if it has one.
    pub(crate) shadow: Option<Box<ShadowView>>,
    /// Instances lost since the plugin was first loaded.
    pub(crate) instances_lost: u64,
    /// The last error of a call.
    pub(crate) last_error: Option<RecordedError>,
    /// Why the host refuses the newest version of its files.
    pub(crate) refused: Option<RecordedError>,
    /// The newest file whose version came to serve or was refused.
    #[serde(skip)]
    pub(crate) settled: Option<Arc<PluginFile>>,
    /// The versions that were rolled back and are not tried, the newest last; none before the host has read
    /// which.
    #[serde(skip)]
    pub(crate) rolled_back: Option<Arc<[Entry]>>,
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
    /// The host is on standby: it is ready to call the plugin when it leads.
    Standby,
    /// The host does not call the plugin, since a user has suspended it. Its backlogs grow.
    Suspended,
}

/// What becomes of a plugin's writes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Writes {
    /// The API server stores them.
    #[default]
    Stored,
    /// They are sent as dry runs (`dryRun`).
    DryRun,
    /// They fail (`suspendWrites`).
    Suspended,
    /// They are those of a shadow: none is sent.
    Withheld,
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
    /// Why the plugin's account may not watch it, if that is so.
    pub(crate) forbidden: Option<String>,
    /// Why it is not known whether the account may, if that is so. What happens meanwhile waits.
    pub(crate) paused: Option<String>,
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
    /// Keys that wait, for their turn or for a time.
    pub(crate) pending: u64,
    /// Keys that wait and are ready, as `workqueue_depth` counts them.
    pub(crate) ready: u64,
    /// Keys that wait for a time.
    pub(crate) delayed: u64,
    /// Keys that are parked.
    pub(crate) parked: u64,
    /// The first parked keys.
    pub(crate) parked_keys: Vec<String>,
    /// For how long the oldest key has waited that waits and is ready.
    pub(crate) oldest_ms: u64,
    /// Keys that read too much through a lister that wakes, so that each of its changes queues them.
    pub(crate) wakes_by_any_change: u64,
    /// The time of the work on keys that is in progress: the sum, and the longest.
    #[serde(skip)]
    pub(crate) unfinished: Duration,
    #[serde(skip)]
    pub(crate) longest: Duration,
    /// The plugin's calls in progress.
    #[serde(skip)]
    pub(crate) calls: u64,
    /// The calls that may be in progress at a time.
    #[serde(skip)]
    pub(crate) lanes: u64,
}

/// A file or an object that defines no plugin, because it cannot be read or used.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct RefusedFile {
    /// The path of the file or folder, or the kind and name of the object.
    pub(crate) file: String,
    /// Why the host refuses it.
    pub(crate) message: String,
}

// === impl PluginStatus ===

impl PluginStatus {
    /// Returns how many objects and keys are parked.
    pub(crate) fn n_parked(&self) -> u64 {
        let objects = self.subscriptions.iter().map(|it| it.backlog.parked).sum::<u64>();
        objects + self.work_queue.as_ref().map_or(0, |queue| queue.parked)
    }

    /// Returns how many notifications and keys wait.
    pub(crate) fn n_waiting(&self) -> u64 {
        let notifications = self.subscriptions.iter().map(|it| it.backlog.pending).sum::<u64>();
        notifications + self.work_queue.as_ref().map_or(0, |queue| queue.pending)
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
            writes: Writes::default(),
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
            settled: None,
            rolled_back: None,
        }
    }
}
