//! YAML in which the text `on` stays a text for programs of YAML 1.1, such as kubectl and Helm, and text of
//! editors that begin a file with a byte order mark.

use serde::Serialize;
use serde_norway::{Error, Value};

/// The texts that YAML 1.1 reads as booleans, and YAML 1.2 does not. A namespace may be named `no`.
const BOOLEANS: [&str; 16] =
    ["y", "Y", "yes", "Yes", "YES", "n", "N", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF"];

/// Stands before a text that has to be in quotes. It is for private use.
const MARK: char = '\u{e000}';

/// Returns a value as YAML, with a newline at the end. A value with the mark of this module has no quotes.
///
/// # Errors
///
/// When it has no form in YAML.
pub fn to_string(value: &impl Serialize) -> Result<String, Error> {
    let plain = serde_norway::to_string(value)?;
    if plain.contains(MARK) {
        return Ok(plain);
    }
    let mut value = serde_norway::to_value(value)?;
    mark(&mut value);
    let marked = serde_norway::to_string(&value)?;
    let mut parts = marked.split(MARK);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (word, rest) = part.split_at(part.find([':', '\n']).unwrap_or(part.len()));
        text.extend(["\"", word, "\"", rest]);
    }
    Ok(text)
}

/// Returns a text without the byte order mark that some editors on Windows write at its beginning.
///
/// The parser of YAML counts the mark as a column, so that the first key is not in the column of the others.
#[must_use]
pub fn without_byte_order_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Marks the texts that have to be in quotes, keys too.
fn mark(value: &mut Value) {
    match value {
        Value::String(text) if BOOLEANS.contains(&text.as_str()) => text.insert(0, MARK),
        Value::Sequence(values) => values.iter_mut().for_each(mark),
        Value::Mapping(pairs) => {
            let marked = std::mem::take(pairs).into_iter().map(|(mut key, mut value)| {
                mark(&mut key);
                mark(&mut value);
                (key, value)
            });
            *pairs = marked.collect();
        }
        Value::Tagged(tagged) => mark(&mut tagged.value),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_yaml_1_1_reads_as_a_boolean_is_in_quotes() {
        let labels = json!({"y": "No", "a": "none"});
        let value =
            json!({"metadata": {"name": "on", "labels": labels}, "names": ["off", "no\nno", "1", true]});
        insta::assert_snapshot!(to_string(&value).unwrap(), @r#"
        metadata:
          name: "on"
          labels:
            "y": "No"
            a: none
        names:
        - "off"
        - |-
          no
          no
        - '1'
        - true
        "#);
        assert_eq!(serde_norway::from_str::<serde_json::Value>(&to_string(&value).unwrap()).unwrap(), value);
        assert_eq!(to_string(&"no").unwrap(), "\"no\"\n");
    }
}
