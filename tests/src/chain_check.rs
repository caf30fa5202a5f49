//! Compares the notifications that guests received with the history of the objects.
//!
//! For each plugin, subscription and object, the notifications must form a chain: an add, updates whose old
//! state is the state received before, a delete. The chain must be a subsequence of the object's history, and
//! its end must be the object's end. A new instance begins the chain again with initial adds.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::received::{Kind, ReceivedNotification};
use crate::recorder::{History, Version};

/// One subscription of one plugin, as its documentation describes it.
#[derive(Clone, Copy)]
pub struct Subscription<'a> {
    /// The plugin's name.
    pub plugin: &'a str,
    /// The plugin's name for the subscription.
    pub name: &'a str,
    /// Returns whether an object matches.
    pub matches: &'a dyn Fn(&Value) -> bool,
    /// A swap does not end the chains of a stateless plugin. Any other plugin receives every object again.
    pub stateless: bool,
}

/// One difference between the notifications and the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The plugin's name.
    pub plugin: String,
    /// The plugin's name for the subscription.
    pub subscription: String,
    /// `namespace/name` of the object, or the name alone.
    pub key: String,
    /// The difference.
    pub kind: ViolationKind,
}

/// How the notifications of one object differ from its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViolationKind {
    /// The recorder never saw the object.
    UnknownObject,
    /// The recorder never saw this version of the object.
    UnknownVersion {
        /// The resourceVersion received.
        received: String,
    },
    /// An older version arrived after a newer one.
    OutOfOrder {
        /// The resourceVersion received.
        received: String,
    },
    /// An add arrived for an object that the plugin knew.
    AddOfKnownObject {
        /// The resourceVersion received.
        received: String,
    },
    /// The old state of an update is not the state that the plugin knew.
    BrokenChain {
        /// The resourceVersion received.
        received: String,
        /// The resourceVersion of the update's old state.
        old: Option<String>,
        /// The resourceVersion that the plugin knew.
        known: Option<String>,
    },
    /// A delete arrived for an object that the plugin did not know.
    DeleteOfUnknownObject {
        /// The resourceVersion received.
        received: String,
    },
    /// The object does not match the subscription in this version.
    DoesNotMatch {
        /// The resourceVersion received.
        received: String,
    },
    /// The last state that the plugin received is not the last state of the history. `None` means no object.
    WrongEnd {
        /// The resourceVersion in the history.
        expected: Option<String>,
        /// The resourceVersion that the plugin knows.
        known: Option<String>,
    },
}

/// Where the chains of one subscription ended, when everything so far was checked. A check goes on from
/// there, with later notifications only.
#[derive(Clone, Debug, Default)]
pub struct Ends(BTreeMap<String, End>);

#[derive(Clone, Debug)]
struct End {
    generation: u64,
    knows_object: bool,
    /// The uid and resourceVersion of the newest version that the plugin ever received.
    newest: (String, String),
}

/// The state of one chain.
#[derive(Default)]
struct Chain {
    /// The generation that received the last notification.
    generation: Option<u64>,
    /// Index into the history of the version that the plugin knows, if it knows the object.
    known: Option<usize>,
    /// Index of the newest version that the plugin ever received.
    newest: Option<usize>,
}

/// Returns every violation for one subscription; none if the plugin received what it should.
#[must_use]
pub fn check(
    subscription: &Subscription<'_>,
    history: &History,
    received: &[ReceivedNotification],
) -> Vec<Violation> {
    check_from(&Ends::default(), subscription, history, received).err().unwrap_or_default()
}

/// Goes on with a check. The history begins, for each object, at or before the version where its chain ended
/// (see [`since_creation`]).
///
/// # Errors
///
/// Every violation.
pub fn check_from(
    ends: &Ends,
    subscription: &Subscription<'_>,
    history: &History,
    received: &[ReceivedNotification],
) -> Result<Ends, Vec<Violation>> {
    let violation = |key: &str, kind: ViolationKind| Violation {
        plugin: subscription.plugin.to_owned(),
        subscription: subscription.name.to_owned(),
        key: key.to_owned(),
        kind,
    };
    let mut violations = Vec::new();
    let versions_of = |key: &str| history.get(key).map(Vec::as_slice).unwrap_or_default();
    let mut chains: BTreeMap<&str, Chain> =
        ends.0.iter().map(|(key, end)| (key.as_str(), Chain::after(end, versions_of(key)))).collect();
    let is_of_subscription = |received: &&ReceivedNotification| {
        received.plugin == subscription.plugin && received.subscription == subscription.name
    };
    let received = || received.iter().filter(is_of_subscription);
    let before = chains.values().filter_map(|chain| chain.generation).max();
    let newest_generation = received().map(|received| received.generation).max().max(before);
    for received in received() {
        let chain = chains.entry(&received.key).or_default();
        if let Err(kind) = chain.follow(subscription, versions_of(&received.key), received) {
            violations.push(violation(&received.key, kind));
        }
    }
    let mut new_ends = Ends::default();
    for (key, versions) in history {
        let chain = chains.remove(key.as_str()).unwrap_or_default();
        let end = versions.last().filter(|end| !end.deleted && (subscription.matches)(&end.object));
        let is_current = subscription.stateless || chain.generation == newest_generation;
        let known = chain.known.filter(|_| is_current).and_then(|index| versions.get(index));
        let resource_version = |version: &Version| version.resource_version().to_owned();
        let (expected, known) = (end.map(resource_version), known.map(resource_version));
        if expected != known {
            violations.push(violation(key, ViolationKind::WrongEnd { expected, known }));
        }
        new_ends.0.extend(chain.end(versions).map(|end| (key.clone(), end)));
    }
    violations.extend(chains.into_keys().map(|key| violation(key, ViolationKind::UnknownObject)));
    if violations.is_empty() { Ok(new_ends) } else { Err(violations) }
}

/// Returns the index of the version that created the object as it is now, or as it was last.
///
/// When all chains have ended at the last version, a check that goes on needs no version before this one.
#[must_use]
pub fn since_creation(versions: &[Version]) -> usize {
    let last = versions.last().map(Version::uid);
    versions.iter().position(|version| Some(version.uid()) == last).unwrap_or(0)
}

// === impl Violation ===

impl Violation {
    /// Returns whether a notification that is still under way may resolve it.
    #[must_use]
    pub fn may_resolve(&self) -> bool {
        matches!(self.kind, ViolationKind::WrongEnd { .. })
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plugin, subscription, key, kind } = self;
        write!(f, "{plugin} ({subscription}) {key}: {kind}")
    }
}

// === impl ViolationKind ===

impl fmt::Display for ViolationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_none = |version: &Option<String>| {
            version.as_ref().map_or("none".to_owned(), |it| format!("version {it}"))
        };
        match self {
            Self::UnknownObject => f.write_str("received, but the API server never had this object"),
            Self::UnknownVersion { received } => {
                write!(f, "received version {received}, which the API server never had")
            }
            Self::OutOfOrder { received } => write!(f, "received version {received} after a newer one"),
            Self::AddOfKnownObject { received } => {
                write!(f, "received an add of version {received} of an object that it knew")
            }
            Self::BrokenChain { received, old, known } => {
                let (old, known) = (or_none(old), or_none(known));
                write!(f, "received an update from {old} to version {received}, but knew {known}")
            }
            Self::DeleteOfUnknownObject { received } => {
                write!(f, "received a delete at version {received} of an object that it did not know")
            }
            Self::DoesNotMatch { received } => {
                write!(f, "received version {received}, which does not match the subscription")
            }
            Self::WrongEnd { expected, known } => {
                write!(f, "the API server has {}, the plugin knows {}", or_none(expected), or_none(known))
            }
        }
    }
}

// === impl Chain ===

impl Chain {
    /// Returns the chain that ended there.
    fn after(end: &End, versions: &[Version]) -> Self {
        let End { generation, knows_object, newest: (uid, resource_version) } = end;
        let is_it =
            |it: &Version| (it.uid(), it.resource_version()) == (uid.as_str(), resource_version.as_str());
        let newest = versions.iter().position(is_it);
        Self { generation: Some(*generation), known: newest.filter(|_| *knows_object), newest }
    }

    fn end(&self, versions: &[Version]) -> Option<End> {
        let newest = versions.get(self.newest?)?;
        Some(End {
            generation: self.generation?,
            knows_object: self.known.is_some(),
            newest: (newest.uid().to_owned(), newest.resource_version().to_owned()),
        })
    }

    /// Adds the next notification of the object.
    fn follow(
        &mut self,
        subscription: &Subscription<'_>,
        versions: &[Version],
        notification: &ReceivedNotification,
    ) -> Result<(), ViolationKind> {
        let before = self.generation.replace(notification.generation);
        let is_another = before != Some(notification.generation);
        if is_another && !subscription.stateless {
            self.known = None;
        }
        let received = notification.resource_version.clone();
        let index = self.find(versions, notification)?;
        let matches = versions
            .get(index)
            .is_some_and(|version| !version.deleted && (subscription.matches)(&version.object));
        let known = self.known.and_then(|known| versions.get(known)).map(Version::resource_version);
        match notification.kind {
            Kind::Add { initial } if self.known.is_some() && !initial => {
                return Err(ViolationKind::AddOfKnownObject { received });
            }
            Kind::Update if notification.old_resource_version.as_deref() != known => {
                let (old, known) = (notification.old_resource_version.clone(), known.map(str::to_owned));
                return Err(ViolationKind::BrokenChain { received, old, known });
            }
            // A delete of an object that this generation does not know may have waited for an older one.
            Kind::Delete if self.known.is_none() && !(is_another && self.newest.is_some()) => {
                return Err(ViolationKind::DeleteOfUnknownObject { received });
            }
            Kind::Add { .. } | Kind::Update if !matches => {
                return Err(ViolationKind::DoesNotMatch { received });
            }
            Kind::Add { .. } | Kind::Update => self.known = Some(index),
            Kind::Delete => self.known = None,
        }
        self.newest = Some(index);
        Ok(())
    }

    /// Finds the version of a notification, at or after the newest version received so far.
    fn find(
        &self,
        versions: &[Version],
        notification: &ReceivedNotification,
    ) -> Result<usize, ViolationKind> {
        let from = self.newest.unwrap_or(0);
        let is_it = |version: &Version| {
            version.resource_version() == notification.resource_version && version.uid() == notification.uid
        };
        let received = notification.resource_version.clone();
        match versions.iter().skip(from).position(is_it) {
            Some(offset) => Ok(from + offset),
            None if versions.iter().any(is_it) => Err(ViolationKind::OutOfOrder { received }),
            None => Err(ViolationKind::UnknownVersion { received }),
        }
    }
}

#[cfg(test)]
mod tests;
