//! A place in a JSON text, and the steps from there.

use std::borrow::Cow;

use super::block::n_plain;
use super::{end_of_nested, end_of_string};

/// Stands at a place in a JSON text.
///
/// Each step is `None` where the text has something else there, or ends. What a step returns was read to the letter; what
/// is only skipped was seen to be closed, no more.
pub struct Cursor<'t> {
    text: &'t str,
    position: usize,
    n_blanks: usize,
}

/// What stands between the quotes of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted<'t> {
    /// As it stands in the text.
    pub raw: &'t str,
    /// Whether it has escapes.
    pub is_escaped: bool,
}

// === impl Cursor ===

impl<'t> Cursor<'t> {
    /// Stands at the beginning of a text.
    #[inline]
    pub fn new(text: &'t str) -> Self {
        Self { text, position: 0, n_blanks: 0 }
    }

    /// Stands at a place where a cursor has stood in this text before.
    #[inline]
    pub fn at(text: &'t str, position: usize) -> Self {
        Self { text, position, n_blanks: 0 }
    }

    /// Returns the place in the text, in bytes.
    #[inline]
    pub fn position(&self) -> usize {
        self.position
    }

    /// How much white space was passed over by [`blanks`](Self::blanks), so that a change tells that there was some.
    #[inline]
    pub fn n_blanks(&self) -> usize {
        self.n_blanks
    }

    /// Returns the text from `start` to here.
    #[inline]
    pub fn since(&self, start: usize) -> Option<&'t str> {
        self.text.get(start..self.position)
    }

    /// Returns the text from here on.
    #[inline]
    pub fn rest(&self) -> &'t str {
        self.text.get(self.position..).unwrap_or_default()
    }

    /// Passes over so many bytes, which the caller has looked at.
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

    /// Passes over white space.
    #[inline]
    pub fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.position += 1;
            self.n_blanks += 1;
        }
    }

    /// Passes over the byte, if it is the next one; returns true if it is.
    #[inline]
    pub fn take_if(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.position += usize::from(is_next);
        is_next
    }

    /// Passes over the byte, which must be the next one.
    #[inline]
    pub fn take(&mut self, byte: u8) -> Option<()> {
        self.take_if(byte).then_some(())
    }

    /// Passes over an object, and calls `entry` for each of its entries: with the place where the key began and the key,
    /// whose escapes were not looked at, and at the value, which it is to pass over.
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

    /// Passes over an array, and calls `element` at each of its values, with the value's index, which it is to pass over.
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

    /// Reads a string. A half of a surrogate pair is none.
    #[inline]
    pub fn string(&mut self) -> Option<Quoted<'t>> {
        self.quoted(Self::escape)
    }

    /// Reads a string without a look at what its escapes mean.
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

    /// Passes over a value: a nested one or a string without a look at what is in it, anything else to the letter.
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

    /// Passes over `null`, if it stands next.
    #[inline]
    pub fn take_null(&mut self) -> bool {
        self.peek() == Some(b'n') && self.word("null").is_some()
    }

    fn skip_string(&mut self) -> Option<()> {
        self.take(b'"')?;
        // Most strings are short, and done after one or two steps.
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

    /// Passes over a backslash and what it gives a meaning to.
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

    /// Passes over the word, which must be what follows.
    #[inline]
    pub fn word(&mut self, word: &str) -> Option<()> {
        let is_next = self.text.as_bytes().get(self.position..)?.starts_with(word.as_bytes());
        self.position += if is_next { word.len() } else { 0 };
        is_next.then_some(())
    }

    /// Passes over a number.
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
    /// Returns the text that is meant, where it needs no unescaping.
    #[inline]
    pub fn plain(self) -> Option<&'t str> {
        (!self.is_escaped).then_some(self.raw)
    }

    /// Returns the text that is meant; none if its escapes mean none.
    pub fn text(self) -> Option<Cow<'t, str>> {
        if !self.is_escaped {
            return Some(Cow::Borrowed(self.raw));
        }
        serde_json::from_str(&format!("\"{}\"", self.raw)).ok().map(Cow::Owned)
    }

    /// Whether this is how `name` is written.
    #[inline]
    pub fn is(self, name: &str) -> bool {
        if self.is_escaped { self.text().as_deref() == Some(name) } else { self.raw == name }
    }
}
