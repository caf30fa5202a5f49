//! The initial adds of a snapshot, as a list of objects: 16 bytes each, until one is taken or its object
//! changes.
//!
//! A plugin that starts receives every object. A queue of its own for each of them would take some 400 bytes,
//! at the same time for all plugins of a host that starts.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::{Backlog, ObjectQueue, ObjectState, Pending};
use crate::listener::notification::{Delivery, Notification};
use crate::listener::values::NotificationFields;
use crate::names::ObjectKey;
use crate::object::Object;

/// The initial adds that nothing was merged with yet, of one snapshot or of several.
#[derive(Debug, Default)]
pub(super) struct InitialAdds {
    /// Lists of different objects, in the order of their tickets. None of them is empty.
    lists: VecDeque<SnapshotAdds>,
    len: usize,
}

/// The initial adds of one snapshot.
#[derive(Debug)]
struct SnapshotAdds {
    /// Sorted by key.
    places: Vec<Place>,
    /// The first object that waits. The places before it are not read any more.
    next: usize,
    first_ticket: u64,
    arrived: Instant,
}

/// An object's place in a list. The key stays, so that the list can be searched.
#[derive(Debug)]
enum Place {
    Waits(Object),
    Taken(ObjectKey),
}

// === impl Backlog ===

impl Backlog {
    /// Appends the initial adds of a snapshot, which is sorted by key. Drops the deletes of its objects that
    /// were pushed to the front.
    pub(in crate::listener) fn push_snapshot(&mut self, objects: Vec<Object>, now: Instant) {
        let mut queued = Vec::new();
        if !self.is_idle() {
            for key in objects.iter().map(Object::key) {
                self.queue_listed(key);
                self.drop_pushed_to_front(key);
                if self.objects.contains_key(key) {
                    queued.push(key.clone());
                }
            }
        }
        let first_ticket = self.next_ticket;
        self.next_ticket += objects.len() as u64;
        self.n_waiting += objects.len() - queued.len();
        self.n_initial += objects.len();
        self.ready.insert_list(objects, first_ticket, now);
        for key in queued {
            if let Some(initial) = self.ready.take_listed(&key) {
                self.push_pending(key, initial);
            }
        }
    }

    /// Returns whether nothing waits and nothing is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.objects.is_empty() && self.ready.len() == 0
    }

    /// Gives an object a queue if its initial add waits in a list.
    pub(super) fn queue_listed(&mut self, key: &ObjectKey) {
        let Some(initial) = self.ready.take_listed(key) else { return };
        self.ready.insert(initial.ticket, key.clone(), true);
        let mut waiting = self.spare_queue();
        waiting.push_back(initial);
        self.objects
            .insert(key.clone(), ObjectQueue { state: ObjectState::Ready, waiting, n_outdated_bytes: 0 });
    }

    /// Takes an initial add of an object that has no queue. The object gets one: it is in flight.
    pub(super) fn take_listed(&mut self, initial: Pending) -> Delivery {
        let key = initial.notification.object().key().clone();
        let waiting = self.spare_queue();
        let queue = ObjectQueue { state: ObjectState::InFlight, waiting, n_outdated_bytes: 0 };
        self.objects.insert(key.clone(), queue);
        self.n_waiting -= 1;
        self.begin_flight(key, initial)
    }
}

// === impl InitialAdds ===

impl InitialAdds {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends the objects of a snapshot, which are sorted by key. None of them is in a list already. They
    /// take one ticket each.
    pub(super) fn append(&mut self, objects: Vec<Object>, first_ticket: u64, arrived: Instant) {
        self.len += objects.len();
        let places: Vec<_> = objects.into_iter().map(Place::Waits).collect();
        if !places.is_empty() {
            self.lists.push_back(SnapshotAdds { places, next: 0, first_ticket, arrived });
        }
    }

    /// Returns the ticket of the first one.
    pub(super) fn first_ticket(&self) -> Option<u64> {
        self.lists.front().map(|list| list.ticket(list.next))
    }

    /// Returns when the first one was appended.
    pub(super) fn first_arrived(&self) -> Option<Instant> {
        self.lists.front().map(|list| list.arrived)
    }

    pub(super) fn pop_first(&mut self) -> Option<Pending> {
        let list = self.lists.front_mut()?;
        let pending = list.take_at(list.next);
        self.len -= usize::from(pending.is_some());
        self.drop_empty();
        pending
    }

    /// Takes the add of one object, if it is here.
    pub(super) fn take(&mut self, key: &ObjectKey) -> Option<Pending> {
        let taken = self.lists.iter_mut().find_map(|list| list.take_at(list.position(key)?))?;
        self.len -= 1;
        self.drop_empty();
        Some(taken)
    }

    /// Drops the adds of all other objects, and returns how many.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&ObjectKey) -> bool) -> usize {
        let before = self.len;
        for list in &mut self.lists {
            for place in &mut list.places[list.next..] {
                if !is_kept(place.key()) && place.take().is_some() {
                    self.len -= 1;
                }
            }
            list.skip_taken();
        }
        self.drop_empty();
        before - self.len
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn drop_empty(&mut self) {
        self.lists.retain(|list| list.next < list.places.len());
        if self.lists.is_empty() {
            self.lists = VecDeque::new();
        }
    }
}

// === impl SnapshotAdds ===

impl SnapshotAdds {
    fn ticket(&self, index: usize) -> u64 {
        self.first_ticket + index as u64
    }

    /// Returns the place of an object that waits.
    fn position(&self, key: &ObjectKey) -> Option<usize> {
        let index =
            self.next + self.places[self.next..].binary_search_by(|place| place.key().cmp(key)).ok()?;
        matches!(self.places[index], Place::Waits(_)).then_some(index)
    }

    fn take_at(&mut self, index: usize) -> Option<Pending> {
        let object = self.places.get_mut(index)?.take()?;
        let ticket = self.ticket(index);
        self.skip_taken();
        Some(Pending {
            notification: Notification::Added { object, is_in_initial_list: true },
            fields: NotificationFields::default(),
            ticket,
            arrived: self.arrived,
            attempts: 0,
            tried: false,
            counts_for_sync: true,
            is_initial: true,
            is_merged: false,
        })
    }

    fn skip_taken(&mut self) {
        let left = &self.places[self.next..];
        self.next += left.iter().take_while(|place| matches!(place, Place::Taken(_))).count();
    }
}

// === impl Place ===

impl Place {
    fn key(&self) -> &ObjectKey {
        match self {
            Self::Waits(object) => object.key(),
            Self::Taken(key) => key,
        }
    }

    fn take(&mut self) -> Option<Object> {
        let key = match self {
            Self::Waits(object) => object.key().clone(),
            Self::Taken(_) => return None,
        };
        match std::mem::replace(self, Self::Taken(key)) {
            Self::Waits(object) => Some(object),
            Self::Taken(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::TypeMeta;
    use crate::testing::Draft;

    fn objects(names: &[&str]) -> Vec<Object> {
        let kind = TypeMeta::new("v1", "Pod");
        names.iter().map(|name| Draft::new(name).at(&kind, "uid", "1")).collect()
    }

    fn name(pending: &Pending) -> (String, u64) {
        (pending.notification.object().key().to_string(), pending.ticket)
    }

    #[tokio::test(start_paused = true)]
    async fn adds_come_in_order_save_those_that_were_taken() {
        let mut adds = InitialAdds::default();
        let now = Instant::now();
        adds.append(objects(&["a", "b", "c", "d", "e", "f"]), 10, now);
        adds.append(objects(&["x", "y"]), 20, now);
        let key = |name: &str| name.parse::<ObjectKey>().unwrap();
        assert_eq!(name(&adds.take(&key("c")).unwrap()), ("c".to_owned(), 12));
        assert_eq!(name(&adds.take(&key("d")).unwrap()), ("d".to_owned(), 13));
        assert!(adds.take(&key("c")).is_none() && adds.take(&key("z")).is_none());
        assert_eq!(name(&adds.pop_first().unwrap()), ("a".to_owned(), 10));
        assert_eq!(name(&adds.take(&key("x")).unwrap()), ("x".to_owned(), 20));
        for gone in ["a", "c", "d", "x", ""] {
            assert!(adds.take(&key(gone)).is_none(), "{gone}");
        }
        assert_eq!((adds.len(), adds.first_ticket()), (4, Some(11)));
        assert_eq!(adds.retain(|key| key.name() != "b"), 1);
        let left: Vec<_> = std::iter::from_fn(|| adds.pop_first()).map(|it| name(&it)).collect();
        assert_eq!(left, [("e".to_owned(), 14), ("f".to_owned(), 15), ("y".to_owned(), 21)]);
        assert!(adds.is_empty() && adds.lists.capacity() == 0);
    }
}
