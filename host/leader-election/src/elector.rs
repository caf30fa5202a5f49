//! The election of one candidate: acquire, work and renew, release.

use std::{future::Future, pin::pin, time::Duration};

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

/// How much longer than the retry period a candidate waits at most, as a part of it.
pub(crate) const JITTER: f64 = 1.2;

/// The shortest time that an answer of the API server is waited for.
const SHORTEST_PATIENCE: Duration = Duration::from_secs(1);

/// What a candidate does when something changes. Nothing but [`on_started_leading`](Self::on_started_leading) may take long.
#[async_trait]
pub trait Callbacks: Send + Sync {
    /// The work. Called once leadership is won, and polled for as long as it lasts; `leading` is cancelled when it ends, and
    /// then the work has until the lease runs out before it is dropped. Returning earlier does not end leadership.
    async fn on_started_leading(&self, leading: CancellationToken);

    /// Called whenever [`LeaderElector::run`] ends, also of one that never led, and also when it is dropped: after `leading`
    /// was cancelled, without waiting for the work.
    fn on_stopped_leading(&self);

    /// Somebody else holds the lease than when this was last called; empty: nobody, since it was given back.
    fn on_new_leader(&self, _identity: &str) {}
}

/// One candidate.
pub struct LeaderElector<L> {
    lock: L,
    config: Config,
    observed: Mutex<Observed>,
    random: Mutex<SmallRng>,
}

/// Why an election is over for this candidate. It may run again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ended {
    /// It was asked to end before it led.
    NeverLed,
    /// It was asked to end while it led.
    Stopped,
    /// The lease could not be renewed, or another has it.
    Lost,
}

/// How one try to get or keep the lease went.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Attempt {
    Holding,
    HeldByAnother,
    Failed,
}

/// Cancels the work and tells of it, once, however the election ends.
struct Stop<'a, C: Callbacks> {
    callbacks: &'a C,
    leading: CancellationToken,
    done: bool,
}

// === impl LeaderElector ===

impl<L: Lock> LeaderElector<L> {
    /// Makes a candidate.
    pub fn new(lock: L, config: Config, random: SmallRng) -> Result<Self, ConfigError> {
        config.check()?;
        if lock.identity().is_empty() {
            return Err(ConfigError::NoIdentity);
        }
        Ok(Self { lock, config, observed: Mutex::default(), random: Mutex::new(random) })
    }

    /// Waits for leadership, does the work, and returns when leadership or the wish for it is over. Dropping the future
    /// instead cancels the work without giving the lease back.
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
            tracing::warn!(lease = self.lock.describe(), "the work did not end while the lease lasted");
        } else if self.config.release_on_cancel {
            self.release().await;
            self.tell(callbacks);
        }
        ended
    }

    /// Whether the record, as last seen, has our name in it. It says nothing about whether the lease still lasts.
    pub fn is_leader(&self) -> bool {
        self.observed.lock().record.holder_identity == self.lock.identity()
    }

    /// Returns who holds the lease as far as we know; empty if nobody.
    pub fn leader(&self) -> String {
        self.observed.lock().record.holder_identity.clone()
    }

    /// Fails when we believe to lead but have not seen the record change for longer than the lease and the tolerance: then
    /// the renewing is stuck, and the process should be restarted (LE-16).
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

    /// Tries until we hold the lease; false when asked to end before (LE-03).
    async fn acquire(&self, callbacks: &impl Callbacks, token: &CancellationToken) -> bool {
        loop {
            let attempt = tokio::select! {
                biased;
                () = token.cancelled() => return false,
                attempt = self.attempt(false) => attempt,
            };
            self.tell(callbacks);
            if attempt == Attempt::Holding {
                self.lock.record_event("became leader");
                tracing::info!(lease = self.lock.describe(), "became leader");
                return true;
            }
            let period = self.config.retry_period;
            let wait = period + period.mul_f64(JITTER * self.random.lock().random::<f64>());
            tokio::select! {
                biased;
                () = token.cancelled() => return false,
                () = sleep(wait) => {}
            }
        }
    }

    /// Renews until that fails for too long or somebody asks to end (LE-04).
    async fn renew(&self, callbacks: &impl Callbacks, token: &CancellationToken) -> Ended {
        loop {
            // With late answers the lease may run out before the deadline does.
            let deadline = clock::after(Instant::now(), self.config.renew_deadline).min(self.expires());
            let round = async {
                let mut tries = interval(self.config.retry_period);
                tries.set_missed_tick_behavior(MissedTickBehavior::Delay);
                loop {
                    tries.tick().await;
                    let attempt = self.attempt(true).await;
                    self.tell(callbacks);
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
        // The way that is right nearly always: nobody has changed the record since we did (LE-07).
        if let Some(own) = self.still_held(now) {
            record.carry_on(&own);
            match self.answer(self.lock.update(&record)).await {
                Ok(()) => return self.wrote(record, now),
                Err(error) => {
                    tracing::debug!(lease = self.lock.describe(), %error, "not renewed at once; looking at it")
                }
            }
        }
        match self.fetch_and_write(leading, now, record).await {
            Ok(attempt) => attempt,
            Err(error) => {
                let lease = self.lock.describe();
                let error = &error as &(dyn std::error::Error + 'static);
                tracing::warn!(lease, error, "cannot get hold of the lease");
                Attempt::Failed
            }
        }
    }

    /// Looks at the record before writing it (LE-08).
    async fn fetch_and_write(
        &self,
        leading: bool,
        now: Instant,
        mut record: Record,
    ) -> Result<Attempt, LockError> {
        let fetched = match self.answer(self.lock.get()).await {
            Ok(fetched) => fetched,
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
        } else {
            record.leader_transitions = before.leader_transitions.saturating_add(1);
        }
        let sent = Instant::now();
        self.answer(self.lock.update(&record)).await?;
        Ok(self.wrote(record, sent))
    }

    /// Gives the lease back if it is ours, whatever we believe (LE-13). True unless it is still ours afterwards.
    async fn release(&self) -> bool {
        let give_back = || async {
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
        let released = retry::on_error(&Steps::RETRY, is_conflict, give_back);
        let released = match timeout(self.config.renew_deadline, released).await {
            Ok(released) => released,
            Err(_) => Err(LockError::NoAnswer { within: self.config.renew_deadline }),
        };
        if let Err(error) = &released {
            let error = error as &(dyn std::error::Error + 'static);
            tracing::warn!(lease = self.lock.describe(), error, "the lease was not given back");
        }
        released.is_ok()
    }

    /// No answer is waited for so long that there is no time for a second try (LL-03).
    async fn answer<T>(&self, call: impl Future<Output = Result<T, LockError>>) -> Result<T, LockError> {
        let within = (self.config.renew_deadline / 2).max(SHORTEST_PATIENCE);
        timeout(within, call).await.unwrap_or(Err(LockError::NoAnswer { within }))
    }

    fn wrote(&self, record: Record, sent: Instant) -> Attempt {
        self.observed.lock().wrote(record, sent);
        Attempt::Holding
    }

    /// The record as we wrote or saw it, if it has our name and still lasts.
    fn still_held(&self, now: Instant) -> Option<Record> {
        let observed = self.observed.lock();
        let is_held = observed.record.holder_identity == self.lock.identity() && observed.is_valid(now);
        is_held.then(|| observed.record.clone())
    }

    /// When others may soon take the lease that we renewed last.
    fn expires(&self) -> Instant {
        let renewed = self.observed.lock().renewed.unwrap_or_else(Instant::now);
        clock::after(renewed, self.config.relied_upon())
    }

    /// Tells of a new holder, once (LE-12).
    fn tell(&self, callbacks: &impl Callbacks) {
        if let Some(leader) = self.observed.lock().news() {
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
