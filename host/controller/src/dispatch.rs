//! Calls one plugin.
//!
//! Every call is a [`DueCall`] (a notification, the end of initial adds, or a key of the work queue) and
//! passes one pipeline:
//!
//! ```text
//!   Listener ─┐
//!   Listener ─┼─► next_step ─► check ─► call ─► settle ─┬─► done, or requeued
//!   queue ────┘       ▲                on a lane          ├─► retried after a back-off, or parked
//!                     │                                   └─► instance lost: crash back-off, or parked
//!                     └── access changes, slow timer, restart, switch to another generation
//! ```
//!
//! A plugin has one [lane](lanes) with one instance, and one call in progress; a stateless plugin has as many
//! as its file says. Two calls about one object or key are never in progress at once ([`calls`]), across a
//! switch as well: the calls of the old generation end as they would have, while the new one begins with
//! other objects. If either of them is not stateless, the new one begins when those calls have ended.
//!
//! [`check`] decides by access, enqueue rule and crash back-off, [`call`] calls the instance, and [`settle`]
//! applies the answer or the [`loss`] of the instance.
//!
//! A plugin has one [`Dispatcher`] for its whole life, which calls one [`Generation`] after the other. A
//! failure delays one object or key ([`retry`]). A trap costs the instance, and the call that lost it is made
//! again alone and last ([`crash_backoff`], [`loss`]). The fresh instance of a stateful plugin receives
//! everything again, a stateless plugin continues where it was.
//!
//! The calls of one object are made in order, and so are those of one key. Between objects nothing is
//! promised. `on-synced` is called on any lane, after the answers to all initial adds of the subscription,
//! possibly beside calls for later events.

mod active_generation;
mod call;
mod calls;
mod check;
mod commands;
mod controlled_time;
mod crash_backoff;
mod declared_fields;
mod due_call;
mod ended;
mod enqueue;
mod event_view;
mod existing;
mod fault;
mod generation;
mod health;
mod lanes;
mod loss;
mod parked;
mod queue;
mod read_sets;
mod retry;
mod settle;
mod slice;
mod step;
mod switch;
mod trace;
mod waking;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::StreamExt;
use futures::channel::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::active_generation::{ActiveGeneration, DrainingGeneration, Step};
pub(crate) use self::call::{MakeInstance, Maker};
use self::calls::{Calls, Ended};
use self::commands::Command;
pub(crate) use self::commands::{Commands, Redeliver, RedeliverError, Resumption, Suspension};
pub(crate) use self::enqueue::EnqueueRule;
pub(crate) use self::existing::ExistingOf;
pub(crate) use self::fault::FaultHook;
pub(crate) use self::generation::{
    ActiveView, Generation, GenerationSubscription, GenerationView, RollBack, Switch,
};
pub(crate) use self::health::HealthView;
pub(crate) use self::lanes::LaneConfig;
pub(crate) use self::loss::LOSS_REASONS;
pub(crate) use self::parked::Parked;
pub(crate) use self::queue::PluginQueue;
pub(crate) use self::read_sets::{Read, ReadSets, Run, WakingLister};
pub use self::retry::{RestartPolicy, RetryPolicy};
pub(crate) use self::slice::BusyLimit;
use self::slice::Slice;
use crate::drain::Drain;
use crate::followed::{Followed, Follower};
use crate::kube_access::OwnWrites;
use crate::leadership::Leadership;
use crate::metrics::{Metrics, PluginMetrics};
use crate::report::{HostEvent, Reporter};
use crate::schedule::{ActiveSchedules, WallClock};
use crate::status::{Phase, PluginStatusHandle};
use crate::tasks::Tasks;
use crate::traces::Traces;

/// The parts that all dispatchers of the host share.
#[derive(Clone)]
pub(crate) struct DispatcherShared {
    pub(crate) metrics: Metrics,
    pub(crate) retry: RetryPolicy,
    pub(crate) restart: RestartPolicy,
    pub(crate) fault: FaultHook,
    pub(crate) wall_clock: WallClock,
    pub(crate) tasks: Tasks,
    pub(crate) busy_limit: BusyLimit,
    pub(crate) leadership: Leadership,
    pub(crate) drain: Drain,
    pub(crate) traces: Traces,
    pub(crate) reporter: Reporter,
}

/// Calls one plugin.
pub(crate) struct Dispatcher {
    plugin: Arc<str>,
    shared: DispatcherShared,
    metrics: Arc<PluginMetrics>,
    status: PluginStatusHandle,
    queue: PluginQueue,
    /// A channel of `futures`, as for the commands: an empty one of tokio has room for 32 messages.
    switches: mpsc::Receiver<Switch>,
    commands: mpsc::Receiver<Command>,
    active_view: Arc<ActiveView>,
    own_writes: OwnWrites,
    /// Runs the schedules, once a generation has some.
    schedules: Option<ActiveSchedules>,
    /// A user has stopped the calls.
    is_suspended: bool,
    /// The plugin's definition stops the calls.
    is_declared_suspended: bool,
    /// The two together, for the task that watches the probation.
    suspension: Followed<Suspension>,
    /// The host leads, so that its plugins may be called.
    leads: bool,
    n_turns: u32,
}

/// What the dispatcher does next.
enum Next {
    Stop,
    Lead,
    Switch(Switch),
    Command(Command),
    Ended(Ended),
    /// Keys that were woken can be queued.
    QueueWoken,
    Step(Step),
}

/// A busy dispatcher looks once in so many turns for a switch, a command and its end.
const CONTROL_INTERVAL: u32 = 8;

/// What the rest of the host does with a dispatcher.
pub(crate) struct DispatcherHandle {
    /// Takes the next generation.
    pub(crate) switches: mpsc::Sender<Switch>,
    /// The active generation.
    pub(crate) active: Arc<ActiveView>,
    pub(crate) commands: Commands,
    /// Whether a user or the plugin's definition stops its calls.
    pub(crate) suspension: Follower<Suspension>,
}

// === impl Dispatcher ===

impl Dispatcher {
    /// Creates a dispatcher that waits for the plugin's first generation.
    pub(crate) fn new(
        plugin: Arc<str>,
        shared: DispatcherShared,
        status: PluginStatusHandle,
        queue: PluginQueue,
        own_writes: OwnWrites,
    ) -> (Self, DispatcherHandle) {
        let (sender, switches) = mpsc::channel(0);
        let (commands_handle, commands) = Commands::new();
        let active_view = Arc::new(ActiveView::default());
        let metrics = shared.metrics.plugin(&plugin);
        let suspension = Followed::<Suspension>::default();
        let leads = shared.leadership.leads();
        let handle = DispatcherHandle {
            switches: sender,
            active: active_view.clone(),
            commands: commands_handle,
            suspension: suspension.follower(),
        };
        let dispatcher = Self {
            plugin,
            shared,
            metrics,
            status,
            queue,
            switches,
            commands,
            active_view,
            own_writes,
            schedules: None,
            is_suspended: false,
            is_declared_suspended: false,
            suspension,
            leads,
            n_turns: 0,
        };
        (dispatcher, handle)
    }

    /// Has an operator's suspension from the beginning.
    pub(crate) fn suspended(mut self) -> Self {
        self.is_suspended = true;
        self.suspension.update(|it| *it = Suspension { is_suspended: true, by_operator: true, times: 1 });
        self
    }

    /// Calls the plugin until the token is cancelled. Calls that are in progress then may end within the time
    /// of the [`Drain`]. On standby it calls nothing.
    #[expect(clippy::manual_async_fn, reason = "an async function has each of its arguments twice")]
    pub(crate) fn run(mut self, token: CancellationToken) -> impl Future<Output = ()> + Send {
        async move {
            let drain = self.shared.drain.clone();
            let _running = drain.begin();
            let mut cancelled = pin!(token.cancelled());
            let leadership = self.shared.leadership.clone();
            let mut led = pin!(leadership.led());
            let mut active: Option<ActiveGeneration> = None;
            let mut draining: Vec<DrainingGeneration> = Vec::new();
            let mut calls = Calls::new(self.shared.tasks.clone());
            let mut slice = Slice::new(self.shared.busy_limit.clone());
            loop {
                let next = poll_fn(|cx| {
                    let (cancelled, led) = (cancelled.as_mut(), led.as_mut());
                    let polled = self.poll_next(cx, cancelled, led, active.as_mut(), &mut calls, &mut slice);
                    match &polled {
                        // It waits for a slice, not for work.
                        _ if !slice.has_begun() => calls.slice_is_awaited(),
                        Poll::Ready(_) => slice.turned(),
                        Poll::Pending => {
                            slice.dispatcher_waits(calls.slice_owner());
                            calls.pass_permit_on();
                        }
                    }
                    polled
                });
                let next = next.await;
                if !matches!(next, Next::QueueWoken) {
                    active.iter_mut().for_each(ActiveGeneration::queue_may_have_room);
                }
                // No arm awaits, so the task keeps no room for `Next`.
                match next {
                    Next::Stop => break,
                    Next::Lead => self.lead(active.as_mut()),
                    Next::Ended(ended) => {
                        // One on another thread may have ended long ago.
                        slice.reached(if ended.is_inline { ended.at } else { Instant::now() });
                        self.ended(active.as_mut(), &mut draining, &mut calls, ended);
                    }
                    Next::Step(step) => {
                        if let Some(active) = &mut active {
                            self.take_step(active, &mut calls, step, slice.take_recent());
                        }
                    }
                    Next::Command(command) => self.obey(active.as_mut(), command),
                    Next::Switch(Switch { generation, roll_back, done }) => {
                        let has_switched;
                        (active, has_switched) =
                            self.switch(active, &mut draining, &mut calls, *generation, roll_back);
                        if has_switched {
                            // The task that prepared it may have ended.
                            let _ = done.send(());
                            active.iter_mut().for_each(ActiveGeneration::note_woken);
                        }
                    }
                    Next::QueueWoken => {
                        if let Some(active) = &mut active {
                            self.queue_woken(active, &mut slice);
                        }
                    }
                }
                if slice.is_over() {
                    calls.pass_permit_on();
                    slice.end(calls.slice_owner());
                }
            }
            // Its permits are for others, while the last calls end.
            drop(slice);
            calls.pass_permit_on();
            let ending = async {
                while !calls.is_empty() {
                    let ended = poll_fn(|cx| {
                        calls.pass_permit_on();
                        calls.poll_ended(cx)
                    });
                    let ended = ended.await;
                    self.ended(active.as_mut(), &mut draining, &mut calls, ended);
                }
            };
            // A host that has lost the Lease waits for nothing: another one may call the plugin already.
            let limit = if leadership.has_ended() { Duration::ZERO } else { drain.timeout() };
            // In a box: the task has no room for it while it runs.
            let ended = Box::pin(tokio::time::timeout(limit, ending)).await;
            // The calls that have not ended by then are dropped, and their instances with them.
            if ended.is_err() {
                drain.dropped(calls.len());
                if let Some(active) = &active {
                    let calls = calls.len() as u64;
                    active.reporter.report(HostEvent::CallsDropped { calls, after_ms: milliseconds(limit) });
                }
            }
        }
    }

    /// Begins to call the plugin, after the host was on standby.
    fn lead(&mut self, active: Option<&mut ActiveGeneration>) {
        self.leads = true;
        let mut active = active;
        if let Some(active) = &mut active {
            active.open(&self.status);
        }
        self.show_phase(active.as_deref());
    }

    /// Polls for what comes next: the end of a call, a step of the active generation, or what the rest of the
    /// host wants. It looks for the latter at intervals, when there is nothing else, and while the dispatcher
    /// waits for its slice.
    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        cancelled: Pin<&mut impl Future<Output = ()>>,
        led: Pin<&mut impl Future<Output = ()>>,
        active: Option<&mut ActiveGeneration>,
        calls: &mut Calls,
        slice: &mut Slice,
    ) -> Poll<Next> {
        self.n_turns = self.n_turns.wrapping_add(1);
        let is_at_interval = self.n_turns.is_multiple_of(CONTROL_INTERVAL);
        let mut control = Some((cancelled, led));
        if (is_at_interval || !slice.has_begun())
            && let Some((cancelled, led)) = control.take()
            && let Poll::Ready(next) = self.poll_control(cx, cancelled, led)
        {
            return Poll::Ready(next);
        }
        ready!(slice.poll_begun(cx));
        let mut active = active;
        if active.as_mut().is_some_and(|active| active.take_woken()) {
            return Poll::Ready(Next::QueueWoken);
        }
        if let Poll::Ready(ended) = calls.poll_ended(cx) {
            return Poll::Ready(Next::Ended(ended));
        }
        if let Some(active) = active
            && let Poll::Ready(step) = active.poll_step(cx, self.may_call())
        {
            return Poll::Ready(Next::Step(step));
        }
        match control {
            Some((cancelled, led)) => self.poll_control(cx, cancelled, led),
            // It was polled above.
            None => Poll::Pending,
        }
    }

    fn poll_control(
        &mut self,
        cx: &mut Context<'_>,
        cancelled: Pin<&mut impl Future<Output = ()>>,
        led: Pin<&mut impl Future<Output = ()>>,
    ) -> Poll<Next> {
        if cancelled.poll(cx).is_ready() {
            return Poll::Ready(Next::Stop);
        }
        if !self.leads && led.poll(cx).is_ready() {
            return Poll::Ready(Next::Lead);
        }
        if let Poll::Ready(Some(switch)) = self.switches.poll_next_unpin(cx) {
            return Poll::Ready(Next::Switch(switch));
        }
        if let Poll::Ready(Some(command)) = self.commands.poll_next_unpin(cx) {
            return Poll::Ready(Next::Command(command));
        }
        Poll::Pending
    }

    /// Returns whether the plugin may be called: the host leads, and no user has suspended the plugin.
    fn may_call(&self) -> bool {
        self.leads && !self.is_suspended() && self.shared.leadership.leads()
    }

    fn is_suspended(&self) -> bool {
        self.is_suspended || self.is_declared_suspended
    }

    fn show_phase(&self, active: Option<&ActiveGeneration>) {
        let phase = match active {
            _ if self.is_suspended() => Phase::Suspended,
            None => Phase::Loading,
            Some(_) if !self.leads => Phase::Standby,
            Some(active) if active.lanes.serve() => Phase::Serving,
            Some(_) => Phase::Restarting,
        };
        self.status.update(|status| status.phase = phase);
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
