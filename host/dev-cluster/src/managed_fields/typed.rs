//! Walks over objects by their types: which fields there are, which differ, what two make together, what is left.
//!
//! After `structured-merge-diff`, whose function names are kept in the comments: there every subtle rule here is found.

use super::field_set::{FieldSet, Path, Scalar, Step};
use crate::schema::{ListKind, Node, Shape};
use serde_json::{Map, Value};

/// What changed from one object to another.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub added: FieldSet,
    pub modified: FieldSet,
    pub removed: FieldSet,
}

const OMITS_KEYS: &str = "associative list with keys has an element that omits all key fields";

/// How a place is treated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Treated {
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

/// Returns what in an applied object does not fit its type, as `ObjectToTyped` words it.
pub(super) fn faults(root: &Node, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check(root, value, &mut Vec::new(), &mut faults);
    faults
}

fn check(node: &Node, value: &Value, path: &mut Path, faults: &mut Vec<String>) {
    let mut wrong = |why: String| faults.push(format!("{}: {why}", super::field_set::display(path)));
    match (&node.shape, value) {
        (_, Value::Null) | (Shape::Any, _) => {}
        (Shape::Struct(_) | Shape::Map(_), Value::Object(map)) => {
            for (name, field) in map {
                path.push(Step::field(name));
                match node.field(name) {
                    Some(node) => check(node, field, path, faults),
                    None => {
                        let at = super::field_set::display(path);
                        faults.push(format!("{at}: field not declared in schema"));
                    }
                }
                path.pop();
            }
        }
        (Shape::Struct(_) | Shape::Map(_), other) => {
            wrong(format!("expected map, got &{{{}}}", plain(other)))
        }
        (Shape::List(inner), Value::Array(list)) => {
            if node.atomic || node.list == ListKind::Atomic {
                for (index, item) in list.iter().enumerate() {
                    path.push(Step::Index(index));
                    check(inner, item, path, faults);
                    path.pop();
                }
                return;
            }
            match items(node, list) {
                Err(why) => wrong(why),
                Ok(items) => {
                    for (index, (step, item)) in items.iter().enumerate() {
                        if items[..index].iter().any(|(other, _)| other == step) {
                            let key = super::field_set::display(std::slice::from_ref(step));
                            let at = super::field_set::display(path);
                            faults.push(format!("{at}: duplicate entries for key {key}"));
                        }
                        path.push(step.clone());
                        check(inner, item, path, faults);
                        path.pop();
                    }
                }
            }
        }
        (Shape::List(_), other) => wrong(format!("expected list, got &{{{}}}", plain(other))),
        (Shape::String | Shape::Bytes, other) if !other.is_string() => {
            wrong(format!("expected string, got &value.valueUnstructured{{Value:{}}}", plain(other)));
        }
        (Shape::Integer | Shape::Number, other) if !other.is_number() => {
            let got = match other {
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                Value::Array(_) => "[]interface {}",
                _ => "map[string]interface {}",
            };
            wrong(format!("expected numeric (int or float), got {got}"));
        }
        (Shape::Boolean, other) if !other.is_boolean() => {
            wrong(format!("expected boolean, got &{{{}}}", plain(other)));
        }
        _ => {}
    }
}

/// Writes a value without the quotes of JSON, as Go's `%v` does.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the items of a list with what tells them apart; `Err` names the item that cannot be told apart.
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
                field.default.clone().or_else(|| field.never_set())
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

fn treated(node: &Node, value: &Value) -> Treated {
    if node.atomic {
        return Treated::Whole;
    }
    match (&node.shape, value) {
        (Shape::Any, Value::Object(_)) | (Shape::Struct(_) | Shape::Map(_), _) => Treated::Map,
        (Shape::List(_), _) if node.list != ListKind::Atomic => Treated::List,
        _ => Treated::Whole,
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
    match treated(node, value) {
        Treated::Whole => set.insert(path),
        Treated::List => {
            let Ok(items) = items(node, list_of(Some(value)).unwrap_or_default()) else {
                return set.insert(path);
            };
            for (step, item) in &items {
                path.push(step.clone());
                // Items that cannot be told apart are owned as one.
                if items.iter().filter(|(other, _)| other == step).count() == 1 {
                    collect(node.item(), item, path, set);
                }
                set.insert(path);
                path.pop();
            }
        }
        Treated::Map => {
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

/// Returns what changed from `left` to `right` (`Compare`).
pub(super) fn compare(root: &Node, left: &Value, right: &Value) -> Comparison {
    let mut comparison = Comparison::default();
    comparison.visit(root, Some(left), Some(right), &mut Vec::new());
    comparison
}

// === impl Comparison ===

impl Comparison {
    #[must_use]
    pub(super) fn without(&self, prefixes: &[Path]) -> Self {
        Self {
            added: self.added.without(prefixes),
            modified: self.modified.without(prefixes),
            removed: self.removed.without(prefixes),
        }
    }

    fn visit(&mut self, node: &Node, left: Option<&Value>, right: Option<&Value>, path: &mut Path) {
        let of_left = left.map(|value| treated(node, value));
        let of_right = right.map(|value| treated(node, value));
        let is_leaf = match (of_left, of_right) {
            (Some(one), None) | (None, Some(one)) => self.descend(one, node, left, right, path),
            (Some(a), Some(b)) if a == b => self.descend(a, node, left, right, path),
            // An untyped place that was one thing and is now another.
            (Some(a), Some(b)) => {
                self.descend(a, node, left, right, path);
                self.descend(b, node, left, right, path)
            }
            (None, None) => return,
        };
        if !is_leaf {
            match (left, right) {
                (None, Some(_)) => self.added.insert(path),
                (Some(_), None) => self.removed.insert(path),
                _ => {}
            }
        }
    }

    /// Compares what is below; returns true if the place was compared as a whole.
    fn descend(
        &mut self,
        treated: Treated,
        node: &Node,
        left: Option<&Value>,
        right: Option<&Value>,
        path: &mut Path,
    ) -> bool {
        match treated {
            Treated::Whole => {}
            Treated::List => {
                let lists = (list_of(left).unwrap_or_default(), list_of(right).unwrap_or_default());
                if let (Ok(l), Ok(r)) = (items(node, lists.0), items(node, lists.1))
                    && !(l.is_empty() && r.is_empty())
                {
                    self.visit_items(node, &l, &r, path);
                    return false;
                }
            }
            Treated::Map => {
                let empty = Map::new();
                let maps = (map_of(left).unwrap_or(&empty), map_of(right).unwrap_or(&empty));
                if !(maps.0.is_empty() && maps.1.is_empty()) {
                    let names = maps.0.keys().chain(maps.1.keys().filter(|key| !maps.0.contains_key(*key)));
                    for name in names {
                        path.push(Step::field(name));
                        self.visit(child(node, name), maps.0.get(name), maps.1.get(name), path);
                        path.pop();
                    }
                    return false;
                }
            }
        }
        match (left, right) {
            (None, _) => self.added.insert(path),
            (_, None) => self.removed.insert(path),
            (Some(l), Some(r)) if l != r => self.modified.insert(path),
            _ => {}
        }
        true
    }

    fn visit_items(
        &mut self,
        node: &Node,
        left: &[(Step, &Value)],
        right: &[(Step, &Value)],
        path: &mut Path,
    ) {
        let with = |list: &[(Step, &Value)], step: &Step| -> usize {
            list.iter().filter(|(s, _)| s == step).count()
        };
        let mut seen: Vec<&Step> = Vec::new();
        for (step, _) in left.iter().chain(right) {
            if seen.contains(&step) {
                continue;
            }
            seen.push(step);
            let find = |list: &[(Step, &'_ Value)]| list.iter().position(|(s, _)| s == step);
            let l = find(left).map(|index| left[index].1);
            let r = find(right).map(|index| right[index].1);
            path.push(step.clone());
            match (with(left, step), with(right, step)) {
                (0 | 1, 0 | 1) => self.visit(node.item(), l, r, path),
                (0 | 1, _) => {
                    if l.is_some() {
                        self.visit(node.item(), l, None, path);
                    }
                    self.added.insert(path);
                }
                (_, 0 | 1) => {
                    if r.is_some() {
                        self.visit(node.item(), None, r, path);
                    }
                    self.removed.insert(path);
                }
                _ => {
                    let all = |list: &[(Step, &Value)]| -> Vec<Value> {
                        list.iter().filter(|(s, _)| s == step).map(|(_, v)| (*v).clone()).collect()
                    };
                    if all(left) != all(right) {
                        self.modified.insert(path);
                    }
                }
            }
            path.pop();
        }
    }
}

/// Lays `right` over `left` (`Merge`); `Err` says which list cannot be merged and why.
pub(super) fn merge(
    node: &Node,
    left: Option<&Value>,
    right: Option<&Value>,
) -> Result<Option<Value>, String> {
    let whole = || Ok(right.or(left).cloned());
    let (Some(first), Some(last)) = (left.or(right), right.or(left)) else {
        return Ok(None);
    };
    let treated = if left.is_some() && right.is_some() && treated(node, first) != treated(node, last) {
        Treated::Whole
    } else {
        treated(node, last)
    };
    match treated {
        Treated::Whole => whole(),
        Treated::List => {
            let (l, r) = (list_of(left).unwrap_or_default(), list_of(right).unwrap_or_default());
            if l.is_empty() && r.is_empty() {
                return whole();
            }
            let merged = merge_items(node, &items(node, l)?, &items(node, r)?)?;
            Ok((!merged.is_empty()).then_some(Value::Array(merged)))
        }
        Treated::Map => {
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

/// Keeps the order of `right` among its items and puts those of `left` where they were relative to the shared ones.
fn merge_items(node: &Node, left: &[(Step, &Value)], right: &[(Step, &Value)]) -> Result<Vec<Value>, String> {
    let in_left = |step: &Step| left.iter().any(|(s, _)| s == step);
    let in_right = |step: &Step| right.iter().any(|(s, _)| s == step);
    // A duplicated item is not merged with the new one.
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

/// Returns the value without the members of the set (`RemoveItems`).
pub(super) fn remove(root: &Node, value: &Value, set: &FieldSet) -> Value {
    let mut path = Vec::new();
    remove_below(root, value, set, &mut path).unwrap_or(Value::Null)
}

fn remove_below(node: &Node, value: &Value, set: &FieldSet, path: &mut Path) -> Option<Value> {
    let empty = |was: &Value| match was {
        Value::Object(_) => Value::Object(Map::new()),
        Value::Array(_) => Value::Array(Vec::new()),
        other => other.clone(),
    };
    match (treated(node, value), value) {
        (Treated::Map, Value::Object(map)) if !map.is_empty() => {
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
        (Treated::List, Value::Array(list)) if !list.is_empty() => {
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
        (Treated::Whole, value) if !value.is_object() && !value.is_array() => Some(value.clone()),
        _ => None,
    }
}
