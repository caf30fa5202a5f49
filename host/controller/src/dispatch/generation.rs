//! One loaded version of a plugin, ready to be switched to.

use std::any::Any;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::call::{Instance, MakeInstance};
use super::retry::RetryPolicy;
use crate::identity::Identity;
use crate::plan::{Exported, SubscriptionPlan};
use crate::report::Reporter;
use crate::subscriptions::Subscription;

/// One loaded version of a plugin: everything that is needed to serve, its first instance included.
pub(crate) struct Generation {
    pub(crate) number: u64,
    pub(crate) version: String,
    pub(crate) digest: String,
    pub(crate) identity: Identity,
    pub(crate) stateless: bool,
    pub(crate) exported: Exported,
    /// With the plugin's own numbers of tries.
    pub(crate) retry: RetryPolicy,
    pub(crate) maker: Arc<dyn MakeInstance>,
    pub(crate) instance: Box<dyn Instance>,
    pub(crate) subscriptions: Vec<Slot>,
    /// Bound to this generation.
    pub(crate) reporter: Reporter,
    /// When the files were looked at.
    pub(crate) began: Instant,
    /// What lives as long as the generation does.
    pub(crate) guards: Vec<Box<dyn Any + Send>>,
}

/// A generation on its way to the dispatcher.
pub(crate) struct Switch {
    pub(super) generation: Box<Generation>,
    /// Told when the generation serves.
    pub(super) done: oneshot::Sender<()>,
}

/// One subscription of a generation.
pub(crate) enum Slot {
    /// With a Listener of its own, which has been listening since before the switch.
    Open(Box<Subscription>),
    /// Goes on with the Listener of the generation before, whose subscription of that name asks for the same.
    GoesOn(Arc<SubscriptionPlan>),
}

/// What serves now, for those who prepare what comes next. Written at each switch.
#[derive(Default)]
pub(crate) struct Serving {
    view: Mutex<Option<Arc<View>>>,
}

/// What the generation that serves watches, and as whom.
pub(crate) struct View {
    pub(crate) number: u64,
    pub(crate) identity: Identity,
    pub(crate) subscriptions: Vec<Arc<SubscriptionPlan>>,
}

// === impl Generation ===

impl Generation {
    pub(super) fn view(&self) -> View {
        let plan = |slot: &Slot| match slot {
            Slot::Open(subscription) => subscription.plan.clone(),
            Slot::GoesOn(plan) => plan.clone(),
        };
        View {
            number: self.number,
            identity: self.identity.clone(),
            subscriptions: self.subscriptions.iter().map(plan).collect(),
        }
    }
}

// === impl Switch ===

impl Switch {
    /// Makes one, and what tells when it is done.
    pub(crate) fn new(generation: Generation) -> (Self, oneshot::Receiver<()>) {
        let (done, switched) = oneshot::channel();
        (Self { generation: Box::new(generation), done }, switched)
    }
}

// === impl Serving ===

impl Serving {
    /// Returns what serves now; none before the first generation.
    pub(crate) fn view(&self) -> Option<Arc<View>> {
        self.view.lock().clone()
    }

    pub(super) fn set(&self, view: View) {
        *self.view.lock() = Some(Arc::new(view));
    }
}

// === impl View ===

impl View {
    /// Whether a subscription of another version can go on with the Listener of this one.
    pub(crate) fn lends(&self, plan: &SubscriptionPlan, identity: &Identity) -> bool {
        identity.is(&self.identity) && self.identity.refusal().is_none() && self.has(plan)
    }

    /// Whether it has a subscription of that name which asks for the same.
    pub(crate) fn has(&self, plan: &SubscriptionPlan) -> bool {
        self.subscriptions.iter().any(|it| it.name == plan.name && plan.goes_on(it))
    }
}
