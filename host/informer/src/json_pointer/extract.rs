//! One walk over a JSON text that copies out what several pointers point at.
//!
//! Works on text that was found to be JSON when it came in (`object` does that), which is why skipping a value may be as
//! simple as counting brackets. On anything else it finds something or nothing, but never panics and never recurses
//! deeper than the longest pointer.

use super::Segment;

/// A pointer that is still open at some depth of the walk: which one it is, and the segments it has left.
type Open<'p> = (usize, &'p [Segment]);

/// Returns, for each pointer, the JSON texts it points at, in document order.
///
/// A pointer without [`Segment::Every`] finds at most one.
pub(crate) fn extract(text: &str, pointers: &[&[Segment]]) -> Vec<Vec<String>> {
    let open: Vec<Open<'_>> = pointers.iter().copied().enumerate().collect();
    let mut walk = Walk { text, position: 0, found: pointers.iter().map(|_| Vec::new()).collect() };
    // What is broken simply holds nothing.
    let _ = walk.value(&open);
    walk.found
}

/// Where the walk stands in the text, and what it has found.
struct Walk<'t> {
    text: &'t str,
    position: usize,
    found: Vec<Vec<String>>,
}

/// The text ended, or is not JSON.
struct Broken;

// === impl Walk ===

impl<'t> Walk<'t> {
    /// Passes over the value that stands next, and notes down what the open pointers want of it.
    fn value(&mut self, open: &[Open<'_>]) -> Result<(), Broken> {
        self.skip_whitespace();
        let start = self.position;
        let deeper: Vec<Open<'_>> = open.iter().filter(|(_, rest)| !rest.is_empty()).copied().collect();
        match self.peek() {
            Some(b'{') if !deeper.is_empty() => self.object(&deeper)?,
            Some(b'[') if !deeper.is_empty() => self.array(&deeper)?,
            _ => self.skip_value()?,
        }
        let value = self.text.get(start..self.position).ok_or(Broken)?;
        for (idx, _) in open.iter().filter(|(_, rest)| rest.is_empty()) {
            self.found[*idx].push(value.to_owned());
        }
        Ok(())
    }

    fn object(&mut self, open: &[Open<'_>]) -> Result<(), Broken> {
        let n_before: Vec<usize> = open.iter().map(|(idx, _)| self.found[*idx].len()).collect();
        self.position += 1;
        self.skip_whitespace();
        if self.take_if(b'}') {
            return Ok(());
        }
        loop {
            self.skip_whitespace();
            let key = self.key()?;
            self.skip_whitespace();
            self.take(b':')?;
            let mut under = Vec::new();
            for ((idx, rest), n_before) in open.iter().zip(&n_before) {
                if matches!(rest.first(), Some(Segment::Name { name, .. }) if key.is(name)) {
                    // The key may have been here before: the last one counts.
                    self.found[*idx].truncate(*n_before);
                    under.push((*idx, &rest[1..]));
                }
            }
            self.value_or_skip(&under)?;
            self.skip_whitespace();
            if !self.take_if(b',') {
                return self.take(b'}');
            }
        }
    }

    fn array(&mut self, open: &[Open<'_>]) -> Result<(), Broken> {
        self.position += 1;
        self.skip_whitespace();
        if self.take_if(b']') {
            return Ok(());
        }
        for element_idx in 0.. {
            let mut under = Vec::new();
            for (idx, rest) in open {
                match rest.first() {
                    Some(Segment::Name { index, .. }) if *index == Some(element_idx) => {}
                    Some(Segment::Every) => {}
                    _ => continue,
                }
                under.push((*idx, &rest[1..]));
            }
            self.value_or_skip(&under)?;
            self.skip_whitespace();
            if !self.take_if(b',') {
                break;
            }
        }
        self.take(b']')
    }

    fn value_or_skip(&mut self, open: &[Open<'_>]) -> Result<(), Broken> {
        if open.is_empty() {
            self.skip_whitespace();
            self.skip_value()
        } else {
            self.value(open)
        }
    }

    /// Passes over one value of any depth, without recursion.
    fn skip_value(&mut self) -> Result<(), Broken> {
        let mut depth = 0_usize;
        loop {
            match self.peek().ok_or(Broken)? {
                b'"' => self.skip_string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.position += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1).ok_or(Broken)?;
                    self.position += 1;
                }
                _ if depth > 0 => self.position += 1,
                _ => return self.skip_scalar(),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Passes over a number, `true`, `false` or `null`.
    fn skip_scalar(&mut self) -> Result<(), Broken> {
        let rest = &self.text.as_bytes()[self.position..];
        let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b':' | b' ' | b'\t' | b'\n' | b'\r');
        let length = rest.iter().position(is_end).unwrap_or(rest.len());
        self.position += length;
        if length == 0 { Err(Broken) } else { Ok(()) }
    }

    /// Passes over a string. Tells whether it has escapes.
    fn string(&mut self) -> Result<bool, Broken> {
        self.take(b'"')?;
        let mut is_escaped = false;
        loop {
            match self.peek().ok_or(Broken)? {
                b'"' => {
                    self.position += 1;
                    return Ok(is_escaped);
                }
                b'\\' => {
                    is_escaped = true;
                    self.position += 2;
                }
                _ => self.position += 1,
            }
        }
    }

    fn skip_string(&mut self) -> Result<(), Broken> {
        self.string().map(|_| ())
    }

    fn key(&mut self) -> Result<Key<'t>, Broken> {
        let start = self.position;
        let is_escaped = self.string()?;
        let quoted = self.text.get(start..self.position).ok_or(Broken)?;
        Ok(if is_escaped {
            // An escape that stands for no character names no field that a pointer could name.
            Key::Escaped(serde_json::from_str(quoted).ok())
        } else {
            Key::Plain(&quoted[1..quoted.len() - 1])
        })
    }

    fn skip_whitespace(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.position += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn take_if(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.position += usize::from(is_next);
        is_next
    }

    fn take(&mut self, byte: u8) -> Result<(), Broken> {
        if self.take_if(byte) { Ok(()) } else { Err(Broken) }
    }
}

/// An object's key as it stands in the text.
enum Key<'t> {
    Plain(&'t str),
    Escaped(Option<String>),
}

// === impl Key ===

impl Key<'_> {
    fn is(&self, name: &str) -> bool {
        match self {
            Self::Plain(key) => *key == name,
            Self::Escaped(key) => key.as_deref() == Some(name),
        }
    }
}
