//! How an object's text is kept: as it is, or compressed.

use std::sync::Arc;

use triomphe::ThinArc;

use super::Json;
use super::dictionary::Dictionary;

/// Below this many bytes a text is left as it is.
const MIN_LENGTH: usize = 256;

/// An object's text in one of its two forms.
#[derive(Clone)]
pub(super) enum Body {
    /// Hot: as it is.
    Plain(triomphe::Arc<Box<str>>),
    /// Cold: compressed with a dictionary.
    Cold(ThinArc<Arc<Dictionary>, u8>),
}

// === impl Body ===

impl Body {
    pub(super) fn plain(text: Box<str>) -> Self {
        Self::Plain(triomphe::Arc::new(text))
    }

    /// Returns the text compressed; none if that is not worth it, or fails.
    pub(super) fn compressed(text: &str, dictionary: &Arc<Dictionary>) -> Option<Self> {
        if text.len() < MIN_LENGTH {
            return None;
        }
        dictionary.compress(text, |bytes| {
            // A dictionary's frame carries two pointers and a length along.
            let is_worth_it = bytes.len() + 48 < text.len() - text.len() / 8;
            is_worth_it.then(|| Self::Cold(ThinArc::from_header_and_slice(dictionary.clone(), bytes)))
        })
    }

    /// Returns the text, which has this length.
    pub(super) fn text(&self, length: usize) -> Option<Json> {
        match self {
            Self::Plain(text) => Some(Json::shared(text.clone())),
            Self::Cold(cold) => cold.header.header.decompress(&cold.slice, length).map(Json::own),
        }
    }

    pub(super) fn is_cold_with(&self, dictionary: &Arc<Dictionary>) -> bool {
        matches!(self, Self::Cold(cold) if Arc::ptr_eq(&cold.header.header, dictionary))
    }

    /// Returns how many bytes the text takes compressed; none while it is plain.
    pub(super) fn cold_length(&self) -> Option<usize> {
        match self {
            Self::Plain(_) => None,
            Self::Cold(cold) => Some(cold.slice.len()),
        }
    }
}

#[cfg(test)]
mod tests;
