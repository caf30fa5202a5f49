//! The election of one candidate: acquire, work and renew, release.

use std::{
    future::Future,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use k8s_openapi::jiff::Timestamp;
use oarlock_flow_control::{
    clock,
    retry::{self, Steps},
};
use parking_lot::Mutex;
use rand::{Rng, rngs::SmallRng};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::config::{Config, ConfigError};
use crate::health::Unhealthy;
use crate::lock::{Lock, LockError};
use crate::observed::Observed;
use crate::record::Record;

/// The greatest random addition to the retry period of a candidate, as a fraction of the period.
pub(crate) const JITTER: f64 = 1.2;

/// The least timeout of a request.
const SHORTEST_PATIENCE: Duration = Duration::from_secs(1);

/// The callbacks of a candidate. Only [`on_started_leading`](Self::on_started_leading) may take long.
#[async_trait]
pub trait Callbacks: Send + Sync {
    /// Does the work. The elector calls it when the candidate becomes leader, and cancels `leading` when
    /// leadership ends. The work must then end before the lease expires; after that the elector drops it.
    /// Returning earlier does not end leadership.
    async fn on_started_leading(&self, leading: CancellationToken);

    /// Called once at the end of each [`LeaderElector::run`], also if the candidate never led, and also if
    /// the future is dropped. `leading` is cancelled before; the work may still run.
    fn on_stopped_leading(&self);

    /// Called when the holder of the lease has changed. The identity is empty after a release.
    fn on_new_leader(&self, _identity: &str) {}

    /// Called when the leader had to read the lease before it renewed it, since the update without reading it
    /// failed or the lease had expired. client-go counts it as `leader_election_slowpath_total`.
    fn on_slow_path(&self) {}
}

/// One candidate.
pub struct LeaderElector<L> {
    lock: L,
    config: Config,
    observed: Mutex<Observed>,
    random: Mutex<SmallRng>,
    /// The last try read the lease of this candidate before it wrote it.
    took_slow_path: AtomicBool,
}

/// The reason why a run has ended. The candidate may run again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ended {
    /// The token was cancelled before the candidate led.
    NeverLed,
    /// The token was cancelled while the candidate led.
    Stopped,
    /// The renewal failed until the deadline, or another candidate holds the lease.
    Lost,
}

/// The outcome of one try to acquire or renew the lease.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Attempt {
    Holding,
    HeldByAnother,
    Failed,
}

/// Cancels the work and calls `on_stopped_leading` once, also when the future is dropped.
struct Stop<'a, C: Callbacks> {
    callbacks: &'a C,
    leading: CancellationToken,
    done: bool,
}

// === impl LeaderElector ===

impl<L: Lock> LeaderElector<L> {
    /// Returns a candidate.
    ///
    /// # Errors
    ///
    /// When the configuration is not valid, or the identity of the lock is empty.
    pub fn new(lock: L, config: Config, random: SmallRng) -> Result<Self, ConfigError> {
        config.check()?;
        if lock.identity().is_empty() {
            return Err(ConfigError::NoIdentity);
        }
        Ok(Self {
            lock,
            config,
            observed: Mutex::default(),
            random: Mutex::new(random),
            took_slow_path: AtomicBool::new(false),
        })
    }

    /// Waits for leadership, runs the work, and returns when leadership ends or the token is cancelled.
    /// Dropping the future cancels the work and does not release the lease.
    pub async fn run<C: Callbacks>(&self, callbacks: &C, token: CancellationToken) -> Ended {
        let leading = token.child_token();
        let mut stop = Stop { callbacks, leading: leading.clone(), done: false };
        if !self.acquire(callbacks, &token).await {
            return Ended::NeverLed;
        }
        let mut work = callbacks.on_started_leading(leading);
        let mut works = true;
        let ended = {
            let mut renewing = pin!(self.renew(callbacks, &token));
            loop {
                tokio::select! {
                    biased;
                    ended = &mut renewing => break ended,
                    () = &mut work, if works => works = false,
                }
            }
        };
        stop.now();
        self.lock.record_event("stopped leading");
        tracing::info!(lease = self.lock.describe(), ?ended, "stopped leading");
        let expires = self.expires();
        if works && timeout_at(expires, work).await.is_err() {
            tracing::warn!(
                lease = self.lock.describe(),
                "the work did not end before the lease expired; it is dropped"
            );
        } else if self.config.release_on_cancel && ended == Ended::Stopped {
            self.release().await;
            self.report_holder(callbacks);
        }
        ended
    }

    /// Returns true if the last observed record has this candidate's identity. The lease may have expired.
    pub fn is_leader(&self) -> bool {
        self.observed.lock().record.holder_identity == self.lock.identity()
    }

    /// Returns the moment until which this candidate may act as leader, by the monotonic clock: the renew
    /// deadline after its last renewal was sent. Other candidates take the lease later, by the difference
    /// between the lease duration and the renew deadline. `None` if it does not hold the lease.
    ///
    /// The answer needs no task of the elector to run: a process that was stopped reads after it continues
    /// that its time is over.
    pub fn leads_until(&self) -> Option<Instant> {
        let observed = self.observed.lock();
        let is_ours = observed.record.holder_identity == self.lock.identity();
        let lasts = self.config.renew_deadline.min(self.config.relied_upon());
        observed.renewed.filter(|_| is_ours).map(|renewed| clock::after(renewed, lasts))
    }

    /// Returns the identity of the last observed holder; empty after a release.
    pub fn leader(&self) -> String {
        self.observed.lock().record.holder_identity.clone()
    }

    /// Fails if this candidate leads and has not renewed for longer than the lease duration and the tolerance
    /// (LE-16). Then the renewal hangs, and the process should be restarted.
    pub fn check(&self, tolerance: Duration) -> Result<(), Unhealthy> {
        let observed = self.observed.lock();
        if observed.record.holder_identity != self.lock.identity() {
            return Ok(());
        }
        let age = observed.at.map_or(Duration::ZERO, |at| at.elapsed());
        if age > self.config.lease_duration.saturating_add(tolerance) {
            return Err(Unhealthy { age, lease_duration: self.config.lease_duration });
        }
        Ok(())
    }

    /// Tries to acquire the lease until it succeeds; returns false if the token is cancelled before (LE-03).
    async fn acquire(&self, callbacks: &impl Callbacks, token: &CancellationToken) -> bool {
        loop {
            let attempt = tokio::select! {
                biased;
                () = token.cancelled() => return false,
                attempt = self.attempt(false) => attempt,
            };
            self.report_holder(callbacks);
            if attempt == Attempt::Holding {
                self.lock.record_event("became leader");
                tracing::info!(lease = self.lock.describe(), "became leader");
                return true;
            }
            let period = self.config.retry_period;
            let random = self.random.lock().random::<f64>();
            let mut wait = period + period.mul_f64(JITTER * random);
            if let Some(longest) = self.config.longest_wait {
                wait = wait.min(longest.mul_f64(1.0 - random / 2.0));
            }
            tokio::select! {
                biased;
                () = token.cancelled() => return false,
                () = sleep(wait) => {}
            }
        }
    }

    /// Renews the lease until it fails for the renew deadline, or the token is cancelled (LE-04).
    async fn renew(&self, callbacks: &impl Callbacks, token: &CancellationToken) -> Ended {
        loop {
            // With late answers the lease may expire before the deadline.
            let deadline = clock::after(Instant::now(), self.config.renew_deadline).min(self.expires());
            let round = async {
                let mut tries = interval(self.config.retry_period);
                tries.set_missed_tick_behavior(MissedTickBehavior::Delay);
                loop {
                    tries.tick().await;
                    let attempt = self.attempt(true).await;
                    self.report_holder(callbacks);
                    if attempt != Attempt::Failed {
                        return attempt;
                    }
                }
            };
            let held = tokio::select! {
                biased;
                () = token.cancelled() => return Ended::Stopped,
                attempt = timeout_at(deadline, round) => attempt == Ok(Attempt::Holding),
            };
            if !held {
                return Ended::Lost;
            }
            tokio::select! {
                biased;
                () = token.cancelled() => return Ended::Stopped,
                () = sleep(self.config.retry_period) => {}
            }
        }
    }

    async fn attempt(&self, leading: bool) -> Attempt {
        let now = Instant::now();
        let mut record = Record::held(self.lock.identity(), self.config.lease_duration, Timestamp::now());
        // Usually no other candidate has changed the record: update without reading (LE-07).
        if let Some(own) = self.still_held(now) {
            record.carry_on(&own);
            match self.answer(self.lock.update(&record)).await {
                Ok(()) => return self.wrote(record, now),
                Err(error) => {
                    tracing::debug!(lease = self.lock.describe(), %error, "cannot update the lease without reading it; reading it")
                }
            }
        }
        match self.fetch_and_write(leading, now, record).await {
            Ok(attempt) => attempt,
            Err(error) => {
                let lease = self.lock.describe();
                let error = &error as &(dyn std::error::Error + 'static);
                tracing::warn!(lease, error, "cannot acquire or renew the lease; the candidate tries again");
                Attempt::Failed
            }
        }
    }

    /// Reads the record before writing it (LE-08).
    async fn fetch_and_write(
        &self,
        leading: bool,
        now: Instant,
        mut record: Record,
    ) -> Result<Attempt, LockError> {
        let fetched = match self.answer(self.lock.get()).await {
            Ok(fetched) => fetched,
            Err(LockError::NotFound) if !leading && self.another_holds(now) => {
                return Ok(Attempt::HeldByAnother);
            }
            Err(LockError::NotFound) => {
                let sent = Instant::now();
                self.answer(self.lock.create(&record)).await?;
                return Ok(self.wrote(record, sent));
            }
            Err(error) => return Err(error),
        };
        let before = fetched.record.clone();
        let is_ours = before.holder_identity == self.lock.identity();
        {
            let mut observed = self.observed.lock();
            let was_interrupted = !before.holder_identity.is_empty()
                || before.leader_transitions != observed.record.leader_transitions;
            observed.fetched(fetched);
            if leading && !is_ours && was_interrupted {
                return Ok(Attempt::HeldByAnother);
            }
            if !before.holder_identity.is_empty() && !is_ours && observed.is_valid(now) {
                return Ok(Attempt::HeldByAnother);
            }
        }
        if is_ours {
            record.carry_on(&before);
            self.took_slow_path.store(true, Ordering::Relaxed);
        } else {
            // The update without reading it may have set the time of an earlier term (LE-10).
            record.acquire_time.clone_from(&record.renew_time);
            record.leader_transitions = before.leader_transitions.saturating_add(1);
        }
        let sent = Instant::now();
        self.answer(self.lock.update(&record)).await?;
        Ok(self.wrote(record, sent))
    }

    /// Releases the lease if the API server says that this candidate holds it (LE-13). Returns false if that
    /// fails.
    async fn release(&self) -> bool {
        let release = || async {
            let fetched = match self.answer(self.lock.get()).await {
                Ok(fetched) => fetched,
                Err(LockError::NotFound) => return Ok(()),
                Err(error) => return Err(error),
            };
            let transitions = fetched.record.leader_transitions;
            let is_ours = fetched.record.holder_identity == self.lock.identity();
            self.observed.lock().fetched(fetched);
            if is_ours {
                let record = Record::released(transitions, Timestamp::now());
                let sent = Instant::now();
                self.answer(self.lock.update(&record)).await?;
                self.wrote(record, sent);
            }
            Ok(())
        };
        let is_conflict = |error: &LockError| matches!(error, LockError::Conflict(_));
        let released = retry::on_error(&Steps::RETRY, is_conflict, release);
        let released = match timeout(self.config.renew_deadline, released).await {
            Ok(released) => released,
            Err(_) => Err(LockError::NoAnswer { within: self.config.renew_deadline }),
        };
        if let Err(error) = &released {
            let error = error as &(dyn std::error::Error + 'static);
            tracing::warn!(
                lease = self.lock.describe(),
                error,
                "cannot release the lease; others must wait until it expires"
            );
        }
        released.is_ok()
    }

    /// Limits the time of a request, so that there is time for a second try (LL-03).
    async fn answer<T>(&self, call: impl Future<Output = Result<T, LockError>>) -> Result<T, LockError> {
        let within = (self.config.renew_deadline / 2).max(SHORTEST_PATIENCE);
        timeout(within, call).await.unwrap_or(Err(LockError::NoAnswer { within }))
    }

    fn wrote(&self, record: Record, sent: Instant) -> Attempt {
        self.observed.lock().wrote(record, sent);
        Attempt::Holding
    }

    /// Returns the last observed record, if this candidate holds it and it has not expired.
    fn still_held(&self, now: Instant) -> Option<Record> {
        let observed = self.observed.lock();
        let is_held = observed.record.holder_identity == self.lock.identity() && observed.is_valid(now);
        is_held.then(|| observed.record.clone())
    }

    /// Returns whether another candidate holds the last observed record, and it has not expired. That one
    /// still works when its lease was deleted: it notices at its next renewal, and creates the lease again.
    fn another_holds(&self, now: Instant) -> bool {
        let observed = self.observed.lock();
        let holder = &observed.record.holder_identity;
        !holder.is_empty() && holder != self.lock.identity() && observed.is_valid(now)
    }

    /// Returns the moment until which this candidate relies on the last renewal.
    fn expires(&self) -> Instant {
        let renewed = self.observed.lock().renewed.unwrap_or_else(Instant::now);
        clock::after(renewed, self.config.relied_upon())
    }

    /// Reports what the last try found: a new holder once (LE-12), and whether it took the slow path.
    fn report_holder(&self, callbacks: &impl Callbacks) {
        if self.took_slow_path.swap(false, Ordering::Relaxed) {
            callbacks.on_slow_path();
        }
        // The callback may ask who leads: it is called without the lock.
        let leader = self.observed.lock().take_new_holder();
        if let Some(leader) = leader {
            tracing::info!(lease = self.lock.describe(), leader, "new leader");
            callbacks.on_new_leader(&leader);
        }
    }
}

// === impl Stop ===

impl<C: Callbacks> Stop<'_, C> {
    fn now(&mut self) {
        if !std::mem::replace(&mut self.done, true) {
            self.leading.cancel();
            self.callbacks.on_stopped_leading();
        }
    }
}

impl<C: Callbacks> Drop for Stop<'_, C> {
    fn drop(&mut self) {
        self.now();
    }
}

#[cfg(test)]
mod tests;
