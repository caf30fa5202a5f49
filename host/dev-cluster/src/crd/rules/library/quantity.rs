//! Kubernetes' functions on quantities.

use crate::model::quantity_nanos;
use cel::extractors::This;
use cel::objects::Opaque;
use cel::{Context, DeclarationError, ExecutionError, Value};
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) const NAMES: super::Functions = &[
    "quantity",
    "isQuantity",
    "isLessThan",
    "isGreaterThan",
    "compareTo",
    "add",
    "sub",
    "isInteger",
    "asInteger",
    "asApproximateFloat",
    "sign",
];

const NANO: i128 = 1_000_000_000;

pub(super) fn declare(context: &mut Context<'static, 'static>) -> Result<(), DeclarationError> {
    context.add_function("quantity", |text: Text| {
        let nanos = quantity_nanos(&text).map_err(|why| ExecutionError::function_error("quantity", why))?;
        Ok::<_, ExecutionError>(wrap(nanos))
    })?;
    context.add_function("isQuantity", |text: Text| quantity_nanos(&text).is_ok())?;
    context.add_function("isLessThan", |This(this): This<SharedQuantity>, other: SharedQuantity| {
        compare("isLessThan", &this, &other).map(|order| order == Ordering::Less)
    })?;
    context.add_function("isGreaterThan", |This(this): This<SharedQuantity>, other: SharedQuantity| {
        compare("isGreaterThan", &this, &other).map(|order| order == Ordering::Greater)
    })?;
    context.add_function("compareTo", |This(this): This<SharedQuantity>, other: SharedQuantity| {
        compare("compareTo", &this, &other).map(|order| order as i64)
    })?;
    context.add_function("add", |This(this): This<SharedQuantity>, other: Value| {
        combine("add", &this, &other, i128::checked_add)
    })?;
    context.add_function("sub", |This(this): This<SharedQuantity>, other: Value| {
        combine("sub", &this, &other, i128::checked_sub)
    })?;
    context.add_function("isInteger", |This(this): This<SharedQuantity>| {
        nanos("isInteger", &this).map(|nanos| nanos % NANO == 0 && i64::try_from(nanos / NANO).is_ok())
    })?;
    context.add_function("asInteger", |This(this): This<SharedQuantity>| {
        let nanos = nanos("asInteger", &this)?;
        let whole =
            Some(nanos / NANO).filter(|_| nanos % NANO == 0).and_then(|whole| i64::try_from(whole).ok());
        whole.ok_or_else(|| ExecutionError::function_error("asInteger", "cannot convert value to integer"))
    })?;
    context.add_function("asApproximateFloat", |This(this): This<SharedQuantity>| {
        nanos("asApproximateFloat", &this).map(|nanos| nanos as f64 / NANO as f64)
    })?;
    context.add_function("sign", |This(this): This<SharedQuantity>| {
        nanos("sign", &this).map(|nanos| nanos.signum() as i64)
    })
}

type Text = Arc<String>;
type SharedQuantity = Arc<dyn Opaque>;

#[derive(Debug, PartialEq, Eq)]
struct Quantity {
    nanos: i128,
}

impl Opaque for Quantity {
    fn runtime_type_name(&self) -> &str {
        "kubernetes.Quantity"
    }
}

fn wrap(nanos: i128) -> Value {
    Value::Opaque(Arc::new(Quantity { nanos }))
}

fn nanos(function: &str, value: &SharedQuantity) -> Result<i128, ExecutionError> {
    value.downcast_ref::<Quantity>().map(|quantity| quantity.nanos).ok_or_else(|| {
        let why = format!("no such overload for {}", value.runtime_type_name());
        ExecutionError::function_error(function, why)
    })
}

fn compare(function: &str, a: &SharedQuantity, b: &SharedQuantity) -> Result<Ordering, ExecutionError> {
    Ok(nanos(function, a)?.cmp(&nanos(function, b)?))
}

/// The other operand may be an integer.
fn combine(
    function: &str,
    this: &SharedQuantity,
    other: &Value,
    operation: fn(i128, i128) -> Option<i128>,
) -> Result<Value, ExecutionError> {
    let other = match other {
        Value::Int(whole) => i128::from(*whole) * NANO,
        Value::Opaque(other) => nanos(function, other)?,
        _ => return Err(ExecutionError::function_error(function, "takes a quantity or an integer")),
    };
    operation(nanos(function, this)?, other)
        .map(wrap)
        .ok_or_else(|| ExecutionError::function_error(function, "the result is too large"))
}
