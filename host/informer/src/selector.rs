//! Conditions on the fields of an object.

mod field;

pub use field::{ConditionError, FieldCondition, FieldTest};
