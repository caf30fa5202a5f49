//! JSON patch (RFC 6902), with the tolerances of the library that kube-apiserver uses.
//!
//! The crate `json_patch` changes the object and is strict. This file translates the inputs that Go's library
//! accepts beyond the RFC: `replace` of a missing field adds the field, `copy` of a missing field copies a
//! null, `test` of a missing value for null succeeds, and negative indices count from the end of a list.

use super::{does_not_apply, undecodable};
use crate::status::StatusError;
use json_patch::jsonptr::{PointerBuf, Token};
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation};
use serde::Deserialize;
use serde_json::Value;

/// A patch with more operations is refused before any of them is decoded.
const MAX_OPERATIONS: usize = 10_000;

/// One operation, as lenient as Go decodes it: a missing field has its zero value.
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

/// Returns a patched copy of an object.
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
    /// Changes the object, or returns `None` if the operation does not apply to it.
    fn apply(self, object: &mut Value) -> Option<()> {
        let Self { op, path, from, value } = self;
        match op.as_str() {
            "add" => add(object, &path, value),
            "remove" => remove(object, &path),
            "replace" => match get(object, &path)? {
                Some(_) => {
                    let path = pointer(object, &path, 0)?;
                    change(object, PatchOperation::Replace(ReplaceOperation { path, value }))
                }
                None => add(object, &path, value),
            },
            "move" => {
                let value = get(object, &from)??.clone();
                remove(object, &from)?;
                add(object, &path, value)
            }
            "copy" => {
                let value = get(object, &from)?.cloned().unwrap_or_default();
                add(object, &path, value)
            }
            "test" => match get(object, &path).flatten() {
                Some(_) => {
                    let path = pointer(object, &path, 0)?;
                    change(object, PatchOperation::Test(TestOperation { path, value }))
                }
                None => value.is_null().then_some(()),
            },
            _ => None,
        }
    }
}

fn add(object: &mut Value, path: &str, value: Value) -> Option<()> {
    let path = pointer(object, path, 1).filter(|path| !path.is_root())?;
    change(object, PatchOperation::Add(AddOperation { path, value }))
}

fn remove(object: &mut Value, path: &str) -> Option<()> {
    let path = pointer(object, path, 0)?;
    change(object, PatchOperation::Remove(RemoveOperation { path }))
}

fn change(object: &mut Value, operation: PatchOperation) -> Option<()> {
    json_patch::patch_unsafe(object, &[operation]).ok()
}

/// Returns the value at a path: `Some(None)` if only the last field of the path is missing, `None` if more is
/// missing.
fn get<'o>(object: &'o Value, path: &str) -> Option<Option<&'o Value>> {
    let path = pointer(object, path, 0)?;
    let Some((parent, last)) = path.split_back() else {
        return Some(Some(object));
    };
    match object.pointer(parent.as_str())? {
        Value::Object(fields) => Some(fields.get(last.decoded().as_ref())),
        list => list.pointer(&format!("/{}", last.encoded())).map(Some),
    }
}

/// Parses a path, and writes its indices without a sign. `n_added` is 1 if the last index may be that of a
/// new item.
fn pointer(object: &Value, path: &str, n_added: usize) -> Option<PointerBuf> {
    let mut pointer = PointerBuf::new();
    let Some(path) = path.strip_prefix('/') else {
        return path.is_empty().then_some(pointer);
    };
    let mut at = Some(object);
    let mut steps = path.split('/').peekable();
    while let Some(step) = steps.next() {
        let n_added = if steps.peek().is_none() { n_added } else { 0 };
        let token = match at {
            Some(Value::Array(list)) if step != "-" => Token::from(index(step, list.len() + n_added)?),
            _ => Token::new(step.replace("~1", "/").replace("~0", "~")),
        };
        at = at.and_then(|value| value.pointer(&format!("/{}", token.encoded())));
        pointer.push_back(token);
    }
    Some(pointer)
}

fn index(step: &str, n_items: usize) -> Option<usize> {
    let number: i64 = step.parse().ok()?;
    let index = if number < 0 { i64::try_from(n_items).ok()? + number } else { number };
    usize::try_from(index).ok()
}
