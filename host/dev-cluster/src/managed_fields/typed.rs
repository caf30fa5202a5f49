//! Operations on objects by their types: the set of fields, comparison, merge, and removal of fields.
//!
//! Follows `structured-merge-diff`; the comments name its functions, which explain each rule.

mod compare;
mod faults;
mod merge;

use super::field_set::{FieldSet, Path, Scalar, Step};
use crate::schema::{ListKind, Node, Shape};
use serde_json::{Map, Value};

pub(super) use compare::{Comparison, compare};
pub(super) use faults::faults;
pub(super) use merge::{merge, remove};

const OMITS_KEYS: &str = "associative list with keys has an element that omits all key fields";

/// The treatment of a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Treatment {
    Whole,
    List,
    Map,
}

/// Returns the fields of an object (`ToFieldSet`).
pub(super) fn fields_of(root: &Node, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    collect(root, value, &mut Vec::new(), &mut set);
    set
}

/// Returns the items of a list with their keys; `Err` names an item without a unique key.
pub(super) fn items<'v>(node: &Node, list: &'v [Value]) -> Result<Vec<(Step, &'v Value)>, String> {
    let step_of = |item: &Value| match &node.list {
        ListKind::Set if item.is_object() => {
            Err("associative list without keys has an element that's a map type")
        }
        ListKind::Set if item.is_array() => Err("not supported: associative list with lists as elements"),
        ListKind::Set if item.is_null() => {
            Err("associative list without keys has an element that's an explicit null")
        }
        ListKind::Set => Ok(Step::Value(Scalar(item.clone()))),
        ListKind::Map(_) if item.is_null() => Err("associative list with keys may not have a null element"),
        ListKind::Map(keys) => {
            let Some(fields) = item.as_object() else {
                return Err("associative list with keys may not have non-map elements");
            };
            let default = |key: &String| {
                let field = node.item().field(key)?;
                field.default.clone().or_else(|| field.zero_value())
            };
            let mut found: Vec<(String, Scalar)> = keys
                .iter()
                .filter_map(|key| {
                    let value = fields.get(key).cloned().or_else(|| default(key))?;
                    Some((key.clone(), Scalar(value)))
                })
                .collect();
            if found.is_empty() {
                return Err(OMITS_KEYS);
            }
            found.sort();
            Ok(Step::Key(found.into()))
        }
        ListKind::Atomic => Err("invalid indexing of non-associative list"),
    };
    list.iter()
        .enumerate()
        .map(|(index, item)| {
            step_of(item).map(|step| (step, item)).map_err(|why| match (why, &node.list) {
                (OMITS_KEYS, ListKind::Map(keys)) => format!(
                    "element {index}: {OMITS_KEYS} [{}] (and doesn't have default values for any key fields)",
                    keys.iter().map(|key| format!("{key:?}")).collect::<Vec<_>>().join(" ")
                ),
                _ => format!("element {index}: {why}"),
            })
        })
        .collect()
}

fn treatment(node: &Node, value: &Value) -> Treatment {
    if node.atomic {
        return Treatment::Whole;
    }
    match (&node.shape, value) {
        (Shape::Any, Value::Object(_)) | (Shape::Struct(_) | Shape::Map(_), _) => Treatment::Map,
        (Shape::List(_), _) if node.list != ListKind::Atomic => Treatment::List,
        _ => Treatment::Whole,
    }
}

fn map_of(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn list_of(value: Option<&Value>) -> Option<&[Value]> {
    value.and_then(Value::as_array).map(Vec::as_slice)
}

fn child<'n>(node: &'n Node, name: &str) -> &'n Node {
    node.field(name).unwrap_or(Node::UNTYPED)
}

fn collect(node: &Node, value: &Value, path: &mut Path, set: &mut FieldSet) {
    match treatment(node, value) {
        Treatment::Whole => set.insert(path),
        Treatment::List => {
            let Ok(items) = items(node, list_of(Some(value)).unwrap_or_default()) else {
                return set.insert(path);
            };
            for (step, item) in &items {
                path.push(step.clone());
                // Items with the same key are owned as one.
                if items.iter().filter(|(other, _)| other == step).count() == 1 {
                    collect(node.item(), item, path, set);
                }
                set.insert(path);
                path.pop();
            }
        }
        Treatment::Map => {
            for (name, field) in map_of(Some(value)).into_iter().flatten() {
                path.push(Step::field(name));
                collect(child(node, name), field, path, set);
                let empty = field.is_null() || field.as_object().is_some_and(Map::is_empty);
                if empty || !node.has_named_field(name) {
                    set.insert(path);
                }
                path.pop();
            }
        }
    }
}
