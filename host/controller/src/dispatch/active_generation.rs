//! The active generation: its instance, its subscriptions, and its next step.

mod active_subscription;
mod alarm;
mod next_step;

use std::any::Any;
use std::sync::Arc;

use oarlock_informer::listener::ListenerHandle;
use tokio::time::Instant;

pub(super) use self::active_subscription::{ActiveSubscription, DeliveryState};
use self::alarm::Alarm;
use super::call::MakeInstance;
use super::calls::{Job, Work};
use super::crash_backoff::CrashBackoff;
use super::due_call::{CallKey, DueCall, EventVersion, Outcome};
use super::generation::{Generation, GenerationSubscription};
use super::health::GenerationHealth;
use super::lanes::{Lanes, Taken};
use super::parked::ParkedNotes;
use super::queue::{Keys, PluginQueue};
use super::retry::{Restarts, RetryPolicy};
use crate::access::Access;
use crate::generations::GenerationHandle;
use crate::plan::{Exported, SubscriptionPlan};
use crate::report::{HostEvent, Mode, Reporter};
use crate::status::{
    BacklogStats, PARKED_SHOWN, PluginStatusHandle, ReadBacklog, ReadQueue, SubscriptionStatus,
};
use crate::traces::Cause;

/// The generation that the dispatcher calls.
pub(super) struct ActiveGeneration {
    pub(super) number: u64,
    pub(super) exported: Exported,
    pub(super) reporter: Reporter,
    pub(super) subscriptions: Vec<ActiveSubscription>,
    pub(super) crash_backoff: CrashBackoff<CallKey, EventVersion>,
    pub(super) restarts: Restarts,
    pub(super) retry: RetryPolicy,
    pub(super) health: Arc<GenerationHealth>,
    pub(super) parked_notes: ParkedNotes,
    pub(super) lanes: Lanes,
    /// The lane that makes a call in crash back-off.
    pub(super) deferred_lane: Option<usize>,
    /// No call is made before those of the generations before have ended.
    pub(super) waits_for_drain: bool,
    pub(super) is_stateless: bool,
    maker: Arc<dyn MakeInstance>,
    /// The keys of the work queue, if there is a reconciler.
    keys: Option<Keys>,
    /// The subscription, or the work queue, that is polled first.
    turn: usize,
    /// When the slow timer fires; none while nothing is parked.
    parked_due: Option<Instant>,
    /// Writes the state of the generation.
    pub(super) progress: GenerationHandle,
    alarm: Alarm,
    /// The sampled event that has woken keys, which are queued next.
    pub(super) woken_by: Option<Cause>,
    woken: Woken,
    /// The work queue had no room for the key that was woken last.
    pub(super) was_full: bool,
    /// A time of the recent past, so that a busy dispatcher need not read the clock for its timers.
    latest: Instant,
    guards: Vec<Box<dyn Any + Send>>,
}

/// A generation that is not active any more, but has calls in progress.
pub(super) struct DrainingGeneration {
    pub(super) number: u64,
    pub(super) reporter: Reporter,
    pub(super) health: Arc<GenerationHealth>,
    /// The listeners of its subscriptions. Another generation may have inherited some.
    pub(super) listeners: Vec<ListenerHandle>,
    pub(super) n_calls: usize,
    pub(super) has_reconciler: bool,
    pub(super) progress: GenerationHandle,
    _guards: Vec<Box<dyn Any + Send>>,
}

/// What is to be done with the keys that were woken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Woken {
    None,
    ToQueue,
    /// The work queue was full.
    WaitForRoom,
}

/// The next step of the dispatcher.
pub(super) enum Step {
    /// The gate's decision about a subscription has changed.
    AccessChanged(usize),
    /// The slow timer has fired.
    RetryParked,
    /// It is time for a fresh instance.
    Restart,
    /// The last instance was dropped, since it was idle.
    BecameIdle,
    /// A call is due.
    Call(DueCall),
    /// A call in crash back-off is due.
    CallDeferred(CallKey),
}

// === impl ActiveGeneration ===

impl ActiveGeneration {
    /// Returns whether the generation is to inherit a listener that does not exist.
    pub(super) fn lacks_listener(old: Option<&Self>, generation: &Generation) -> bool {
        let exists = |plan: &SubscriptionPlan| {
            old.is_some_and(|old| old.subscriptions.iter().any(|it| it.plan.replaces(plan)))
        };
        generation.subscriptions.iter().any(
            |subscription| matches!(subscription, GenerationSubscription::InheritsListener(plan) if !exists(plan)),
        )
    }

    /// Makes a generation the active one. Returns the old one if calls of it are in progress.
    pub(super) fn replace(
        old: Option<Self>,
        generation: Generation,
        queue: &PluginQueue,
        leads: bool,
    ) -> (Self, Mode, Option<DrainingGeneration>) {
        let Generation {
            number,
            stateless: is_stateless,
            exported,
            retry,
            health,
            maker,
            instance,
            lanes,
            subscriptions,
            reporter,
            progress,
            guards,
            ..
        } = generation;
        let mode = match &old {
            None => Mode::First,
            Some(old) if old.is_stateless && is_stateless => Mode::TakeOver,
            Some(_) => Mode::Replay,
        };
        if let Some(old) = &old {
            old.progress.draining(number);
        }
        progress.serving();
        let (before, draining) = match old {
            None => (Vec::new(), None),
            Some(old) => {
                let draining = (old.lanes.n_busy() > 0).then(|| DrainingGeneration {
                    number: old.number,
                    reporter: old.reporter,
                    health: old.health,
                    listeners: old.subscriptions.iter().map(|it| it.listener.clone()).collect(),
                    n_calls: old.lanes.n_busy(),
                    has_reconciler: old.exported.reconciler,
                    progress: old.progress,
                    _guards: old.guards,
                });
                (old.subscriptions, draining)
            }
        };
        let now = Instant::now();
        let generation = Self {
            number,
            exported,
            reporter,
            subscriptions: replace_subscriptions(before, subscriptions, mode, leads, queue),
            crash_backoff: CrashBackoff::new(),
            restarts: Restarts::default(),
            retry,
            health,
            parked_notes: ParkedNotes::default(),
            lanes: Lanes::new(lanes, instance),
            deferred_lane: None,
            waits_for_drain: false,
            is_stateless,
            maker,
            keys: exported.reconciler.then(|| queue.keys()),
            turn: 0,
            parked_due: None,
            progress,
            alarm: Alarm::default(),
            woken_by: None,
            woken: Woken::None,
            was_full: false,
            latest: now,
            guards,
        };
        (generation, mode, draining)
    }

    /// Notes that keys were woken.
    pub(super) fn note_woken(&mut self) {
        self.woken = Woken::ToQueue;
    }

    /// Has the work queue not wake the dispatcher for keys that the dispatcher is about to add itself.
    pub(super) fn forget_key_waker(&mut self) {
        self.keys.iter_mut().for_each(Keys::forget_waker);
    }

    /// Notes that the work queue has no room for keys that were woken.
    pub(super) fn queue_is_full(&mut self) {
        self.woken = Woken::WaitForRoom;
        self.was_full = true;
    }

    /// Notes that the work queue may have room again.
    pub(super) fn queue_may_have_room(&mut self) {
        if self.woken == Woken::WaitForRoom {
            self.woken = Woken::ToQueue;
        }
    }

    /// Returns whether keys that were woken can be queued, once.
    pub(super) fn take_woken(&mut self) -> bool {
        let is_to_queue = self.woken == Woken::ToQueue;
        if is_to_queue {
            self.woken = Woken::None;
        }
        is_to_queue
    }

    /// Shows the subscriptions in the plugin's status, and reports each one that is open.
    pub(super) fn publish(&self, status: &PluginStatusHandle, queue: &PluginQueue) {
        let statuses = self.subscriptions.iter().map(|it| {
            let status = SubscriptionStatus {
                name: it.plan.name.clone(),
                resource: it.plan.resource.to_string(),
                namespaces: it.namespaces(),
                forbidden: None,
                paused: None,
                synced: it.is_synced(),
                backlog: BacklogStats::default(),
            };
            let handle = it.listener.clone();
            let read_backlog: ReadBacklog = Arc::new(move || {
                let stats = handle.stats();
                BacklogStats {
                    pending: (stats.pending + stats.in_flight) as u64,
                    parked: stats.parked as u64,
                    parked_objects: match stats.parked {
                        0 => Vec::new(),
                        _ => handle.parked().iter().take(PARKED_SHOWN).map(ToString::to_string).collect(),
                    },
                    delivered: stats.delivered,
                    merged: stats.merged,
                    oldest_ms: super::milliseconds(stats.oldest_age),
                }
            });
            (status, read_backlog)
        });
        let (queue, lanes) = (queue.clone(), self.lanes.len());
        let read_queue: Option<ReadQueue> =
            if self.exported.reconciler { Some(Arc::new(move || queue.stats(lanes))) } else { None };
        status.set_subscriptions(statuses.collect(), read_queue);
        for subscription in &self.subscriptions {
            self.report_opened(subscription);
        }
    }

    /// Applies the gate's latest decision about a subscription.
    pub(super) fn apply_access(&mut self, index: usize, status: &PluginStatusHandle) {
        // Calls that wait for a try may be about objects that are not visible any more.
        self.crash_backoff.forget_waiting(|key| key.subscription() == Some(index));
        let (access, state_before) = self.subscriptions[index].apply_access();
        let is_new_cause = self.subscriptions[index].note_cause(&access);
        let subscription = &self.subscriptions[index];
        let namespaces = subscription.namespaces();
        let (forbidden, paused) = match &access {
            Access::Allowed(_) => (None, None),
            Access::Forbidden(denial) => (Some(denial.to_string()), None),
            Access::Unknown(reason) => (None, Some(reason.clone())),
        };
        status.update(|status| {
            if let Some(status) = status.subscriptions.get_mut(index) {
                status.forbidden.clone_from(&forbidden);
                status.paused.clone_from(&paused);
                status.namespaces = namespaces;
            }
        });
        let (name, resource) = (subscription.plan.name.clone(), subscription.plan.resource.to_string());
        match access {
            Access::Allowed(_) => self.report_opened(subscription),
            Access::Unknown(message) if is_new_cause => {
                self.reporter.report(HostEvent::SubscriptionPaused { subscription: name, resource, message });
            }
            Access::Forbidden(denial) if state_before != DeliveryState::Forbidden => {
                self.reporter.report(HostEvent::SubscriptionForbidden {
                    subscription: name,
                    resource,
                    message: denial.to_string(),
                    hint: denial.hint().map(str::to_owned),
                });
            }
            Access::Unknown(_) | Access::Forbidden(_) => {}
        }
    }

    /// Opens the subscriptions, which were closed while the host was on standby. All objects that they see
    /// now are delivered as initial adds.
    pub(super) fn open(&mut self, status: &PluginStatusHandle) {
        for index in 0..self.subscriptions.len() {
            self.subscriptions[index].leave_standby();
            self.apply_access(index, status);
        }
    }

    /// Shows and reports that a subscription has synced: its `on-synced` call is done or parked.
    pub(super) fn announce_synced(&self, index: usize, status: &PluginStatusHandle) {
        status.update(|status| {
            if let Some(status) = status.subscriptions.get_mut(index) {
                status.synced = true;
            }
        });
        let subscription = self.subscriptions[index].plan.name.clone();
        let remaining = self.n_not_synced();
        self.reporter.report(HostEvent::SubscriptionSynced { subscription, remaining });
    }

    /// Returns how many subscriptions have not synced.
    pub(super) fn n_not_synced(&self) -> u32 {
        let n_not_synced = self.subscriptions.iter().filter(|it| !it.is_synced()).count();
        u32::try_from(n_not_synced).unwrap_or(u32::MAX)
    }

    /// Returns the job of a lane: to make an instance if it has none, and a call if there is work.
    pub(super) fn job(&self, taken: Taken, work: Option<Work>) -> Job {
        let Taken { lane, instance } = taken;
        Job { generation: self.number, lane, instance, maker: self.maker.clone(), work }
    }

    /// Frees the memory that is kept for the next notifications.
    pub(super) fn free_spare(&self) {
        self.subscriptions.iter().for_each(|it| it.listener.free_spare());
    }

    /// Begins the life of a fresh instance that replaces a lost one. Unless the plugin is stateless, it
    /// receives everything again.
    pub(super) fn restart(&mut self) -> Mode {
        if self.is_stateless {
            return Mode::TakeOver;
        }
        self.subscriptions.iter_mut().for_each(ActiveSubscription::restart);
        // The replay checks them again among all other objects.
        self.crash_backoff.forget_waiting(|key| key.subscription().is_some());
        Mode::Replay
    }

    /// Notes that something was parked, or is in crash back-off: the slow timer is to look after it.
    pub(super) fn expect_parked(&mut self) {
        if self.parked_due.is_none() {
            self.parked_due = Some(Instant::now() + self.retry.parked_again);
        }
    }

    /// Returns whether a call in progress is followed by another one, however it ends: it is not parked.
    pub(super) fn is_superseded(&self, due: &DueCall) -> bool {
        matches!(due, DueCall::Synced { subscription } if self.subscriptions[*subscription].is_synced_superseded())
    }

    /// Returns a due call that was taken and is not made: it is due again.
    pub(super) fn give_back(&mut self, due: &DueCall, queue: &PluginQueue) {
        match due {
            DueCall::Notification { subscription, delivery } => {
                self.subscriptions[*subscription].listener.abandon(&delivery.key);
            }
            DueCall::Synced { subscription } => {
                self.subscriptions[*subscription].finish_synced(Outcome::Cancelled);
            }
            DueCall::Key(key) => queue.finish(key, Outcome::Cancelled),
        }
    }

    /// Tries again what is parked, and returns how much that is. The slow timer calls this.
    pub(super) fn retry_parked(&mut self, queue: &PluginQueue) -> u64 {
        self.crash_backoff.release_parked(&self.retry);
        self.parked_due = None;
        if !self.crash_backoff.is_empty() {
            self.expect_parked();
        }
        let in_backlogs = self.subscriptions.iter_mut().map(ActiveSubscription::retry_parked).sum::<usize>();
        (in_backlogs + queue.retry_parked()) as u64
    }

    /// Takes a call out of crash back-off, with the current state of its object. `None` if the object or key
    /// is gone.
    pub(super) fn take_deferred(&mut self, key: CallKey, queue: &PluginQueue) -> Option<DueCall> {
        match key {
            CallKey::Object(subscription, key) => {
                let delivery = self.subscriptions[subscription].listener.take_deferred(&key)?;
                Some(DueCall::Notification { subscription, delivery })
            }
            CallKey::Synced(subscription) => {
                let is_deferred = self.subscriptions[subscription].take_deferred_synced();
                is_deferred.then_some(DueCall::Synced { subscription })
            }
            CallKey::Work(key) => queue.take_deferred(&key).then_some(DueCall::Key(key)),
        }
    }

    fn report_opened(&self, subscription: &ActiveSubscription) {
        if subscription.state == DeliveryState::Delivering {
            self.reporter.report(HostEvent::SubscriptionOpened {
                subscription: subscription.plan.name.clone(),
                resource: subscription.plan.resource.to_string(),
                namespaces: subscription.namespaces(),
            });
        }
    }
}

/// Pairs the subscriptions of a new generation with those before.
fn replace_subscriptions(
    mut before: Vec<ActiveSubscription>,
    after: Vec<GenerationSubscription>,
    mode: Mode,
    leads: bool,
    queue: &PluginQueue,
) -> Vec<ActiveSubscription> {
    let mut replaced = Vec::with_capacity(after.len());
    for subscription in after {
        let index = before.iter().position(|it| subscription.plan().replaces(&it.plan));
        let old = index.map(|index| before.swap_remove(index));
        match (subscription, old) {
            (GenerationSubscription::New(new), old) => {
                // Deletes that the old generation did not receive must not get lost, and no object may go
                // back to an earlier state. Another resource does not concern the new subscription.
                if let Some(old) = old.filter(|old| old.plan.resource == new.plan.resource) {
                    if !new.plan.has_rule_of(&old.plan) {
                        old.queue_waiting(queue);
                    }
                    if matches!(*new.access.borrow(), Access::Unknown(_)) {
                        // What waits stays until the decision, which sets the namespaces again.
                        new.listener.set_namespaces(old.listener.namespaces());
                    }
                    new.listener.begin_after(&old.listener);
                }
                replaced.push(ActiveSubscription::new(*new, leads));
            }
            (GenerationSubscription::InheritsListener(plan), Some(old)) => {
                replaced.push(old.inherit_listener(plan, mode));
            }
            // `replace` refuses such a generation.
            (GenerationSubscription::InheritsListener(_), None) => {}
        }
    }
    replaced
}
