//! Kubernetes' functions on lists.

use cel::common::types::{BOOL_TYPE, BYTES_TYPE, DOUBLE_TYPE, INT_TYPE, LIST_TYPE, STRING_TYPE};
use cel::common::value::CowVal;
use cel::extractors::IntoResolveResult;
use cel::{DeclarationError, Env, ExecutionError, Value};
use std::cmp::Ordering;

pub(super) const NAMES: super::Functions = &["isSorted", "sum", "min", "max", "indexOf", "lastIndexOf"];

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_member_overload("isSorted", "list_is_sorted", LIST_TYPE, vec![], is_sorted)?;
    env.add_member_overload("sum", "list_sum", LIST_TYPE, vec![], sum)?;
    env.add_member_overload("min", "list_min", LIST_TYPE, vec![], min)?;
    env.add_member_overload("max", "list_max", LIST_TYPE, vec![], max)?;
    let scalars = || [BOOL_TYPE, BYTES_TYPE, DOUBLE_TYPE, INT_TYPE, STRING_TYPE];
    for (item, same) in scalars().into_iter().zip(scalars()) {
        let first = format!("list_index_of_{}", item.name());
        let last = format!("list_last_index_of_{}", item.name());
        env.add_member_overload("indexOf", &first, LIST_TYPE, vec![item], index_of)?;
        env.add_member_overload("lastIndexOf", &last, LIST_TYPE, vec![same], last_index_of)?;
    }
    Ok(())
}

type Arguments<'b, 'v> = Vec<CowVal<'b, 'v>>;
type Answer<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

fn items(arguments: &Arguments<'_, '_>) -> Result<Vec<Value>, ExecutionError> {
    match arguments.first().map(|list| Value::try_from(list.as_ref())) {
        Some(Ok(Value::List(items))) => Ok(items.to_vec()),
        _ => Err(ExecutionError::missing_argument_or_target()),
    }
}

fn ordered(a: &Value, b: &Value) -> Result<Ordering, ExecutionError> {
    a.partial_cmp(b).ok_or_else(|| ExecutionError::ValuesNotComparable(a.clone(), b.clone()))
}

fn is_sorted<'b, 'v>(arguments: Arguments<'b, 'v>) -> Answer<'b, 'v> {
    let items = items(&arguments)?;
    for pair in items.windows(2) {
        if ordered(&pair[0], &pair[1])? == Ordering::Greater {
            return false.into_resolve_result();
        }
    }
    true.into_resolve_result()
}

fn sum<'b, 'v>(arguments: Arguments<'b, 'v>) -> Answer<'b, 'v> {
    let mut items = items(&arguments)?.into_iter();
    let Some(first) = items.next() else { return 0_i64.into_resolve_result() };
    items.try_fold(first, |sum, item| sum + item)?.into_resolve_result()
}

fn extreme<'b, 'v>(arguments: &Arguments<'b, 'v>, name: &str, wanted: Ordering) -> Answer<'b, 'v> {
    let mut items = items(arguments)?.into_iter();
    let empty = || ExecutionError::function_error(name, format!("{name} called on empty list"));
    let mut found = items.next().ok_or_else(empty)?;
    for item in items {
        if ordered(&item, &found)? == wanted {
            found = item;
        }
    }
    found.into_resolve_result()
}

fn min<'b, 'v>(arguments: Arguments<'b, 'v>) -> Answer<'b, 'v> {
    extreme(&arguments, "min", Ordering::Less)
}

fn max<'b, 'v>(arguments: Arguments<'b, 'v>) -> Answer<'b, 'v> {
    extreme(&arguments, "max", Ordering::Greater)
}

fn wanted(arguments: &Arguments<'_, '_>) -> Result<Value, ExecutionError> {
    let wanted = arguments.get(1).ok_or_else(ExecutionError::missing_argument_or_target)?;
    Value::try_from(wanted.as_ref())
}

fn index(found: Option<usize>) -> i64 {
    found.and_then(|index| i64::try_from(index).ok()).unwrap_or(-1)
}

fn index_of<'b, 'v>(arguments: Arguments<'b, 'v>) -> Answer<'b, 'v> {
    let wanted = wanted(&arguments)?;
    index(items(&arguments)?.iter().position(|item| *item == wanted)).into_resolve_result()
}

fn last_index_of<'b, 'v>(arguments: Arguments<'b, 'v>) -> Answer<'b, 'v> {
    let wanted = wanted(&arguments)?;
    index(items(&arguments)?.iter().rposition(|item| *item == wanted)).into_resolve_result()
}
