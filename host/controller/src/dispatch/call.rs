//! One call of a plugin: what it is told, how it answers, and the seam behind which the instance is.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use oarlock_informer::{Content, Notification, Object};
use oarlock_json::JsonPointer;
use oarlock_plugin::contract::{self, Added, Deleted, Failure, ObjectRef, Outcome, Synced, Updated, WorkKey};
use oarlock_plugin::{CallError, Component, EventObject, InstanceConfig};

use super::declared;
use crate::fields;
use crate::plan::{self, SubscriptionPlan};
use crate::report::NotificationType;

/// What a plugin is called with.
pub(crate) enum Call {
    Add(Added, Told),
    Update(Updated, Told, Told),
    Delete(Deleted, Told),
    Synced(Synced),
    Reconcile(WorkKey),
}

/// What a plugin answers when the work is done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Answer {
    Done,
    RequeueAfter(Duration),
}

/// An instance of a plugin, called once at a time. After an `Err` it is dead.
#[async_trait]
pub(crate) trait Instance: Send {
    async fn call(&mut self, call: &Call) -> Result<Result<Answer, Failure>, CallError>;
}

/// Makes instances of one generation of a plugin.
#[async_trait]
pub(crate) trait MakeInstance: Send + Sync {
    async fn make(&self) -> Result<Box<dyn Instance>, CallError>;
}

/// The real thing: a component and what its instances are made with.
pub(crate) struct Maker {
    pub(crate) component: Component,
    pub(crate) config: InstanceConfig,
}

/// The object of a notification, as the guest pulls it: so much of it as the subscription declares, whatever is cached for others.
#[derive(Clone)]
pub(crate) struct Told {
    object: Object,
    content: Content,
}

/// Why an instance is lost, as metrics and reports call it.
pub(crate) const LOSS_REASONS: [&str; 9] =
    ["trap", "exit", "deadline", "memory", "table", "bad-handover", "cannot-start", "host-panic", "other"];

/// Returns the one of [`LOSS_REASONS`] that an error is.
pub(crate) fn loss_reason(error: &CallError) -> &'static str {
    match error {
        CallError::Trap { .. } => "trap",
        CallError::Exit { .. } => "exit",
        CallError::DeadlineExceeded { .. } => "deadline",
        CallError::MemoryLimit { .. } => "memory",
        CallError::TableLimit { .. } => "table",
        CallError::BadHandover { .. } => "bad-handover",
        CallError::CannotStart { .. } => "cannot-start",
        CallError::HostPanicked { .. } => "host-panic",
        CallError::NotExported { .. } | CallError::Mismatch { .. } | CallError::Dead => "other",
    }
}

// === impl Call ===

impl Call {
    /// Makes the call that tells of a notification, with the fields that the subscription declares.
    pub(crate) async fn of(plan: &SubscriptionPlan, notification: &Notification) -> Self {
        let subscription = plan.name.clone();
        let fields = &plan.declared;
        let told = |object: &Object| Told { object: object.clone(), content: plan.content };
        match notification {
            Notification::Added { object, is_in_initial_list } => {
                let added = Added {
                    subscription,
                    object: reference(object),
                    is_in_initial_list: *is_in_initial_list,
                    fields: declared::values(object, fields).await,
                };
                Self::Add(added, told(object))
            }
            Notification::Updated { old, new } => {
                let updated = Updated {
                    subscription,
                    object: reference(new),
                    old: reference(old),
                    fields: declared::values(new, fields).await,
                    old_fields: declared::values(old, fields).await,
                };
                Self::Update(updated, told(old), told(new))
            }
            Notification::Deleted { object, final_state_unknown } => {
                let deleted = Deleted {
                    subscription,
                    object: reference(object),
                    final_state_unknown: *final_state_unknown,
                    fields: declared::values(object, fields).await,
                };
                Self::Delete(deleted, told(object))
            }
        }
    }

    /// Whether it brings no news but what there is, to an instance that knows nothing yet.
    pub(crate) fn is_replay(&self) -> bool {
        matches!(self, Self::Add(Added { is_in_initial_list: true, .. }, _) | Self::Synced(_))
    }

    /// The function of the contract that is called.
    pub(crate) fn function(&self) -> &'static str {
        match self {
            Self::Add(..) => "on-add",
            Self::Update(..) => "on-update",
            Self::Delete(..) => "on-delete",
            Self::Synced(_) => "on-synced",
            Self::Reconcile(_) => "reconcile",
        }
    }
}

/// What kind of notification it is.
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
    async fn call(&mut self, call: &Call) -> Result<Result<Answer, Failure>, CallError> {
        let answer = match call {
            Call::Add(event, object) => self.on_add(event, pulled(object)).await?,
            Call::Update(event, old, new) => self.on_update(event, pulled(old), pulled(new)).await?,
            Call::Delete(event, last) => self.on_delete(event, pulled(last)).await?,
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

fn pulled(told: &Told) -> Arc<dyn EventObject> {
    Arc::new(told.clone())
}

// === impl Told ===

impl Told {
    fn covers(&self, pointer: &str) -> bool {
        match self.content {
            Content::Full => true,
            Content::Metadata => plan::covers(contract::Content::Metadata, pointer),
        }
    }
}

impl EventObject for Told {
    fn field(&self, pointer: &str) -> Result<Option<String>, contract::Error> {
        let parsed = parse(pointer)?;
        Ok(if self.covers(pointer) { self.object.pointer(&parsed) } else { None })
    }

    fn fields(&self, pointers: &[String]) -> Result<Vec<Option<String>>, contract::Error> {
        let parsed = pointers.iter().map(|it| parse(it)).collect::<Result<Vec<_>, _>>()?;
        let mut found = fields::at(&self.object, &parsed)?;
        for (value, pointer) in found.iter_mut().zip(pointers) {
            if !self.covers(pointer) {
                *value = None;
            }
        }
        Ok(found)
    }

    fn json(&self) -> Result<String, contract::Error> {
        Ok(match self.content {
            Content::Full => self.object.json().to_string(),
            Content::Metadata => self.object.metadata_json(),
        })
    }
}

fn parse(pointer: &str) -> Result<JsonPointer, contract::Error> {
    pointer.parse().map_err(|error: oarlock_json::PointerError| contract::Error::Invalid(error.to_string()))
}
