//! docs/reference/configuration.md: the files and variables that configure plugins and hosts, from the types
//! that read them.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use crate::toolchain::command;

const HEAD: &str = "\
<!-- Generated from the types of `oarlock` by `cargo xtask docs`. -->

# Configuration

Every key of every file that Oarlock reads, and every environment variable. Flags are in [the command line](cli.md).

A size is a number of bytes, or a text with one of the units `k`, `M`, `G`, `Ki`, `Mi` and `Gi`. A duration is a text with one of
the units `ms`, `s` and `m`. An unknown key is an error.
";

/// The files: the heading, the property of the host's answer, and the text before the table.
const FILES: [(&str, &str, &str); 4] = [
    (
        "plugin.yaml",
        "pluginFile",
        "The file of a plugin, in YAML or TOML. [The plugin file](../plugin-file.md) says where it lies and how it is read, and has \
         an example; [limits](../limits.md) has what happens beyond each limit.",
    ),
    (
        "oarlock.toml",
        "project",
        "Lies beside `plugin.yaml` and says how the component is built. It is optional.",
    ),
    (
        "The source policy",
        "sourcePolicy",
        "The file of `oarlock run --source-policy`, in YAML: where components may come from. \
         [Where components come from](../sources.md#the-policy-of-the-host) has an example.",
    ),
    (
        "A case",
        "case",
        "A file in the folder `cases`, in YAML: [testing a plugin](../testing-plugins.md) has an example. In `expect`, a list that \
         is there must be complete.",
    ),
];

/// Returns the page. `program` is the binary `oarlock`.
pub(super) fn page(program: &Path) -> Result<String> {
    let printed = command::output(Command::new(program).arg("reference"))?;
    page_of(&serde_json::from_str(&printed).context("`oarlock reference` prints no JSON")?)
}

fn page_of(reference: &Value) -> Result<String> {
    let mut page = String::from(HEAD);
    for (heading, key, text) in FILES {
        write!(page, "\n## {heading}\n\n{text}\n\n| key | value | |\n|---|---|---|\n")?;
        let mut table = Table::default();
        table.add("", &reference[key]).with_context(|| heading.to_owned())?;
        for row in table.rows {
            writeln!(page, "{row}")?;
        }
    }
    page += "\n## Environment variables\n\nA flag wins over its variable. A variable that is empty counts as not set.\n\n";
    page += "| variable | flag | default | |\n|---|---|---|---|\n";
    let variables = reference["environment"].as_array().context("there are no environment variables")?;
    for variable in variables {
        let text = |key: &str| variable[key].as_str().unwrap_or_default();
        let flag = variable["flag"].as_str().map(|flag| format!("--{flag}"));
        let (name, meaning) = (code(text("name")), cell(text("meaning").trim_end_matches('.')));
        writeln!(
            page,
            "| {name} | {} | {} | {meaning}. |",
            code(&flag.unwrap_or_default()),
            code(text("default"))
        )?;
    }
    Ok(page)
}

/// The table of one file.
#[derive(Default)]
struct Table<'s> {
    rows: Vec<String>,
    /// The keys of the mappings that have rows, with the path of the first one.
    mappings: Vec<(&'s Map<String, Value>, String)>,
}

// === impl Table ===

impl<'s> Table<'s> {
    /// Adds the rows of a mapping's keys. `above` is the path of the mapping, with a dot at its end.
    fn add(&mut self, above: &str, schema: &'s Value) -> Result<()> {
        let properties = schema["properties"].as_object().context("the schema has no properties")?;
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        for (name, property) in properties {
            let path = format!("{above}{name}");
            let meaning =
                property["description"].as_str().with_context(|| format!("{path} has no comment"))?;
            let inner = &property["items"];
            let (below, dot) = if inner.is_null() { (property, ".") } else { (inner, "[].") };
            let keys = below["properties"].as_object().filter(|keys| keys.values().all(is_described));
            let same = self.mappings.iter().find(|(other, _)| keys.is_some_and(|keys| keys == *other));
            let same = same.map(|(_, first)| format!(" Its keys are those of `{first}`."));
            let is_required = required.iter().any(|it| it == name);
            let default = match &property["default"] {
                _ if is_required => Some("required".to_owned()),
                Value::Object(_) | Value::Array(_) | Value::Null => None,
                Value::String(text) => Some(format!("default {}", code(text))),
                other => Some(format!("default {}", code(&other.to_string()))),
            };
            let value = [Some(type_of(property)), range(property), default].into_iter().flatten();
            let value = cell(&value.collect::<Vec<_>>().join("; "));
            let meaning = cell(meaning) + same.as_deref().unwrap_or_default();
            self.rows.push(format!("| `{path}` | {value} | {meaning} |"));
            if let Some(keys) = keys.filter(|_| same.is_none()) {
                self.mappings.push((keys, path.clone()));
                self.add(&format!("{path}{dot}"), below)?;
            }
        }
        Ok(())
    }
}

/// Returns whether a schema has a text for readers.
fn is_described(schema: &Value) -> bool {
    schema["description"].is_string()
}

fn type_of(schema: &Value) -> String {
    if let Some(format) = schema["format"].as_str().filter(|it| ["size", "date-time"].contains(it)) {
        return format.replace("date-time", "time");
    }
    if schema["pattern"].is_string() {
        return "duration".to_owned();
    }
    if let Some(keys) =
        schema["items"]["properties"].as_object().filter(|keys| !keys.values().all(is_described))
    {
        return format!("list of mappings: {}", names(keys));
    }
    let types: Vec<_> = match &schema["type"] {
        Value::Array(all) => all.iter().filter_map(Value::as_str).filter(|it| *it != "null").collect(),
        one => one.as_str().into_iter().collect(),
    };
    let in_yaml = |kind: &&str| match *kind {
        "object" => "mapping".to_owned(),
        "string" => "text".to_owned(),
        "integer" => "number".to_owned(),
        "array" => match type_of(&schema["items"]).as_str() {
            "" => "list".to_owned(),
            of => format!("list of {of}s"),
        },
        other => other.to_owned(),
    };
    types.iter().map(in_yaml).collect::<Vec<_>>().join(" or ")
}

fn names(keys: &Map<String, Value>) -> String {
    keys.keys().map(|key| code(key)).collect::<Vec<_>>().join(", ")
}

fn range(schema: &Value) -> Option<String> {
    if let Some(range) = schema["x-range"].as_str() {
        return Some(range.to_owned());
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<_> = values.iter().filter_map(Value::as_str).map(code).collect();
        return Some(values.join(", "));
    }
    match (&schema["minimum"], &schema["maximum"]) {
        (Value::Number(least), Value::Number(most)) => {
            Some(format!("{} to {}", separated(&least.to_string()), separated(&most.to_string())))
        }
        _ => None,
    }
}

/// Separates the thousands of a whole number.
fn separated(number: &str) -> String {
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return number.to_owned();
    }
    let groups: Vec<_> = number.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_key_has_a_row_with_type_default_and_range() {
        let schema = json!({
            "required": ["name"],
            "properties": {
                "name": { "type": "string", "description": "A\nname." },
                "limits": { "type": "object", "description": "Limits.", "properties": {
                    "memory": { "type": ["string", "integer"], "format": "size", "x-range": "1Ki to 2Ki", "default": "1Ki", "description": "A | b." },
                    "tries": { "type": "integer", "minimum": 1, "maximum": 1000, "default": 2000, "description": "C." },
                } },
                "more": { "type": "object", "description": "More.", "properties": { "advance": {
                    "type": ["string", "null"], "description": "Time."
                } } },
                "steps": { "type": "array", "description": "Steps.", "items": { "type": "object", "properties": {
                    "advance": { "type": ["string", "null"], "description": "Time." },
                } } },
                "writes": { "type": "array", "description": "Writes.", "items": { "type": "object", "properties": { "create": {} } } },
                "world": { "type": "string", "enum": ["a", "b"], "description": "World." },
            },
        });
        let mut table = Table::default();
        table.add("", &schema).unwrap();
        assert_eq!(
            table.rows,
            [
                "| `name` | text; required | A name. |",
                "| `limits` | mapping | Limits. |",
                "| `limits.memory` | size; 1Ki to 2Ki; default `1Ki` | A \\| b. |",
                "| `limits.tries` | number; 1 to 1,000; default `2000` | C. |",
                "| `more` | mapping | More. |",
                "| `more.advance` | text | Time. |",
                "| `steps` | list of mappings | Steps. Its keys are those of `more`. |",
                "| `writes` | list of mappings: `create` | Writes. |",
                "| `world` | text; `a`, `b` | World. |",
            ]
        );
        let bare = json!({ "properties": { "a": { "type": "string" } } });
        let error = Table::default().add("", &bare).unwrap_err();
        assert_eq!(error.to_string(), "a has no comment");
    }
}
