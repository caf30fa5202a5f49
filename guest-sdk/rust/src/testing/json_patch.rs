//! JSON patches (RFC 6902): `test`, `add`, `replace` and `remove`. As in kube-apiserver, a test for `null`
//! holds for a field that is missing.

use serde_json::Value;

use crate::Error;

/// Applies a patch. After an error, some operations may have been applied.
pub(super) fn apply(object: &mut Value, patch: &Value) -> Result<(), Error> {
    let operations = patch.as_array().ok_or_else(|| Error::Invalid("a JSON patch is a list".to_owned()))?;
    for operation in operations {
        change(object, operation)
            .ok_or_else(|| Error::Invalid(format!("the operation does not apply: {operation}")))?;
    }
    Ok(())
}

fn change(object: &mut Value, operation: &Value) -> Option<()> {
    let text = |name: &str| operation[name].as_str();
    let (op, path, value) = (text("op")?, text("path")?, &operation["value"]);
    if op == "test" {
        return (object.pointer(path).unwrap_or(&Value::Null) == value).then_some(());
    }
    let (parent, last) = path.rsplit_once('/')?;
    let last = last.replace("~1", "/").replace("~0", "~");
    match (object.pointer_mut(parent)?, op) {
        (Value::Object(fields), "add") => drop(fields.insert(last, value.clone())),
        (Value::Object(fields), "replace") => *fields.get_mut(&last)? = value.clone(),
        (Value::Object(fields), "remove") => drop(fields.remove(&last)?),
        (Value::Array(list), "add") => {
            let at = if last == "-" { list.len() } else { last.parse().ok()? };
            (at <= list.len()).then(|| list.insert(at, value.clone()))?;
        }
        (Value::Array(list), "replace") => *list.get_mut(last.parse::<usize>().ok()?)? = value.clone(),
        (Value::Array(list), "remove") => {
            let at: usize = last.parse().ok()?;
            (at < list.len()).then(|| list.remove(at))?;
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_change_fields_and_elements() {
        let mut object = json!({"a": {"b/c": 1}, "list": [1, 2]});
        let patch = json!([
            {"op": "test", "path": "/a/b~1c", "value": 1},
            {"op": "test", "path": "/missing", "value": null},
            {"op": "replace", "path": "/a/b~1c", "value": 2},
            {"op": "add", "path": "/list/-", "value": 3},
            {"op": "remove", "path": "/list/0"},
            {"op": "add", "path": "/new", "value": true},
        ]);
        apply(&mut object, &patch).unwrap();
        assert_eq!(object, json!({"a": {"b/c": 2}, "list": [2, 3], "new": true}));
    }

    #[test]
    fn an_operation_that_does_not_apply_is_an_error() {
        for operation in [
            json!({"op": "test", "path": "/a", "value": 2}),
            json!({"op": "remove", "path": "/b"}),
            json!({"op": "replace", "path": "/list/1", "value": 0}),
            json!({"op": "add", "path": "/list/2", "value": 0}),
            json!({"op": "add", "path": "/b/c", "value": 0}),
            json!({"op": "turn", "path": "/a"}),
        ] {
            let mut object = json!({"a": 1, "list": [1]});
            let Err(Error::Invalid(text)) = apply(&mut object, &json!([operation])) else {
                panic!("{operation} applies")
            };
            assert!(text.starts_with("the operation does not apply: "), "{text}");
        }
        assert!(apply(&mut json!({}), &json!({})).is_err());
    }
}
