//! Keeping a plugin's file from costing more than a plugin's file may: its nesting, and what its aliases expand to.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A plugin's file is no longer than this, and neither is its `config` when all aliases in it are expanded.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// So deep may brackets stand in each other. Parsers take time by the square of it.
const MAX_NESTING: usize = 64;

/// Finds the line in which brackets are nested too deeply, if any.
///
/// Brackets in strings and comments count too: a text that opens so many without closing them is refused.
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

/// Returns why a text is too deep.
pub(super) fn nesting_message() -> String {
    format!("more than {MAX_NESTING} brackets are open at once")
}

/// Reads the mapping `config`, whose size counts after aliases were expanded.
pub(super) fn mapping<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    let left = Cell::new(MAX_BYTES);
    deserializer.deserialize_map(Mapping(Budget { left: &left, depth: MAX_NESTING }))
}

#[derive(Clone, Copy)]
struct Budget<'a> {
    left: &'a Cell<usize>,
    depth: usize,
}

/// Any value.
struct Any<'a>(Budget<'a>);

/// A mapping, or nothing.
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
                "larger than {} KiB, with all its aliases expanded",
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
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            self.take(key.len())?;
            let value = access.next_value_seed(Any(inner))?;
            map.insert(key, value);
        }
        Ok(map)
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
        f.write_str("any value that JSON has")
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

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.0.take(0)?;
        Ok(value.into())
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        // Before it is copied.
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
