//! JSON pointers (RFC 6901), and pointer patterns in which `*` stands for every element of a list.

use std::fmt;
use std::str::FromStr;

/// The most segments a pointer may have.
pub const MAX_SEGMENTS: usize = 64;

/// Points at one value of a JSON document, as RFC 6901 has it.
///
/// The empty pointer means the whole document; `/metadata/labels/app` descends by names, `/spec/containers/0`
/// by an index of a list. In a name, `~1` stands for `/` and `~0` for `~`. A `*` is a name like any other.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JsonPointer {
    segments: Box<[Segment]>,
}

/// A JSON pointer in which the segment `*` stands for every element of a list.
///
/// `/spec/containers/*/image` points at the image of each container, in the order of the list.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PointerPattern {
    segments: Box<[Segment]>,
}

/// The reason why a text is not a JSON pointer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    /// The text is not empty and does not begin with a slash.
    #[error("a JSON pointer is empty or begins with '/': {0:?}")]
    NoLeadingSlash(String),
    /// A tilde is followed by neither 0 nor 1.
    #[error("'~' must be followed by 0 or 1 in a JSON pointer: {0:?}")]
    BadEscape(String),
    /// There are more than [`MAX_SEGMENTS`] segments.
    #[error("a JSON pointer may have at most {MAX_SEGMENTS} segments, this one has {0}")]
    TooLong(usize),
}

/// One step of a pointer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// Into an object by this name, or into a list by this index, if the name is one.
    Name {
        /// The name, unescaped.
        name: Box<str>,
        /// The name as an index of a list, if it is one.
        index: Option<usize>,
    },
    /// Into every element of a list.
    Every,
}

// === impl JsonPointer ===

impl JsonPointer {
    /// Returns the segments, from the root on.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }
}

/// Descends by these names. They contain no escapes.
impl<const N: usize> From<[&str; N]> for JsonPointer {
    fn from(names: [&str; N]) -> Self {
        Self { segments: names.into_iter().map(|name| Segment::named(name.to_owned())).collect() }
    }
}

impl FromStr for JsonPointer {
    type Err = PointerError;

    fn from_str(text: &str) -> Result<Self, PointerError> {
        Ok(Self { segments: parse(text, Segment::named)? })
    }
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(&self.segments, f)
    }
}

impl fmt::Debug for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

// === impl PointerPattern ===

impl PointerPattern {
    /// Returns the segments, from the root on.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }
}

impl FromStr for PointerPattern {
    type Err = PointerError;

    fn from_str(text: &str) -> Result<Self, PointerError> {
        let segment = |name: String| if name == "*" { Segment::Every } else { Segment::named(name) };
        Ok(Self { segments: parse(text, segment)? })
    }
}

impl From<JsonPointer> for PointerPattern {
    fn from(pointer: JsonPointer) -> Self {
        Self { segments: pointer.segments }
    }
}

impl fmt::Display for PointerPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(&self.segments, f)
    }
}

impl fmt::Debug for PointerPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

// === impl Segment ===

impl Segment {
    /// Returns the segment of this name.
    #[must_use]
    pub fn named(name: String) -> Self {
        let is_index =
            name == "0" || (!name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit()));
        let index = if is_index { name.parse().ok() } else { None };
        Self::Name { name: name.into_boxed_str(), index }
    }
}

fn parse(text: &str, segment: impl Fn(String) -> Segment) -> Result<Box<[Segment]>, PointerError> {
    if text.is_empty() {
        return Ok(Box::new([]));
    }
    let Some(rest) = text.strip_prefix('/') else {
        return Err(PointerError::NoLeadingSlash(text.to_owned()));
    };
    let n_segments = rest.split('/').count();
    if n_segments > MAX_SEGMENTS {
        return Err(PointerError::TooLong(n_segments));
    }
    rest.split('/')
        .map(|part| unescape(part).map(&segment).ok_or_else(|| PointerError::BadEscape(text.to_owned())))
        .collect()
}

fn unescape(part: &str) -> Option<String> {
    let mut name = String::with_capacity(part.len());
    let mut chars = part.chars();
    while let Some(char) = chars.next() {
        match char {
            '~' => name.push(match chars.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            }),
            char => name.push(char),
        }
    }
    Some(name)
}

fn display(segments: &[Segment], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for segment in segments {
        match segment {
            Segment::Name { name, .. } => write!(f, "/{}", name.replace('~', "~0").replace('/', "~1"))?,
            Segment::Every => f.write_str("/*")?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
