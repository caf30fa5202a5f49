//! One subscription of the generation that serves.

use std::any::Any;
use std::sync::Arc;

use oarlock_informer::{Listener, Namespaces};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::plan::SubscriptionPlan;
use crate::report::Mode;
use crate::subscriptions::{Access, Subscription};

/// One subscription of it.
pub(in crate::dispatch) struct Open {
    pub(in crate::dispatch) plan: Arc<SubscriptionPlan>,
    pub(in crate::dispatch) listener: Listener,
    /// The plugin knows that it has seen everything there was.
    pub(in crate::dispatch) told_synced: bool,
    pub(in crate::dispatch) synced_attempts: u32,
    /// Telling it so failed too often: the slow timer tries again.
    pub(in crate::dispatch) synced_parked: bool,
    /// The call that says so cost the instance: it is made when the suspects have their turn.
    pub(in crate::dispatch) synced_deferred: bool,
    /// It is not told so before.
    pub(in crate::dispatch) tell_after: Instant,
    pub(super) access: watch::Receiver<Access>,
    pub(super) door: Door,
    _guards: Vec<Box<dyn Any + Send>>,
}

/// Whether notifications may pass.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Door {
    Open,
    /// Nobody can say whether they may.
    Shut,
    /// They may not.
    Forbidden,
}

// === impl Open ===

impl Open {
    pub(super) fn new(subscription: Subscription) -> Self {
        let Subscription { plan, listener, mut access, guards } = subscription;
        let seen = access.borrow_and_update().clone();
        let door = match seen {
            Access::Open(namespaces) => {
                listener.set_namespaces(namespaces);
                Door::Open
            }
            Access::Unknown(_) | Access::Forbidden(_) => {
                access.mark_changed();
                Door::Shut
            }
        };
        Self {
            plan,
            listener,
            told_synced: false,
            synced_attempts: 0,
            synced_parked: false,
            synced_deferred: false,
            tell_after: Instant::now(),
            access,
            door,
            _guards: guards,
        }
    }

    /// Serves another generation, with the Listener that there is.
    pub(super) fn go_on(mut self, plan: Arc<SubscriptionPlan>, mode: Mode) -> Self {
        self.plan = plan;
        if self.door != Door::Open {
            // The switch overwrites the status: the closed state has to be written again.
            self.access.mark_changed();
        }
        if mode == Mode::TakeOver {
            self.release_deferred();
            self.retry_parked();
        } else {
            self.start_over();
        }
        self
    }

    pub(super) fn start_over(&mut self) {
        self.listener.replay();
        self.told_synced = false;
        self.synced_attempts = 0;
        self.synced_parked = false;
        self.synced_deferred = false;
        self.tell_after = Instant::now();
    }

    /// Tries again what was given up: dead letters, and the word that the initial adds are done.
    pub(in crate::dispatch) fn retry_parked(&mut self) {
        self.listener.retry_parked();
        if std::mem::take(&mut self.synced_parked) {
            self.told_synced = false;
            self.synced_attempts = 0;
            self.tell_after = Instant::now();
        }
    }

    /// Makes what was deferred wait like all others, to be judged anew.
    pub(super) fn release_deferred(&mut self) {
        self.listener.release_deferred();
        self.synced_deferred = false;
    }

    pub(super) fn is_to_be_told(&self, now: Instant) -> bool {
        self.due().is_some_and(|due| due <= now)
    }

    /// When the plugin is to be told that the initial adds are done, if they are and it was not.
    pub(super) fn due(&self) -> Option<Instant> {
        let is_due = !self.told_synced
            && !self.synced_deferred
            && self.door == Door::Open
            && self.listener.has_synced();
        is_due.then_some(self.tell_after)
    }
}

pub(super) fn names(namespaces: &Namespaces) -> Option<Vec<String>> {
    match namespaces {
        Namespaces::All => None,
        Namespaces::Only(namespaces) => Some(namespaces.iter().cloned().collect()),
    }
}
