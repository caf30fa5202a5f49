//! Lines and pages as JSON that is safe to show in a terminal: control characters are written as escapes such
//! as `\u001b`, which a JSON parser reads as the same characters.

use std::io::{self, Write};

use oarlock_plugin::guest::text::is_escaped;
use serde::{Serialize, Serializer};
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};

use super::{HostEvent, Level, Line, Timestamp};

/// Writes a value without a newline at the end.
pub fn write_json(into: impl Write, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(into, EscapingFormatter(CompactFormatter)))
}

/// Writes a value on several lines, as kubectl does.
pub fn write_json_pretty(into: impl Write, value: &impl Serialize) -> serde_json::Result<()> {
    let pretty = PrettyFormatter::with_indent(b"    ");
    value.serialize(&mut serde_json::Serializer::with_formatter(into, EscapingFormatter(pretty)))
}

/// Returns a value as JSON.
pub fn to_json(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut json = Vec::new();
    write_json(&mut json, value)?;
    Ok(json)
}

/// A format of serde_json, with control characters escaped.
struct EscapingFormatter<F>(F);

// === impl EscapingFormatter ===

impl<F: Formatter> Formatter for EscapingFormatter<F> {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        let mut rest = text;
        while let Some((at, character)) = rest.char_indices().find(|(_, it)| is_escaped(*it)) {
            self.0.write_string_fragment(writer, &rest[..at])?;
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = &rest[at + character.len_utf8()..];
        }
        self.0.write_string_fragment(writer, rest)
    }
}

// === impl Line ===

impl Serialize for Line {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Flat<'a> {
            time: Timestamp,
            level: Level,
            #[serde(flatten)]
            event: &'a HostEvent,
            #[serde(skip_serializing_if = "Option::is_none")]
            hint: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            plugin: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            generation: Option<u64>,
        }
        let Self { time, event, plugin, generation } = self;
        let (level, hint) = (event.level(), event.hint());
        let plugin = plugin.as_deref();
        Flat { time: *time, level, event, hint, plugin, generation: *generation }.serialize(serializer)
    }
}
