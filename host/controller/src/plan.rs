//! A plugin's description of itself, parsed and checked, so that nothing is parsed while events flow.
//!
//! `oarlock_plugin::describe` has checked that the description is consistent. This module checks it against
//! the rules of Kubernetes (selectors, verbs, names). It does not check whether a resource is served or
//! whether the account may see it: both may change at any time.

mod check;

use std::sync::Arc;
use std::time::Duration;

use oarlock_json::{JsonPointer, PointerSet};
use oarlock_label_selector::LabelSelector;

use oarlock_informer::{
    GroupVersionResource,
    listener::{FieldCondition, FieldTest},
};
use oarlock_plugin::contract::{self, Content, Description, Enqueue, Namespaces};

use crate::dispatch::{EnqueueRule, WakingLister};
use crate::informers::Prunings;
use crate::kube_access::index_source;
use crate::schedule::SchedulePlan;

/// A parsed description.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The component's own version.
    pub version: String,
    /// Whether it keeps no state between calls.
    pub stateless: bool,
    /// Its declared watches, then one for each lister that wakes.
    pub subscriptions: Vec<Arc<SubscriptionPlan>>,
    /// Its declared reads.
    pub reads: Vec<ReadPlan>,
    /// Its indices over its reads.
    pub indices: Vec<contract::Index>,
    /// Its schedules.
    pub(crate) schedules: Arc<[SchedulePlan]>,
}

/// One parsed subscription.
#[derive(Debug)]
pub struct SubscriptionPlan {
    /// The plugin's name for it.
    pub name: String,
    /// The resource that it watches.
    pub resource: GroupVersionResource,
    /// The namespaces that it watches.
    pub namespaces: Namespaces,
    /// The labels of the objects that it watches.
    pub selector: LabelSelector,
    /// Further conditions on these objects; all of them must hold.
    pub conditions: Box<[FieldCondition]>,
    /// The declared fields: updates that change none of them are skipped.
    pub fields: Box<[JsonPointer]>,
    /// The declared fields, prepared for one walk over an object.
    pub declared: PointerSet,
    /// How often it receives all objects again.
    pub resync: Option<Duration>,
    /// How much of each object it needs.
    pub content: oarlock_informer::object::Content,
    /// Whether notifications of the plugin's own writes are skipped.
    pub ignores_own_writes: bool,
    /// The lister whose readers its notifications wake; none for a subscription that the plugin declares.
    pub(crate) wakes: Option<WakingLister>,
    /// The rule by which a notification becomes a key of the work queue, if any.
    pub(crate) enqueue: EnqueueRule,
}

/// One parsed read.
#[derive(Clone, Debug)]
pub struct ReadPlan {
    /// The plugin's name for it.
    pub name: String,
    /// The resource that it reads.
    pub resource: GroupVersionResource,
    /// The namespaces that it reads.
    pub namespaces: Namespaces,
    /// How much of each object it needs.
    pub content: Content,
    /// Whether changes of what a run read queue its key again.
    pub wakes: bool,
}

/// Why a description is refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plugin has no subscription and no schedule.
    #[error("the plugin declares no subscription and no schedule, so it would never be called")]
    Nothing,
    /// A part that could never work.
    #[error("{part}: {message}")]
    Part {
        /// The part, in words.
        part: String,
        /// The cause.
        message: String,
    },
    /// A text that does not parse.
    #[error("subscription {subscription:?}: {message}")]
    Malformed {
        /// The subscription's name.
        subscription: String,
        /// The cause.
        message: String,
    },
}

/// The interfaces of the contract that a component exports.
#[derive(Clone, Copy, Debug)]
pub struct Exported {
    /// `handler`.
    pub handler: bool,
    /// `reconciler`.
    pub reconciler: bool,
}

// === impl Plan ===

impl Plan {
    /// Parses and checks a description.
    pub fn of(description: Description) -> Result<Self, Error> {
        check::check(&description)?;
        // The declared requests are for `oarlock rbac`; Kubernetes decides about each request.
        let Description {
            name: _,
            version,
            subscriptions,
            reads,
            indices,
            requests: _,
            schedules,
            stateless,
        } = description;
        if subscriptions.is_empty() && schedules.is_empty() {
            return Err(Error::Nothing);
        }
        let waking = reads.iter().filter(|it| it.wakes).map(|it| SubscriptionPlan::waking(it, &indices));
        let subscriptions = subscriptions
            .into_iter()
            .map(SubscriptionPlan::of)
            .chain(waking)
            .map(|plan| plan.map(Arc::new))
            .collect::<Result<_, _>>()?;
        let reads = reads.into_iter().map(ReadPlan::of).collect();
        let schedule = |declaration: contract::Schedule| {
            let part = format!("schedule {:?}", declaration.name);
            SchedulePlan::of(declaration).map_err(|error| Error::Part { part, message: error.to_string() })
        };
        let schedules = schedules.into_iter().map(schedule).collect::<Result<_, _>>()?;
        Ok(Self { version, stateless, subscriptions, reads, indices, schedules })
    }

    /// Refuses a plugin whose subscriptions name a field that the operator excludes from the cache: the
    /// plugin would never receive it.
    ///
    /// # Errors
    ///
    /// When a subscription names such a field.
    pub fn check_against(&self, prunings: &Prunings) -> Result<(), Error> {
        for plan in &self.subscriptions {
            let fields = prunings.of(&plan.resource).fields;
            if let Some((what, pointer)) = plan.named_fields().find(|(_, pointer)| !fields.keeps(pointer)) {
                let resource = &plan.resource.resource;
                let message = format!(
                    "{what} names {pointer}, which this host does not cache of {resource}: see its --cache-drop and --cache-keep"
                );
                return Err(Error::Malformed { subscription: plan.name.clone(), message });
            }
        }
        Ok(())
    }
}

// === impl SubscriptionPlan ===

impl SubscriptionPlan {
    /// Parses one subscription.
    pub fn of(declaration: contract::Subscription) -> Result<Self, Error> {
        let malformed = |error: &(dyn std::error::Error + 'static)| Error::Malformed {
            subscription: declaration.name.clone(),
            message: crate::chain::text(error),
        };
        let selector =
            declaration.label_selector.parse::<LabelSelector>().map_err(|error| malformed(&error))?;
        let pointer = |text: &String| text.parse::<JsonPointer>().map_err(|error| malformed(&error));
        let mut conditions = Vec::with_capacity(declaration.conditions.len());
        for contract::FieldCondition { pointer: at, test } in &declaration.conditions {
            let test = match test {
                contract::Test::Exists => FieldTest::Exists,
                contract::Test::Absent => FieldTest::Absent,
                contract::Test::Equals(text) => FieldTest::Equals(text.clone()),
                contract::Test::Differs(text) => FieldTest::Differs(text.clone()),
                contract::Test::In(texts) => FieldTest::In(texts.clone()),
                contract::Test::NotIn(texts) => FieldTest::NotIn(texts.clone()),
                contract::Test::Greater(text) => FieldTest::Greater(text.clone()),
                contract::Test::Less(text) => FieldTest::Less(text.clone()),
            };
            conditions.push(FieldCondition::new(pointer(at)?, test).map_err(|error| malformed(&error))?);
        }
        let fields = declaration.fields.iter().map(pointer).collect::<Result<Vec<_>, _>>()?;
        let enqueue = EnqueueRule::of(&declaration).map_err(|error| malformed(&error))?;
        let plan = Self {
            resource: resource(&declaration.target),
            selector,
            conditions: conditions.into(),
            declared: PointerSet::new(&fields),
            fields: fields.into(),
            resync: (declaration.resync_seconds > 0)
                .then(|| Duration::from_secs(declaration.resync_seconds.into())),
            content: cached_content(declaration.content),
            ignores_own_writes: declaration.ignore_own_writes,
            wakes: None,
            enqueue,
            name: declaration.name,
            namespaces: declaration.namespaces,
        };
        let is_outside = |pointer: &JsonPointer| !covers(declaration.content, &pointer.to_string());
        let outside = plan.named_fields().find(|(_, pointer)| is_outside(pointer));
        if let Some((what, pointer)) = outside {
            let message = format!(
                "{what} names {pointer}, which is not part of the metadata: declare `content: full`, or name something else"
            );
            return Err(Error::Malformed { subscription: plan.name, message });
        }
        Ok(plan)
    }

    /// Returns the subscription by which the host learns of the changes of a lister that wakes.
    pub(crate) fn waking(read: &contract::Read, indices: &[contract::Index]) -> Result<Self, Error> {
        let name = format!("wakes:{}", read.name);
        let mut of_lister = Vec::new();
        for contract::Index { name: index, lister: _, source } in
            indices.iter().filter(|it| it.lister == read.name)
        {
            let source = index_source(index, source.clone()).map_err(|error| Error::Malformed {
                subscription: name.clone(),
                message: format!("{error:?}"),
            })?;
            of_lister.push((Arc::from(index.as_str()), source));
        }
        let declaration = contract::Subscription {
            name,
            target: read.target.clone(),
            namespaces: read.namespaces.clone(),
            label_selector: String::new(),
            conditions: Vec::new(),
            fields: Vec::new(),
            content: read.content,
            resync_seconds: 0,
            enqueue: Enqueue::Nothing,
            ignore_own_writes: false,
        };
        let wakes = WakingLister { name: read.name.as_str().into(), indices: of_lister };
        Ok(Self { wakes: Some(wakes), ..Self::of(declaration)? })
    }

    /// Returns whether this is the plan of a subscription that replaces the one of the other plan: they have
    /// the same name, and are both declared or both of a lister that wakes.
    #[must_use]
    pub fn replaces(&self, other: &Self) -> bool {
        self.name == other.name && self.wakes.is_some() == other.wakes.is_some()
    }

    /// Returns whether both have the same enqueue rule.
    #[must_use]
    pub fn has_rule_of(&self, other: &Self) -> bool {
        self.enqueue == other.enqueue
    }

    /// Returns whether a subscription with this plan can inherit the listener of the other one: both ask for
    /// the same objects in the same form.
    #[must_use]
    pub fn can_inherit_listener(&self, other: &Self) -> bool {
        let Self {
            name,
            resource,
            namespaces,
            selector,
            conditions,
            fields,
            // Made of `fields`.
            declared: _,
            resync,
            content,
            // The check for own writes applies behind the listener.
            ignores_own_writes: _,
            wakes,
            // The enqueue rule applies behind the listener too, but the keys of another rule have to be
            // queued for all objects, and a new listener begins with these.
            enqueue,
        } = self;
        *name == other.name
            && *resource == other.resource
            && *namespaces == other.namespaces
            && *selector == other.selector
            && *conditions == other.conditions
            && *fields == other.fields
            && *resync == other.resync
            && *content == other.content
            && wakes.is_some() == other.wakes.is_some()
            && *enqueue == other.enqueue
    }

    /// Returns the fields that the subscription names, each with the part that names it.
    fn named_fields(&self) -> impl Iterator<Item = (&'static str, &JsonPointer)> {
        let conditions = self.conditions.iter().map(|it| ("a condition", it.pointer()));
        let fields = self.fields.iter().map(|it| ("a declared field", it));
        let enqueue = self.enqueue.pointer().map(|it| ("enqueue", it));
        conditions.chain(fields).chain(enqueue)
    }
}

// === impl ReadPlan ===

impl ReadPlan {
    fn of(declaration: contract::Read) -> Self {
        let contract::Read { name, target, namespaces, content, wakes } = declaration;
        Self { name, resource: resource(&target), namespaces, content, wakes }
    }
}

/// Returns whether a content includes the field at a pointer.
#[must_use]
pub fn covers(content: Content, pointer: &str) -> bool {
    match content {
        Content::Full => true,
        Content::Metadata => {
            let first = pointer.split('/').nth(1);
            matches!(first, Some("metadata" | "apiVersion" | "kind"))
        }
    }
}

/// Returns the content that the cache must hold for a declared content.
#[must_use]
pub fn cached_content(declared: Content) -> oarlock_informer::object::Content {
    match declared {
        Content::Metadata => oarlock_informer::object::Content::Metadata,
        Content::Full => oarlock_informer::object::Content::Full,
    }
}

fn resource(declaration: &contract::GroupVersionResource) -> GroupVersionResource {
    GroupVersionResource::new(&declaration.group, &declaration.version, &declaration.plural)
}

#[cfg(test)]
mod tests;
