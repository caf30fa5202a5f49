//! Strategic merge patch: merges lists of built-in types by key; directives express other changes.
//!
//! Follows `k8s.io/apimachinery/pkg/util/strategicpatch`.

use crate::schema::{Node, Shape};
use crate::status::StatusError;
use serde_json::{Map, Value};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER: &str = "$setElementOrder/";

type Object = Map<String, Value>;

/// Returns a patched copy of an object of this type.
pub(super) fn apply(root: &Node, current: &Value, patch: Value) -> Result<Value, StatusError> {
    let Value::Object(patch) = patch else {
        return Err(StatusError::bad_request(
            "json: cannot unmarshal value into Go value of type map[string]interface {}",
        ));
    };
    let original = current.as_object().cloned().unwrap_or_default();
    merge_map(root, original, patch).map(Value::Object)
}

fn failed(why: impl Into<String>) -> StatusError {
    StatusError::untranslated(why)
}

fn merge_map(node: &Node, mut original: Object, mut patch: Object) -> Result<Object, StatusError> {
    match patch.get(PATCH).map(|directive| directive.as_str().unwrap_or_default().to_owned()) {
        None => {}
        Some(directive) if directive == "replace" => {
            patch.shift_remove(PATCH);
            return Ok(patch);
        }
        Some(directive) if directive == "delete" => return Ok(Object::new()),
        Some(directive) => return Err(unknown_directive(&directive, &patch)),
    }
    retain_keys(&mut original, &mut patch)?;
    order_elements(node, &mut original, &mut patch)?;
    for (key, value) in patch {
        if let Some(key) = key.strip_prefix(DELETE_FROM_LIST) {
            if let (Some(Value::Array(list)), Value::Array(removed)) = (original.get_mut(key), &value) {
                list.retain(|item| !removed.contains(item));
            }
            continue;
        }
        if value.is_null() {
            original.shift_remove(&key);
            continue;
        }
        let merged = match (original.get(&key).cloned(), value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let field = node.field(&key).unwrap_or(Node::UNTYPED);
                Some(Value::Object(merge_map(field, old, new)?))
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                let field = node.field(&key).unwrap_or(Node::UNTYPED);
                Some(Value::Array(merge_list(field, old, new)?))
            }
            (_, value) => without_directives(without_nulls(value)),
        };
        match merged {
            Some(value) => {
                original.insert(key, value);
            }
            None => {
                original.shift_remove(&key);
            }
        }
    }
    Ok(original)
}

fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), StatusError> {
    let Some(retained) = patch.shift_remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let bad = || failed("invalid patch format of retainKeys");
    let retained: Vec<&str> = retained.as_array().ok_or_else(bad)?.iter().filter_map(Value::as_str).collect();
    for (key, value) in patch.iter() {
        let directive = key.starts_with(DELETE_FROM_LIST) || key.starts_with(ELEMENT_ORDER);
        if !value.is_null() && !directive && !retained.contains(&key.as_str()) {
            return Err(bad());
        }
    }
    original.retain(|key, _| retained.contains(&key.as_str()));
    Ok(())
}

/// Merges the lists whose order the patch sets, and removes them from the patch.
fn order_elements(node: &Node, original: &mut Object, patch: &mut Object) -> Result<(), StatusError> {
    let keys: Vec<String> = patch.keys().filter(|key| key.starts_with(ELEMENT_ORDER)).cloned().collect();
    for directive in keys {
        let Some(Value::Array(order)) = patch.shift_remove(&directive) else {
            return Err(failed("invalid patch format of setElementOrder list"));
        };
        let key = &directive[ELEMENT_ORDER.len()..];
        let field = node.field(key).unwrap_or(Node::UNTYPED);
        let live = original.get(key).and_then(Value::as_array).cloned();
        let mut new = match patch.get(key) {
            Some(Value::Array(new)) => Some(new.clone()),
            _ => None,
        };
        if patch.get(key).is_some_and(Value::is_null) {
            continue;
        }
        patch.shift_remove(key);
        let merged = match (live.clone(), new.take()) {
            (None, None) => continue,
            (Some(live), None) => live,
            (None, Some(new)) => match without_directives(Value::Array(new)) {
                Some(Value::Array(new)) => new,
                _ => continue,
            },
            (Some(live), Some(new)) => {
                check_order(field, &new, &order)?;
                merge_list(field, live, new)?
            }
        };
        original
            .insert(key.to_owned(), Value::Array(ordered(field, merged, &order, &live.unwrap_or_default())));
    }
    Ok(())
}

fn check_order(node: &Node, new: &[Value], order: &[Value]) -> Result<(), StatusError> {
    let mut rest = order.iter();
    for item in new.iter().filter(|item| item.get(PATCH).is_none()) {
        if !rest.any(|other| key_of(node, other) == key_of(node, item)) {
            return Err(failed(format!(
                "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                Value::Array(new.to_vec()),
                Value::Array(order.to_vec())
            )));
        }
    }
    Ok(())
}

/// Puts the items of `order` in that order, and keeps the others at their relative positions.
fn ordered(node: &Node, merged: Vec<Value>, order: &[Value], live: &[Value]) -> Vec<Value> {
    let place = |list: &[Value], item: &Value| {
        list.iter().position(|other| key_of(node, other) == key_of(node, item))
    };
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| place(order, item).is_some());
    named.sort_by_key(|item| place(order, item));
    others.sort_by_key(|item| place(live, item));
    let mut out = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    while let (Some(one), Some(other)) = (named.peek(), others.peek()) {
        let other_first = match (place(live, other), place(live, one)) {
            (Some(other), Some(one)) => other < one,
            _ => false,
        };
        out.extend(if other_first { others.next() } else { named.next() });
    }
    out.extend(others);
    out.extend(named);
    out
}

fn merge_key(node: &Node) -> Option<&str> {
    node.merge.as_ref().and_then(|merge| merge.key.as_deref())
}

/// Returns the merge key of an item, or the item itself.
fn key_of(node: &Node, item: &Value) -> Option<Value> {
    match merge_key(node) {
        Some(key) if item.is_object() => item.get(key).cloned(),
        _ => Some(item.clone()),
    }
}

fn merge_list(node: &Node, original: Vec<Value>, patch: Vec<Value>) -> Result<Vec<Value>, StatusError> {
    if !node.merge.as_ref().is_some_and(|merge| merge.merge) {
        return Ok(patch);
    }
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let of_objects = original.iter().chain(&patch).any(Value::is_object);
    if !of_objects {
        let mut merged: Vec<Value> = Vec::new();
        for item in original.iter().chain(&patch) {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        }
        return Ok(ordered(node, merged, &patch, &original));
    }
    let key = merge_key(node).ok_or_else(|| failed("cannot merge lists without merge key"))?;
    let no_key = |item: &Value| failed(format!("map: {item} does not contain declared merge key: {key}"));
    let mut live = original;
    let mut plain = Vec::new();
    let mut replace = false;
    for item in patch {
        match item.get(PATCH).map(|directive| directive.as_str().unwrap_or_default()) {
            None => plain.push(item),
            Some("delete") => {
                let removed = item.get(key).ok_or_else(|| no_key(&item))?;
                live.retain(|other| other.get(key) != Some(removed));
            }
            Some("replace") => replace = true,
            Some("merge") => return Err(failed("merging lists cannot yet be specified in the patch")),
            Some(other) => return Err(unknown_directive(other, item.as_object().unwrap_or(&Object::new()))),
        }
    }
    if replace {
        return Ok(plain);
    }
    let mut merged = live.clone();
    let order = plain.clone();
    for item in plain {
        let value = item.get(key).ok_or_else(|| no_key(&item))?.clone();
        let place = merged.iter().position(|other| other.get(key) == Some(&value));
        match (place, item) {
            (Some(index), Value::Object(item)) => {
                let old = merged[index].as_object().cloned().unwrap_or_default();
                merged[index] = Value::Object(merge_map(item_node(node), old, item)?);
            }
            (_, item) => merged.push(item),
        }
    }
    Ok(ordered(node, merged, &order, &live))
}

fn item_node(node: &Node) -> &Node {
    match &node.shape {
        Shape::List(item) => item,
        _ => Node::UNTYPED,
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key, without_nulls(value)))
                .collect(),
        ),
        Value::Array(list) => Value::Array(list.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// Returns a new value without its directives; `None` if it consists of directives only.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => Some(Value::Object(
            map.into_iter()
                .filter(|(key, _)| !key.starts_with('$'))
                .filter_map(|(key, value)| Some((key, without_directives(value)?)))
                .collect(),
        )),
        Value::Array(list) => Some(Value::Array(list.into_iter().filter_map(without_directives).collect())),
        other => Some(other),
    }
}

fn unknown_directive(directive: &str, patch: &Object) -> StatusError {
    let mut fields: Vec<String> = patch
        .iter()
        .map(|(key, value)| {
            format!("{key}:{}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        })
        .collect();
    fields.sort();
    failed(format!("unknown patch type: {directive} in map: map[{}]", fields.join(" ")))
}
