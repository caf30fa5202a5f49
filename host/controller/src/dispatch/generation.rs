//! One loaded version of a plugin, ready to be switched to.

use std::any::Any;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::call::{Instance, MakeInstance};
use super::health::GenerationHealth;
use super::lanes::LaneConfig;
use super::retry::RetryPolicy;
use crate::generations::GenerationHandle;
use crate::identity::Identity;
use crate::plan::{Exported, SubscriptionPlan};
use crate::report::{HostEvent, Reporter};
use crate::schedule::SchedulePlan;
use crate::subscriptions::Subscription;
use crate::write_settings::WriteSettings;

/// One loaded version of a plugin: everything that it needs to serve, its first instance included.
pub(crate) struct Generation {
    pub(crate) number: u64,
    pub(crate) version: String,
    pub(crate) digest: String,
    pub(crate) writes: WriteSettings,
    pub(crate) identity: Identity,
    pub(crate) stateless: bool,
    pub(crate) exported: Exported,
    /// The host's policy with the plugin's own numbers of tries.
    pub(crate) retry: RetryPolicy,
    /// The dispatcher counts the losses of the generation in it.
    pub(crate) health: Arc<GenerationHealth>,
    pub(crate) maker: Arc<dyn MakeInstance>,
    /// The first instance, which shows that instances can be made.
    pub(crate) instance: Box<dyn Instance>,
    pub(crate) lanes: LaneConfig,
    pub(crate) subscriptions: Vec<GenerationSubscription>,
    pub(crate) schedules: Arc<[SchedulePlan]>,
    /// Reports about this generation.
    pub(crate) reporter: Reporter,
    /// When its preparation began.
    pub(crate) began: Instant,
    /// Writes the state of the generation.
    pub(crate) progress: GenerationHandle,
    /// Live as long as the generation.
    pub(crate) guards: Vec<Box<dyn Any + Send>>,
}

/// Why the host goes back from a generation.
pub(crate) struct RollBack {
    /// The reason that its state names.
    pub(crate) reason: String,
    /// Reported about it when another generation serves.
    pub(crate) event: HostEvent,
}

/// A generation on its way to the dispatcher.
pub(crate) struct Switch {
    pub(super) generation: Box<Generation>,
    /// Given if the host goes back from the generation before, which is put in quarantine.
    pub(super) roll_back: Option<RollBack>,
    /// Receives a message when the generation is active.
    pub(super) done: oneshot::Sender<()>,
}

/// One subscription of a generation.
pub(crate) enum GenerationSubscription {
    /// It has a listener of its own, which has been listening since before the switch.
    New(Box<Subscription>),
    /// It inherits the listener of the generation before, whose subscription of the same name asks for the
    /// same objects.
    InheritsListener(Arc<SubscriptionPlan>),
}

/// The active generation of a plugin, for the task that prepares the next one. The dispatcher writes it at
/// each switch.
#[derive(Default)]
pub(crate) struct ActiveView {
    view: Mutex<Option<Arc<GenerationView>>>,
}

/// The watches of a generation, and the account that it acts as.
pub(crate) struct GenerationView {
    pub(crate) number: u64,
    pub(crate) identity: Identity,
    pub(crate) subscriptions: Vec<Arc<SubscriptionPlan>>,
}

// === impl Generation ===

impl Generation {
    pub(super) fn view(&self) -> GenerationView {
        GenerationView {
            number: self.number,
            identity: self.identity.clone(),
            subscriptions: self.subscriptions.iter().map(|it| it.plan().clone()).collect(),
        }
    }

    /// Returns the plans of the subscriptions that inherit their listener.
    pub(super) fn inherited(&self) -> Vec<Arc<SubscriptionPlan>> {
        let plan = |it: &GenerationSubscription| match it {
            GenerationSubscription::InheritsListener(plan) => Some(plan.clone()),
            GenerationSubscription::New(_) => None,
        };
        self.subscriptions.iter().filter_map(plan).collect()
    }
}

// === impl GenerationSubscription ===

impl GenerationSubscription {
    pub(super) fn plan(&self) -> &Arc<SubscriptionPlan> {
        match self {
            Self::New(subscription) => &subscription.plan,
            Self::InheritsListener(plan) => plan,
        }
    }
}

// === impl Switch ===

impl Switch {
    /// Creates a switch, and the receiver that is notified when it is done.
    pub(crate) fn new(generation: Generation) -> (Self, oneshot::Receiver<()>) {
        let (done, switched) = oneshot::channel();
        (Self { generation: Box::new(generation), roll_back: None, done }, switched)
    }

    /// Puts the generation before in quarantine, at the moment of the switch: one that goes on serving, since
    /// the switch is not made, is not.
    pub(crate) fn rolls_back(self, roll_back: RollBack) -> Self {
        Self { roll_back: Some(roll_back), ..self }
    }
}

// === impl ActiveView ===

impl ActiveView {
    /// Returns the active generation; `None` before the first one.
    pub(crate) fn get(&self) -> Option<Arc<GenerationView>> {
        self.view.lock().clone()
    }

    pub(super) fn set(&self, view: GenerationView) {
        *self.view.lock() = Some(Arc::new(view));
    }
}

// === impl GenerationView ===

impl GenerationView {
    /// Returns whether a subscription of the next generation can inherit a listener of this one: the account
    /// is the same and exists, and a subscription of the same name asks for the same objects.
    pub(crate) fn can_inherit_listener(&self, plan: &SubscriptionPlan, identity: &Identity) -> bool {
        let has_plan =
            || self.subscriptions.iter().any(|it| it.name == plan.name && plan.can_inherit_listener(it));
        identity.is(&self.identity) && self.identity.denial().is_none() && has_plan()
    }
}
