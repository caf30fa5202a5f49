//! The values under which an index has filed the object of one slot.

use std::sync::Arc;

use super::long_value::filed_as;
use super::namespace_budgets::charge_of;
use super::values::Values;

/// What an index has filed the object of a slot under.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Filed {
    /// The object has no values.
    #[default]
    Nothing,
    One(Arc<str>),
    Many(Box<[Arc<str>]>),
    /// The source cannot compute its values.
    Failed,
    /// Left out until its namespace has room.
    NoRoom,
    /// Left out because it has too many values.
    TooManyValues,
}

// === impl Filed ===

impl Filed {
    pub(super) fn values(&self) -> &[Arc<str>] {
        match self {
            Self::Nothing | Self::Failed | Self::NoRoom | Self::TooManyValues => &[],
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }

    /// Whether the object is filed under exactly these values.
    pub(super) fn equals(&self, values: &Values<'_>) -> bool {
        !self.is_failure()
            && self.values().len() == values.len()
            && self.values().iter().zip(values.iter()).all(|(filed, value)| **filed == *filed_as(value))
    }

    pub(super) fn is_failure(&self) -> bool {
        matches!(self, Self::Failed | Self::NoRoom | Self::TooManyValues)
    }

    pub(super) fn size(&self) -> usize {
        match self {
            Self::Many(many) => size_of_val::<[Arc<str>]>(many),
            _ => 0,
        }
    }

    pub(super) fn charge(&self) -> usize {
        self.values().iter().map(|value| charge_of(value)).sum()
    }
}
