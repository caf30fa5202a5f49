//! The objects that an index filed under one value.

use super::order::Order;
use super::slots::{Slot, Slots};
use crate::names::ObjectKey;
use crate::namespaces::Namespaces;

/// Slots, sorted by the keys of their objects; never empty. Most values of most indices have one object.
#[derive(Clone, Debug)]
pub(super) enum Postings {
    One(Slot),
    Many(Order),
}

// === impl Postings ===

impl Postings {
    pub(super) fn insert(&mut self, slot: Slot, slots: &Slots) {
        match self {
            Self::One(one) if *one == slot => {}
            Self::One(one) => {
                let mut many = Order::default();
                many.insert(*one, slots);
                many.insert(slot, slots);
                *self = Self::Many(many);
            }
            Self::Many(many) => many.insert(slot, slots),
        }
    }

    /// Removes a slot. Returns whether no slot is left.
    pub(super) fn remove(&mut self, slot: Slot, slots: &Slots) -> bool {
        match self {
            Self::One(one) => *one == slot,
            Self::Many(many) => {
                many.remove(slot, slots);
                many.len() == 0
            }
        }
    }

    /// Returns the slots, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Slot> {
        let (one, many) = match self {
            Self::One(one) => (Some(*one), None),
            Self::Many(many) => (None, Some(many.iter())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    /// Returns the slots of these namespaces after a key, in order.
    pub(super) fn within<'p>(
        &'p self,
        slots: &'p Slots,
        namespaces: &'p Namespaces,
        after: Option<&'p ObjectKey>,
    ) -> impl Iterator<Item = Slot> + 'p {
        let (one, many) = match self {
            Self::One(one) => (Some(*one), None),
            Self::Many(many) => (None, Some(many.within(slots, namespaces, after))),
        };
        let is_wanted = move |slot: &Slot| {
            slots.key(*slot).is_some_and(|key| {
                after.is_none_or(|after| key > after) && namespaces.contains(key.namespace())
            })
        };
        one.filter(is_wanted).into_iter().chain(many.into_iter().flatten())
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(many) => many.len(),
        }
    }

    /// Returns the slots as an order that shares its chunks.
    pub(super) fn to_order(&self, slots: &Slots) -> Order {
        match self {
            Self::One(one) => {
                let mut order = Order::default();
                order.insert(*one, slots);
                order
            }
            Self::Many(many) => many.clone(),
        }
    }
}
