//! What every plugin is doing now: the board behind `/plugins` and the gauges of `/metrics`.
//!
//! Those who act write what changes seldom; what changes with every event (the backlogs) is asked for when someone looks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use oarlock_plugin::HostBytes;
use oarlock_plugin::host_bytes::HostBytesView;
use parking_lot::Mutex;
use serde::Serialize;

use crate::report::Timestamp;

/// All plugins' state. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Board {
    cards: Arc<Mutex<Cards>>,
    refused_files: Arc<Mutex<Vec<RefusedFile>>>,
}

/// A file that no plugin could be made of, so that there is no plugin to show it at.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RefusedFile {
    /// The file or folder.
    pub file: String,
    /// What is wrong with it.
    pub message: String,
}

type Cards = BTreeMap<Arc<str>, Arc<Mutex<Card>>>;

/// One plugin's place on the board. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    card: Arc<Mutex<Card>>,
}

/// One plugin's state.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PluginStatus {
    /// Its name.
    pub name: Arc<str>,
    /// The file that says so.
    pub file: String,
    /// The component's file.
    pub component: String,
    /// The ServiceAccount that it acts as.
    pub service_account: String,
    /// What it is doing.
    pub phase: Phase,
    /// The loaded version that serves, counted up with each; 0 while there is none.
    pub generation: u64,
    /// The component's own version.
    pub version: Option<String>,
    /// The component's digest.
    pub digest: Option<String>,
    /// What a version that is ready but for this waits for.
    pub waits_for: Vec<String>,
    /// What it watches.
    pub subscriptions: Vec<SubscriptionStatus>,
    /// Its work queue, if it has one.
    pub work_queue: Option<QueueStats>,
    /// What the host keeps for it, and how much that may be.
    pub host_bytes: HostBytesView,
    /// Instances lost since the plugin's first load.
    pub instances_lost: u64,
    /// What went wrong last in a call.
    pub last_error: Option<Trouble>,
    /// Why the newest version of its files is not used.
    pub refused: Option<Trouble>,
}

/// What a plugin is doing.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// No version of it serves yet; one is made, or waits for something.
    #[default]
    Loading,
    /// No version of it serves, and the newest is refused: its files have to be changed.
    Refused,
    /// It is called.
    Serving,
    /// Its instance was lost, and a fresh one waits its turn.
    Restarting,
}

/// Something that went wrong.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Trouble {
    /// When.
    pub time: Timestamp,
    /// What.
    pub message: String,
}

/// One subscription's state.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SubscriptionStatus {
    /// The plugin's name for it.
    pub name: String,
    /// What it watches.
    pub resource: String,
    /// Where it is open: none for everywhere, an empty list when it is Forbidden.
    pub namespaces: Option<Vec<String>>,
    /// Why it is closed, if it is.
    pub forbidden: Option<String>,
    /// Whether the plugin was told that it has seen everything there was.
    pub synced: bool,
    /// What waits for the plugin.
    pub backlog: BacklogStats,
}

/// What waits in one Listener, and what passed it.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct BacklogStats {
    /// Notifications that wait.
    pub pending: u64,
    /// Objects that are parked: dead letters.
    pub parked: u64,
    /// Some of them, by key.
    pub parked_objects: Vec<String>,
    /// Notifications that were handled.
    pub delivered: u64,
    /// Notifications that merged into others.
    pub merged: u64,
    /// How long the oldest has waited.
    pub oldest_ms: u64,
}

/// What waits in a work queue.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct QueueStats {
    /// Keys that wait.
    pub pending: u64,
    /// Keys that are parked.
    pub parked: u64,
    /// Some of them.
    pub parked_keys: Vec<String>,
}

/// So many dead letters are shown by name.
pub(crate) const PARKED_SHOWN: usize = 20;

/// Asks a Listener that someone else owns.
pub(crate) type AskBacklog = Arc<dyn Fn() -> BacklogStats + Send + Sync>;
/// Asks a work queue that someone else owns.
pub(crate) type AskQueue = Arc<dyn Fn() -> QueueStats + Send + Sync>;

struct Card {
    status: PluginStatus,
    /// One for each subscription, in the same order.
    backlogs: Vec<AskBacklog>,
    queue: Option<AskQueue>,
    host_bytes: HostBytes,
}

// === impl Board ===

impl Board {
    /// Puts a plugin on the board; one of the same name is replaced.
    pub(crate) fn enter(&self, status: PluginStatus) -> Entry {
        let name = status.name.clone();
        let card = Arc::new(Mutex::new(Card {
            status,
            backlogs: Vec::new(),
            queue: None,
            host_bytes: HostBytes::default(),
        }));
        self.cards.lock().insert(name, card.clone());
        Entry { card }
    }

    /// Takes a plugin off the board.
    pub(crate) fn remove(&self, name: &str) {
        self.cards.lock().remove(name);
    }

    /// Notes what went wrong with a plugin, if it is on the board.
    pub(crate) fn trouble(&self, name: &str, message: &str) {
        let card = self.cards.lock().get(name).cloned();
        if let Some(card) = card {
            Entry { card }.trouble(message);
        }
    }

    /// Notes which files no plugin could be made of.
    pub(crate) fn refuse_files(&self, files: Vec<RefusedFile>) {
        *self.refused_files.lock() = files;
    }

    /// The files that no plugin could be made of.
    #[must_use]
    pub fn refused_files(&self) -> Vec<RefusedFile> {
        self.refused_files.lock().clone()
    }

    /// Every plugin's state, by name.
    #[must_use]
    pub fn snapshot(&self) -> Vec<PluginStatus> {
        let cards: Vec<_> = self.cards.lock().values().cloned().collect();
        cards.iter().map(|card| card.lock().snapshot()).collect()
    }
}

// === impl Entry ===

impl Entry {
    /// Changes what the board says.
    pub(crate) fn update(&self, change: impl FnOnce(&mut PluginStatus)) {
        change(&mut self.card.lock().status);
    }

    /// Names what another generation watches, and whom to ask for its backlogs.
    pub(crate) fn watch(
        &self,
        subscriptions: Vec<(SubscriptionStatus, AskBacklog)>,
        queue: Option<AskQueue>,
    ) {
        let (statuses, backlogs) = subscriptions.into_iter().unzip();
        let mut card = self.card.lock();
        card.status.subscriptions = statuses;
        card.backlogs = backlogs;
        card.queue = queue;
    }

    /// Names the account of what the host keeps for the plugin.
    pub(crate) fn charges(&self, host_bytes: HostBytes) {
        self.card.lock().host_bytes = host_bytes;
    }

    /// Notes what went wrong in a call.
    pub(crate) fn trouble(&self, message: &str) {
        let trouble = Trouble { time: Timestamp::now(), message: message.to_owned() };
        self.update(|status| status.last_error = Some(trouble));
    }
}

// === impl Card ===

impl Card {
    fn snapshot(&self) -> PluginStatus {
        let mut status = self.status.clone();
        for (subscription, ask) in status.subscriptions.iter_mut().zip(&self.backlogs) {
            subscription.backlog = ask();
        }
        status.work_queue = self.queue.as_ref().map(|ask| ask());
        status.host_bytes = self.host_bytes.view();
        if status.phase == Phase::Loading && status.refused.is_some() {
            status.phase = Phase::Refused;
        }
        status
    }
}

impl fmt::Debug for Card {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.status.fmt(f)
    }
}

// === impl PluginStatus ===

impl PluginStatus {
    /// A plugin of which no version serves yet.
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
            waits_for: Vec::new(),
            subscriptions: Vec::new(),
            work_queue: None,
            host_bytes: HostBytesView::default(),
            instances_lost: 0,
            last_error: None,
            refused: None,
        }
    }
}
