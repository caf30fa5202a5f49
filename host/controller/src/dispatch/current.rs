//! The generation that serves: its instance, its subscriptions, and what happens next.

mod next;
mod open;

use std::any::Any;
use std::sync::Arc;

use oarlock_informer::{Delivery, Namespaces, ObjectKey};
use tokio::time::Instant;

pub(super) use self::open::Open;
use self::open::{Door, names};
use super::call::{Instance, MakeInstance};
use super::generation::{Generation, Slot};
use super::queue::{self, PluginQueue};
use super::retry::{Restarts, RetryPolicy};
use super::suspects::Suspects;
use crate::plan::{Exported, SubscriptionPlan};
use crate::report::{HostEvent, Mode, Reporter};
use crate::status::{
    BacklogStats, PARKED_SHOWN, PluginStatusHandle, ReadBacklog, ReadQueue, SubscriptionStatus,
};
use crate::subscriptions::{Access, forbidden_hint};

/// The generation that serves.
pub(super) struct Current {
    pub(super) number: u64,
    pub(super) exported: Exported,
    pub(super) reporter: Reporter,
    pub(super) subscriptions: Vec<Open>,
    pub(super) suspects: Suspects<CallKey>,
    pub(super) restarts: Restarts,
    pub(super) retry: RetryPolicy,
    stateless: bool,
    maker: Arc<dyn MakeInstance>,
    life: Life,
    /// Which of those who have something waiting goes first, so that none starves.
    turn: usize,
    parked_due: Option<Instant>,
    _guards: Vec<Box<dyn Any + Send>>,
}

enum Life {
    Alive(Box<dyn Instance>),
    Lost { until: Instant },
}

/// What a call is for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum CallKey {
    /// An object, by the subscription's index.
    Object(usize, ObjectKey),
    /// The end of a subscription's initial adds.
    Synced(usize),
    /// A key of the work queue.
    Work(queue::Key),
}

/// What happens next.
pub(super) enum Step {
    /// A subscription's access has changed.
    Access(usize),
    /// The slow timer.
    RetryParked,
    /// It is time for a fresh instance.
    Restart,
    /// A subscription's initial adds are done.
    Synced(usize),
    Deliver(usize, Delivery),
    Reconcile(queue::Key),
    /// What cost an instance before is tried again, alone.
    Suspect(CallKey),
}

// === impl Current ===

impl Current {
    /// Makes the generation serve in place of the one before. Gives the old one back if it has not got what is to go on.
    pub(super) fn succeed(
        old: Option<Self>,
        generation: Generation,
    ) -> Result<(Self, Mode), Box<Option<Self>>> {
        let lacks = |plan: &SubscriptionPlan| {
            !old.as_ref().is_some_and(|old| old.subscriptions.iter().any(|it| it.plan.name == plan.name))
        };
        if generation.subscriptions.iter().any(|slot| matches!(slot, Slot::GoesOn(plan) if lacks(plan))) {
            return Err(Box::new(old));
        }
        let Generation {
            number,
            stateless,
            exported,
            retry,
            maker,
            instance,
            subscriptions,
            reporter,
            guards,
            ..
        } = generation;
        let mode = match &old {
            None => Mode::First,
            Some(old) if old.stateless && stateless => Mode::TakeOver,
            Some(_) => Mode::Replay,
        };
        let mut before = old.map(|old| old.subscriptions).unwrap_or_default();
        let mut opened = Vec::with_capacity(subscriptions.len());
        for slot in subscriptions {
            let name = match &slot {
                Slot::Open(subscription) => &subscription.plan.name,
                Slot::GoesOn(plan) => &plan.name,
            };
            let same =
                before.iter().position(|it| it.plan.name == *name).map(|index| before.swap_remove(index));
            match (slot, same) {
                (Slot::Open(subscription), same) => {
                    // Deletes that the old one was not told of yet must not get lost; another resource's are none of its business.
                    if let Some(same) = same.filter(|same| same.plan.resource == subscription.plan.resource) {
                        subscription.listener.inherit_deletes(same.listener);
                    }
                    opened.push(Open::new(*subscription));
                }
                (Slot::GoesOn(plan), Some(same)) => opened.push(same.go_on(plan, mode)),
                // Looked at above.
                (Slot::GoesOn(_), None) => {}
            }
        }
        let current = Self {
            number,
            exported,
            reporter,
            subscriptions: opened,
            suspects: Suspects::new(),
            restarts: Restarts::default(),
            retry,
            stateless,
            maker,
            life: Life::Alive(instance),
            turn: 0,
            parked_due: None,
            _guards: guards,
        };
        Ok((current, mode))
    }

    /// Writes the subscriptions to the status registry, and reports them.
    pub(super) fn show(&self, status: &PluginStatusHandle, queue: &PluginQueue) {
        let statuses = self.subscriptions.iter().map(|it| {
            let status = SubscriptionStatus {
                name: it.plan.name.clone(),
                resource: it.plan.resource.to_string(),
                namespaces: names(&it.listener.namespaces()),
                forbidden: None,
                synced: it.told_synced,
                backlog: BacklogStats::default(),
            };
            let handle = it.listener.handle();
            let read: ReadBacklog = Arc::new(move || {
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
            (status, read)
        });
        let queue = queue.clone();
        let read_queue: Option<ReadQueue> =
            if self.exported.reconciler { Some(Arc::new(move || queue.stats())) } else { None };
        status.set_subscriptions(statuses.collect(), read_queue);
        for it in &self.subscriptions {
            self.report_open(it);
        }
    }

    /// Takes over what the gate says now.
    pub(super) fn apply_access(&mut self, index: usize, status: &PluginStatusHandle) {
        let open = &mut self.subscriptions[index];
        let access = open.access.borrow_and_update().clone();
        let before = open.door;
        // What waits for a try of its own may not be visible any more.
        self.suspects.forget_waiting(|key| key.subscription() == Some(index));
        open.release_deferred();
        open.door = match &access {
            Access::Open(namespaces) => {
                open.listener.set_namespaces(namespaces.clone());
                Door::Open
            }
            Access::Unknown(_) => Door::Shut,
            Access::Forbidden(_) => {
                open.listener.set_namespaces(Namespaces::Only(Default::default()));
                Door::Forbidden
            }
        };
        let forbidden = match &access {
            Access::Open(_) => None,
            Access::Unknown(message) | Access::Forbidden(message) => Some(message.clone()),
        };
        let namespaces = names(&open.listener.namespaces());
        status.update(|status| {
            if let Some(status) = status.subscriptions.get_mut(index) {
                status.forbidden.clone_from(&forbidden);
                status.namespaces = namespaces;
            }
        });
        let open = &self.subscriptions[index];
        match access {
            Access::Open(_) => self.report_open(open),
            Access::Unknown(message) => self.reporter.report(HostEvent::SubscriptionPaused {
                subscription: open.plan.name.clone(),
                resource: open.plan.resource.to_string(),
                message,
            }),
            Access::Forbidden(message) if before != Door::Forbidden => {
                self.reporter.report(HostEvent::SubscriptionForbidden {
                    subscription: open.plan.name.clone(),
                    resource: open.plan.resource.to_string(),
                    message,
                    hint: forbidden_hint(),
                });
            }
            Access::Forbidden(_) => {}
        }
    }

    /// The plugin knows, or will never know, that a subscription's initial adds are done.
    pub(super) fn synced(&mut self, index: usize, remaining: u32, status: &PluginStatusHandle) {
        let open = &mut self.subscriptions[index];
        open.told_synced = true;
        open.synced_attempts = 0;
        let subscription = open.plan.name.clone();
        status.update(|status| {
            if let Some(status) = status.subscriptions.get_mut(index) {
                status.synced = true;
            }
        });
        self.reporter.report(HostEvent::SubscriptionSynced { subscription, remaining });
    }

    pub(super) fn instance(&mut self) -> Option<&mut Box<dyn Instance>> {
        match &mut self.life {
            Life::Alive(instance) => Some(instance),
            Life::Lost { .. } => None,
        }
    }

    /// Drops the instance; a fresh one is made when the time has come.
    pub(super) fn lose(&mut self, until: Instant) {
        self.life = Life::Lost { until };
    }

    /// What makes the next instance.
    pub(super) fn maker(&self) -> Arc<dyn MakeInstance> {
        self.maker.clone()
    }

    /// Goes on with a fresh instance, which knows nothing yet.
    pub(super) fn restarted(&mut self, instance: Box<dyn Instance>) -> Mode {
        self.life = Life::Alive(instance);
        if self.stateless {
            return Mode::TakeOver;
        }
        self.subscriptions.iter_mut().for_each(Open::start_over);
        // They are seen again among all others.
        self.suspects.forget_waiting(|key| key.subscription().is_some());
        Mode::Replay
    }

    /// The slow timer: what was given up is tried again.
    pub(super) fn retry_parked(&mut self, queue: &PluginQueue) {
        self.suspects.release_parked(&self.retry);
        self.subscriptions.iter_mut().for_each(Open::retry_parked);
        queue.retry_parked();
    }

    fn report_open(&self, open: &Open) {
        if open.door == Door::Open {
            self.reporter.report(HostEvent::SubscriptionOpened {
                subscription: open.plan.name.clone(),
                resource: open.plan.resource.to_string(),
                namespaces: names(&open.listener.namespaces()),
            });
        }
    }
}

// === impl CallKey ===

impl CallKey {
    /// The subscription that it is about, if it is about one.
    pub(super) fn subscription(&self) -> Option<usize> {
        match self {
            Self::Object(index, _) | Self::Synced(index) => Some(*index),
            Self::Work(_) => None,
        }
    }
}
