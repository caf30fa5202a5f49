//! The type errors of an applied object.

use super::{Path, Step, items};
use crate::managed_fields::field_set::display;
use crate::schema::{ListKind, Node, Shape};
use serde_json::Value;

/// Returns the type errors of an applied object, with the messages of `ObjectToTyped`.
pub(in super::super) fn faults(root: &Node, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check(root, value, &mut Vec::new(), &mut faults);
    faults
}

fn check(node: &Node, value: &Value, path: &mut Path, faults: &mut Vec<String>) {
    let mut wrong = |why: String| faults.push(format!("{}: {why}", display(path)));
    match (&node.shape, value) {
        (_, Value::Null) | (Shape::Any, _) => {}
        (Shape::Struct(_) | Shape::Map(_), Value::Object(map)) => {
            for (name, field) in map {
                path.push(Step::field(name));
                match node.field(name) {
                    Some(node) => check(node, field, path, faults),
                    None => {
                        let at = display(path);
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
                            let key = display(std::slice::from_ref(step));
                            let at = display(path);
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

/// Writes a value without JSON's quotes, as Go's `%v` does.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
