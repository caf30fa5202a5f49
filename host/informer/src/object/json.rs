//! The text of an object, in the hands of a reader.

use std::fmt;
use std::ops::Deref;

/// The JSON text of an object, for reading.
///
/// Keeps what it reads from alive; dereferences to `str`. Where the object is kept compressed, this is a copy of the reader's own.
#[derive(Clone)]
pub struct Json(Text);

#[derive(Clone)]
enum Text {
    Shared(triomphe::Arc<Box<str>>),
    Own(Box<str>),
}

// === impl Json ===

impl Json {
    pub(super) fn shared(text: triomphe::Arc<Box<str>>) -> Self {
        Self(Text::Shared(text))
    }

    pub(super) fn own(text: String) -> Self {
        Self(Text::Own(text.into_boxed_str()))
    }
}

impl Deref for Json {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            Text::Shared(text) => text,
            Text::Own(text) => text,
        }
    }
}

impl AsRef<str> for Json {
    fn as_ref(&self) -> &str {
        self
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

/// The length only: an object may be a Secret.
impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.len())
    }
}
