//! Conditions on the fields of an object.

mod field;

pub use field::{ConditionError, FieldCondition, FieldTest, MAX_VALUE_BYTES, MAX_VALUES};
