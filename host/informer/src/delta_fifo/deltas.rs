//! One change of an object, and the list of those that wait for it.

use crate::names::ObjectKey;
use crate::object::Object;

/// One change of an object, as the reflector saw it.
#[derive(Clone, Debug)]
pub enum Delta {
    /// A watch saw it appear.
    Added(Object),
    /// A watch saw it change.
    Updated(Object),
    /// A watch saw it go, or a list does not have it any more.
    Deleted(DeltaObject),
    /// A list has it: new, changed, or as before.
    Replaced(Object),
    /// A resync brings it up again.
    Sync(Object),
}

/// What is known of an object that is gone.
#[derive(Clone, Debug)]
pub enum DeltaObject {
    /// Its real last state.
    Object(Object),
    /// Its deletion was missed.
    Tombstone(Tombstone),
}

/// Stands for an object whose deletion was missed (client-go's `DeletedFinalStateUnknown`).
#[derive(Clone, Debug)]
pub struct Tombstone {
    /// The object's key.
    pub key: ObjectKey,
    /// The last state that was seen, which may be stale.
    pub object: Option<Object>,
}

/// The changes of one object, oldest first; never empty.
#[derive(Clone, Debug)]
pub struct Deltas(Changes);

/// Most lists hold one change until they are popped, which takes no memory of its own.
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

    /// Returns the namespace and name of the object, taken from the tombstone's key where the object is unknown: its first slash
    /// ends the namespace.
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

    /// Whether the deletion itself was missed.
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

    /// Appends a change. Two deletions in a row become one: the newer if the older is a tombstone, else the older,
    /// since a real last state is worth more than a guess. Nothing else is compressed.
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

    /// Leaves out the oldest so many changes; none if that is all.
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
