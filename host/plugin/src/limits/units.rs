//! Sizes and durations with units, for serde: `#[serde(with = "units::bytes")]`.

use std::time::Duration;

const BYTE_UNITS: [(&str, u64); 6] =
    [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];
const TIME_UNITS: [(&str, u64); 3] = [("ms", 1), ("s", 1_000), ("m", 60_000)];

/// Returns a size with the largest unit that divides it, such as `64Mi`.
#[must_use]
pub fn show_bytes(bytes: u64) -> String {
    show(bytes, &[("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)], "")
}

/// Returns a duration with the largest unit that divides it, such as `1500ms`.
#[must_use]
pub fn show_duration(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    show(millis, &[("m", 60_000), ("s", 1_000)], "ms")
}

fn show(value: u64, units: &[(&str, u64)], smallest: &str) -> String {
    match units.iter().find(|(_, factor)| value >= *factor && value.is_multiple_of(*factor)) {
        Some((unit, factor)) => format!("{}{unit}", value / factor),
        None => format!("{value}{smallest}"),
    }
}

/// Reads a whole number and a unit. With `plain`, the unit may be missing.
fn read(text: &str, units: &[(&str, u64)], plain: bool) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    if unit.is_empty() && plain {
        return Some(number);
    }
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(*factor)
}

/// Sizes: whole numbers, with or without a unit.
pub mod bytes {
    use std::fmt;

    use schemars::{Schema, SchemaGenerator, json_schema};
    use serde::{Deserializer, Serializer, de};

    /// Returns the JSON schema of a size.
    pub fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer"], "format": "size", "pattern": "^[0-9]+(k|M|G|Ki|Mi|Gi)?$", "minimum": 0 })
    }

    /// Returns the text for a range of sizes.
    #[must_use]
    pub fn range((least, most): (u64, u64)) -> String {
        format!("{} to {}", super::show_bytes(least), super::show_bytes(most))
    }

    /// Writes it as text with a unit.
    pub fn serialize<S: Serializer>(bytes: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::show_bytes(*bytes))
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        struct Bytes;
        impl de::Visitor<'_> for Bytes {
            type Value = u64;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size in bytes such as 64Mi (units: k, M, G, Ki, Mi, Gi)")
            }

            fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<u64, E> {
                Ok(bytes)
            }

            fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<u64, E> {
                u64::try_from(bytes).map_err(|_| E::invalid_value(de::Unexpected::Signed(bytes), &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
                super::read(text, &super::BYTE_UNITS, true)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Bytes)
    }
}

/// Durations: whole numbers with a unit.
pub mod duration {
    use std::{fmt, time::Duration};

    use schemars::{Schema, SchemaGenerator, json_schema};
    use serde::{Deserializer, Serializer, de};

    /// Returns the JSON schema of a duration.
    pub fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "duration with a unit", "pattern": "^[0-9]+(ms|s|m)$" })
    }

    /// Returns the text for a range of durations.
    #[must_use]
    pub fn range((least, most): (Duration, Duration)) -> String {
        format!("{} to {}", super::show_duration(least), super::show_duration(most))
    }

    /// Writes it as text with a unit.
    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::show_duration(*duration))
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        struct Millis;
        impl de::Visitor<'_> for Millis {
            type Value = Duration;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as 500ms (units: ms, s, m)")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
                super::read(text, &super::TIME_UNITS, false)
                    .map(Duration::from_millis)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Millis)
    }
}
