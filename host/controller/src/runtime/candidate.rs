//! A host in a leader election: of several hosts, only the leader calls plugins.
//!
//! Every host loads plugins and fills caches; [`Leadership`] says whether it calls them. A leader that is
//! asked to stop ends its calls first, and renews the Lease meanwhile. Then it releases the Lease. A host
//! that loses leadership stops, as Kubernetes' own components do: a restarted process certainly has no state
//! from before.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use oarlock_event_recorder::{Broadcaster, EventRecorder, EventType, KubeSink, Recording, RecordingConfig};
use oarlock_leader_election::{
    self as leader, Callbacks, ConfigError, Ended, HealthCheck, LeaderElector, LeaseLock,
};
use parking_lot::Mutex;
use rand::{SeedableRng, rngs::SmallRng};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Error;
use crate::{drain::Drain, health::Health, leadership::Leadership, reload::Host, report::HostEvent};

/// A leader that has not noticed for this long that its Lease expired fails its liveness check.
const TOLERANCE: Duration = Duration::from_secs(20);

/// How long a host that has lost the Lease tries to write the last Event.
const LAST_EVENT: Duration = Duration::from_secs(2);

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
    pub(super) leadership: Leadership,
    pub(super) drain: Drain,
    /// Why the host has to stop.
    pub(super) failure: Arc<Mutex<Option<Error>>>,
    pub(super) election: Election,
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
    /// Waits for leadership, and keeps it until the token is cancelled and the calls have ended, or until it
    /// is lost.
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
        self.health.takes_part(check, self.host.statuses.clone());
        let renewed = elector.clone();
        self.leadership.lasts_until(move || renewed.leads_until());
        let lease = format!("{namespace}/{name}");
        self.host.metrics.leads(name, false);
        self.host.reporter.report(HostEvent::StandingBy { lease: lease.clone(), identity: identity.clone() });
        let recorded = CancellationToken::new();
        let compete = async {
            // The Lease is renewed while the calls end, and released then.
            let drained = CancellationToken::new();
            let end = drained.clone();
            let draining = async {
                token.cancelled().await;
                self.drain.ended().await;
                // The requests of calls that were dropped may be under way. No other host leads meanwhile.
                if self.drain.n_dropped() > 0 {
                    tokio::time::sleep(config.margin()).await;
                }
                end.cancel();
            };
            let competing = async {
                let ended = elector.run(&self, drained).await;
                self.leadership.end();
                ended
            };
            let mut competing = std::pin::pin!(competing);
            let ended = tokio::select! {
                ended = &mut competing => ended,
                () = draining => competing.await,
            };
            broadcaster.shut_down();
            if ended == Ended::Lost {
                self.host.reporter.report(HostEvent::LeadershipLost { lease: lease.clone() });
                self.failure.lock().get_or_insert(Error::LeadershipLost { lease });
                // All other work of the host ends now.
                self.host.tasks.token().cancel();
                tokio::time::sleep(LAST_EVENT).await;
                recorded.cancel();
            }
        };
        // The last Event is written after the election ended. Then the recorder ends by itself.
        tokio::join!(compete, recording.run(recorded.clone()));
    }
}

#[async_trait]
impl Callbacks for Candidate {
    async fn on_started_leading(&self, leading: CancellationToken) {
        self.host.metrics.leads(&self.election.name, true);
        self.leadership.lead();
        self.host.reporter.report(HostEvent::Leading);
        leading.cancelled().await;
    }

    fn on_stopped_leading(&self) {
        self.leadership.end();
        self.host.metrics.leads(&self.election.name, false);
    }

    fn on_slow_path(&self) {
        self.host.metrics.slow_path(&self.election.name);
    }

    fn on_new_leader(&self, identity: &str) {
        self.leadership.observe(identity);
        if identity != self.election.identity && !identity.is_empty() {
            self.host.reporter.report(HostEvent::OtherLeads { identity: identity.to_owned() });
        }
    }
}
