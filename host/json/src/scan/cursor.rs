//! A position in a JSON text, and the steps from there.

use std::borrow::Cow;

use super::block::n_plain;
use super::{end_of_nested, end_of_outer, end_of_string};

/// A position in a JSON text.
///
/// A step returns `None` if the text has another token, or ends. A step that returns a token has checked it
/// strictly; a step that skips a value has checked only that the value is closed.
pub struct Cursor<'t> {
    text: &'t str,
    position: usize,
}

/// The content of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted<'t> {
    /// The text between the quotes, with its escapes.
    pub raw: &'t str,
    /// True if the text has escapes.
    pub is_escaped: bool,
}

// === impl Cursor ===

impl<'t> Cursor<'t> {
    /// Returns a cursor at the beginning of a text.
    #[inline]
    pub fn new(text: &'t str) -> Self {
        Self { text, position: 0 }
    }

    /// Returns a cursor at a position that another cursor of this text has returned.
    #[inline]
    pub fn at(text: &'t str, position: usize) -> Self {
        Self { text, position }
    }

    /// Returns the position in bytes.
    #[inline]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the text from `start` to here.
    #[inline]
    pub fn since(&self, start: usize) -> Option<&'t str> {
        self.text.get(start..self.position)
    }

    /// Returns the text behind the position.
    #[inline]
    pub fn rest(&self) -> &'t str {
        self.text.get(self.position..).unwrap_or_default()
    }

    /// Skips bytes that the caller has checked.
    #[inline]
    pub fn skip(&mut self, n_bytes: usize) {
        self.position += n_bytes;
    }

    /// Returns the next byte.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    /// Returns true at the end of the text.
    #[inline]
    pub fn is_at_end(&self) -> bool {
        self.position >= self.text.len()
    }

    /// Skips white space.
    #[inline]
    pub fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.position += 1;
        }
    }

    /// Skips the byte if it is the next one, and returns true then.
    #[inline]
    pub fn take_if(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.position += usize::from(is_next);
        is_next
    }

    /// Skips the byte, which must be the next one.
    #[inline]
    pub fn take(&mut self, byte: u8) -> Option<()> {
        self.take_if(byte).then_some(())
    }

    /// Reads an object. Calls `entry` at each value, with the position of its key and the key, whose escapes
    /// are not checked. `entry` must move the cursor behind the value.
    #[inline]
    pub fn object(
        &mut self,
        mut entry: impl FnMut(&mut Self, usize, Quoted<'t>) -> Option<()>,
    ) -> Option<()> {
        self.take(b'{')?;
        self.blanks();
        if self.take_if(b'}') {
            return Some(());
        }
        loop {
            let start = self.position;
            let key = self.key()?;
            self.blanks();
            self.take(b':')?;
            self.blanks();
            entry(self, start, key)?;
            self.blanks();
            if !self.take_if(b',') {
                return self.take(b'}');
            }
            self.blanks();
        }
    }

    /// Reads an array. Calls `element` at each value, with its index. `element` must move the cursor behind
    /// the value.
    #[inline]
    pub fn array(&mut self, mut element: impl FnMut(&mut Self, usize) -> Option<()>) -> Option<()> {
        self.take(b'[')?;
        self.blanks();
        if self.take_if(b']') {
            return Some(());
        }
        for idx in 0.. {
            element(self, idx)?;
            self.blanks();
            if !self.take_if(b',') {
                break;
            }
            self.blanks();
        }
        self.take(b']')
    }

    /// Reads a string. Half of a surrogate pair is an error.
    #[inline]
    pub fn string(&mut self) -> Option<Quoted<'t>> {
        self.quoted(Self::escape)
    }

    /// Reads a string without checking its escapes.
    #[inline]
    pub fn key(&mut self) -> Option<Quoted<'t>> {
        self.quoted(|cursor| {
            cursor.position += 2;
            Some(())
        })
    }

    #[inline]
    fn quoted(&mut self, mut escape: impl FnMut(&mut Self) -> Option<()>) -> Option<Quoted<'t>> {
        self.take(b'"')?;
        let start = self.position;
        let mut is_escaped = false;
        loop {
            self.plain_characters();
            match self.peek()? {
                b'"' => break,
                b'\\' => escape(self)?,
                _ => return None,
            }
            is_escaped = true;
        }
        let raw = self.since(start)?;
        self.position += 1;
        Some(Quoted { raw, is_escaped })
    }

    /// Skips a value. Checks numbers and literals strictly, but not the content of strings, objects and
    /// arrays.
    #[inline]
    pub fn skip_value(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.skip_string(),
            b'{' | b'[' => {
                self.position = end_of_nested(self.text.as_bytes(), self.position)?;
                Some(())
            }
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.number(),
        }
    }

    /// Skips the rest of the `depth` innermost arrays and objects around the position.
    #[inline]
    pub fn leave(&mut self, depth: usize) -> Option<()> {
        self.position = end_of_outer(self.text.as_bytes(), self.position, depth)?;
        Some(())
    }

    /// Skips `null` if it is next, and returns true then.
    #[inline]
    pub fn take_null(&mut self) -> bool {
        self.peek() == Some(b'n') && self.word("null").is_some()
    }

    fn skip_string(&mut self) -> Option<()> {
        self.take(b'"')?;
        // Most strings are short and end after one or two steps.
        self.plain_characters();
        if !self.take_if(b'"') {
            self.position = end_of_string(self.text.as_bytes(), self.position)?;
        }
        Some(())
    }

    #[inline]
    fn plain_characters(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(next) = bytes.get(self.position..).and_then(<[u8]>::first_chunk::<16>) {
            let length = n_plain(next);
            self.position += length;
            if length < next.len() {
                return;
            }
        }
        while self.peek().is_some_and(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
            self.position += 1;
        }
    }

    /// Reads an escape.
    fn escape(&mut self) -> Option<()> {
        self.take(b'\\')?;
        let letter = self.peek()?;
        self.position += 1;
        match letter {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => match self.hex()? {
                0xdc00..=0xdfff => None,
                0xd800..=0xdbff => {
                    self.word("\\u")?;
                    matches!(self.hex()?, 0xdc00..=0xdfff).then_some(())
                }
                _ => Some(()),
            },
            _ => None,
        }
    }

    fn hex(&mut self) -> Option<u16> {
        let mut unit = 0;
        for _ in 0..4 {
            unit = unit << 4 | char::from(self.peek()?).to_digit(16)? as u16;
            self.position += 1;
        }
        Some(unit)
    }

    /// Skips the word, which must be next.
    #[inline]
    pub fn word(&mut self, word: &str) -> Option<()> {
        let is_next = self.text.as_bytes().get(self.position..)?.starts_with(word.as_bytes());
        self.position += if is_next { word.len() } else { 0 };
        is_next.then_some(())
    }

    /// Reads a number.
    #[inline]
    pub fn number(&mut self) -> Option<()> {
        self.take_if(b'-');
        if !self.take_if(b'0') {
            self.digits()?;
        }
        if self.take_if(b'.') {
            self.digits()?;
        }
        if self.take_if(b'e') || self.take_if(b'E') {
            let _ = self.take_if(b'-') || self.take_if(b'+');
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.position;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.position += 1;
        }
        (self.position > start).then_some(())
    }
}

// === impl Quoted ===

impl<'t> Quoted<'t> {
    /// Returns the text, if it has no escapes.
    #[inline]
    pub fn plain(self) -> Option<&'t str> {
        (!self.is_escaped).then_some(self.raw)
    }

    /// Returns the unescaped text; none if an escape is not valid.
    pub fn text(self) -> Option<Cow<'t, str>> {
        if !self.is_escaped {
            return Some(Cow::Borrowed(self.raw));
        }
        serde_json::from_str(&format!("\"{}\"", self.raw)).ok().map(Cow::Owned)
    }

    /// Returns true if the text, unescaped, is `name`.
    #[inline]
    pub fn is(self, name: &str) -> bool {
        if self.is_escaped { self.text().as_deref() == Some(name) } else { self.raw == name }
    }
}
