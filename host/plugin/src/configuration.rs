//! The operator's configuration of a plugin, kept as JSON text.

use std::sync::Arc;

use oarlock_json::{JsonPointer, PointerError};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// The operator's configuration of a plugin: a JSON object.
///
/// It is kept as text without white space: the host keeps it as long as the plugin, and a parsed one takes
/// many times the memory. A clone shares the text.
#[derive(Clone, Debug)]
pub struct Configuration {
    text: Arc<str>,
}

// === impl Configuration ===

impl Configuration {
    /// Returns the JSON text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the parsed configuration.
    #[must_use]
    pub fn value(&self) -> Value {
        // The text was made of a value.
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Returns the JSON text of the value at a pointer; `None` if there is none.
    pub(crate) fn get(&self, pointer: &str) -> Result<Option<&str>, PointerError> {
        let pointer: JsonPointer = pointer.parse()?;
        let found = oarlock_json::find_each(&self.text, &[pointer.segments()]);
        Ok(found.into_iter().flatten().next())
    }
}

impl From<Value> for Configuration {
    fn from(value: Value) -> Self {
        Self { text: value.to_string().into() }
    }
}

impl From<Map<String, Value>> for Configuration {
    fn from(map: Map<String, Value>) -> Self {
        Value::Object(map).into()
    }
}

impl Default for Configuration {
    fn default() -> Self {
        Map::new().into()
    }
}

impl Serialize for Configuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

impl PartialEq for Configuration {
    /// The order of the keys is no difference.
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text || self.value() == other.value()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_found_as_in_the_parsed_configuration() {
        let value = json!({
            "a": {"b": [1, 2.50, {"c/d": "é\n", "e~f": null}]},
            "": {"": true},
            "large": u64::MAX,
            "0": "zero",
        });
        let config = Configuration::from(value.clone());
        assert_eq!(config.value(), value);
        let pointers = [
            "",
            "/",
            "//",
            "/a",
            "/a/b",
            "/a/b/0",
            "/a/b/00",
            "/a/b/1",
            "/a/b/2",
            "/a/b/3",
            "/a/b/-",
            "/a/b/2/c~1d",
            "/a/b/2/e~0f",
            "/a/b/2/none",
            "/large",
            "/large/0",
            "/0",
            "/0/0",
            "/none",
        ];
        for pointer in pointers {
            let expected = value.pointer(pointer).map(ToString::to_string);
            assert_eq!(config.get(pointer).unwrap(), expected.as_deref(), "{pointer:?}");
        }
        assert!(config.get(&"/a".repeat(65)).is_err(), "too long to be looked up");
    }

    #[test]
    fn the_order_of_keys_is_no_difference() {
        let of = |text: &str| Configuration::from(serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(of(r#"{"a": 1, "b": 2}"#), of(r#"{"b":2,"a":1}"#));
        assert_ne!(of(r#"{"a": 1}"#), of(r#"{"a": 2}"#));
        assert_eq!(Configuration::default().text(), "{}");
    }
}
