//! The text of an object as its readers get it.

use std::fmt;
use std::ops::Deref;

use super::body::HotText;

/// The JSON text of an object. Dereferences to `str`.
///
/// It shares the text of a hot object and keeps that text alive. For a cold object it owns the decompressed
/// text.
#[derive(Clone)]
pub struct Json(JsonText);

#[derive(Clone)]
enum JsonText {
    Shared(triomphe::Arc<HotText>),
    Owned(Box<str>),
}

// === impl Json ===

impl Json {
    pub(super) fn shared(text: triomphe::Arc<HotText>) -> Self {
        Self(JsonText::Shared(text))
    }

    pub(super) fn owned(text: String) -> Self {
        Self(JsonText::Owned(text.into_boxed_str()))
    }
}

impl Deref for Json {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            JsonText::Shared(text) => text,
            JsonText::Owned(text) => text,
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

/// Shows the length only, since the object may be a Secret.
impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.len())
    }
}
