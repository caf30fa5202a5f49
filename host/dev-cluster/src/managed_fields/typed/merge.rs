//! Merges two objects, and removes fields from one.

use super::{FieldSet, Path, Step, Treatment, child, items, list_of, map_of, treatment};
use crate::schema::Node;
use serde_json::{Map, Value};

/// Merges `right` over `left` (`Merge`). `Err` names a list that cannot be merged, and the reason.
pub(in super::super) fn merge(
    node: &Node,
    left: Option<&Value>,
    right: Option<&Value>,
) -> Result<Option<Value>, String> {
    let whole = || Ok(right.or(left).cloned());
    let (Some(first), Some(last)) = (left.or(right), right.or(left)) else {
        return Ok(None);
    };
    let treatment = if left.is_some() && right.is_some() && treatment(node, first) != treatment(node, last) {
        Treatment::Whole
    } else {
        treatment(node, last)
    };
    match treatment {
        Treatment::Whole => whole(),
        Treatment::List => {
            let (l, r) = (list_of(left).unwrap_or_default(), list_of(right).unwrap_or_default());
            if l.is_empty() && r.is_empty() {
                return whole();
            }
            let merged = merge_items(node, &items(node, l)?, &items(node, r)?)?;
            Ok((!merged.is_empty()).then_some(Value::Array(merged)))
        }
        Treatment::Map => {
            let empty = Map::new();
            let (l, r) = (map_of(left).unwrap_or(&empty), map_of(right).unwrap_or(&empty));
            if l.is_empty() && r.is_empty() {
                return whole();
            }
            let mut merged = Map::new();
            for name in l.keys().chain(r.keys().filter(|key| !l.contains_key(*key))) {
                let value = merge(child(node, name), l.get(name), r.get(name))
                    .map_err(|why| format!(".{name}{why}"))?;
                if let Some(value) = value {
                    merged.insert(name.clone(), value);
                }
            }
            Ok((!merged.is_empty()).then_some(Value::Object(merged)))
        }
    }
}

/// Keeps the order of `right`, and inserts the items of `left` at their positions relative to the shared
/// items.
fn merge_items(node: &Node, left: &[(Step, &Value)], right: &[(Step, &Value)]) -> Result<Vec<Value>, String> {
    let in_left = |step: &Step| left.iter().any(|(s, _)| s == step);
    let in_right = |step: &Step| right.iter().any(|(s, _)| s == step);
    // A duplicated item is replaced, not merged.
    let left_value = |step: &Step| match left.iter().filter(|(s, _)| s == step).count() {
        1 => left.iter().find(|(s, _)| s == step).map(|(_, value)| *value),
        _ => None,
    };
    let mut shared = right.iter().map(|(step, _)| step).filter(|step| in_left(step));
    let mut next_shared = shared.next();
    let mut merged_right: Vec<&Step> = Vec::new();
    let mut out = Vec::new();
    let (mut l, mut r) = (0, 0);
    while l < left.len() || r < right.len() {
        if l < left.len() && r < right.len() {
            let step = &left[l].0;
            if *step == right[r].0 {
                merged_right.push(step);
                out.extend(merge(node.item(), left_value(step), Some(right[r].1))?);
                (l, r) = (l + 1, r + 1);
                next_shared = shared.next();
                continue;
            }
            if in_right(step) && next_shared.is_some_and(|next| next != step) {
                l += 1;
                continue;
            }
        }
        if l < left.len() {
            let (step, value) = &left[l];
            if !in_right(step) {
                out.extend(merge(node.item(), Some(value), None)?);
                l += 1;
                continue;
            }
            if merged_right.contains(&step) {
                l += 1;
            }
        }
        if r < right.len() {
            let (step, value) = &right[r];
            merged_right.push(step);
            out.extend(merge(node.item(), left_value(step), Some(value))?);
            r += 1;
            if next_shared == Some(step) {
                next_shared = shared.next();
            }
        }
    }
    Ok(out)
}

/// Returns the value without the fields of the set (`RemoveItems`).
pub(in super::super) fn remove(root: &Node, value: &Value, set: &FieldSet) -> Value {
    let mut path = Vec::new();
    remove_below(root, value, set, &mut path).unwrap_or(Value::Null)
}

fn remove_below(node: &Node, value: &Value, set: &FieldSet, path: &mut Path) -> Option<Value> {
    let empty = |was: &Value| match was {
        Value::Object(_) => Value::Object(Map::new()),
        Value::Array(_) => Value::Array(Vec::new()),
        other => other.clone(),
    };
    match (treatment(node, value), value) {
        (Treatment::Map, Value::Object(map)) if !map.is_empty() => {
            let mut kept = Map::new();
            for (name, field) in map {
                path.push(Step::field(name));
                if !set.has(path) {
                    let field = if set.has_below(path) {
                        remove_below(child(node, name), field, set, path).unwrap_or_else(|| empty(field))
                    } else {
                        field.clone()
                    };
                    kept.insert(name.clone(), field);
                }
                path.pop();
            }
            Some(Value::Object(kept))
        }
        (Treatment::List, Value::Array(list)) if !list.is_empty() => {
            let Ok(items) = items(node, list) else {
                return Some(value.clone());
            };
            let mut kept = Vec::new();
            for (step, item) in items {
                path.push(step);
                if !set.has(path) {
                    kept.push(if set.has_below(path) {
                        remove_below(node.item(), item, set, path).unwrap_or_else(|| empty(item))
                    } else {
                        item.clone()
                    });
                }
                path.pop();
            }
            Some(Value::Array(kept))
        }
        (Treatment::Whole, value) if !value.is_object() && !value.is_array() => Some(value.clone()),
        _ => None,
    }
}
