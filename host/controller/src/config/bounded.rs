//! Bounds the cost of reading a plugin file: its nesting, and the size of its expanded aliases.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The largest plugin file, and the largest `config` after its aliases are expanded.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// The deepest nesting of brackets. Parsers take time proportional to its square.
const MAX_NESTING: usize = 64;

const BEYOND_64_BITS: &str = "an integer beyond 64 bits: write it in quotes";

/// Returns the line in which brackets are nested too deeply, if any.
///
/// Brackets in strings and comments count too.
pub(super) fn too_deep(text: &str) -> Option<usize> {
    let (mut depth, mut line) = (0_usize, 1);
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' if depth == MAX_NESTING => return Some(line),
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'\n' => line += 1,
            _ => {}
        }
    }
    None
}

/// Returns the message for brackets that are nested too deeply.
pub(super) fn nesting_message() -> String {
    format!("more than {MAX_NESTING} brackets are open at once")
}

/// Deserialises the mapping `config`, with a bound on its size after aliases are expanded.
pub(super) fn mapping<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    let left = Cell::new(MAX_BYTES);
    deserializer.deserialize_map(Mapping(Budget { left: &left, depth: MAX_NESTING }))
}

#[derive(Clone, Copy)]
struct Budget<'a> {
    left: &'a Cell<usize>,
    depth: usize,
}

/// Deserialises any value within the budget.
struct Any<'a>(Budget<'a>);

/// Deserialises a mapping within the budget; an empty one for no value.
struct Mapping<'a>(Budget<'a>);

// === impl Budget ===

impl Budget<'_> {
    fn take<E: serde::de::Error>(&self, bytes: usize) -> Result<(), E> {
        match self.left.get().checked_sub(bytes + 1) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(E::custom(format_args!(
                "larger than {} KiB after its aliases are expanded",
                MAX_BYTES / 1024
            ))),
        }
    }

    fn deeper<E: serde::de::Error>(&self) -> Result<Self, E> {
        match self.depth.checked_sub(1) {
            Some(depth) => Ok(Self { depth, ..*self }),
            None => Err(E::custom(format_args!("nested more than {MAX_NESTING} levels deep"))),
        }
    }

    fn map<'de, A: MapAccess<'de>>(self, mut access: A) -> Result<Map<String, Value>, A::Error> {
        let inner = self.deeper()?;
        let mut entries = Vec::new();
        while let Some(key) = access.next_key::<String>()? {
            self.take(key.len())?;
            let value = access.next_value_seed(Any(inner))?;
            entries.push((key, value));
        }
        // The host keeps it as long as the plugin: it has no room for further entries.
        Ok(Map::from_iter(entries))
    }
}

// === impl Any ===

impl<'de> DeserializeSeed<'de> for Any<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        self.0.take(0)?;
        Ok(value.into())
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.0.take(0)?;
        Ok(value.into())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.0.take(0)?;
        Ok(value.into())
    }

    fn visit_i128<E: serde::de::Error>(self, _: i128) -> Result<Value, E> {
        Err(E::custom(BEYOND_64_BITS))
    }

    fn visit_u128<E: serde::de::Error>(self, _: u128) -> Result<Value, E> {
        Err(E::custom(BEYOND_64_BITS))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.0.take(0)?;
        // `Value::from` makes it null, and the plugin would read no value.
        let number = Number::from_f64(value).map(Value::Number);
        number
            .ok_or_else(|| E::custom("JSON has no NaN and no infinity: leave it out, or write it in quotes"))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        // The budget is checked before the text is copied.
        self.0.take(value.len())?;
        Ok(value.into())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        self.0.take(0)?;
        Ok(Value::Null)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Value, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.0.take::<A::Error>(0)?;
        let inner = self.0.deeper::<A::Error>()?;
        let mut values = Vec::new();
        while let Some(value) = access.next_element_seed(Any(inner))? {
            values.push(value);
        }
        values.shrink_to_fit();
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<Value, A::Error> {
        self.0.take::<A::Error>(0)?;
        self.0.map(access).map(Value::Object)
    }
}

// === impl Mapping ===

impl<'de> Visitor<'de> for Mapping<'_> {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
        Ok(Map::new())
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<Self::Value, A::Error> {
        self.0.map(access)
    }
}
