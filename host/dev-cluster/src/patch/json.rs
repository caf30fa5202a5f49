//! JSON patch (RFC 6902), with the liberties of the library that the real server uses: `replace` of a field that is not
//! there adds it, `copy` of one that is not there copies a null, and indices may count from the end.

use super::{does_not_apply, undecodable};
use crate::status::StatusError;
use serde::Deserialize;
use serde_json::Value;

/// More operations than these are refused unread.
const MAX_OPERATIONS: usize = 10_000;

#[derive(Deserialize)]
struct Operation {
    #[serde(default)]
    op: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    from: String,
    #[serde(default)]
    value: Value,
}

/// Applies a patch to a copy of an object.
pub(super) fn apply(current: &Value, body: &[u8]) -> Result<Value, StatusError> {
    let patch: Value = serde_json::from_slice(body).map_err(|error| undecodable(&error))?;
    let Value::Array(patch) = patch else {
        let got = if patch.is_object() { "object" } else { "value" };
        return Err(StatusError::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {got} into Go value of type []handlers.jsonPatchOp"
        )));
    };
    if patch.len() > MAX_OPERATIONS {
        let mut error = StatusError::too_large(MAX_OPERATIONS);
        error.message = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            patch.len()
        );
        return Err(error);
    }
    let mut object = current.clone();
    for operation in patch {
        let operation: Operation = serde_json::from_value(operation).map_err(|error| undecodable(&error))?;
        operation.apply(&mut object).ok_or_else(does_not_apply)?;
    }
    Ok(object)
}

// === impl Operation ===

impl Operation {
    fn apply(self, object: &mut Value) -> Option<()> {
        match self.op.as_str() {
            "add" => add(object, &self.path, self.value),
            "remove" => remove(object, &self.path).map(drop),
            "replace" => replace(object, &self.path, self.value),
            "move" => {
                let value = remove(object, &self.from)?;
                add(object, &self.path, value)
            }
            "copy" => {
                let value = get(object, &self.from)?;
                add(object, &self.path, value)
            }
            "test" => match get(object, &self.path) {
                Some(value) => (value == self.value).then_some(()),
                None => self.value.is_null().then_some(()),
            },
            _ => None,
        }
    }
}

fn steps(path: &str) -> Option<Vec<String>> {
    let rest = path.strip_prefix('/')?;
    Some(rest.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect())
}

/// Returns what holds the last step, and that step.
fn parent<'o>(object: &'o mut Value, path: &str) -> Option<(&'o mut Value, String)> {
    let mut steps = steps(path)?;
    let last = steps.pop()?;
    let mut at = object;
    for step in steps {
        at = match at {
            Value::Object(map) => map.get_mut(&step)?,
            Value::Array(list) => {
                let index = index(&step, list.len())?;
                list.get_mut(index)?
            }
            _ => return None,
        };
    }
    Some((at, last))
}

fn index(step: &str, length: usize) -> Option<usize> {
    let number: i64 = step.parse().ok()?;
    let index = if number < 0 { i64::try_from(length).ok()? + number } else { number };
    usize::try_from(index).ok()
}

fn get(object: &mut Value, path: &str) -> Option<Value> {
    if path.is_empty() {
        return Some(object.clone());
    }
    match parent(object, path)? {
        (Value::Object(map), key) => Some(map.get(&key).cloned().unwrap_or_default()),
        (Value::Array(list), step) => list.get(index(&step, list.len())?).cloned(),
        _ => None,
    }
}

fn add(object: &mut Value, path: &str, value: Value) -> Option<()> {
    match parent(object, path)? {
        (Value::Object(map), key) => {
            map.insert(key, value);
        }
        (Value::Array(list), step) if step == "-" => list.push(value),
        (Value::Array(list), step) => {
            let index = index(&step, list.len() + 1).filter(|index| *index <= list.len())?;
            list.insert(index, value);
        }
        _ => return None,
    }
    Some(())
}

fn replace(object: &mut Value, path: &str, value: Value) -> Option<()> {
    if path.is_empty() {
        *object = value;
        return Some(());
    }
    match parent(object, path)? {
        (Value::Object(map), key) => {
            map.insert(key, value);
        }
        (Value::Array(list), step) => {
            let index = index(&step, list.len())?;
            *list.get_mut(index)? = value;
        }
        _ => return None,
    }
    Some(())
}

fn remove(object: &mut Value, path: &str) -> Option<Value> {
    match parent(object, path)? {
        (Value::Object(map), key) => map.shift_remove(&key),
        (Value::Array(list), step) => {
            let index = index(&step, list.len()).filter(|index| *index < list.len())?;
            Some(list.remove(index))
        }
        _ => None,
    }
}
