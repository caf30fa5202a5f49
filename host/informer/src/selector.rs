//! Which objects someone cares about: by labels, by fields.

mod field;
mod label;

pub use field::{ConditionError, FieldCondition, FieldTest};
pub use label::{JsonSelectorError, LabelSelector, SelectorError};
