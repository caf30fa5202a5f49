//! Schedules: at the times that a plugin's description names, a key is added to the plugin's work queue.
//!
//! One task for each plugin runs the schedules of its active generation. A generation whose schedule is equal
//! to one of the generation before continues it. Nothing is kept on disk: times at which no generation served
//! are missed.
//!
//! **Intervals** are measured with the monotonic clock. **Wall-clock times** are looked up again at least
//! every [`LONGEST_SLEEP`], so that a clock that is set is noticed. A schedule fires a constant delay after
//! its time, which depends on the names of plugin and schedule, so that many plugins do not fire at once.

mod trigger;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};
use oarlock_plugin::contract::{self, WorkKey};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use self::trigger::Error;
use self::trigger::{At, Trigger};
use crate::dispatch::PluginQueue;

/// The longest time until the wall clock is read again.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// The longest delay of a schedule after its time.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// How far the clock has to be set back before times that have fired fire again.
const SET_BACK: SignedDuration = SignedDuration::from_hours(1);

/// One parsed schedule.
#[derive(Clone, Debug)]
pub(crate) struct SchedulePlan {
    trigger: Trigger,
    at_start: bool,
    key: WorkKey,
    /// The declaration that this was parsed from, to compare two generations.
    declaration: contract::Schedule,
}

/// The schedules of the active generation; empty before the first one.
pub(crate) type ActiveSchedules = watch::Sender<Arc<[SchedulePlan]>>;

/// Reads the time of day. Cheap to clone.
#[derive(Clone)]
pub struct WallClock {
    read: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    is_controlled: bool,
}

/// Runs the schedules of one plugin.
pub(crate) struct Runner {
    plugin: Arc<str>,
    queue: PluginQueue,
    plans: watch::Receiver<Arc<[SchedulePlan]>>,
    wall_clock: WallClock,
    running: Vec<Running>,
    /// Whether a generation has begun to serve.
    has_started: bool,
}

/// A schedule that runs.
struct Running {
    plan: SchedulePlan,
    delay: Duration,
    next: Next,
}

/// When a schedule fires next.
enum Next {
    In {
        interval: Duration,
        at: Instant,
    },
    At {
        times: Arc<At>,
        /// The time of the schedule, without the delay. None if there is no further time.
        at: Option<Timestamp>,
        /// When the wall clock was last read.
        read: Timestamp,
    },
}

// === impl WallClock ===

impl WallClock {
    /// Returns the clock of the machine.
    #[must_use]
    pub fn system() -> Self {
        Self { read: Arc::new(Timestamp::now), is_controlled: false }
    }

    /// Returns a clock that a test controls, as it does the runtime's clock. A time that the machine's clock
    /// cannot have is the last one.
    #[must_use]
    pub fn controlled(read: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        let read = move || Timestamp::try_from(read()).unwrap_or(Timestamp::MAX);
        Self { read: Arc::new(read), is_controlled: true }
    }

    pub(crate) fn is_controlled(&self) -> bool {
        self.is_controlled
    }

    fn now(&self) -> Timestamp {
        (self.read)()
    }
}

// === impl SchedulePlan ===

impl SchedulePlan {
    /// Parses one schedule.
    pub(crate) fn of(declaration: contract::Schedule) -> Result<Self, Error> {
        let contract::Schedule { name, trigger, at_start, key } = &declaration;
        let own_key = || WorkKey {
            kind: name.clone(),
            object: contract::ObjectKey { namespace: String::new(), name: String::new() },
        };
        Ok(Self {
            trigger: Trigger::of(trigger, Timestamp::now())?,
            at_start: *at_start,
            key: key.clone().unwrap_or_else(own_key),
            declaration,
        })
    }
}

// === impl Runner ===

impl Runner {
    /// Creates the runner of a plugin's schedules, and the sender for the schedules of its active generation.
    /// `has_started` is whether a generation without schedules has begun to serve before.
    pub(crate) fn new(
        plugin: Arc<str>,
        queue: PluginQueue,
        wall_clock: WallClock,
        has_started: bool,
    ) -> (Self, ActiveSchedules) {
        let (sender, plans) = watch::channel(Arc::from([]));
        (Self { plugin, queue, plans, wall_clock, running: Vec::new(), has_started }, sender)
    }

    /// Waits until the sender is dropped.
    pub(crate) fn abandoned(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut plans = self.plans.clone();
        async move { while plans.changed().await.is_ok() {} }
    }

    /// Adds keys until the token is cancelled, or the sender is dropped.
    pub(crate) async fn run(mut self, token: CancellationToken) {
        loop {
            let wake_at = self.fire();
            let sleep = async {
                match wake_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = token.cancelled() => return,
                changed = self.plans.changed() => match changed {
                    Ok(()) => self.apply(),
                    Err(_) => return,
                },
                () = sleep => {}
            }
        }
    }

    /// Takes over the schedules of a generation that has begun to serve.
    fn apply(&mut self) {
        let plans = self.plans.borrow_and_update().clone();
        let is_first = !std::mem::replace(&mut self.has_started, true);
        let mut before = std::mem::take(&mut self.running);
        for plan in plans.iter() {
            let continued = before.iter().position(|it| it.plan.declaration == plan.declaration);
            match continued {
                Some(index) => self.running.push(before.swap_remove(index)),
                None => {
                    if is_first && plan.at_start {
                        self.add(plan);
                    }
                    self.running.push(Running::new(plan.clone(), &self.plugin, self.wall_clock.now()));
                }
            }
        }
    }

    /// Adds the keys that are due. Returns when to look again.
    fn fire(&mut self) -> Option<Instant> {
        if self.running.is_empty() {
            return None;
        }
        let (now, wall_now) = (Instant::now(), self.wall_clock.now());
        let mut due = Vec::new();
        let mut wake_at: Option<Instant> = None;
        for (index, running) in self.running.iter_mut().enumerate() {
            if running.is_due(now, wall_now) {
                due.push(index);
            }
            let next = running.wake_at(now, wall_now);
            wake_at = wake_at.map_or(Some(next), |at| Some(at.min(next)));
        }
        due.into_iter().for_each(|index| self.add(&self.running[index].plan));
        wake_at
    }

    fn add(&self, plan: &SchedulePlan) {
        if let Err(error) = self.queue.add(plan.key.clone(), None) {
            let (plugin, schedule) = (&self.plugin, &plan.declaration.name);
            tracing::warn!(%plugin, %schedule, ?error, "a schedule's key was not added; the schedule goes on");
        }
    }
}

// === impl Running ===

impl Running {
    fn new(plan: SchedulePlan, plugin: &str, wall_now: Timestamp) -> Self {
        let most = match &plan.trigger {
            Trigger::Every(interval) => *interval,
            Trigger::At(_) => LONGEST_DELAY,
        };
        let delay = spread(plugin, &plan.declaration.name, most);
        let next = match &plan.trigger {
            // The first time is within one interval.
            Trigger::Every(interval) => Next::In { interval: *interval, at: Instant::now() + delay },
            Trigger::At(times) => Next::At { times: times.clone(), at: times.next(wall_now), read: wall_now },
        };
        Self { plan, delay, next }
    }

    /// Returns whether a time has come. Then the next one is the first after now: of several times that have
    /// passed, one fires.
    fn is_due(&mut self, now: Instant, wall_now: Timestamp) -> bool {
        let delay = SignedDuration::try_from(self.delay).unwrap_or_default();
        match &mut self.next {
            Next::In { interval, at } => {
                let is_due = *at <= now;
                if is_due {
                    let missed = now.duration_since(*at).as_nanos() / interval.as_nanos().max(1);
                    let n = u32::try_from(missed).unwrap_or(u32::MAX).saturating_add(1);
                    *at += interval.saturating_mul(n);
                }
                is_due
            }
            Next::At { times, at, read } => {
                let was_set_back = wall_now.duration_since(*read) < -SET_BACK;
                *read = if was_set_back { wall_now } else { wall_now.max(*read) };
                let is_due = at.is_some_and(|at| at + delay <= wall_now);
                if is_due || was_set_back {
                    // The delay is over, and the next time may be within it.
                    *at = times.next(wall_now.checked_sub(delay).unwrap_or(wall_now));
                }
                is_due
            }
        }
    }

    fn wake_at(&self, now: Instant, wall_now: Timestamp) -> Instant {
        match &self.next {
            Next::In { at, .. } => *at,
            Next::At { at, .. } => {
                let delay = SignedDuration::try_from(self.delay).unwrap_or_default();
                let until = at.map(|at| at.duration_since(wall_now).saturating_add(delay));
                // A duration below zero is over.
                let until = until.map(|it| Duration::try_from(it).unwrap_or_default());
                now + until.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP)
            }
        }
    }
}

/// Returns a duration above zero, and at most as long as given, that depends on the names alone.
fn spread(plugin: &str, schedule: &str, most: Duration) -> Duration {
    let mut hasher = DefaultHasher::new();
    (plugin, schedule).hash(&mut hasher);
    let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX).max(1);
    Duration::from_millis(hasher.finish() % most + 1)
}

#[cfg(test)]
mod tests;
