//! Escapes and truncates text that a guest chose before it becomes part of a message, so that it cannot
//! control a terminal.
//!
//! Used for function names, names in a component's types, and the guest's last output before a failure.

use std::fmt::{self, Write};

/// Replaces the rest of a truncated text.
const CUT: char = '…';

/// A text of limited length. A write beyond the limit fails, so that the formatting stops.
#[derive(Debug)]
pub(crate) struct Bounded {
    text: String,
    limit: usize,
    keeps_lines: bool,
    is_cut: bool,
}

/// Returns whether a character has to be escaped: it controls a terminal, or changes the direction of text.
#[must_use]
pub fn is_escaped(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Returns a text on one line, escaped, of at most about 2 KiB.
#[must_use]
pub fn one_line(text: impl fmt::Display) -> String {
    line(text, 2 << 10)
}

/// Returns a text on one line, escaped, of at most about `limit` bytes.
pub(crate) fn line(text: impl fmt::Display, limit: usize) -> String {
    Bounded::new(limit, false).with(text)
}

/// Does the same as [`line`], but keeps newlines and tabs.
pub(crate) fn lines(text: impl fmt::Display, limit: usize) -> String {
    Bounded::new(limit, true).with(text)
}

// === impl Bounded ===

impl Bounded {
    pub(crate) fn new(limit: usize, keeps_lines: bool) -> Self {
        Self { text: String::new(), limit, keeps_lines, is_cut: false }
    }

    pub(crate) fn with(mut self, text: impl fmt::Display) -> String {
        // Fails when the text is full, which then ends in `…`.
        let _ = write!(self, "{text}");
        self.text
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    fn push(&mut self, part: &str) -> fmt::Result {
        if self.text.len() + part.len() > self.limit {
            self.is_cut = true;
            self.text.push(CUT);
            return Err(fmt::Error);
        }
        self.text.push_str(part);
        Ok(())
    }
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.is_cut {
            return Err(fmt::Error);
        }
        let mut buffer = [0; 4];
        for character in text.chars() {
            if is_escaped(character) && !(self.keeps_lines && matches!(character, '\n' | '\t')) {
                // At most ten bytes.
                self.push(&character.escape_default().to_string())?;
            } else {
                self.push(character.encode_utf8(&mut buffer))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(line("a\u{1b}[2J\nb\u{202e}\t\u{9b}c", 100), r"a\u{1b}[2J\nb\u{202e}\t\u{9b}c");
        assert_eq!(lines("a\n\tb\r\u{7}", 100), "a\n\tb\\r\\u{7}");
        assert_eq!(line("ünïcödé 漢字", 100), "ünïcödé 漢字");
    }

    #[test]
    fn text_is_truncated_between_characters() {
        assert_eq!(line("aéé", 3), "aé…");
        assert_eq!(line("aé", 3), "aé");
        assert_eq!(line("\n\n", 3), r"\n…");
    }

    #[test]
    fn endless_formatting_stops_at_the_limit() {
        struct Endless;
        impl fmt::Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                loop {
                    f.write_str("more and ")?;
                }
            }
        }
        assert_eq!(line(Endless, 12), "more and mor…");
    }
}
