//! What a plugin said of itself, understood: nothing left to parse when events flow.
//!
//! That it holds together was checked by `oarlock_plugin::describe`; what Kubernetes has to say about it (selectors, verbs, names) is
//! checked here. Whether a
//! resource is served or the account may see it is not looked at: both may change at any time.

mod check;

use std::sync::Arc;
use std::time::Duration;

use oarlock_informer::{FieldCondition, FieldTest, GroupVersionResource, LabelSelector};
use oarlock_json::{JsonPointer, PointerSet};
use oarlock_plugin::contract::{self, Content, Description, Enqueue, Namespaces};

use crate::dispatch::EnqueueRule;
use crate::informers::Prunings;

/// A description, understood.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The component's own version.
    pub version: String,
    /// Whether it keeps nothing between calls.
    pub stateless: bool,
    /// What it watches.
    pub subscriptions: Vec<Arc<SubscriptionPlan>>,
    /// What it reads.
    pub reads: Vec<ReadPlan>,
    /// Its indices over what it reads.
    pub indices: Vec<contract::Index>,
}

/// One subscription, understood.
#[derive(Debug)]
pub struct SubscriptionPlan {
    /// The plugin's name for it.
    pub name: String,
    /// What it watches.
    pub resource: GroupVersionResource,
    /// Where.
    pub namespaces: Namespaces,
    /// Which of them.
    pub selector: LabelSelector,
    /// And which of those.
    pub conditions: Vec<FieldCondition>,
    /// What it cares about.
    pub fields: Vec<JsonPointer>,
    /// The same, to be looked up together.
    pub declared: PointerSet,
    /// How often it wants everything again.
    pub resync: Option<Duration>,
    /// How much of each object.
    pub content: oarlock_informer::Content,
    /// What a notification becomes.
    pub enqueue: EnqueueRule,
    /// What the plugin said, for comparing one generation with the next.
    said: contract::Subscription,
}

/// One declared read, understood.
#[derive(Clone, Debug)]
pub struct ReadPlan {
    /// The plugin's name for it.
    pub name: String,
    /// What it reads.
    pub resource: GroupVersionResource,
    /// Where.
    pub namespaces: Namespaces,
    /// How much of each object.
    pub content: Content,
}

/// What is wrong with a description.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing would ever call it.
    #[error("the plugin declares no subscription, so it would never be called")]
    Nothing,
    /// Something that could never work.
    #[error("{part}: {message}")]
    Part {
        /// What it is part of, in words.
        part: String,
        /// What is wrong with it.
        message: String,
    },
    /// A text that does not parse.
    #[error("subscription {subscription:?}: {message}")]
    Malformed {
        /// Which subscription.
        subscription: String,
        /// What is wrong with it.
        message: String,
    },
}

/// What a component can be called through.
#[derive(Clone, Copy, Debug)]
pub struct Exported {
    /// `handler`.
    pub handler: bool,
    /// `reconciler`.
    pub reconciler: bool,
}

// === impl Plan ===

impl Plan {
    /// Reads a description.
    pub fn of(description: Description) -> Result<Self, Error> {
        check::check(&description)?;
        // What it writes is for `oarlock rbac`; Kubernetes decides about each write.
        let Description { name: _, version, subscriptions, reads, indices, writes: _, stateless } =
            description;
        if subscriptions.is_empty() {
            return Err(Error::Nothing);
        }
        let subscriptions = subscriptions
            .into_iter()
            .map(|it| SubscriptionPlan::of(it).map(Arc::new))
            .collect::<Result<_, _>>()?;
        let reads = reads.into_iter().map(ReadPlan::of).collect();
        Ok(Self { version, stateless, subscriptions, reads, indices })
    }

    /// Refuses a plugin that is to be told of what the operator has left out of the cache: it would wait for ever, and in silence.
    ///
    /// # Errors
    ///
    /// When a subscription names such a field.
    pub fn check_against(&self, prunings: &Prunings) -> Result<(), Error> {
        for SubscriptionPlan { name, resource, said, .. } in self.subscriptions.iter().map(|plan| &**plan) {
            let fields = prunings.of(resource).fields;
            let is_left_out = |pointer: &str| pointer.parse().is_ok_and(|pointer| !fields.keeps(&pointer));
            if let Some((what, pointer)) = named_fields(said).find(|(_, pointer)| is_left_out(pointer)) {
                let resource = &resource.resource;
                let message = format!(
                    "{what} names {pointer}, which this host does not cache of {resource}: see its --cache-drop and --cache-keep"
                );
                return Err(Error::Malformed { subscription: name.clone(), message });
            }
        }
        Ok(())
    }
}

// === impl SubscriptionPlan ===

impl SubscriptionPlan {
    /// Reads one subscription.
    pub fn of(said: contract::Subscription) -> Result<Self, Error> {
        let malformed = |error: &(dyn std::error::Error + 'static)| Error::Malformed {
            subscription: said.name.clone(),
            message: crate::chain::text(error),
        };
        let selector = said.label_selector.parse::<LabelSelector>().map_err(|error| malformed(&error))?;
        let pointer = |text: &String| text.parse::<JsonPointer>().map_err(|error| malformed(&error));
        let mut conditions = Vec::with_capacity(said.conditions.len());
        for contract::FieldCondition { pointer: at, test } in &said.conditions {
            let test = match test {
                contract::Test::Exists => FieldTest::Exists,
                contract::Test::Absent => FieldTest::Absent,
                contract::Test::Equals(text) => FieldTest::Equals(text.clone()),
                contract::Test::Differs(text) => FieldTest::Differs(text.clone()),
            };
            conditions.push(FieldCondition::new(pointer(at)?, test).map_err(|error| malformed(&error))?);
        }
        let outside = metadata_has_not(&said);
        if let Some((what, pointer)) = outside {
            let message = format!(
                "{what} names {pointer}, which is not part of the metadata: declare `content: full`, or name something else"
            );
            return Err(Error::Malformed { subscription: said.name, message });
        }
        let fields = said.fields.iter().map(pointer).collect::<Result<Vec<_>, _>>()?;
        let enqueue = EnqueueRule::of(&said).map_err(|error| malformed(&error))?;
        Ok(Self {
            name: said.name.clone(),
            resource: resource(&said.target),
            namespaces: said.namespaces.clone(),
            selector,
            conditions,
            declared: PointerSet::new(&fields),
            fields,
            resync: (said.resync_seconds > 0).then(|| Duration::from_secs(said.resync_seconds.into())),
            content: kept(said.content),
            enqueue,
            said,
        })
    }

    /// Whether a Listener of the other can go on as one of this: the same objects in the same form.
    #[must_use]
    pub fn goes_on(&self, other: &Self) -> bool {
        // What becomes of a notification is decided behind the Listener.
        let listened = |said: &contract::Subscription| contract::Subscription {
            enqueue: Enqueue::Nothing,
            ..said.clone()
        };
        listened(&self.said) == listened(&other.said)
    }
}

// === impl ReadPlan ===

impl ReadPlan {
    fn of(said: contract::Read) -> Self {
        let contract::Read { name, target, namespaces, content } = said;
        Self { name, resource: resource(&target), namespaces, content }
    }
}

/// Returns what a subscription of metadata names beside it.
fn metadata_has_not(said: &contract::Subscription) -> Option<(&'static str, &str)> {
    named_fields(said).find(|(_, pointer)| !covers(said.content, pointer))
}

/// Returns the fields that a subscription names, and as what.
fn named_fields(said: &contract::Subscription) -> impl Iterator<Item = (&'static str, &str)> {
    let conditions = said.conditions.iter().map(|it| ("a condition", it.pointer.as_str()));
    let fields = said.fields.iter().map(|it| ("a declared field", it.as_str()));
    let enqueue = match &said.enqueue {
        Enqueue::Pointer(pointer) => Some(("enqueue", pointer.as_str())),
        _ => None,
    };
    conditions.chain(fields).chain(enqueue)
}

/// Whether what is declared includes what a pointer points at.
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

/// How much of each object has to be cached for what is declared.
#[must_use]
pub fn kept(said: Content) -> oarlock_informer::Content {
    match said {
        Content::Metadata => oarlock_informer::Content::Metadata,
        Content::Full => oarlock_informer::Content::Full,
    }
}

fn resource(said: &contract::GroupVersionResource) -> GroupVersionResource {
    GroupVersionResource::new(&said.group, &said.version, &said.plural)
}

#[cfg(test)]
mod tests {
    use oarlock_informer::object::Fields;

    use super::*;

    fn plan(field: &str) -> Plan {
        let target = contract::GroupVersionResource {
            group: String::new(),
            version: "v1".to_owned(),
            plural: "pods".to_owned(),
        };
        let subscription = contract::Subscription {
            name: "pods".to_owned(),
            target,
            namespaces: Namespaces::All,
            label_selector: "app=web".to_owned(),
            conditions: Vec::new(),
            fields: vec![field.to_owned()],
            content: Content::Full,
            resync_seconds: 0,
            enqueue: Enqueue::Nothing,
        };
        Plan::of(Description {
            name: "p".to_owned(),
            version: "1".to_owned(),
            subscriptions: vec![subscription],
            reads: Vec::new(),
            indices: Vec::new(),
            writes: Vec::new(),
            stateless: false,
        })
        .unwrap()
    }

    #[test]
    fn what_would_wait_for_what_is_not_cached_is_refused() {
        let mut prunings = Prunings::default();
        let dropped = ["/status".parse().unwrap()];
        prunings.entry("pods".parse().unwrap()).fields = Fields::without(&dropped).unwrap();
        plan("/spec/nodeName").check_against(&prunings).unwrap();
        plan("/status/phase").check_against(&Prunings::default()).unwrap();
        let error = plan("/status/phase").check_against(&prunings).unwrap_err();
        insta::assert_snapshot!(error, @r#"subscription "pods": a declared field names /status/phase, which this host does not cache of pods: see its --cache-drop and --cache-keep"#);
    }
}
