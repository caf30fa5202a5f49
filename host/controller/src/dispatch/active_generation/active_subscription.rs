//! One subscription of the active generation: its notifications, its access, and the state of its `on-synced`
//! call.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::stream::{self, BoxStream, StreamExt};
use oarlock_informer::{
    Listener,
    listener::{Delivery, ListenerHandle, Replayed},
    object::Namespaces,
};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::access::{Access, is_same_cause};
use crate::dispatch::PluginQueue;
use crate::dispatch::due_call::Outcome;
use crate::plan::SubscriptionPlan;
use crate::report::Mode;
use crate::subscriptions::Subscription;

/// How many causes of one pause are reported.
const MOST_CAUSES: usize = 8;

/// One subscription of the active generation.
pub(in crate::dispatch) struct ActiveSubscription {
    pub(in crate::dispatch) plan: Arc<SubscriptionPlan>,
    pub(in crate::dispatch) listener: ListenerHandle,
    pub(in crate::dispatch) state: DeliveryState,
    synced_call: SyncedCall,
    n_synced_failures: u32,
    /// How many notifications had merged when it last woke keys.
    n_merged: u64,
    access: watch::Receiver<Access>,
    /// Why the gate's decision is unknown, with what was the cause earlier in this pause.
    causes: Vec<String>,
    /// Boxed once, not at each turn of the dispatcher.
    signals: Signals,
    _informer_handle: Box<dyn Any + Send>,
}

/// Whether the subscription's notifications are delivered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::dispatch) enum DeliveryState {
    /// The account may read some namespaces: notifications are delivered.
    Delivering,
    /// The gate's decision is unknown: notifications wait.
    Closed,
    /// The account may read nothing: the listener sees no namespace.
    Forbidden,
    /// The host is on standby: the listener sees no namespace, so that its backlog stays empty.
    Standby,
}

/// The state of the `on-synced` call, which notifies the plugin that all initial adds are done.
#[derive(Clone, Copy, Debug)]
enum SyncedCall {
    /// The call was not answered with success yet. It is due once the listener has synced, but not before
    /// this time.
    Pending { not_before: Instant },
    /// The call is in progress.
    InProgress,
    /// The call is in progress, and since it began all objects are delivered again: another one follows.
    Superseded,
    /// The call cost the instance, and waits in crash back-off.
    Deferred,
    /// The plugin was notified.
    Done,
    /// The call failed too often; the slow timer tries it again. The subscription counts as synced.
    Parked,
}

/// The streams that an idle dispatcher polls.
struct Signals {
    notifications: BoxStream<'static, Delivery>,
    access_changed: BoxStream<'static, ()>,
    listener_synced: BoxStream<'static, ()>,
}

// === impl ActiveSubscription ===

impl ActiveSubscription {
    pub(super) fn new(subscription: Subscription, leads: bool) -> Self {
        let Subscription { plan, listener, mut access, informer_handle } = subscription;
        let decision = access.borrow_and_update().clone();
        let state = match decision {
            _ if !leads => {
                listener.set_namespaces(no_namespace());
                DeliveryState::Standby
            }
            Access::Allowed(namespaces) => {
                listener.set_namespaces(namespaces);
                DeliveryState::Delivering
            }
            Access::Forbidden(_) | Access::Unknown(_) => {
                // The dispatcher applies and reports it.
                access.mark_changed();
                DeliveryState::Closed
            }
        };
        // A lister that wakes has no such call.
        let synced_call = match plan.wakes {
            Some(_) => SyncedCall::Done,
            None => SyncedCall::Pending { not_before: Instant::now() },
        };
        Self {
            plan,
            listener: listener.handle(),
            state,
            synced_call,
            n_synced_failures: 0,
            n_merged: 0,
            signals: Signals::new(listener, access.clone()),
            access,
            causes: Vec::new(),
            _informer_handle: informer_handle,
        }
    }

    /// Serves another generation with the same listener.
    pub(super) fn inherit_listener(mut self, plan: Arc<SubscriptionPlan>, mode: Mode) -> Self {
        self.plan = plan;
        // The new generation reports them again.
        self.causes.clear();
        let is_allowed = matches!(*self.access.borrow(), Access::Allowed(_));
        if !is_allowed || !matches!(self.state, DeliveryState::Delivering | DeliveryState::Standby) {
            // The new generation's status shows it again.
            self.access.mark_changed();
        }
        if mode == Mode::TakeOver {
            self.release_deferred();
            self.retry_parked();
            self.listener.retry_backing_off();
            if !self.is_synced() {
                // The calls of the generation before count no more.
                self.reset_synced_call();
            }
        } else {
            self.restart();
        }
        self
    }

    /// Ends the standby. The listener sees what the account may read when the gate's decision is applied
    /// next.
    pub(super) fn leave_standby(&mut self) {
        self.causes.clear();
        if self.state == DeliveryState::Standby {
            self.state = DeliveryState::Closed;
        }
    }

    /// Delivers all objects again as initial adds, for an instance that knows nothing.
    pub(super) fn restart(&mut self) {
        // What an instance knew of a lister that wakes, it read.
        if self.plan.wakes.is_some() {
            return;
        }
        self.listener.replay();
        self.reset_synced_call();
    }

    /// Delivers all objects again as initial adds while the plugin goes on, and returns how many.
    pub(in crate::dispatch) fn deliver_existing(&mut self) -> Replayed {
        let is_synced_in_progress = self.is_synced_in_progress();
        let replayed = self.listener.replay();
        self.reset_synced_call();
        if is_synced_in_progress {
            self.synced_call = SyncedCall::Superseded;
        }
        replayed
    }

    /// Returns whether notifications have merged since the last question.
    pub(in crate::dispatch) fn has_merged(&mut self) -> bool {
        let n_merged = self.listener.stats().merged;
        std::mem::replace(&mut self.n_merged, n_merged) != n_merged
    }

    /// Tries again what is parked: objects, and the call of `on-synced`. Returns how much that is.
    pub(super) fn retry_parked(&mut self) -> usize {
        let n_objects = self.listener.retry_parked();
        let is_synced_parked = self.is_synced_parked();
        if is_synced_parked {
            self.reset_synced_call();
        }
        n_objects + usize::from(is_synced_parked)
    }

    /// Returns whether the `on-synced` call is parked.
    pub(in crate::dispatch) fn is_synced_parked(&self) -> bool {
        matches!(self.synced_call, SyncedCall::Parked)
    }

    /// Makes deferred notifications ready, to be checked again.
    pub(super) fn release_deferred(&mut self) {
        self.listener.release_deferred();
        self.take_deferred_synced();
    }

    /// Takes the `on-synced` call out of crash back-off. Returns whether it was in there.
    pub(in crate::dispatch) fn take_deferred_synced(&mut self) -> bool {
        let is_deferred = matches!(self.synced_call, SyncedCall::Deferred);
        if is_deferred {
            self.synced_call = SyncedCall::Pending { not_before: Instant::now() };
        }
        is_deferred
    }

    /// Applies the outcome of an `on-synced` call.
    pub(in crate::dispatch) fn finish_synced(&mut self, outcome: Outcome) {
        match outcome {
            _ if matches!(self.synced_call, SyncedCall::Superseded) => self.reset_synced_call(),
            Outcome::Done | Outcome::RequeueAfter(_) => {
                self.synced_call = SyncedCall::Done;
                self.n_synced_failures = 0;
            }
            Outcome::RetryAfter(after) => {
                self.synced_call = SyncedCall::Pending { not_before: Instant::now() + after };
                self.n_synced_failures = self.n_synced_failures.saturating_add(1);
            }
            Outcome::Defer => self.synced_call = SyncedCall::Deferred,
            Outcome::Park => {
                self.synced_call = SyncedCall::Parked;
                self.n_synced_failures = 0;
            }
            Outcome::Cancelled => self.synced_call = SyncedCall::Pending { not_before: Instant::now() },
        }
    }

    /// Notes that the `on-synced` call begins.
    pub(in crate::dispatch) fn begin_synced(&mut self) {
        self.synced_call = SyncedCall::InProgress;
    }

    /// Returns whether the `on-synced` call is in progress.
    pub(super) fn is_synced_in_progress(&self) -> bool {
        matches!(self.synced_call, SyncedCall::InProgress | SyncedCall::Superseded)
    }

    /// Returns whether another `on-synced` call follows the one in progress, however that ends.
    pub(super) fn is_synced_superseded(&self) -> bool {
        matches!(self.synced_call, SyncedCall::Superseded)
    }

    pub(in crate::dispatch) fn n_synced_failures(&self) -> u32 {
        self.n_synced_failures
    }

    /// Returns whether the plugin was notified that all initial adds are done, or that call is parked.
    pub(in crate::dispatch) fn is_synced(&self) -> bool {
        matches!(self.synced_call, SyncedCall::Done | SyncedCall::Parked)
    }

    /// Returns when the `on-synced` call is due; `None` while it is not.
    pub(super) fn synced_due(&self) -> Option<Instant> {
        match self.synced_call {
            SyncedCall::Pending { not_before }
                if self.state == DeliveryState::Delivering && self.listener.has_synced() =>
            {
                Some(not_before)
            }
            _ => None,
        }
    }

    pub(super) fn access_has_changed(&self) -> bool {
        self.access.has_changed().unwrap_or(false)
    }

    /// Applies the gate's latest decision to the listener, and returns it and the state before.
    pub(super) fn apply_access(&mut self) -> (Access, DeliveryState) {
        let access = self.access.borrow_and_update().clone();
        if self.state == DeliveryState::Standby {
            return (access, self.state);
        }
        self.release_deferred();
        let state = match &access {
            Access::Allowed(namespaces) => {
                self.listener.set_namespaces(namespaces.clone());
                DeliveryState::Delivering
            }
            Access::Unknown(_) => DeliveryState::Closed,
            Access::Forbidden(_) => {
                self.listener.set_namespaces(no_namespace());
                DeliveryState::Forbidden
            }
        };
        (access, std::mem::replace(&mut self.state, state))
    }

    /// Notes why the gate's decision is unknown, if it is. Returns whether that is to be reported: each cause
    /// once in a pause, since causes may alternate at each try.
    pub(super) fn note_cause(&mut self, access: &Access) -> bool {
        let Access::Unknown(cause) = access else {
            self.causes.clear();
            return false;
        };
        let is_new = !self.causes.iter().any(|it| is_same_cause(it, cause));
        let is_reported = is_new && self.causes.len() < MOST_CAUSES;
        if is_reported {
            self.causes.push(cause.clone());
        }
        is_reported
    }

    /// Polls for the next notification.
    pub(super) fn poll_notification(&mut self, cx: &mut Context<'_>) -> Poll<Delivery> {
        match self.state {
            DeliveryState::Closed | DeliveryState::Standby => Poll::Pending,
            DeliveryState::Delivering | DeliveryState::Forbidden => {
                poll_endless(&mut self.signals.notifications, cx)
            }
        }
    }

    /// Adds the keys that the changes which wait name to the work queue, before the rule changes.
    pub(super) fn queue_waiting(&self, queue: &PluginQueue) {
        let rule = &self.plan.enqueue;
        if rule.is_nothing() || self.state == DeliveryState::Forbidden {
            return;
        }
        for notification in self.listener.waiting_changes() {
            let version = notification.object().resource_version();
            let states = [notification.old(), notification.new()].into_iter().flatten();
            for key in states.filter_map(|state| rule.key(state)) {
                // A full queue refuses keys, as it does those of notifications.
                let _ = queue.add_for(key, &version, false, None);
            }
        }
    }

    /// Polls for a changed decision, and for the listener's sync while that is missing.
    pub(super) fn poll_change(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if poll_endless(&mut self.signals.access_changed, cx).is_ready() {
            return Poll::Ready(());
        }
        let awaits_sync =
            self.state == DeliveryState::Delivering && !self.is_synced() && !self.listener.has_synced();
        if awaits_sync { poll_endless(&mut self.signals.listener_synced, cx) } else { Poll::Pending }
    }

    /// Returns the namespaces that the listener sees, or will see after the standby; `None` for all.
    pub(super) fn namespaces(&self) -> Option<Vec<String>> {
        let seen = match (self.state, &*self.access.borrow()) {
            (DeliveryState::Standby, Access::Allowed(namespaces)) => namespaces.clone(),
            _ => self.listener.namespaces(),
        };
        match seen {
            Namespaces::All => None,
            Namespaces::Only(namespaces) => Some(namespaces.into_iter().collect()),
        }
    }

    fn reset_synced_call(&mut self) {
        self.synced_call = SyncedCall::Pending { not_before: Instant::now() };
        self.n_synced_failures = 0;
    }
}

// === impl Signals ===

impl Signals {
    fn new(listener: Listener, access: watch::Receiver<Access>) -> Self {
        let handle = listener.handle();
        let notifications = stream::unfold(listener, |mut listener| async move {
            // `None` once the informer has stopped; the plugin stops soon after it.
            Some((or_never(listener.next().await).await, listener))
        });
        let access_changed = stream::unfold(access, |mut access| async move {
            or_never(access.changed().await.ok()).await;
            Some(((), access))
        });
        let listener_synced = stream::unfold(handle, |handle| async move {
            or_never(handle.wait_for_sync().await.then_some(())).await;
            Some(((), handle))
        });
        Self {
            notifications: notifications.boxed(),
            access_changed: access_changed.boxed(),
            listener_synced: listener_synced.boxed(),
        }
    }
}

fn no_namespace() -> Namespaces {
    Namespaces::Only(BTreeSet::new())
}

/// Returns the value, or never.
async fn or_never<T>(value: Option<T>) -> T {
    match value {
        Some(value) => value,
        None => std::future::pending().await,
    }
}

/// Polls a stream that does not end.
fn poll_endless<T>(stream: &mut BoxStream<'static, T>, cx: &mut Context<'_>) -> Poll<T> {
    match stream.poll_next_unpin(cx) {
        Poll::Ready(Some(item)) => Poll::Ready(item),
        Poll::Ready(None) | Poll::Pending => Poll::Pending,
    }
}
