//! The status of every plugin: the source of `/plugins` and of the gauges in `/metrics`.
//!
//! The reloader and the dispatcher write state that changes rarely. State that changes with every event (the
//! backlogs, the work queue, the bytes that the host keeps) is not written here: [`StatusRegistry::snapshot`]
//! reads it from its owner. So a call that succeeds neither takes a lock of the registry nor reads the clock
//! for it.

mod view;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use oarlock_plugin::guest::HostBytes;
use oarlock_plugin::record::Progress;
use parking_lot::Mutex;

pub(crate) use self::view::{
    BacklogStats, Phase, PluginStatus, QueueStats, RecordedError, RefusedFile, SubscriptionStatus, Writes,
};
use crate::dispatch::Commands;
use crate::generations::Generations;
use crate::report::Timestamp;
use crate::shadow::Comparison;

/// The status of all plugins, by name. Cheap to clone: clones share the registry.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatusRegistry {
    plugins: Arc<Mutex<BTreeMap<Arc<str>, PluginStatusHandle>>>,
    refused_files: Arc<Mutex<Vec<RefusedFile>>>,
    /// By the host's name of the plugin.
    refused_objects: Arc<Mutex<BTreeMap<String, RefusedFile>>>,
}

/// Writes the status of one plugin. Cheap to clone: clones write the same status.
#[derive(Clone, Debug)]
pub(crate) struct PluginStatusHandle {
    record: Arc<Mutex<PluginRecord>>,
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
    /// The last error with the guest's last output before it, if there was any.
    last_error_in_full: Option<RecordedError>,
    /// How often something was written here.
    n_changes: u64,
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
            last_error_in_full: None,
            n_changes: 0,
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

    /// Notes why an object defines no plugin; with `None`, that it is gone or defines one.
    pub(crate) fn set_refused_object(&self, plugin: &str, refused: Option<RefusedFile>) {
        let mut objects = self.refused_objects.lock();
        match refused {
            Some(refused) => drop(objects.insert(plugin.to_owned(), refused)),
            None => drop(objects.remove(plugin)),
        }
    }

    /// Returns the files and objects that define no plugin.
    #[must_use]
    pub(crate) fn refused_files(&self) -> Vec<RefusedFile> {
        let mut refused = self.refused_files.lock().clone();
        refused.extend(self.refused_objects.lock().values().cloned());
        refused
    }

    /// Returns why the object of a plugin defines none, if the host refuses it.
    pub(crate) fn refused_object(&self, plugin: &str) -> Option<RefusedFile> {
        self.refused_objects.lock().get(plugin).cloned()
    }

    /// Returns why a file defines no plugin, if it was refused.
    pub(crate) fn why_refused(&self, file: &Path) -> Option<String> {
        let files = self.refused_files.lock();
        // The paths of objects are below that of their key.
        files.iter().find(|it| Path::new(&it.file).starts_with(file)).map(|it| it.message.clone())
    }

    /// Returns the status of every plugin, sorted by name. No lock of the registry is held while backlogs are
    /// read.
    #[must_use]
    pub(crate) fn snapshot(&self) -> Vec<PluginStatus> {
        self.handles().iter().map(PluginStatusHandle::snapshot).collect()
    }

    /// Does the same as [`snapshot`](Self::snapshot), with the guest's last output in the last errors. Only
    /// the host's user may see it.
    #[must_use]
    pub(crate) fn snapshot_in_full(&self) -> Vec<PluginStatus> {
        self.handles().iter().map(PluginStatusHandle::snapshot_in_full).collect()
    }

    fn handles(&self) -> Vec<PluginStatusHandle> {
        self.plugins.lock().values().cloned().collect()
    }
}

// === impl PluginStatusHandle ===

impl PluginStatusHandle {
    /// Changes the status.
    pub(crate) fn update(&self, change: impl FnOnce(&mut PluginStatus)) {
        let mut record = self.record.lock();
        record.n_changes += 1;
        change(&mut record.status);
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
        record.n_changes += 1;
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
        self.record(message.to_owned(), None);
    }

    /// Sets the last error of a call that cost the instance. `output` is the guest's last output before it.
    ///
    /// Output may quote secrets. The status is on pages that every user of the machine may read, and in
    /// objects that more users may read than the plugin's log: there it only says where the output is.
    pub(crate) fn record_loss(&self, message: &str, output: &str) {
        if output.is_empty() {
            return self.record_error(message);
        }
        let name = self.record.lock().status.name.clone();
        let shown = format!("{message}. `oarlock logs {name}` shows the last output of the guest");
        self.record(shown, Some(format!("{message}\n{output}")));
    }

    fn record(&self, message: String, in_full: Option<String>) {
        let time = Timestamp::now();
        let mut record = self.record.lock();
        record.n_changes += 1;
        record.status.last_error = Some(RecordedError { time, message });
        record.last_error_in_full = in_full.map(|message| RecordedError { time, message });
    }

    /// Returns a number that grows with each change of the status, apart from what changes with every event.
    pub(crate) fn n_changes(&self) -> u64 {
        let record = self.record.lock();
        let transitions = record.generations.as_ref().map_or(0, |it| it.transitions().iter().sum());
        record.n_changes + transitions
    }

    /// Returns the status, with what is read from its owners.
    pub(crate) fn snapshot(&self) -> PluginStatus {
        let PluginRecord {
            mut status,
            backlogs,
            queue,
            host_bytes,
            commands: _,
            generations,
            recording,
            shadow,
            last_error_in_full: _,
            n_changes: _,
        } = self.record.lock().clone();
        for (subscription, read) in status.subscriptions.iter_mut().zip(&backlogs) {
            subscription.backlog = read();
        }
        status.work_queue = queue.map(|read| Box::new(read()));
        status.host_bytes = host_bytes.view();
        status.shadow = shadow.and_then(|it| it.view()).map(Box::new);
        status.record = recording.map(|it| Box::new(it.view()));
        if let Some(generations) = generations {
            status.generations = generations.views();
            status.transitions = generations.transitions();
        }
        if status.phase == Phase::Loading && status.refused.is_some() {
            status.phase = Phase::Refused;
        }
        status
    }

    fn snapshot_in_full(&self) -> PluginStatus {
        let in_full = self.record.lock().last_error_in_full.clone();
        let mut status = self.snapshot();
        if let (Some(error), Some(in_full)) = (&mut status.last_error, in_full)
            && error.time == in_full.time
        {
            error.message = in_full.message;
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
