//! The second stage of the pipeline: makes one call of the instance.
//!
//! [`Instance`] is the seam behind which the component is; it enforces the deadline of the call.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use oarlock_informer::{Notification, Object, listener::NotificationFields};
use oarlock_plugin::contract::{Added, Deleted, Failure, ObjectRef, Outcome, Synced, Updated, WorkKey};
use oarlock_plugin::{CallError, Component, InstanceConfig, kube_access::EventObject};
use tokio::time::Instant;

use super::Dispatcher;
use super::active_generation::ActiveGeneration;
use super::declared_fields;
use super::due_call::DueCall;
use super::event_view::EventView;
use crate::plan::SubscriptionPlan;
use crate::report::NotificationType;

/// A function of the contract and its arguments.
pub(crate) enum Call {
    Add(Added, EventView),
    Update(Updated, EventView, EventView),
    Delete(Deleted, EventView),
    Synced(Synced),
    Reconcile(WorkKey),
}

/// A plugin's answer to a call that succeeded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Answer {
    Done,
    RequeueAfter(Duration),
}

/// The answer to a call, or the loss of the instance.
pub(crate) type Answering = Result<Result<Answer, Failure>, CallError>;

/// The arguments of a call, as far as the dispatcher prepares them.
pub(super) enum PreparedCall {
    Synced(Synced),
    Reconcile(WorkKey),
    /// The declared fields are found as part of the call.
    Notification(Arc<SubscriptionPlan>, Notification, NotificationFields),
}

/// An instance of a plugin. It handles one call at a time, and is dead after an `Err`.
#[async_trait]
pub(crate) trait Instance: Send {
    async fn call(&mut self, call: &Call) -> Answering;

    /// Returns the size of its linear memory.
    fn memory_bytes(&self) -> u64;
}

/// Makes instances of one generation of a plugin.
#[async_trait]
pub(crate) trait MakeInstance: Send + Sync {
    async fn make(&self) -> Result<Box<dyn Instance>, CallError>;
}

/// Makes instances of a component.
pub(crate) struct Maker {
    pub(crate) component: Component,
    pub(crate) config: InstanceConfig,
}

// === impl Dispatcher ===

impl Dispatcher {
    /// Prepares the arguments of a due call.
    pub(super) fn prepare_call(
        &self,
        active: &ActiveGeneration,
        due: &DueCall,
        now: Instant,
    ) -> PreparedCall {
        match due {
            DueCall::Notification { subscription, delivery } => {
                if delivery.attempts == 0 {
                    self.metrics.waited(now.saturating_duration_since(delivery.arrived));
                }
                let plan = active.subscriptions[*subscription].plan.clone();
                PreparedCall::Notification(plan, delivery.notification.clone(), delivery.fields.clone())
            }
            DueCall::Synced { subscription } => PreparedCall::Synced(Synced {
                subscription: active.subscriptions[*subscription].plan.name.clone(),
                remaining: active.n_not_synced().saturating_sub(1),
            }),
            DueCall::Key(key) => PreparedCall::Reconcile(key.to_contract()),
        }
    }
}

// === impl PreparedCall ===

impl PreparedCall {
    pub(super) async fn into_call(self) -> Call {
        match self {
            Self::Synced(synced) => Call::Synced(synced),
            Self::Reconcile(key) => Call::Reconcile(key),
            Self::Notification(plan, notification, fields) => {
                Call::notification(&plan, &notification, &fields).await
            }
        }
    }
}

// === impl Call ===

impl Call {
    /// Creates the call for a notification, with the fields that the subscription declares.
    pub(crate) async fn notification(
        plan: &SubscriptionPlan,
        notification: &Notification,
        found: &NotificationFields,
    ) -> Self {
        let subscription = plan.name.clone();
        let fields = &plan.declared;
        let (old_found, new_found) = (found.old.as_ref(), found.new.as_ref());
        let view = |object: &Object| EventView { object: object.clone(), content: plan.content };
        match notification {
            Notification::Added { object, is_in_initial_list } => {
                let added = Added {
                    subscription,
                    object: reference(object),
                    is_in_initial_list: *is_in_initial_list,
                    fields: declared_fields::values(object, fields, new_found).await,
                };
                Self::Add(added, view(object))
            }
            Notification::Updated { old, new } => {
                let updated = Updated {
                    subscription,
                    object: reference(new),
                    old: reference(old),
                    fields: declared_fields::values(new, fields, new_found).await,
                    old_fields: declared_fields::values(old, fields, old_found).await,
                };
                Self::Update(updated, view(old), view(new))
            }
            Notification::Deleted { object, final_state_unknown } => {
                let deleted = Deleted {
                    subscription,
                    object: reference(object),
                    final_state_unknown: *final_state_unknown,
                    fields: declared_fields::values(object, fields, old_found).await,
                };
                Self::Delete(deleted, view(object))
            }
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

fn reference(object: &Object) -> ObjectRef {
    ObjectRef {
        namespace: object.key().namespace().to_owned(),
        name: object.key().name().to_owned(),
        uid: object.uid().to_owned(),
        resource_version: object.resource_version().to_owned(),
    }
}

// === impl Maker ===

#[async_trait]
impl MakeInstance for Maker {
    async fn make(&self) -> Result<Box<dyn Instance>, CallError> {
        let instance = oarlock_plugin::Instance::new(&self.component, self.config.clone()).await?;
        Ok(Box::new(instance))
    }
}

#[async_trait]
impl Instance for oarlock_plugin::Instance {
    fn memory_bytes(&self) -> u64 {
        oarlock_plugin::Instance::memory_bytes(self)
    }

    async fn call(&mut self, call: &Call) -> Answering {
        let answer = match call {
            Call::Add(event, object) => self.on_add(event, shared(object)).await?,
            Call::Update(event, old, new) => self.on_update(event, shared(old), shared(new)).await?,
            Call::Delete(event, last) => self.on_delete(event, shared(last)).await?,
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

fn shared(view: &EventView) -> Arc<dyn EventObject> {
    Arc::new(view.clone())
}
