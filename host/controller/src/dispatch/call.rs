//! The second stage of the pipeline: makes one call of the instance.
//!
//! [`Instance`] is the seam behind which the component is; it enforces the deadline of the call.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use oarlock_informer::object::ShortText;
use oarlock_informer::{Notification, Object, listener::Delivery};
use oarlock_plugin::contract::{
    AddedArgument, DeletedArgument, Failure, ObjectRefArgument, Outcome, Synced, UpdatedArgument, WorkKey,
};
use oarlock_plugin::engine::Share;
use oarlock_plugin::{CallError, Component, InstanceConfig, kube_access::EventObject};
use tokio::time::Instant;

use super::Dispatcher;
use super::active_generation::ActiveGeneration;
use super::controlled_time::InControlledTime;
use super::declared_fields::Values;
use super::due_call::DueCall;
use super::event_view::EventView;
use super::queue::Key;
use crate::plan::SubscriptionPlan;
use crate::report::NotificationType;

/// A function of the contract and its arguments.
pub(crate) enum Call<'a> {
    Notification(NotificationCall<'a>),
    Synced(&'a Synced),
    Reconcile(&'a WorkKey),
}

/// A notification, and the values of the declared fields in its states.
pub(crate) struct NotificationCall<'a> {
    pub(super) plan: &'a SubscriptionPlan,
    pub(super) notification: &'a Notification,
    old: Values<'a>,
    new: Values<'a>,
}

/// The texts of a state that its object does not store as text.
struct StateTexts<'a> {
    object: &'a Object,
    uid: ShortText<'a>,
    resource_version: ShortText<'a>,
}

/// A plugin's answer to a call that succeeded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Answer {
    Done,
    RequeueAfter(Duration),
}

/// The answer to a call, or the loss of the instance.
pub(crate) type Answering = Result<Result<Answer, Failure>, CallError>;

/// A due call with its arguments, as far as the dispatcher prepares them.
pub(super) enum PreparedCall {
    /// The declared fields are found as part of the call.
    Notification {
        subscription: usize,
        delivery: Delivery,
        plan: Arc<SubscriptionPlan>,
    },
    Synced {
        subscription: usize,
        argument: Synced,
    },
    Key {
        key: Key,
        argument: WorkKey,
    },
}

/// An instance of a plugin. It handles one call at a time, and is dead after an `Err`.
#[async_trait]
pub(crate) trait Instance: Send {
    async fn call(&mut self, call: &Call<'_>) -> Answering;

    /// Returns when its newest call ended, if the instance has read the clock then.
    fn ended_at(&self) -> Option<Instant> {
        None
    }

    /// Returns the size of its linear memory.
    fn memory_bytes(&self) -> u64;
}

/// Makes instances of one generation of a plugin.
#[async_trait]
pub(crate) trait MakeInstance: Send + Sync {
    async fn make(&self) -> Result<Box<dyn Instance>, CallError>;

    /// Returns the plugin's share of the CPU, if the instances have one.
    fn share(&self) -> Option<&Share> {
        None
    }
}

/// Makes instances of a component.
pub(crate) struct Maker {
    pub(crate) component: Component,
    pub(crate) config: InstanceConfig,
    /// A test controls the runtime's clock.
    pub(crate) is_in_controlled_time: bool,
}

// === impl Dispatcher ===

impl Dispatcher {
    /// Prepares the arguments of a due call.
    pub(super) fn prepare_call(&self, active: &ActiveGeneration, due: DueCall, now: Instant) -> PreparedCall {
        match due {
            DueCall::Notification { subscription, delivery } => {
                if delivery.attempts == 0 {
                    self.metrics.waited(now.saturating_duration_since(delivery.arrived));
                }
                let plan = active.subscriptions[subscription].plan.clone();
                PreparedCall::Notification { subscription, delivery, plan }
            }
            DueCall::Synced { subscription } => PreparedCall::Synced {
                subscription,
                argument: Synced {
                    subscription: active.subscriptions[subscription].plan.name.clone(),
                    remaining: active.n_not_synced().saturating_sub(1),
                },
            },
            DueCall::Key(key) => {
                let argument = key.to_contract();
                PreparedCall::Key { key, argument }
            }
        }
    }
}

// === impl PreparedCall ===

impl PreparedCall {
    /// Returns the call with all its arguments.
    pub(super) async fn complete(&self) -> Call<'_> {
        match self {
            Self::Synced { argument, .. } => Call::Synced(argument),
            Self::Key { argument, .. } => Call::Reconcile(argument),
            Self::Notification { delivery, plan, .. } => {
                let Delivery { notification, fields, .. } = delivery;
                let old = Values::of(notification.old(), &plan.declared, fields.old.as_ref()).await;
                let new = Values::of(notification.new(), &plan.declared, fields.new.as_ref()).await;
                Call::Notification(NotificationCall { plan, notification, old, new })
            }
        }
    }

    /// Returns the due call that it is for.
    pub(super) fn into_due(self) -> DueCall {
        match self {
            Self::Notification { subscription, delivery, .. } => {
                DueCall::Notification { subscription, delivery }
            }
            Self::Synced { subscription, .. } => DueCall::Synced { subscription },
            Self::Key { key, .. } => DueCall::Key(key),
        }
    }
}

// === impl NotificationCall ===

impl NotificationCall<'_> {
    /// Calls the function for the notification, with texts that the notification holds.
    async fn make(&self, instance: &mut oarlock_plugin::Instance) -> Result<Result<(), Failure>, CallError> {
        let Self { plan, notification, old: old_values, new: new_values } = self;
        let subscription = plan.name.as_str();
        let view = |object: &Object| -> Arc<dyn EventObject> {
            Arc::new(EventView { object: object.clone(), content: plan.content })
        };
        match notification {
            Notification::Added { object, is_in_initial_list } => {
                let (texts, fields) = (StateTexts::of(object), new_values.texts());
                let added = AddedArgument {
                    subscription,
                    object: texts.reference(),
                    is_in_initial_list: *is_in_initial_list,
                    fields: &fields,
                };
                instance.on_add(&added, view(object)).await
            }
            Notification::Updated { old, new } => {
                let (texts, fields) = (StateTexts::of(new), new_values.texts());
                let (old_resource_version, old_fields) = (old.resource_version(), old_values.texts());
                let old_uid = (!old.has_uid_of(new)).then(|| old.uid());
                let updated = UpdatedArgument {
                    subscription,
                    object: texts.reference(),
                    old_resource_version: &old_resource_version,
                    old_uid: old_uid.as_deref(),
                    fields: &fields,
                    old_fields: &old_fields,
                };
                instance.on_update(&updated, view(old), view(new)).await
            }
            Notification::Deleted { object, final_state_unknown } => {
                let (texts, fields) = (StateTexts::of(object), old_values.texts());
                let deleted = DeletedArgument {
                    subscription,
                    object: texts.reference(),
                    final_state_unknown: *final_state_unknown,
                    fields: &fields,
                };
                instance.on_delete(&deleted, view(object)).await
            }
        }
    }
}

// === impl StateTexts ===

impl<'a> StateTexts<'a> {
    fn of(object: &'a Object) -> Self {
        Self { object, uid: object.uid(), resource_version: object.resource_version() }
    }

    fn reference(&self) -> ObjectRefArgument<'_> {
        let key = self.object.key();
        ObjectRefArgument {
            namespace: key.namespace(),
            name: key.name(),
            uid: &self.uid,
            resource_version: &self.resource_version,
        }
    }
}

/// Returns the type of a notification.
pub(crate) fn type_of(notification: &Notification) -> NotificationType {
    match notification {
        Notification::Added { .. } => NotificationType::Add,
        Notification::Updated { .. } => NotificationType::Update,
        Notification::Deleted { .. } => NotificationType::Delete,
    }
}

// === impl Maker ===

#[async_trait]
impl MakeInstance for Maker {
    async fn make(&self) -> Result<Box<dyn Instance>, CallError> {
        let instance = oarlock_plugin::Instance::new(&self.component, self.config.clone()).await?;
        Ok(if self.is_in_controlled_time { Box::new(InControlledTime(instance)) } else { Box::new(instance) })
    }

    fn share(&self) -> Option<&Share> {
        Some(&self.config.share)
    }
}

#[async_trait]
impl Instance for oarlock_plugin::Instance {
    fn ended_at(&self) -> Option<Instant> {
        oarlock_plugin::Instance::ended_at(self).map(Instant::from_std)
    }

    fn memory_bytes(&self) -> u64 {
        oarlock_plugin::Instance::memory_bytes(self)
    }

    async fn call(&mut self, call: &Call<'_>) -> Answering {
        let answer = match call {
            Call::Notification(call) => call.make(self).await?,
            Call::Synced(event) => self.on_synced(event).await?,
            Call::Reconcile(key) => {
                return Ok(self.reconcile(key).await?.map(|outcome| match outcome {
                    Outcome::Done => Answer::Done,
                    Outcome::RequeueAfter(ms) => Answer::RequeueAfter(Duration::from_millis(ms.into())),
                }));
            }
        };
        Ok(answer.map(|()| Answer::Done))
    }
}
