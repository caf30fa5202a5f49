//! A host in a leader election: of several hosts, only the leader runs plugins.
//!
//! Every host serves probes and runs the informers that it needs itself; only the leader reads plugin files.
//! A host that loses leadership stops, as Kubernetes' own components do: a restarted process certainly has no
//! state from before.

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use oarlock_event_recorder::{Broadcaster, EventRecorder, EventType, KubeSink, Recording, RecordingConfig};
use oarlock_leader_election::{
    self as leader, Callbacks, ConfigError, Ended, HealthCheck, LeaderElector, LeaseLock,
};
use parking_lot::Mutex;
use rand::{SeedableRng, rngs::SmallRng};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Error;
use crate::{
    health::Health,
    reload::{Host, Reload, Request},
    report::HostEvent,
    tasks::{Criticality, Tasks},
};

/// A leader that has not noticed for this long that its Lease expired fails its liveness check.
const TOLERANCE: Duration = Duration::from_secs(20);

/// The Lease that the host competes for, and its identity in it.
#[derive(Clone, Debug)]
pub struct Election {
    namespace: String,
    name: String,
    identity: String,
    config: leader::Config,
}

/// A host that takes part in an election.
pub(super) struct Candidate {
    pub(super) host: Arc<Host>,
    pub(super) health: Health,
    pub(super) sources: Vec<PathBuf>,
    /// The requests for rollbacks, until this host leads.
    pub(super) requests: Mutex<Option<mpsc::Receiver<Request>>>,
    /// Why the host has to stop.
    pub(super) failure: Arc<Mutex<Option<Error>>>,
    pub(super) election: Election,
}

/// Runs plugins while the host is leader.
struct Leading<'a> {
    candidate: &'a Candidate,
    /// Ends the election.
    token: CancellationToken,
}

// === impl Election ===

impl Election {
    /// Returns an election for the Lease of this name. The identity is the name of the machine and a random
    /// part.
    pub fn new(
        namespace: &str,
        name: &str,
        machine: &str,
        config: leader::Config,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let identity = format!("{machine}_{}", Uuid::new_v4());
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned(), identity, config })
    }

    /// Returns the identity of this host.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }
}

// === impl Candidate ===

impl Candidate {
    /// Waits for leadership, then runs plugins until the token is cancelled or leadership is lost.
    pub(super) async fn run(self, token: CancellationToken) {
        let Election { namespace, name, identity, config } = &self.election;
        let client = &self.host.client;
        let broadcaster = Broadcaster::new();
        let sink = KubeSink::new(client.clone());
        let recording = Recording::new(broadcaster.watch(), sink, RecordingConfig::default());
        let recorder = EventRecorder::new(broadcaster.clone(), "oarlock", identity);
        let record = move |lease, reason: &str, message: &str| {
            // The recorder counts the Events that it drops.
            let _ = recorder.event(lease, EventType::Normal, reason, message);
        };
        let lock = LeaseLock::new(client.clone(), namespace, name, identity).with_recorder(record);
        let elector = match LeaderElector::new(lock, config.clone(), SmallRng::from_os_rng()) {
            Ok(elector) => Arc::new(elector),
            Err(error) => {
                *self.failure.lock() = Some(error.into());
                return;
            }
        };
        let check = HealthCheck::new(TOLERANCE);
        check.wire(elector.clone());
        self.health.stands_by(check);
        let lease = format!("{namespace}/{name}");
        self.host.metrics.leads(name, false);
        self.host.reporter.report(HostEvent::StandingBy { lease: lease.clone(), identity: identity.clone() });
        let leading = Leading { candidate: &self, token: token.child_token() };
        let compete = async {
            let ended = elector.run(&leading, leading.token.clone()).await;
            broadcaster.shut_down();
            ended
        };
        // The last Event is written after the election ended. Then the recorder ends by itself.
        let (ended, ()) = tokio::join!(compete, recording.run(CancellationToken::new()));
        if ended == Ended::Lost {
            self.host.reporter.report(HostEvent::LeadershipLost { lease: lease.clone() });
            self.failure.lock().get_or_insert(Error::LeadershipLost { lease });
        }
    }
}

// === impl Leading ===

#[async_trait]
impl Callbacks for Leading<'_> {
    async fn on_started_leading(&self, leading: CancellationToken) {
        let Candidate { host, health, sources, failure, .. } = self.candidate;
        host.metrics.leads(&self.candidate.election.name, true);
        host.reporter.report(HostEvent::Leading);
        // A set of tasks of its own, so that all of them are gone before the Lease is released.
        let (tasks, supervisor) = Tasks::new(leading.child_token());
        let host = Arc::new(Host { tasks: tasks.clone(), ..Host::clone(host) });
        // A host leads once: it stops when it loses the Lease.
        let requests = self.candidate.requests.lock().take().unwrap_or_else(|| mpsc::channel(1).1);
        let reload = Reload::new(host, health.clone(), sources.clone(), requests);
        tasks.spawn("reload", Criticality::Essential, |token| reload.run(token));
        if let Err(error) = supervisor.run().await {
            failure.lock().get_or_insert(error.into());
            self.token.cancel();
        }
    }

    fn on_stopped_leading(&self) {
        let Candidate { host, election, .. } = self.candidate;
        host.metrics.leads(&election.name, false);
    }

    fn on_new_leader(&self, identity: &str) {
        if identity != self.candidate.election.identity && !identity.is_empty() {
            self.candidate.host.reporter.report(HostEvent::OtherLeads { identity: identity.to_owned() });
        }
    }
}
