//! One change of an object, and the list of changes that are queued for it.

use crate::names::ObjectKey;
use crate::object::Object;

/// One change of an object.
#[derive(Clone, Debug)]
pub enum Delta {
    /// The watch sent an add.
    Added(Object),
    /// The watch sent an update.
    Updated(Object),
    /// The watch sent a delete, or a list no longer has the object.
    Deleted(DeltaObject),
    /// A list has the object: new, changed, or unchanged.
    Replaced(Object),
    /// A resync queued the known object again.
    Sync(Object),
}

/// The last known state of a deleted object.
#[derive(Clone, Debug)]
pub enum DeltaObject {
    /// The final state, which the delete event carried.
    Object(Object),
    /// The delete event was missed.
    Tombstone(Tombstone),
}

/// Stands for an object whose deletion was missed (client-go's `DeletedFinalStateUnknown`).
#[derive(Clone, Debug)]
pub struct Tombstone {
    /// The object's key.
    pub key: ObjectKey,
    /// The last known state, which may be stale.
    pub object: Option<Object>,
}

/// The changes of one object, oldest first. Never empty.
#[derive(Clone, Debug)]
pub struct Deltas(Changes);

/// One change, the usual case, is stored without an allocation.
#[derive(Clone, Debug)]
enum Changes {
    One(Delta),
    Many(Vec<Delta>),
}

// === impl Delta ===

impl Delta {
    /// Returns the last known state of the object, looking through a tombstone.
    #[must_use]
    pub fn last_known(&self) -> Option<&Object> {
        match self {
            Self::Added(object) | Self::Updated(object) | Self::Replaced(object) | Self::Sync(object) => {
                Some(object)
            }
            Self::Deleted(deleted) => deleted.last_known(),
        }
    }
}

// === impl DeltaObject ===

impl DeltaObject {
    /// Returns the last known state of the object, looking through a tombstone.
    #[must_use]
    pub fn last_known(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            Self::Tombstone(tombstone) => tombstone.object.as_ref(),
        }
    }

    /// Returns the namespace and name of the object. They are parsed from the tombstone's key if the object
    /// is unknown: the namespace ends at the first slash.
    #[must_use]
    pub fn name(&self) -> ObjectKey {
        match self {
            Self::Object(object) | Self::Tombstone(Tombstone { object: Some(object), .. }) => {
                object.key().clone()
            }
            Self::Tombstone(Tombstone { key, object: None }) => match key.name().split_once('/') {
                Some((namespace, name)) if key.namespace().is_empty() => ObjectKey::new(namespace, name),
                _ => key.clone(),
            },
        }
    }

    /// Returns whether the delete event was missed.
    #[must_use]
    pub fn is_tombstone(&self) -> bool {
        matches!(self, Self::Tombstone(_))
    }
}

// === impl Deltas ===

impl Deltas {
    pub(super) fn new(first: Delta) -> Self {
        Self(Changes::One(first))
    }

    /// Appends a change. Two deletes in a row become one: the newer if the older is a tombstone, else the
    /// older, since a final state is better than a stale one. No other changes are merged.
    pub(super) fn push(&mut self, delta: Delta) {
        if let (Delta::Deleted(older), Delta::Deleted(_)) = (self.newest(), &delta) {
            if !older.is_tombstone() {
                return;
            }
            match &mut self.0 {
                Changes::One(one) => *one = delta,
                Changes::Many(many) => {
                    many.pop();
                    many.push(delta);
                }
            }
            return;
        }
        match &mut self.0 {
            Changes::One(one) => self.0 = Changes::Many(vec![one.clone(), delta]),
            Changes::Many(many) => many.push(delta),
        }
    }

    /// Drops the oldest changes, `n_oldest` of them; returns none if no change is left.
    pub(super) fn without(self, n_oldest: usize) -> Option<Self> {
        match self.0 {
            _ if n_oldest == 0 => Some(self),
            Changes::One(_) => None,
            Changes::Many(mut many) => {
                many.drain(..n_oldest.min(many.len()));
                (!many.is_empty()).then_some(Self(Changes::Many(many)))
            }
        }
    }

    /// Returns the changes, oldest first.
    #[must_use]
    pub fn as_slice(&self) -> &[Delta] {
        match &self.0 {
            Changes::One(one) => std::slice::from_ref(one),
            Changes::Many(many) => many,
        }
    }

    /// Returns the newest change.
    #[must_use]
    pub fn newest(&self) -> &Delta {
        let changes = self.as_slice();
        &changes[changes.len() - 1]
    }
}
