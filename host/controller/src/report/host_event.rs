//! The events that the host reports, each with its fields. `human.rs` has the texts for people.
//!
//! The JSON names of events and fields are an interface: they are kebab-case, and are only added to.

use serde::{Serialize, Serializer};

use super::{CallOutcome, GenerationState, Level, NextTry};

/// The kind of a notification.
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

/// How a generation, or a fresh instance, starts.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The plugin had no generation before.
    First,
    /// All objects are delivered again, as adds.
    Replay,
    /// Delivery continues where the generation or instance before stopped.
    TakeOver,
}

/// Who stops the calls of a plugin.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Suspender {
    /// An operator, with `oarlock suspend`.
    Operator,
    /// The plugin's file or object, with `suspend: true`.
    Definition,
}

/// The structured fields of a guest's log line, in the guest's order. Serialises as a JSON object.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Pairs(pub Vec<(String, String)>);

/// One event of the host.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum HostEvent {
    /// The host started.
    HostStarted {
        /// The address of the API server.
        server: String,
        /// The version of the host.
        version: &'static str,
    },
    /// The host serves the pages for probes and metrics.
    AdminListening {
        /// The address of the pages.
        address: String,
        /// `http`, or `https` with credentials.
        scheme: &'static str,
    },
    /// The host made the certificate of the pages itself, so that clients cannot verify it.
    AdminSelfSigned {
        /// The address of the pages.
        address: String,
    },
    /// The host serves commands such as `oarlock plugins`.
    ControlListening {
        /// The path of the socket.
        socket: String,
    },
    /// The host serves no commands, since it has no control socket.
    ControlUnavailable {
        /// Why.
        message: String,
    },
    /// The collector does not take the traces. Reported once, until it takes them again.
    TracesNotExported {
        /// The URL of the collector.
        endpoint: String,
        /// Why.
        message: String,
    },
    /// The collector takes the traces again.
    TracesExported {
        /// The URL of the collector.
        endpoint: String,
    },
    /// The host calls no plugin until it holds the Lease.
    StandingBy {
        /// The Lease: namespace and name.
        lease: String,
        /// The identity of this host in the Lease.
        identity: String,
    },
    /// Another host holds the Lease.
    OtherLeads {
        /// The identity of that host.
        identity: String,
    },
    /// The host became leader, and calls plugins from now on.
    Leading,
    /// The host is no longer leader, and stops.
    LeadershipLost {
        /// The Lease: namespace and name.
        lease: String,
    },
    /// The host stops.
    HostStopping {
        /// Whether it was asked to. Otherwise a part of it has failed, or it is no longer leader.
        asked: bool,
    },
    /// The host has stopped: no call is in progress.
    HostDrained {
        /// The time since the host was asked to stop, in milliseconds.
        after_ms: u64,
        /// Calls that did not end in time, and were dropped.
        calls_dropped: u64,
        /// Notifications and keys that waited when the host was asked to stop, those of calls in progress
        /// included. A host that starts delivers the objects again, as initial adds.
        waiting: u64,
    },
    /// Calls of a plugin did not end in time while the host stopped, or the plugin was unloaded.
    CallsDropped {
        /// How many.
        calls: u64,
        /// The time that they had, in milliseconds.
        after_ms: u64,
    },
    /// A generation of a plugin serves, or will when a host on standby leads.
    PluginLoaded {
        /// The version that the component states.
        version: String,
        /// The digest of the component, in hexadecimal.
        digest: String,
        /// How it starts.
        mode: Mode,
        /// The time from reading the files to the switch.
        took_ms: u64,
        /// The same in microseconds.
        took_us: u64,
        /// The host is on standby, and calls no plugin.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        stands_by: bool,
    },
    /// A generation of a plugin entered a state.
    GenerationState {
        /// The state.
        state: GenerationState,
        /// Why.
        reason: String,
    },
    /// A version lost too many instances after the switch to it, or an operator asked for it: the host goes
    /// back to the version before, and does not try this one again.
    PluginRolledBack {
        /// The version that the component states.
        version: String,
        /// The digest of the component, in hexadecimal.
        digest: String,
        /// Why the host goes back.
        message: String,
        /// The version that serves from now on.
        to_version: String,
        /// The digest of its component.
        to_digest: String,
    },
    /// The newest version cannot be used, and no version serves: the host loads the last good version, which
    /// it kept on disk.
    PluginLastGood {
        /// The version that the component states.
        version: String,
        /// The digest of the component, in hexadecimal.
        digest: String,
        /// Whether it passed its probation. Else it was on probation when the host ended.
        has_passed: bool,
    },
    /// The version before, or the last good one, cannot be loaded.
    VersionBeforeRefused {
        /// Why it was wanted, and the error.
        message: String,
        /// What the operator can do, as an imperative. `None` if the message says it.
        #[serde(skip)]
        hint: Option<String>,
    },
    /// The folder for state cannot be read or written. The host runs without what it cannot keep.
    StateTrouble {
        /// The error, with the path.
        message: String,
        /// What the operator can do, as an imperative.
        #[serde(skip)]
        hint: &'static str,
    },
    /// The status of a Plugin object cannot be written.
    StatusNotWritten {
        /// The object and the error.
        message: String,
    },
    /// The compiled code of the plugin's component cannot be stored. It runs all the same.
    CodeNotStored {
        /// The reason.
        message: String,
    },
    /// The files of a plugin's record have reached their limit. The host records no further call of the
    /// plugin until the host is started again, and calls it as before.
    RecordLimitReached {
        /// The first file. The others have the same name with a number.
        file: String,
        /// The maximum of all of them together, in bytes.
        limit: u64,
    },
    /// The record of a plugin cannot be created or written. The host records no further call of the plugin,
    /// and calls it as before.
    RecordFailed {
        /// The file.
        file: String,
        /// Why.
        message: String,
        /// What the operator can do, as an imperative.
        #[serde(skip)]
        hint: &'static str,
    },
    /// The host refuses a plugin's file or component. A generation that serves keeps serving.
    PluginRefused {
        /// The path of the plugin file or component.
        file: String,
        /// Why the host refuses it.
        message: String,
        /// What the operator can do, as an imperative.
        #[serde(skip)]
        hint: Option<String>,
        /// Whether an older generation serves.
        older_version_serves: bool,
    },
    /// A component takes long to compile, or waits for other compilations. Reported once for each of the two.
    PluginCompiling {
        /// The size of the component.
        bytes: u64,
        /// The number of components that are compiled before it.
        before: usize,
    },
    /// A component cannot be used, but has just changed, so that another process may still write it. The host
    /// reads it again before it refuses it.
    ComponentUnfinished {
        /// The path of the component.
        file: String,
        /// Why it cannot be used.
        message: String,
    },
    /// A plugin file or component that was refused is valid again. The generation that serves was made from
    /// it already, if one serves.
    PluginAccepted {
        /// The path of the plugin file or component.
        file: String,
        /// A version serves.
        serves: bool,
    },
    /// A folder of plugins, or a plugin file that the command line names, can be read again.
    SourceReadable {
        /// Its path.
        file: String,
    },
    /// A command with which a developer can try the plugin out.
    PluginExample {
        /// The effect of the command, or why there is none.
        text: String,
        /// The command, for a shell.
        #[serde(skip_serializing_if = "Option::is_none")]
        command: Option<String>,
    },
    /// A generation is prepared, and waits before it can serve, for example for caches to sync.
    PluginWaiting {
        /// A text for each thing that it waits for.
        waits_for: Vec<String>,
    },
    /// The host panicked in a task that serves this plugin alone, which is a bug of the host. The host loads
    /// the plugin again.
    PluginPanicked {
        /// The work of that task.
        doing: String,
        /// The message of the panic.
        message: String,
    },
    /// The host unloaded a plugin, because its file was removed, or its object was removed or may not be run.
    PluginUnloaded {
        /// Why.
        reason: &'static str,
    },
    /// The calls of a plugin are stopped. Its notifications and keys wait.
    PluginSuspended {
        /// Who stopped them.
        by: Suspender,
    },
    /// One of the two who may stop the calls of a plugin allows them again.
    PluginResumed {
        /// Who allows them.
        by: Suspender,
        /// The other one still stops them.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        stays_suspended: bool,
    },
    /// An operator has every existing object delivered again.
    ExistingDelivered {
        /// The plugin's name for the subscription; none for all.
        #[serde(skip_serializing_if = "Option::is_none")]
        subscription: Option<String>,
        objects: u64,
        /// There may be fewer.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        at_most: bool,
    },
    /// A subscription opened: its Listener receives notifications.
    SubscriptionOpened {
        /// The plugin's name for it.
        subscription: String,
        /// The resource that it watches.
        resource: String,
        /// The namespaces that it watches; none for all of them.
        namespaces: Option<Vec<String>>,
    },
    /// A subscription closed: the plugin's account may not watch the resource.
    SubscriptionForbidden {
        /// The plugin's name for it.
        subscription: String,
        /// The resource that it watches.
        resource: String,
        /// Why it is closed.
        message: String,
        /// What the operator can do, as an imperative; none if the host does it.
        #[serde(skip)]
        hint: Option<String>,
    },
    /// A subscription paused: the host does not know whether the plugin's account may watch the resource.
    /// Nothing is delivered until it knows.
    SubscriptionPaused {
        /// The plugin's name for it.
        subscription: String,
        /// The resource that it watches.
        resource: String,
        /// Why the host does not know.
        message: String,
    },
    /// `on-synced` succeeded: the plugin has all initial adds of a subscription.
    SubscriptionSynced {
        /// The plugin's name for it.
        subscription: String,
        /// The number of subscriptions that are not synced yet.
        remaining: u32,
    },
    /// `on-synced` failed.
    SyncedFailed {
        /// The plugin's name for the subscription.
        subscription: String,
        /// The outcome.
        #[serde(flatten)]
        outcome: CallOutcome,
    },
    /// The handler was called with a notification.
    Delivered {
        /// The plugin's name for the subscription.
        subscription: String,
        /// The kind of the notification.
        #[serde(rename = "type")]
        notification: NotificationType,
        /// The object's namespace.
        namespace: String,
        /// The object's name.
        name: String,
        /// The object's resourceVersion.
        resource_version: String,
        /// The number of calls for this notification before this one.
        attempts: u32,
        /// The duration of the call.
        took_us: u64,
        /// The outcome.
        #[serde(flatten)]
        outcome: CallOutcome,
    },
    /// The reconciler was called with a key.
    Reconciled {
        /// The kind in the key, which the plugin chose.
        kind: String,
        /// The object's namespace.
        namespace: String,
        /// The object's name.
        name: String,
        /// The duration of the call.
        took_us: u64,
        /// The outcome.
        #[serde(flatten)]
        outcome: CallOutcome,
    },
    /// The guest logged a line.
    GuestLog {
        /// The level, which is that of the reported line.
        #[serde(skip)]
        level: Level,
        /// The object or key that the guest was called about, as NAMESPACE/NAME; none outside of such a call,
        /// and for what it wrote to standard output or standard error.
        #[serde(skip_serializing_if = "Option::is_none")]
        object: Option<String>,
        /// The message.
        message: String,
        /// The structured fields.
        pairs: Pairs,
    },
    /// An instance was lost.
    InstanceLost {
        /// The function that was called.
        function: &'static str,
        /// The object, key or subscription of the call, such as `pods default/web`; empty when the call had
        /// none.
        #[serde(skip_serializing_if = "String::is_empty")]
        about: String,
        /// The cause: `trap`, `deadline`, `memory` and so on.
        reason: &'static str,
        /// The error.
        message: String,
        /// The last output of the guest, such as an exception; it may have several lines.
        #[serde(skip_serializing_if = "String::is_empty")]
        output: String,
        /// The stack frames of the guest, innermost first, one per line.
        #[serde(skip_serializing_if = "String::is_empty")]
        backtrace: String,
        /// The number of losses in a row.
        losses: u32,
        /// The time until a fresh instance is made; `None` in a generation that another one has replaced.
        #[serde(skip_serializing_if = "Option::is_none")]
        restart_after_ms: Option<u64>,
        /// The next call for the same object or key.
        #[serde(flatten)]
        next_try: Option<NextTry>,
    },
    /// A fresh instance replaced a lost one, or those of several lanes that were lost together.
    InstanceRestarted {
        /// How it starts.
        mode: Mode,
        /// The time from the first loss, or from the end of a suspension since, until the fresh instance
        /// could be called.
        took_us: u64,
    },
    /// The API server does not serve a resource, or does no longer. The host probes again every few seconds.
    ResourceAbsent {
        /// The resource.
        resource: String,
        /// The result of the probe.
        message: String,
        /// What the operator can do, as an imperative.
        #[serde(skip)]
        hint: &'static str,
        /// The plugins that want it.
        wanted_by: Vec<String>,
    },
    /// The API server serves a resource that was absent.
    ResourceServed {
        /// The resource.
        resource: String,
    },
    /// The budget has no room for the objects of a resource, or for full objects in place of metadata. The
    /// cache keeps the objects that it has.
    ResourceOverBudget {
        /// The resource.
        resource: String,
        /// Which limit is exceeded, and by how much.
        message: String,
        /// What the operator can do, as an imperative.
        #[serde(skip)]
        hint: String,
        /// The plugins that want it.
        wanted_by: Vec<String>,
    },
    /// The budget has room for a resource for which it had none.
    ResourceWithinBudget {
        /// The resource.
        resource: String,
    },
    /// The caches grew beyond the budget. They stay; the host starts no new informer.
    OverBudget {
        /// Which limit is exceeded, and by how much.
        message: String,
        /// What the operator can do, as an imperative.
        #[serde(skip)]
        hint: String,
    },
    /// The caches are within the budget again.
    WithinBudget,
    /// The host's own account may not list or watch a resource.
    ResourceForbidden {
        /// The resource.
        resource: String,
        /// The answer of the API server.
        message: String,
        /// What the operator can do, as an imperative.
        #[serde(skip)]
        hint: String,
    },
    /// A list or watch fails. The host tries again.
    WatchTrouble {
        /// The resource.
        resource: String,
        /// The error.
        message: String,
    },
    /// A watch that failed works again.
    WatchRecovered {
        /// The resource.
        resource: String,
    },
    /// The system does not notify the host of changed files. The host reads them every few seconds instead.
    FileWatchTrouble {
        /// The error.
        message: String,
    },
    /// Lines were dropped, because the output was read too slowly or not at all.
    ReportsDropped {
        /// The number of lines.
        count: u64,
    },
}

// === impl HostEvent ===

impl HostEvent {
    /// Returns the severity of the event.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            Self::GenerationState {
                state: GenerationState::Quarantined | GenerationState::Forbidden,
                ..
            } => Level::Warn,
            Self::ComponentUnfinished { .. }
            | Self::GenerationState { .. }
            | Self::Delivered { outcome: CallOutcome::Done, .. }
            | Self::Reconciled { outcome: CallOutcome::Done, .. } => Level::Debug,
            Self::HostStarted { .. }
            | Self::AdminListening { .. }
            | Self::AdminSelfSigned { .. }
            | Self::ControlListening { .. }
            | Self::StandingBy { .. }
            | Self::OtherLeads { .. }
            | Self::Leading
            | Self::HostStopping { .. }
            | Self::HostDrained { .. }
            | Self::PluginCompiling { .. }
            | Self::PluginLoaded { .. }
            | Self::PluginUnloaded { .. }
            | Self::PluginSuspended { .. }
            | Self::PluginResumed { .. }
            | Self::ExistingDelivered { .. }
            | Self::PluginAccepted { .. }
            | Self::SourceReadable { .. }
            | Self::PluginExample { .. }
            | Self::SubscriptionOpened { .. }
            | Self::SubscriptionSynced { .. }
            | Self::InstanceRestarted { .. }
            | Self::ResourceServed { .. }
            | Self::ResourceWithinBudget { .. }
            | Self::WithinBudget
            | Self::TracesExported { .. }
            | Self::WatchRecovered { .. } => Level::Info,
            Self::Delivered { outcome: CallOutcome::Retry { .. }, .. }
            | Self::Reconciled { outcome: CallOutcome::Retry { .. }, .. }
            | Self::SyncedFailed { outcome: CallOutcome::Done | CallOutcome::Retry { .. }, .. }
            | Self::ControlUnavailable { .. }
            | Self::TracesNotExported { .. }
            | Self::PluginWaiting { .. }
            | Self::SubscriptionPaused { .. }
            | Self::InstanceLost { .. }
            | Self::CallsDropped { .. }
            | Self::PluginLastGood { .. }
            | Self::StateTrouble { .. }
            | Self::StatusNotWritten { .. }
            | Self::CodeNotStored { .. }
            | Self::RecordLimitReached { .. }
            | Self::RecordFailed { .. }
            | Self::ResourceAbsent { .. }
            | Self::WatchTrouble { .. }
            | Self::FileWatchTrouble { .. } => Level::Warn,
            Self::Delivered { outcome: CallOutcome::Parked { .. }, .. }
            | Self::Reconciled { outcome: CallOutcome::Parked { .. }, .. }
            | Self::SyncedFailed { outcome: CallOutcome::Parked { .. }, .. }
            | Self::LeadershipLost { .. }
            | Self::PluginRefused { .. }
            | Self::VersionBeforeRefused { .. }
            | Self::PluginPanicked { .. }
            | Self::PluginRolledBack { .. }
            | Self::SubscriptionForbidden { .. }
            | Self::ResourceForbidden { .. }
            | Self::ResourceOverBudget { .. }
            | Self::OverBudget { .. }
            | Self::ReportsDropped { .. } => Level::Error,
            Self::GuestLog { level, .. } => *level,
        }
    }
}

// === impl Pairs ===

impl Serialize for Pairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
