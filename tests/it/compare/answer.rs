//! A response without its random parts, and the differences between two responses.

use http::response::Parts;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The headers that are compared.
const HEADERS: &[&str] = &["content-type", "warning", "retry-after"];

/// A response. The events of a watch are a list.
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: BTreeMap<&'static str, Vec<String>>,
    pub(crate) body: Value,
}

// === impl Answer ===

impl Answer {
    pub(crate) fn new(head: &Parts, body: &[u8]) -> Self {
        let mut headers = BTreeMap::new();
        for name in HEADERS {
            let values: Vec<String> = head
                .headers
                .get_all(*name)
                .iter()
                .filter_map(|value| value.to_str().ok())
                .map(str::to_owned)
                .collect();
            if !values.is_empty() {
                headers.insert(*name, values);
            }
        }
        let text = String::from_utf8_lossy(body);
        let body = serde_json::from_str(&text).unwrap_or_else(|_| {
            let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
            match lines {
                Ok(events) if !events.is_empty() => Value::Array(events),
                _ => Value::String(text.into_owned()),
            }
        });
        Self { status: head.status.as_u16(), headers, body }
    }

    /// Returns the number of events if this is the response of a watch, 0 otherwise.
    pub(crate) fn n_events(&self) -> usize {
        match &self.body {
            Value::Array(events) => events.len(),
            event => usize::from(event.get("type").is_some() && event.get("object").is_some()),
        }
    }

    /// Replaces the parts that differ between any two servers: versions, uids, times, tokens, values of
    /// earlier responses.
    pub(crate) fn normalized(mut self, variables: &BTreeMap<String, String>) -> Self {
        normalize(&mut self.body, variables);
        self
    }
}

fn normalize(value: &mut Value, variables: &BTreeMap<String, String>) {
    match value {
        Value::Object(map) => {
            // Owned fields contain the keys of list items.
            if map.keys().any(|key| key.starts_with("k:")) {
                let entries = std::mem::take(map).into_iter();
                map.extend(entries.map(|(key, value)| (without(&key, variables), value)));
            }
            normalize_object(map);
            map.values_mut().for_each(|value| normalize(value, variables));
        }
        Value::Array(list) => list.iter_mut().for_each(|value| normalize(value, variables)),
        Value::String(text) => {
            if is_time(text) {
                *text = "<time>".into();
            }
            *text = without(text, variables);
        }
        _ => {}
    }
}

fn without(text: &str, variables: &BTreeMap<String, String>) -> String {
    // A short value could be a part of other text.
    let variables = variables.iter().filter(|(_, value)| value.len() > 4);
    variables
        .fold(text.to_owned(), |text, (name, value)| text.replace(value.as_str(), &format!("${{{name}}}")))
}

fn normalize_object(map: &mut Map<String, Value>) {
    for (key, replacement) in [("resourceVersion", "<version>"), ("uid", "<uid>"), ("continue", "<continue>")]
    {
        if let Some(Value::String(text)) = map.get_mut(key)
            && !text.is_empty()
        {
            *text = replacement.into();
        }
    }
    if let (Some(Value::String(prefix)), Some(name @ Value::String(_))) =
        (map.get("generateName").cloned(), map.get("name").cloned())
    {
        let generated = name
            .as_str()
            .and_then(|name| name.strip_prefix(prefix.as_str()))
            .is_some_and(|rest| rest.len() == 5);
        if generated {
            map.insert("name".into(), format!("{prefix}<generated>").into());
        }
    }
    if let Some(Value::Array(entries)) = map.get_mut("managedFields") {
        // The order depends on their times in seconds, which differ.
        entries.sort_by_key(|entry| {
            ["manager", "operation", "subresource", "apiVersion"].map(|key| entry[key].to_string())
        });
    }
    normalize_table(map);
    for rules in ["resourceRules", "nonResourceRules"] {
        // The real server visits bindings in the random order of Go maps.
        if let Some(Value::Array(rules)) = map.get_mut(rules) {
            rules.sort_by_key(Value::to_string);
        }
    }
    let failed = map.get("status") == Some(&json!("Failure"));
    if let Some(causes) =
        map.get_mut("details").and_then(|details| details.get_mut("causes")).and_then(Value::as_array_mut)
    {
        for cause in causes.iter_mut() {
            // The message quotes the whole object, as one string.
            let about = cause["message"].as_str().unwrap_or_default().to_owned();
            if cause["field"] == "patch"
                && let Some((_, why)) = about.rsplit_once("\": ")
            {
                cause["message"] = format!("<the object>: {why}").into();
            }
        }
        // The real server reports them in the random order of Go maps, some of them twice, and repeats them
        // in its message.
        causes.sort_by_key(|cause| [&cause["field"], &cause["message"]].map(Value::to_string));
        causes.dedup();
        if failed {
            let message = map.get("message").and_then(Value::as_str).unwrap_or_default();
            let about = message.split_once(" is invalid: ").map_or(message, |(about, _)| about).to_owned();
            map.insert("message".into(), about.into());
        }
    }
}

/// Tables: ages change, and the embedded server has no descriptions of columns.
fn normalize_table(map: &mut Map<String, Value>) {
    for column in map.get_mut("columnDefinitions").and_then(Value::as_array_mut).into_iter().flatten() {
        column["description"] = "<documentation>".into();
    }
    for row in map.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
        for cell in row["cells"].as_array_mut().into_iter().flatten() {
            let is_age =
                |text: &str| text.strip_suffix('s').is_some_and(|number| number.parse::<u32>().is_ok());
            if cell.as_str().is_some_and(is_age) {
                *cell = "<age>".into();
            }
        }
    }
}

fn is_time(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    matches!(shape.as_str(), "0000-00-00T00:00:00Z" | "0000-00-00T00:00:00.000000Z")
}

/// Returns the unknown differences, and the known differences that no longer exist.
pub(crate) fn differences(real: &Answer, embedded: &Answer, known: &BTreeMap<String, String>) -> Vec<String> {
    let mut found = BTreeMap::new();
    if real.status != embedded.status {
        let text = |answer: &Answer| format!("{} {}", answer.status, answer.body);
        found.insert("status".to_owned(), format!("real {}\n    embedded {}", text(real), text(embedded)));
    }
    let names: BTreeSet<_> = real.headers.keys().chain(embedded.headers.keys()).collect();
    for name in names {
        let (r, e) = (real.headers.get(*name), embedded.headers.get(*name));
        if r != e {
            found.insert(format!("header {name}"), format!("real {r:?}, embedded {e:?}"));
        }
    }
    compare(&real.body, &embedded.body, "", &mut found);
    let mut used = BTreeSet::new();
    found.retain(|place, _| {
        let reason = known.keys().find(|known| {
            known.as_str() == "*"
                || place == *known
                || place.strip_prefix(known.as_str()).is_some_and(|rest| rest.starts_with('/'))
        });
        used.extend(reason);
        reason.is_none()
    });
    let mut out: Vec<String> = found.into_iter().map(|(place, what)| format!("{place}: {what}")).collect();
    for (place, reason) in known.iter().filter(|(place, _)| !used.contains(place)) {
        out.push(format!("{place}: no longer differs, but the script lists a difference ({reason})"));
    }
    out
}

fn compare(real: &Value, embedded: &Value, path: &str, found: &mut BTreeMap<String, String>) {
    match (real, embedded) {
        (Value::Object(r), Value::Object(e)) => {
            let keys: BTreeSet<_> = r.keys().chain(e.keys()).collect();
            for key in keys {
                let here = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                match (r.get(key), e.get(key)) {
                    (Some(r), Some(e)) => compare(r, e, &here, found),
                    (Some(r), None) => drop(found.insert(here, format!("real {r}, embedded nothing"))),
                    (None, Some(e)) => drop(found.insert(here, format!("real nothing, embedded {e}"))),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(r), Value::Array(e)) if r.len() == e.len() => {
            for (index, (r, e)) in r.iter().zip(e).enumerate() {
                compare(r, e, &format!("{path}/{index}"), found);
            }
        }
        (r, e) if r != e => drop(found.insert(path.to_owned(), format!("real {r}, embedded {e}"))),
        _ => {}
    }
}
