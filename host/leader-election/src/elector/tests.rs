//! The election over a record in memory, with a paused clock.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use futures::FutureExt;
use rand::SeedableRng;
use tokio::{task::JoinSet, time::advance};

use super::*;
use crate::HealthCheck;
use crate::testing::{Fault, MemoryLease, MemoryLock};

mod acquiring;
mod overlap;
mod renewing;
mod stopping;

const USUAL: Config = Config {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
    longest_wait: None,
    release_on_cancel: false,
};

const RELEASING: Config = Config { release_on_cancel: true, ..USUAL };

type Elector = LeaderElector<MemoryLock>;

/// Records its calls.
#[derive(Default)]
struct CallbackLog {
    lines: Mutex<Vec<String>>,
    /// The time from the cancellation to the end of the work.
    ending: Duration,
    n_slow_paths: AtomicUsize,
}

/// An election on a task.
struct Running {
    elector: Arc<Elector>,
    log: Arc<CallbackLog>,
    token: CancellationToken,
    run: JoinSet<Ended>,
}

#[async_trait]
impl Callbacks for CallbackLog {
    async fn on_started_leading(&self, leading: CancellationToken) {
        self.line("started");
        leading.cancelled().await;
        self.line("cancelled");
        sleep(self.ending).await;
        self.line("ended");
    }

    fn on_stopped_leading(&self) {
        self.line("stopped");
    }

    fn on_slow_path(&self) {
        self.n_slow_paths.fetch_add(1, Ordering::Relaxed);
    }

    fn on_new_leader(&self, identity: &str) {
        self.line(&format!("leader {identity:?}"));
    }
}

impl CallbackLog {
    fn line(&self, text: &str) {
        self.lines.lock().push(text.to_owned());
    }

    /// Returns the calls since the last time.
    fn lines(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock())
    }
}

impl Running {
    fn start(elector: Elector) -> Self {
        Self::start_with(elector, CallbackLog::default())
    }

    fn start_with(elector: Elector, log: CallbackLog) -> Self {
        let (elector, log, token) = (Arc::new(elector), Arc::new(log), CancellationToken::new());
        let mut run = JoinSet::new();
        {
            let (elector, log, token) = (elector.clone(), log.clone(), token.clone());
            run.spawn(async move { elector.run(&*log, token).await });
        }
        Self { elector, log, token, run }
    }

    async fn ended(&mut self) -> Ended {
        self.run.join_next().await.unwrap().unwrap()
    }

    fn has_ended(&mut self) -> bool {
        self.run.try_join_next().is_some()
    }
}

fn elector(lease: &MemoryLease, identity: &str, config: Config) -> Elector {
    LeaderElector::new(lease.lock(identity), config, SmallRng::seed_from_u64(7)).unwrap()
}

fn held_by(identity: &str) -> Record {
    Record::held(identity, USUAL.lease_duration, Timestamp::UNIX_EPOCH)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Lets all due futures run, then advances the clock, in small steps so that no timer is late.
async fn pass(time: Duration) {
    const STEP: Duration = Duration::from_millis(50);
    let mut left = time;
    settle().await;
    while !left.is_zero() {
        let step = left.min(STEP);
        advance(step).await;
        settle().await;
        left -= step;
    }
}

async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

// Conformance: 38.8
#[test]
fn an_elector_rejects_an_invalid_configuration_le_01() {
    let lease = MemoryLease::new();
    let make = |identity, config| {
        LeaderElector::new(lease.lock(identity), config, SmallRng::seed_from_u64(1)).map(|_| ())
    };
    assert_eq!(make("me", USUAL), Ok(()));
    assert_eq!(make("", USUAL), Err(ConfigError::NoIdentity));
    assert_eq!(ConfigError::NoIdentity.to_string(), "Lock identity is empty");
    let too_short = Config { lease_duration: secs(10), ..USUAL };
    assert!(matches!(make("me", too_short), Err(ConfigError::LeaseTooShort { .. })));
}

// Conformance: 38.10
#[tokio::test(start_paused = true)]
async fn a_check_from_other_threads_during_renewal_succeeds_le_16() {
    let lease = MemoryLease::new();
    let retry_period = Duration::from_millis(1);
    let mut one = Running::start(elector(&lease, "one", Config { retry_period, ..USUAL }));
    let enough = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (elector, enough) = (one.elector.clone(), enough.clone());
            std::thread::spawn(move || {
                let mut n_checks = 0_u64;
                while !enough.load(std::sync::atomic::Ordering::Relaxed) || n_checks == 0 {
                    elector.check(secs(86_400)).unwrap();
                    let _ = (elector.is_leader(), elector.leader());
                    n_checks += 1;
                }
            })
        })
        .collect();
    pass(secs(2)).await;
    enough.store(true, std::sync::atomic::Ordering::Relaxed);
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(lease.calls().len() > 30, "it was renewed all the while");
    one.token.cancel();
    assert_eq!(one.ended().await, Ended::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_renewal_hangs_is_unhealthy_le_16() {
    let lease = MemoryLease::new();
    let check = HealthCheck::new(secs(5));
    assert_eq!(check.check(), Ok(()), "it is not wired");
    let one = Arc::new(elector(&lease, "one", USUAL));
    check.wire(one.clone());
    assert_eq!(check.check(), Ok(()), "it does not lead");
    assert_eq!(one.attempt(false).await, Attempt::Holding);
    // No renewal runs, as in a process that hangs.
    advance(secs(20)).await;
    assert_eq!(check.check(), Ok(()));
    advance(Duration::from_millis(1)).await;
    let age = secs(20) + Duration::from_millis(1);
    assert_eq!(check.check(), Err(Unhealthy { age, lease_duration: secs(15) }));
    lease.set(Some(held_by("two")));
    assert_eq!(one.attempt(true).await, Attempt::HeldByAnother);
    advance(secs(60)).await;
    assert_eq!(check.check(), Ok(()), "another's lease is not our concern");
}

#[tokio::test(start_paused = true)]
async fn events_name_the_candidate_that_starts_and_stops_leading_le_15() {
    let lease = MemoryLease::new();
    let one = elector(&lease, "one", USUAL);
    let events = one.lock.events.clone();
    let mut one = Running::start(one);
    pass(secs(1)).await;
    assert_eq!(*events.lock(), ["one became leader"]);
    one.token.cancel();
    one.ended().await;
    assert_eq!(*events.lock(), ["one became leader", "one stopped leading"]);
    let two = elector(&lease, "two", USUAL);
    let events = two.lock.events.clone();
    let mut two = Running::start(two);
    pass(secs(1)).await;
    two.token.cancel();
    assert_eq!(two.ended().await, Ended::NeverLed);
    assert!(events.lock().is_empty());
}
