//! The state that the two tasks of a plugin share: the task that loads its versions, and its dispatcher.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use futures::channel::mpsc;
use oarlock_informer::listener::BacklogAccount;
use oarlock_plugin::{component, engine::Share, guest::HostBytes, guest::Usage, record::Recorder};
use parking_lot::Mutex;

use super::roll_out::OnProbation;
use super::versions::Versions;
use super::{Host, prepare};
use crate::config::PluginFile;
use crate::dispatch::{ActiveView, Dispatcher, DispatcherHandle, PluginQueue, Redeliver, Suspension, Switch};
use crate::followed::Follower;
use crate::generations::Generations;
use crate::identity::IdentityState;
use crate::kube_access::OwnWrites;
use crate::report::{HostEvent, Reporter, Timestamp};
use crate::state_folder::{Quarantine, VersionId};
use crate::status::{PluginStatus, PluginStatusHandle, RecordedError};
use crate::subscriptions;
use crate::write_settings::{NewestFile, WriteSettings};

/// The state that the tasks of one plugin share.
pub(super) struct PluginSlot {
    pub(super) name: Arc<str>,
    pub(super) switches: mpsc::Sender<Switch>,
    pub(super) active: Arc<ActiveView>,
    pub(super) queue: PluginQueue,
    /// A shadow has those of its plugin: it receives the same notifications.
    pub(super) own_writes: OwnWrites,
    /// What the newest file says about writes.
    pub(super) newest_file: NewestFile,
    /// Whether the calls of the plugin are stopped.
    pub(super) suspension: Follower<Suspension>,
    /// The account of the bytes that the host keeps for the plugin.
    pub(super) host_bytes: HostBytes,
    /// Counts what all its generations use.
    pub(super) usage: Usage,
    /// Its share of the CPU.
    pub(super) share: Share,
    /// Records the calls of all its generations.
    pub(super) recorder: Option<Recorder>,
    pub(super) status: PluginStatusHandle,
    pub(super) generations: Generations,
    /// The account of all backlogs of all generations.
    pub(super) backlogs: BacklogAccount,
    /// The parts that the active generation was made of.
    pub(super) made_of: Mutex<Option<MadeOf>>,
    /// The same files are to be loaded again, since the plugin's account was replaced.
    pub(super) load_again: AtomicBool,
    pub(super) describe_limit: prepare::DescribeLimit,
    /// The versions of the plugin that are not tried, once they were read.
    pub(super) quarantine: Mutex<Option<Quarantine>>,
    pub(super) versions: Mutex<Versions>,
    /// The version on probation, while no task watches it.
    pub(super) on_probation: Mutex<Option<OnProbation>>,
    /// Why the newest version of the component, or of its file, is not used.
    pub(super) refused: Mutex<Option<RecordedError>>,
}

/// The parts that a version is made of. Two versions with equal parts are the same version.
#[derive(Clone, PartialEq)]
pub(super) struct MadeOf {
    pub(super) file: Arc<PluginFile>,
    pub(super) digest: component::Digest,
    pub(super) account_uid: Arc<str>,
}

// === impl PluginSlot ===

impl PluginSlot {
    /// Creates the slot of a plugin of which no version serves yet, and its dispatcher. `serving` is the
    /// plugin whose shadow it is.
    pub(super) fn new(
        host: &Host,
        name: &Arc<str>,
        file: &PluginFile,
        serving: Option<&Self>,
    ) -> (Self, Dispatcher) {
        host.reporter.keep_lines(name);
        let status = host.statuses.register(PluginStatus::loading(
            name.clone(),
            file.path.display().to_string(),
            file.component.display().to_string(),
            file.service_account.to_string(),
        ));
        let host_bytes = HostBytes::default();
        status.set_host_bytes(host_bytes.clone());
        let generations = Generations::new(name.clone(), host.reporter.clone());
        status.set_generations(generations.clone());
        let metrics = host.metrics.plugin(name);
        let queue = PluginQueue::new(&host_bytes, metrics.clone());
        let own_writes = serving.map(|it| it.own_writes.clone()).unwrap_or_else(|| {
            let own_writes = OwnWrites::default();
            own_writes.charge_to(&host_bytes);
            own_writes
        });
        let (dispatcher, handle) = Dispatcher::new(
            name.clone(),
            host.dispatch.clone(),
            status.clone(),
            queue.clone(),
            own_writes.clone(),
        );
        let DispatcherHandle { switches, active, commands, suspension } = handle;
        status.set_commands(commands);
        let recorder = host.record.as_ref().and_then(|record| record.start(name));
        if let Some(recorder) = &recorder {
            status.set_record(recorder.progress());
        }
        let slot = Self {
            name: name.clone(),
            switches,
            active,
            queue,
            own_writes,
            newest_file: NewestFile::default(),
            suspension,
            host_bytes,
            usage: metrics.usage().clone(),
            share: host.engine.share(file.weight),
            recorder,
            status,
            generations,
            backlogs: subscriptions::backlog_account(),
            made_of: Mutex::default(),
            load_again: AtomicBool::new(false),
            describe_limit: prepare::DescribeLimit::default(),
            quarantine: Mutex::default(),
            versions: Mutex::default(),
            on_probation: Mutex::default(),
            refused: Mutex::default(),
        };
        (slot, dispatcher)
    }

    /// Returns whether the active generation acts as an account that was replaced, so that it can do nothing
    /// any more.
    pub(super) fn has_lost_its_account(&self) -> bool {
        self.active.get().is_some_and(|active| active.identity.state() == IdentityState::Replaced)
    }

    /// Notes that a file is usable again, and that its version serves already. `refused` is the error that
    /// remains.
    pub(super) fn accept(&self, reporter: &Reporter, file: &Path, refused: Option<RecordedError>) {
        let is_accepted = refused.is_none();
        self.refused.lock().clone_from(&refused);
        let active = self.active.get();
        let mut was_refused = false;
        self.status.update(|status| {
            // A version that is being prepared still waits.
            if active.is_some() {
                status.waits_for.clear();
            }
            was_refused = std::mem::replace(&mut status.refused, refused).is_some();
        });
        if was_refused && is_accepted {
            let serves = active.is_some();
            let reporter = match active {
                Some(active) => reporter.about(&self.name, active.number),
                None => reporter.clone(),
            };
            reporter.report(HostEvent::PluginAccepted { file: file.display().to_string(), serves });
        }
    }

    /// Notes and reports that the newest version is not used.
    pub(super) fn refuse(&self, reporter: &Reporter, file: &Arc<PluginFile>, error: &prepare::Error) {
        let message = error.to_string();
        let number = self.generations.next_number();
        self.generations.fail(error.state(), &message);
        let active = self.active.get();
        let recorded = RecordedError { time: Timestamp::now(), message: error.in_status() };
        *self.refused.lock() = Some(recorded.clone());
        self.status.update(|status| {
            status.waits_for.clear();
            status.refused = Some(recorded);
            status.settled = Some(file.clone());
        });
        let event = HostEvent::PluginRefused {
            file: file.path.display().to_string(),
            message,
            hint: error.hint(&self.name),
            older_version_serves: active.is_some(),
        };
        reporter.about(&self.name, number).report(event);
    }

    /// Applies what the newest file says about writes to the version that serves. Parked work is tried again
    /// if its writes may have failed.
    pub(super) async fn apply_write_settings(&self, file: &PluginFile) {
        let allows_again = self.newest_file.set(file);
        let settings = self.made_of.lock().as_ref().map(|it| WriteSettings::of(&it.file, &self.newest_file));
        let Some(settings) = settings.filter(|_| self.active.get().is_some()) else { return };
        self.status.update(|status| status.writes = settings.writes());
        if allows_again
            && !settings.suspends()
            && let Some(commands) = self.status.commands()
        {
            // Nothing may be parked.
            let _ = commands.redeliver(Redeliver::All).await;
        }
    }

    /// Has the status say which versions are in quarantine.
    pub(super) fn show_rolled_back(&self) {
        let rolled_back = self.quarantine.lock().as_ref().map(|it| it.entries().into());
        self.status.update(|status| status.rolled_back = rolled_back);
    }

    /// Returns whether a version is not tried.
    pub(super) fn is_quarantined(&self, id: VersionId) -> bool {
        self.quarantine.lock().as_ref().is_some_and(|it| it.find(id).is_some())
    }

    /// Returns the number of the generation that is loaded next.
    pub(super) fn next_number(&self) -> u64 {
        self.generations.next_number()
    }
}
