//! Validates custom resources against their schema, with the messages of kube-apiserver's validator.

use crate::status::Cause;
use serde_json::{Map, Value, json};

/// Returns the errors of an object. A version without a schema accepts everything.
pub(crate) fn validate(schema: Option<&Value>, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (Some(schema), Some(map)) = (schema, object.as_object()) else {
        return causes;
    };
    // Type and metadata are validated as for every kind.
    let mut content = map.clone();
    for key in ["apiVersion", "kind", "metadata"] {
        content.shift_remove(key);
    }
    let mut top = schema.clone();
    if let Some(required) = top.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !["apiVersion", "kind", "metadata"].map(|known| json!(known)).contains(name));
    }
    check(&top, &Value::Object(content.clone()), "", &mut causes);
    check_lists(schema, &Value::Object(content), "", &mut causes);
    causes
}

/// Returns whether two objects are equal at the place that a cause names, such as `spec.parts[1].name`.
pub(crate) fn is_same_at(field: &str, new: &Value, old: &Value) -> bool {
    let find = |object: &Value| {
        let steps = field.split(['.', '[']).map(|step| step.trim_end_matches(']'));
        let mut at = object.clone();
        for step in steps {
            at = match &mut at {
                Value::Object(map) => map.shift_remove(step)?,
                Value::Array(list) => list.get(step.parse::<usize>().ok()?)?.clone(),
                _ => return None,
            };
        }
        Some(at)
    };
    match (find(new), find(old)) {
        (Some(new), Some(old)) => new == old,
        // A place that is absent from both is equal only if the enclosing place is.
        (None, None) => field.rsplit_once('.').is_some_and(|(around, _)| is_same_at(around, new, old)),
        _ => false,
    }
}

/// Returns the errors of a default, reported at the `default` of the schema at `path`.
pub(super) fn validate_default(schema: &Value, default: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    check(schema, default, "", &mut causes);
    for cause in &mut causes {
        let inner = std::mem::take(&mut cause.field);
        let inner = if inner.is_empty() { inner } else { format!(".{inner}") };
        cause.field = format!("{path}.default{inner}");
    }
    causes
}

pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn check(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let flag = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    if value.is_null() {
        // A null that the schema does not allow counts as absent, except for required fields.
        if !flag("nullable") && !path.is_empty() {
            causes.push(wrong_type(schema, value, path));
        }
        return;
    }
    if !has_type(schema, value) {
        causes.push(wrong_type(schema, value, path));
        return;
    }
    let invalid = |why: String| Cause::invalid(path, value, why);
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        let supported: Vec<String> = allowed.iter().map(Value::to_string).collect();
        causes.push(Cause::new(
            "FieldValueNotSupported",
            path,
            format!("Unsupported value: {value}: supported values: {}", supported.join(", ")),
        ));
    }
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            let limit = |key: &str| schema.get(key).and_then(Value::as_f64);
            if let Some(minimum) = limit("minimum") {
                let (outside, words) = if flag("exclusiveMinimum") {
                    (number <= minimum, "greater than")
                } else {
                    (number < minimum, "greater than or equal to")
                };
                if outside {
                    causes.push(invalid(format!("{path} in body should be {words} {}", schema["minimum"])));
                }
            }
            if let Some(maximum) = limit("maximum") {
                let (outside, words) = if flag("exclusiveMaximum") {
                    (number >= maximum, "less than")
                } else {
                    (number > maximum, "less than or equal to")
                };
                if outside {
                    causes.push(invalid(format!("{path} in body should be {words} {}", schema["maximum"])));
                }
            }
            if let Some(multiple) = limit("multipleOf")
                && (number / multiple).fract().abs() > f64::EPSILON
            {
                causes.push(invalid(format!(
                    "{path} in body should be a multiple of {}",
                    schema["multipleOf"]
                )));
            }
        }
        Value::String(text) => check_string(schema, text, path, causes),
        Value::Array(list) => check_array(schema, list, path, causes),
        Value::Object(map) => check_object(schema, map, path, causes),
        _ => {}
    }
    check_combined(schema, value, path, causes);
}

fn check_string(schema: &Value, text: &str, path: &str, causes: &mut Vec<Cause>) {
    let size = |key: &str| schema.get(key).and_then(Value::as_u64);
    let length = text.chars().count() as u64;
    if let Some(most) = size("maxLength").filter(|most| length > *most) {
        causes.push(Cause::new(
            "FieldValueTooLong",
            path,
            format!("Too long: may not be more than {most} {}", if most == 1 { "byte" } else { "bytes" }),
        ));
    } else if let Some(least) = size("minLength").filter(|least| length < *least) {
        causes.push(Cause::invalid(
            path,
            &json!(text),
            format!("{path} in body should be at least {least} chars long"),
        ));
    } else if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && regex::Regex::new(pattern).is_ok_and(|regex| !regex.is_match(text))
    {
        causes.push(Cause::invalid(path, &json!(text), format!("{path} in body should match '{pattern}'")));
    }
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    let fits = match format {
        "date-time" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.parse::<jiff::civil::Date>().is_ok(),
        "uuid" => uuid::Uuid::parse_str(text).is_ok(),
        "ipv4" => text.parse::<std::net::Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<std::net::Ipv6Addr>().is_ok(),
        // Other formats are not checked; kube-apiserver does not check most of them either.
        _ => true,
    };
    if !fits {
        causes.push(Cause::new(
            "FieldValueTypeInvalid",
            path,
            format!("Invalid value: {text:?}: {path} in body must be of type {format}: {text:?}"),
        ));
    }
}

fn too_many(count: u64, most: u64, path: &str) -> Cause {
    let items = if most == 1 { "item" } else { "items" };
    Cause::new("FieldValueTooMany", path, format!("Too many: {count}: must have at most {most} {items}"))
}

fn check_array(schema: &Value, list: &[Value], path: &str, causes: &mut Vec<Cause>) {
    let size = |key: &str| schema.get(key).and_then(Value::as_u64);
    let count = list.len() as u64;
    if let Some(most) = size("maxItems").filter(|most| count > *most) {
        causes.push(too_many(count, most, path));
    }
    if let Some(least) = size("minItems").filter(|least| count < *least) {
        causes.push(Cause::invalid(
            path,
            &json!(count),
            format!("{path} in body should have at least {least} items"),
        ));
    }
    if schema.get("uniqueItems") == Some(&Value::Bool(true))
        && list.iter().enumerate().any(|(index, item)| list[..index].contains(item))
    {
        causes.push(Cause::new("FieldValueDuplicate", path, format!("Duplicate value: {path:?}")));
    }
    if let Some(items) = schema.get("items") {
        for (index, item) in list.iter().enumerate() {
            check(items, item, &format!("{path}[{index}]"), causes);
        }
    }
}

fn check_object(schema: &Value, map: &Map<String, Value>, path: &str, causes: &mut Vec<Cause>) {
    let size = |key: &str| schema.get(key).and_then(Value::as_u64);
    let count = map.len() as u64;
    if let Some(most) = size("maxProperties").filter(|most| count > *most) {
        causes.push(too_many(count, most, path));
    }
    if let Some(least) = size("minProperties").filter(|least| count < *least) {
        causes.push(Cause::invalid(
            path,
            &json!(count),
            format!("{path} in body should have at least {least} properties"),
        ));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        for name in ["apiVersion", "kind"] {
            if map.get(name).and_then(Value::as_str).is_none_or(str::is_empty) {
                causes.push(Cause::required(join(path, name), ""));
            }
        }
    }
    let nullable = |name: &str| {
        properties
            .and_then(|properties| properties.get(name))
            .is_some_and(|property| property.get("nullable") == Some(&Value::Bool(true)))
    };
    for name in &required {
        if map.get(*name).is_none_or(|value| value.is_null() && !nullable(name)) {
            causes.push(Cause::required(join(path, name), ""));
        }
    }
    for (name, value) in map {
        if value.is_null() && !nullable(name) && required.contains(&name.as_str()) {
            continue;
        }
        let property = properties.and_then(|properties| properties.get(name));
        if let Some(schema) =
            property.or_else(|| schema.get("additionalProperties").filter(|value| value.is_object()))
        {
            check(schema, value, &join(path, name), causes);
        }
    }
}

fn check_combined(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let all = |key: &str| schema.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let faults = |schema: &Value| {
        let mut causes = Vec::new();
        check(schema, value, path, &mut causes);
        causes
    };
    let cause = |why: String| Cause::new("FieldValueInvalid", "<nil>", format!("Invalid value: \"\": {why}"));
    for one in all("allOf") {
        causes.extend(faults(one));
    }
    let any = all("anyOf");
    if !any.is_empty() && !any.iter().any(|one| faults(one).is_empty()) {
        causes.push(cause(format!("{path:?} must validate at least one schema (anyOf)")));
        causes.extend(any.first().map(faults).into_iter().flatten());
    }
    let one_of = all("oneOf");
    if !one_of.is_empty() {
        let n_fitting = one_of.iter().filter(|one| faults(one).is_empty()).count();
        if n_fitting != 1 {
            let found = if n_fitting == 0 {
                "Found none valid".to_owned()
            } else {
                format!("Found {n_fitting} valid alternatives")
            };
            causes.push(cause(format!("{path:?} must validate one and only one schema (oneOf). {found}")));
            if n_fitting == 0 {
                causes.extend(one_of.first().map(faults).into_iter().flatten());
            }
        }
    }
    if schema.get("not").is_some_and(|not| faults(not).is_empty()) {
        causes.push(cause(format!("{path:?} must not validate the schema (not)")));
    }
}

/// The items of sets and of lists with keys must be unique.
fn check_lists(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    match value {
        Value::Array(list) => {
            let keys: Option<Vec<&str>> = match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
                Some("set") => Some(Vec::new()),
                Some("map") => schema
                    .get("x-kubernetes-list-map-keys")
                    .and_then(Value::as_array)
                    .map(|keys| keys.iter().filter_map(Value::as_str).collect()),
                _ => None,
            };
            if let Some(keys) = keys {
                let key_of = |item: &Value| -> Value {
                    if keys.is_empty() {
                        return item.clone();
                    }
                    let key = |name: &&str| Some(((*name).to_owned(), item.get(*name)?.clone()));
                    Value::Object(keys.iter().filter_map(key).collect())
                };
                for (index, item) in list.iter().enumerate() {
                    let key = key_of(item);
                    if list[..index].iter().any(|other| key_of(other) == key) {
                        causes.push(Cause::new(
                            "FieldValueDuplicate",
                            format!("{path}[{index}]"),
                            format!("Duplicate value: {key}"),
                        ));
                    }
                }
            }
            if let Some(items) = schema.get("items") {
                for (index, item) in list.iter().enumerate() {
                    check_lists(items, item, &format!("{path}[{index}]"), causes);
                }
            }
        }
        Value::Object(map) => {
            for (name, value) in map {
                let property = schema.get("properties").and_then(|properties| properties.get(name));
                if let Some(schema) = property.or_else(|| schema.get("additionalProperties")) {
                    check_lists(schema, value, &join(path, name), causes);
                }
            }
        }
        _ => {}
    }
}

fn has_type(schema: &Value, value: &Value) -> bool {
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        return value.is_string() || is_integer(value);
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("number") => value.is_number(),
        Some("integer") => is_integer(value),
        _ => true,
    }
}

fn is_integer(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn wrong_type(schema: &Value, value: &Value, path: &str) -> Cause {
    let got = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let wanted = if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        "integer,string"
    } else {
        schema.get("type").and_then(Value::as_str).unwrap_or_default()
    };
    Cause::new(
        "FieldValueTypeInvalid",
        path,
        format!("Invalid value: {got:?}: {path} in body must be of type {wanted}: {got:?}"),
    )
}
