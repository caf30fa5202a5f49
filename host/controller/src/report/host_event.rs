//! The kinds of things that happen. Their JSON names are kebab-case and, once released, only added to.

use std::str::FromStr;

use serde::{Serialize, Serializer};

/// How much a line matters.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// For those who look for a fault in the host or a guest.
    Trace,
    /// Every single delivery.
    Debug,
    /// What an operator follows.
    Info,
    /// Something is not as it should be, and the host deals with it.
    Warn,
    /// Someone has to act.
    Error,
}

/// What a plugin was told.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotificationType {
    /// `on-add`.
    Add,
    /// `on-update`.
    Update,
    /// `on-delete`.
    Delete,
}

/// How a new version took over.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// There was no version before.
    First,
    /// It is told everything anew.
    Replay,
    /// It goes on where the version before was.
    TakeOver,
}

/// How one call ended.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum CallOutcome {
    /// It did its work.
    Done,
    /// It is called again.
    Retry {
        /// What the plugin said, or what happened to it.
        message: String,
        /// When, from now.
        after_ms: u64,
    },
    /// It is called again at its next event, at a swap of the plugin, and every few minutes with all that is parked.
    Parked {
        /// What the plugin said, or what happened to it.
        message: String,
    },
}

/// What becomes of what cost an instance.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct NextTry {
    /// How many tries of it cost an instance.
    pub tries: u32,
    /// When it is tried again, from now: then, or as soon after as nothing else is ready. None when it is parked.
    pub after_ms: Option<u64>,
}

/// A guest's names and values, in its order. A JSON object.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Pairs(pub Vec<(String, String)>);

/// One thing that happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum HostEvent {
    /// The host runs.
    HostStarted {
        /// The API server's address.
        server: String,
        /// The host's own version.
        version: &'static str,
    },
    /// The pages for probes and metrics are served.
    AdminListening {
        /// Where.
        address: String,
    },
    /// The pages for probes and metrics can be read from other machines, without credentials.
    AdminExposed {
        /// Where.
        address: String,
    },
    /// The host waits to lead.
    StandingBy {
        /// The Lease: namespace and name.
        lease: String,
        /// What the host is called there.
        identity: String,
    },
    /// Another host leads.
    OtherLeads {
        /// What it is called.
        identity: String,
    },
    /// The host leads, and runs plugins from now on.
    Leading,
    /// The host leads no more, and ends.
    LeadershipLost {
        /// The Lease: namespace and name.
        lease: String,
    },
    /// The host was asked to end.
    HostStopping,
    /// A version of a plugin is ready and serves.
    PluginLoaded {
        /// The component's own version.
        version: String,
        /// The component's digest, in hexadecimal.
        digest: String,
        /// How it took over.
        mode: Mode,
        /// From the look at the files to the switch.
        took_ms: u64,
    },
    /// A plugin's file or component cannot be used. What ran before goes on.
    PluginRefused {
        /// The plugin's file, or the component.
        file: String,
        /// Why.
        message: String,
        /// What to do about it.
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
        /// Whether an older version serves.
        older_version_serves: bool,
    },
    /// A plugin's component takes long to compile, or waits for its turn. Said once of each.
    PluginCompiling {
        /// The component's size.
        bytes: u64,
        /// How many are compiled before it.
        before: usize,
    },
    /// A component cannot be used, but has just changed: it is probably being written. It is looked at again before anything
    /// is said about it.
    ComponentUnfinished {
        /// The component.
        file: String,
        /// Why it cannot be used.
        message: String,
    },
    /// A plugin's file or component that was refused can be used again. The version that serves was made of it already.
    PluginAccepted {
        /// The plugin's file, or the component.
        file: String,
    },
    /// How a person who tries the plugin out makes it act.
    PluginExample {
        /// What the command shows, or why there is none.
        text: String,
        /// What to type in a shell.
        #[serde(skip_serializing_if = "Option::is_none")]
        command: Option<String>,
    },
    /// A version is made, and waits for what it watches and reads to be synced.
    PluginWaiting {
        /// What it waits for, in words.
        waits_for: Vec<String>,
    },
    /// The host panicked in a task that serves this plugin alone, which is a bug of the host. The plugin is loaded anew.
    PluginPanicked {
        /// Which task.
        doing: String,
        /// What the panic said.
        message: String,
    },
    /// A plugin's file is gone, and so is the plugin.
    PluginUnloaded,
    /// A subscription's Listener is open.
    SubscriptionOpened {
        /// The plugin's name for it.
        subscription: String,
        /// What it watches.
        resource: String,
        /// Where; none for everywhere.
        namespaces: Option<Vec<String>>,
    },
    /// The plugin's account may not watch this (any more); the subscription is closed.
    SubscriptionForbidden {
        /// The plugin's name for it.
        subscription: String,
        /// What it watches.
        resource: String,
        /// Why it is closed.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// Nobody can say whether the plugin's account may watch this; nothing is delivered until somebody can.
    SubscriptionPaused {
        /// The plugin's name for it.
        subscription: String,
        /// What it watches.
        resource: String,
        /// Why nobody can.
        message: String,
    },
    /// The plugin was told that it has seen everything there was.
    SubscriptionSynced {
        /// The plugin's name for it.
        subscription: String,
        /// Subscriptions that are not there yet.
        remaining: u32,
    },
    /// The call that tells it so failed.
    SyncedFailed {
        /// The plugin's name for the subscription.
        subscription: String,
        /// What follows.
        #[serde(flatten)]
        outcome: CallOutcome,
    },
    /// A notification was handed to the handler.
    Delivered {
        /// The plugin's name for the subscription.
        subscription: String,
        /// What it was told.
        #[serde(rename = "type")]
        notification: NotificationType,
        /// The object's namespace.
        namespace: String,
        /// The object's name.
        name: String,
        /// The object's resourceVersion.
        resource_version: String,
        /// How many times this notification was tried before.
        attempts: u32,
        /// How long the call took.
        took_us: u64,
        /// How it ended.
        #[serde(flatten)]
        outcome: CallOutcome,
    },
    /// A key was reconciled.
    Reconciled {
        /// The plugin's word for what the key names.
        kind: String,
        /// The object's namespace.
        namespace: String,
        /// The object's name.
        name: String,
        /// How long the call took.
        took_us: u64,
        /// How it ended.
        #[serde(flatten)]
        outcome: CallOutcome,
    },
    /// The guest wrote a line.
    GuestLog {
        /// At this level, which is the line's.
        #[serde(skip)]
        level: Level,
        /// These words.
        message: String,
        /// And these.
        pairs: Pairs,
    },
    /// An instance was lost.
    InstanceLost {
        /// The function that was called.
        function: &'static str,
        /// What it was called for, such as `pods default/web`; empty when it was for nothing in particular.
        #[serde(skip_serializing_if = "String::is_empty")]
        about: String,
        /// `trap`, `deadline`, `memory` and so on.
        reason: &'static str,
        /// What happened.
        message: String,
        /// What the guest wrote just before, such as an exception; it may have several lines.
        #[serde(skip_serializing_if = "String::is_empty")]
        output: String,
        /// The guest's frames, innermost first, one a line.
        #[serde(skip_serializing_if = "String::is_empty")]
        backtrace: String,
        /// How many in a row.
        losses: u32,
        /// When a fresh one is made, from now.
        restart_after_ms: u64,
        /// What becomes of what it was called for.
        #[serde(flatten)]
        next_try: Option<NextTry>,
    },
    /// A fresh instance took the place of a lost one.
    InstanceRestarted {
        /// Whether it is told everything anew.
        mode: Mode,
    },
    /// The API server serves no such resource (yet, or any more). The host looks again.
    ResourceAbsent {
        /// Which.
        resource: String,
        /// What is known of it.
        message: String,
        /// Plugins that want it.
        wanted_by: Vec<String>,
    },
    /// A resource that was absent is there.
    ResourceServed {
        /// Which.
        resource: String,
    },
    /// The host's budget has no room for the objects of a resource, or for more of each of them. What was there goes on.
    ResourceOverBudget {
        /// Which.
        resource: String,
        /// What there is too much of.
        message: String,
        /// What to do about it.
        hint: String,
        /// Plugins that want it.
        wanted_by: Vec<String>,
    },
    /// There is room for a resource that there was none for.
    ResourceWithinBudget {
        /// Which.
        resource: String,
    },
    /// The caches have grown beyond the host's budget. They go on; nothing new is begun.
    OverBudget {
        /// What there is too much of.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// The caches are within the host's budget again.
    WithinBudget,
    /// The host's own account may not list or watch this.
    ResourceForbidden {
        /// Which.
        resource: String,
        /// What the API server says.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// A watch does not get through. The host tries again.
    WatchTrouble {
        /// Of what.
        resource: String,
        /// What it meets.
        message: String,
    },
    /// A watch that was in trouble works.
    WatchRecovered {
        /// Of what.
        resource: String,
    },
    /// Files are looked at every so often only, since the system does not tell of changes.
    FileWatchTrouble {
        /// Why.
        message: String,
    },
    /// Lines were lost because nobody took them off in time.
    ReportsDropped {
        /// How many.
        count: u64,
    },
}

// === impl HostEvent ===

impl HostEvent {
    /// How much it matters.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            Self::ComponentUnfinished { .. }
            | Self::Delivered { outcome: CallOutcome::Done, .. }
            | Self::Reconciled { outcome: CallOutcome::Done, .. } => Level::Debug,
            Self::HostStarted { .. }
            | Self::AdminListening { .. }
            | Self::StandingBy { .. }
            | Self::OtherLeads { .. }
            | Self::Leading
            | Self::HostStopping
            | Self::PluginCompiling { .. }
            | Self::PluginLoaded { .. }
            | Self::PluginUnloaded
            | Self::PluginAccepted { .. }
            | Self::PluginExample { .. }
            | Self::SubscriptionOpened { .. }
            | Self::SubscriptionSynced { .. }
            | Self::InstanceRestarted { .. }
            | Self::ResourceServed { .. }
            | Self::ResourceWithinBudget { .. }
            | Self::WithinBudget
            | Self::WatchRecovered { .. } => Level::Info,
            Self::Delivered { outcome: CallOutcome::Retry { .. }, .. }
            | Self::Reconciled { outcome: CallOutcome::Retry { .. }, .. }
            | Self::SyncedFailed { outcome: CallOutcome::Done | CallOutcome::Retry { .. }, .. }
            | Self::AdminExposed { .. }
            | Self::PluginWaiting { .. }
            | Self::SubscriptionPaused { .. }
            | Self::InstanceLost { .. }
            | Self::ResourceAbsent { .. }
            | Self::WatchTrouble { .. }
            | Self::FileWatchTrouble { .. } => Level::Warn,
            Self::Delivered { outcome: CallOutcome::Parked { .. }, .. }
            | Self::Reconciled { outcome: CallOutcome::Parked { .. }, .. }
            | Self::SyncedFailed { outcome: CallOutcome::Parked { .. }, .. }
            | Self::LeadershipLost { .. }
            | Self::PluginRefused { .. }
            | Self::PluginPanicked { .. }
            | Self::SubscriptionForbidden { .. }
            | Self::ResourceForbidden { .. }
            | Self::ResourceOverBudget { .. }
            | Self::OverBudget { .. }
            | Self::ReportsDropped { .. } => Level::Error,
            Self::GuestLog { level, .. } => *level,
        }
    }
}

// === impl Level ===

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "trace" => Ok(Self::Trace),
            "debug" => Ok(Self::Debug),
            "info" => Ok(Self::Info),
            "warn" => Ok(Self::Warn),
            "error" => Ok(Self::Error),
            _ => Err(format!("no level is called {text:?}: use trace, debug, info, warn or error")),
        }
    }
}

// === impl Pairs ===

impl Serialize for Pairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
