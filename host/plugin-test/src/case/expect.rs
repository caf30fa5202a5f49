//! The keys of `expect`: their check, and their JSON schema.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::check_object;

/// A list of `expect` whose entries are mappings.
struct List {
    name: &'static str,
    /// An entry has exactly one of these keys, with a text.
    one: &'static [&'static str],
    /// Keys that an entry may have besides.
    others: &'static [&'static str],
    meaning: &'static str,
}

const LISTS: [List; 4] = [
    List {
        name: "writes",
        one: &["create", "apply", "patch", "replace", "delete"],
        others: &["body", "error"],
        meaning: "Requests that write: the verb, with `VERSION/PLURAL NAMESPACE/NAME` (with a group: \
                  `apps/v1/deployments`; with a subresource: `v1/pods/status`). `body`: fields that must be in the \
                  request. `error`: such as `conflict`, if the request failed.",
    },
    List {
        name: "events",
        one: &["normal", "warning"],
        others: &["regarding", "note"],
        meaning: "Kubernetes Events: the type, with the reason. `regarding`: the object, such as `Pod shop/web`. \
                  `note`: the text.",
    },
    List {
        name: "logs",
        one: &["trace", "debug", "info", "warn", "error"],
        others: &["fields"],
        meaning: "Log lines of the plugin: the level, with the message. `fields`: a mapping.",
    },
    List {
        name: "failures",
        one: &["retry", "retry-after", "terminal", "trap"],
        others: &["call"],
        meaning: "Calls that failed: how, with the message. `call`: such as `on-add shop/web`.",
    },
];

/// The other keys: the JSON type of the value or of an entry, and the meaning.
const OTHERS: [(&str, &str, &str); 4] = [
    (
        "requeued",
        "string",
        "Keys that `reconcile` asked to be called with again: `KIND NAMESPACE/NAME after 10m`.",
    ),
    (
        "metrics",
        "number",
        "Names of the plugin's metrics, with labels as `name{label=\"value\"}`, and their values since the start.",
    ),
    ("objects", "object", "Objects that must exist and have these fields."),
    ("gone", "object", "Objects that must not exist."),
];

/// Returns the JSON schema of `expect`.
pub(super) fn schema(_: &mut SchemaGenerator) -> Schema {
    let mut properties = Map::new();
    for List { name, one, others, meaning } in &LISTS {
        let texts = one.iter().map(|key| (*key, json!({ "type": "string" })));
        let others = others.iter().map(|key| {
            let kind = match *key {
                // A JSON patch is a list.
                "body" => json!(["object", "array"]),
                "fields" => json!("object"),
                _ => json!("string"),
            };
            (*key, json!({ "type": kind }))
        });
        let keys: Map<_, _> = texts.chain(others).map(|(key, schema)| (key.to_owned(), schema)).collect();
        let entry = json!({ "type": "object", "properties": keys, "additionalProperties": false });
        let list = json!({ "type": "array", "items": entry, "description": meaning });
        properties.insert((*name).to_owned(), list);
    }
    for (name, kind, meaning) in OTHERS {
        let value = json!({ "type": kind });
        let schema = match name {
            "metrics" => json!({ "type": "object", "additionalProperties": value, "description": meaning }),
            _ => json!({ "type": "array", "items": value, "description": meaning }),
        };
        properties.insert(name.to_owned(), schema);
    }
    json_schema!({ "type": ["object", "null"], "properties": properties, "additionalProperties": false })
}

/// Checks the keys and the shapes of their values.
pub(super) fn check_expect(expect: &Map<String, Value>) -> Result<(), String> {
    for (key, value) in expect {
        let list = || value.as_array().ok_or_else(|| format!("`{key}` must be a list"));
        if let Some(List { one, others, .. }) = LISTS.iter().find(|list| list.name == key) {
            for (idx, entry) in list()?.iter().enumerate() {
                check_entry(entry, one, others).map_err(|reason| format!("{key}[{idx}]: {reason}"))?;
            }
            continue;
        }
        match key.as_str() {
            "requeued" if list()?.iter().any(|it| !it.is_string()) => {
                return Err(
                    "`requeued` is a list of texts such as `ingress default/web after 10m`".to_owned()
                );
            }
            "metrics" if !value.as_object().is_some_and(|it| it.values().all(Value::is_number)) => {
                return Err("`metrics` is a mapping of names to numbers".to_owned());
            }
            "objects" | "gone" => {
                for (idx, object) in list()?.iter().enumerate() {
                    check_object(object).map_err(|reason| format!("{key}[{idx}]: {reason}"))?;
                }
            }
            "requeued" | "metrics" => {}
            _ => {
                let names = LISTS.iter().map(|list| list.name).chain(OTHERS.map(|(name, ..)| name));
                let known: Vec<_> = names.collect();
                return Err(format!("unknown key `{key}`; the keys are {}", known.join(", ")));
            }
        }
    }
    Ok(())
}

fn check_entry(entry: &Value, one: &[&str], others: &[&str]) -> Result<(), String> {
    let shape = || {
        format!("an entry is a mapping with one of {}, and optionally {}", one.join(", "), others.join(", "))
    };
    let entry = entry.as_object().ok_or_else(shape)?;
    let n_ones = entry.iter().filter(|(key, value)| one.contains(&key.as_str()) && value.is_string()).count();
    let known = |key: &String| one.contains(&key.as_str()) || others.contains(&key.as_str());
    if n_ones == 1 && entry.keys().all(known) { Ok(()) } else { Err(shape()) }
}
