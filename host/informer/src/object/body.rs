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
    Cold {
        text: ThinArc<Arc<Dictionary>, u8>,
        /// The bytes of the values that the hot text had.
        n_copied: u16,
    },
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

    /// Compresses a text, whose hot body had `n_copied` bytes of values. Returns `None` when that fails, or
    /// saves too little.
    pub(super) fn compressed(text: &str, n_copied: usize, dictionary: &Arc<Dictionary>) -> Option<Self> {
        let n_copied = u16::try_from(n_copied).unwrap_or(u16::MAX);
        if text.len() < MIN_LENGTH {
            return None;
        }
        dictionary.compress(text, |bytes| {
            // A cold text stores two pointers and a length in addition.
            let saves_enough = bytes.len() + 48 < text.len() - text.len() / 8;
            saves_enough.then(|| {
                let text = ThinArc::from_header_and_slice(dictionary.clone(), bytes);
                Self::Cold { text, n_copied }
            })
        })
    }

    /// Returns the text, decompressed if necessary. `length` is the length of the text.
    pub(super) fn text(&self, length: usize) -> Option<Json> {
        match self {
            Self::Hot(text) => Some(Json::shared(text.clone())),
            Self::Cold { text, .. } => text.header.header.decompress(&text.slice, length).map(Json::owned),
        }
    }

    /// Returns the values that the decoder copied, if the text is hot.
    pub(super) fn values(&self) -> Option<&StateValues> {
        match self {
            Self::Hot(text) => text.values.as_ref(),
            Self::Cold { .. } => None,
        }
    }

    /// Returns how many bytes the values take that the decoder copied, or took while the text was hot.
    pub(super) fn n_copied(&self) -> usize {
        match self {
            Self::Hot(text) => text.values.as_ref().map_or(0, StateValues::size),
            Self::Cold { n_copied, .. } => usize::from(*n_copied),
        }
    }

    pub(super) fn is_compressed_with(&self, dictionary: &Arc<Dictionary>) -> bool {
        matches!(self, Self::Cold { text, .. } if Arc::ptr_eq(&text.header.header, dictionary))
    }

    /// Returns how many bytes the compressed text takes. Returns `None` for a hot text.
    pub(super) fn compressed_length(&self) -> Option<usize> {
        match self {
            Self::Hot(_) => None,
            Self::Cold { text, .. } => Some(text.slice.len()),
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
