//! The plugin's own writes, of which `ignore-own-writes` skips the notifications.
//!
//! A write is known by the uid and resourceVersion that the API server returned, if they are proven to be of
//! this write: it created the object, or demanded another version of it ([`Before`]). A notification of
//! exactly that version, which nothing else merged into, shows what the plugin wrote and no more. In doubt
//! the notification is delivered: after a write without an answer or without that proof, and when the
//! informer has listed since the write began, because a list may join several changes in one.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use oarlock_informer::{
    GroupVersionResource as Resource, Notification, Object, SharedInformer,
    listener::{Delivery, ListenerHandle, Outcome},
};
use oarlock_plugin::contract::{Error, GroupVersionResource, Written};
use oarlock_plugin::guest::HostBytes;
use oarlock_plugin::guest::host_bytes::{Charge, Use};
use parking_lot::Mutex;

/// How many writes are known. The oldest is forgotten first.
const CAPACITY: usize = 4_096;

/// The longest uid and resourceVersion that are stored.
const LONGEST: usize = 128;

/// The bytes of a known write beside its texts, of which there are two copies: its places in the table and in
/// the order, and the allocations of the texts.
const PER_WRITE: usize = 256;

/// The writes of one plugin, by all its generations and instances. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct OwnWrites {
    state: Arc<Mutex<State>>,
}

/// The decision about a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The plugin receives it.
    Deliver,
    /// The plugin made this change itself.
    Skip,
    /// A write of the object is under way. The notification is deferred until its answer.
    Hold,
}

/// A write under way. Dropping it without [`InFlight::ends`] means that its outcome is unknown.
pub(super) struct InFlight {
    writes: OwnWrites,
    object: ObjectName,
    /// The number of lists of the informer when the write began.
    n_lists: Option<u64>,
}

/// What is known of an object's version before a write. A write that changes nothing returns the current
/// version, which another writer may have made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// The write was to create the object: there was none.
    NoObject,
    /// The write was refused unless the object had this version. Empty if it demanded none.
    Version(String),
}

#[derive(Default)]
struct State {
    /// The informers of the subscriptions that ignore own writes, by group and plural.
    informers: HashMap<(String, String), SharedInformer>,
    /// The uid and version of each write, with the number of lists of the informer when it began.
    known: HashMap<Version, u64>,
    order: VecDeque<Version>,
    /// The charge of the known writes.
    charge: Option<Charge>,
    in_flight: HashMap<ObjectName, usize>,
    /// The listeners with notifications that wait for the end of a write.
    held: Vec<ListenerHandle>,
}

type Version = (Box<str>, Box<str>);

/// Group, plural, namespace and name. The name is empty while the API server is choosing one.
type ObjectName = (String, String, String, String);

// === impl OwnWrites ===

impl OwnWrites {
    /// Charges the known writes to an account. A write that the account has no room for is not known.
    pub(crate) fn charge_to(&self, account: &HostBytes) {
        self.state.lock().charge = account.charge(Use::OwnWrites, 0).ok();
    }

    /// Sets the informers of the subscriptions of the next generation that ignore own writes. Without one no
    /// write is stored.
    pub(crate) fn set_informers(&self, informers: impl IntoIterator<Item = (Resource, SharedInformer)>) {
        let informers = informers.into_iter();
        self.state.lock().informers =
            informers.map(|(resource, informer)| ((resource.group, resource.resource), informer)).collect();
    }

    /// Notes that a write of an object begins.
    pub(super) fn begins(&self, target: &GroupVersionResource, namespace: &str, name: &str) -> InFlight {
        let GroupVersionResource { group, version: _, plural } = target;
        let mut state = self.state.lock();
        let n_lists = state.informers.get(&(group.clone(), plural.clone())).map(n_lists);
        let object = (group.clone(), plural.clone(), namespace.to_owned(), name.to_owned());
        if n_lists.is_some() {
            *state.in_flight.entry(object.clone()).or_default() += 1;
        }
        drop(state);
        InFlight { writes: self.clone(), object, n_lists }
    }

    /// Decides about a notification of a subscription that ignores own writes. Defers a held notification.
    pub(crate) fn decide(
        &self,
        resource: &Resource,
        delivery: &Delivery,
        listener: &ListenerHandle,
    ) -> Decision {
        let (new, is_add) = match &delivery.notification {
            Notification::Added { object, is_in_initial_list: false } => (object, true),
            // A resync has one version; an update to another uid stands for a missed delete.
            Notification::Updated { old, new } if is_one_change(old, new) => (new, false),
            _ => return Decision::Deliver,
        };
        if delivery.attempts > 0 || delivery.is_merged {
            return Decision::Deliver;
        }
        let mut state = self.state.lock();
        let version = (new.uid().to_owned().into(), new.resource_version().to_owned().into());
        if let Some(n_lists_before) = state.known.get(&version) {
            let key = (resource.group.to_string(), resource.resource.to_string());
            let is_same_watch = state.informers.get(&key).map(n_lists) == Some(*n_lists_before);
            return if is_same_watch { Decision::Skip } else { Decision::Deliver };
        }
        if state.in_flight.is_empty() {
            return Decision::Deliver;
        }
        let key = new.key();
        let named = |name: &str| {
            let (group, plural) = (resource.group.to_string(), resource.resource.to_string());
            (group, plural, key.namespace().to_owned(), name.to_owned())
        };
        let is_under_way = state.in_flight.contains_key(&named(key.name()))
            || (is_add && state.in_flight.contains_key(&named("")));
        if !is_under_way {
            return Decision::Deliver;
        }
        // Deferred under this lock: the end of the write finds it deferred.
        listener.finish(&delivery.key, Outcome::Defer);
        state.held.push(listener.clone());
        Decision::Hold
    }
}

// === impl State ===

impl State {
    fn know(&mut self, version: Version, n_lists: u64) {
        if let Some(known) = self.known.get_mut(&version) {
            *known = n_lists;
            return;
        }
        if self.order.len() >= CAPACITY
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
            if let Some(charge) = &mut self.charge {
                charge.shrink(cost(&oldest));
            }
        }
        if self.charge.as_mut().is_some_and(|charge| charge.grow(cost(&version)).is_err()) {
            return;
        }
        self.known.insert(version.clone(), n_lists);
        self.order.push_back(version);
    }
}

// === impl Before ===

impl Before {
    /// Returns whether a write that returned this version made it.
    fn proves_change(&self, returned: &str) -> bool {
        // The API server reads versions as numbers, and 0 as none.
        fn number(version: &str) -> &str {
            version.trim_start_matches('0')
        }
        match self {
            Self::NoObject => true,
            Self::Version(before) => !number(before).is_empty() && number(before) != number(returned),
        }
    }
}

// === impl InFlight ===

impl InFlight {
    /// Stores the answer of the write, if the version in it is the plugin's own: `before` says what is known
    /// of the version before.
    pub(super) fn ends(self, answer: &Result<Written, Error>, before: &Before) {
        let (Ok(Written { uid, resource_version, .. }), Some(n_lists)) = (answer, self.n_lists) else {
            return;
        };
        if !before.proves_change(resource_version) || uid.len() > LONGEST || resource_version.len() > LONGEST
        {
            return;
        }
        let version: Version = (uid.as_str().into(), resource_version.as_str().into());
        self.writes.state.lock().know(version, n_lists);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.n_lists.is_none() {
            return;
        }
        let held = {
            let mut state = self.writes.state.lock();
            if let Some(n) = state.in_flight.get_mut(&self.object) {
                *n -= 1;
                if *n == 0 {
                    state.in_flight.remove(&self.object);
                }
            }
            std::mem::take(&mut state.held)
        };
        // A swap may have replaced a listener by another one of the same name.
        let mut released: Vec<ListenerHandle> = Vec::new();
        for listener in held {
            if !released.iter().any(|it| it.is_same(&listener)) {
                // They are checked again, and those of other writes are held again.
                listener.release_deferred();
                released.push(listener);
            }
        }
    }
}

/// Returns the bytes that a known write is charged.
fn cost((uid, resource_version): &Version) -> usize {
    2 * (uid.len() + resource_version.len()) + PER_WRITE
}

fn is_one_change(old: &Object, new: &Object) -> bool {
    old.resource_version() != new.resource_version() && old.uid() == new.uid()
}

fn n_lists(informer: &SharedInformer) -> u64 {
    informer.status().relists
}

#[cfg(test)]
mod tests;
