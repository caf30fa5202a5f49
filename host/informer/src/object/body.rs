//! An object's text, hot or cold.

use std::sync::Arc;

use triomphe::ThinArc;

use super::Json;
use super::copied_values::StateValues;
use super::dictionary::Dictionary;

/// Shorter texts are not compressed.
const MIN_LENGTH: usize = 256;

/// An object's text.
#[derive(Clone)]
pub(super) enum Body {
    /// The uncompressed text.
    Hot(triomphe::Arc<HotText>),
    /// The text compressed with a dictionary.
    Cold(ThinArc<Arc<Dictionary>, u8>),
}

/// An uncompressed text.
pub(super) struct HotText {
    text: Box<str>,
    /// The values that the decoder copied.
    values: Option<StateValues>,
}

// === impl Body ===

impl Body {
    pub(super) fn hot(text: Box<str>, values: Option<StateValues>) -> Self {
        Self::Hot(triomphe::Arc::new(HotText { text, values }))
    }

    /// Compresses a text. Returns `None` when that fails, or saves too little.
    pub(super) fn compressed(text: &str, dictionary: &Arc<Dictionary>) -> Option<Self> {
        if text.len() < MIN_LENGTH {
            return None;
        }
        dictionary.compress(text, |bytes| {
            // A cold text stores two pointers and a length in addition.
            let saves_enough = bytes.len() + 48 < text.len() - text.len() / 8;
            saves_enough.then(|| Self::Cold(ThinArc::from_header_and_slice(dictionary.clone(), bytes)))
        })
    }

    /// Returns the text, decompressed if necessary. `length` is the length of the text.
    pub(super) fn text(&self, length: usize) -> Option<Json> {
        match self {
            Self::Hot(text) => Some(Json::shared(text.clone())),
            Self::Cold(cold) => cold.header.header.decompress(&cold.slice, length).map(Json::owned),
        }
    }

    /// Returns the values that the decoder copied, if the text is hot.
    pub(super) fn values(&self) -> Option<&StateValues> {
        match self {
            Self::Hot(text) => text.values.as_ref(),
            Self::Cold(_) => None,
        }
    }

    pub(super) fn is_compressed_with(&self, dictionary: &Arc<Dictionary>) -> bool {
        matches!(self, Self::Cold(cold) if Arc::ptr_eq(&cold.header.header, dictionary))
    }

    /// Returns how many bytes the compressed text takes. Returns `None` for a hot text.
    pub(super) fn compressed_length(&self) -> Option<usize> {
        match self {
            Self::Hot(_) => None,
            Self::Cold(cold) => Some(cold.slice.len()),
        }
    }
}

// === impl HotText ===

impl std::ops::Deref for HotText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests;
