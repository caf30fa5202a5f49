//! Escapes text from guests, files and API servers for a terminal: such text cannot control the terminal, nor
//! forge a line of the host.

use std::fmt::{self, Display, Formatter, Write};

use oarlock_plugin::guest::text::is_escaped;

/// Displays a text on one line: control characters and line breaks are escaped.
pub struct OneLine<T>(pub T);

/// Displays a text that may have several lines: control characters are escaped, and each line but the first
/// is indented, so that it cannot look like another message.
pub struct Lines<T>(pub T);

/// The separator before each line of a message but the first.
const CONTINUED: &str = "\n    ";

struct Escaping<'a, 'f> {
    into: &'a mut Formatter<'f>,
    keeps_lines: bool,
}

// === impl Escaping ===

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((at, character)) = rest.char_indices().find(|(_, it)| is_escaped(*it)) {
            self.into.write_str(&rest[..at])?;
            match character {
                '\n' if self.keeps_lines => self.into.write_str(CONTINUED)?,
                '\t' if self.keeps_lines => self.into.write_str("    ")?,
                _ => write!(self.into, "{}", character.escape_default())?,
            }
            rest = &rest[at + character.len_utf8()..];
        }
        self.into.write_str(rest)
    }
}

// === impl OneLine, Lines ===

impl<T: Display> Display for OneLine<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(Escaping { into: f, keeps_lines: false }, "{}", self.0)
    }
}

impl<T: Display> Display for Lines<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(Escaping { into: f, keeps_lines: true }, "{}", self.0)
    }
}
