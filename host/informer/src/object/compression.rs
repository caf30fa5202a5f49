//! Compresses the text of an object in place.

use std::sync::Arc;

use super::Object;
use super::body::Body;
use super::dictionary::Dictionary;

// === impl Object ===

impl Object {
    /// Returns how many bytes the text takes in its current form, compressed or not.
    pub fn kept_length(&self) -> usize {
        self.compressed_length().unwrap_or_else(|| self.json_length())
    }

    /// Returns how many bytes the compressed text takes. Returns `None` while the object is hot.
    pub(crate) fn compressed_length(&self) -> Option<usize> {
        self.0.body.lock().compressed_length()
    }

    /// Returns how many bytes it takes while it is hot, beside its metadata: the text, and the values that
    /// the decoder copied. This does not change when the text is compressed.
    pub(crate) fn hot_length(&self) -> usize {
        self.json_length() + self.0.body.lock().n_copied()
    }

    /// Whether the text is compressed with this dictionary.
    pub(crate) fn is_compressed_with(&self, dictionary: &Arc<Dictionary>) -> bool {
        self.0.body.lock().is_compressed_with(dictionary)
    }

    /// Compresses the text, unless it is compressed already. All holders of the object share the compressed
    /// text.
    ///
    /// Returns how many bytes it takes then. Returns `None` when the text stays hot.
    pub(crate) fn compress(&self, dictionary: &Arc<Dictionary>) -> Option<usize> {
        let body = self.0.body.lock().clone();
        match &body {
            Body::Hot(text) => self.replace_body(text, dictionary),
            Body::Cold { .. } => body.compressed_length(),
        }
    }

    /// Returns how many bytes the text would take with this dictionary. Returns `None` if it would stay hot.
    pub(crate) fn compressed_length_with(&self, dictionary: &Arc<Dictionary>) -> Option<usize> {
        Body::compressed(&self.json(), 0, dictionary)?.compressed_length()
    }

    /// Compresses the text with this dictionary, even if it is compressed with another one.
    pub(crate) fn recompress(&self, dictionary: &Arc<Dictionary>) -> Option<usize> {
        self.replace_body(&self.json(), dictionary)
    }

    /// Compresses without the lock, so that no reader waits.
    fn replace_body(&self, text: &str, dictionary: &Arc<Dictionary>) -> Option<usize> {
        let n_copied = self.0.body.lock().n_copied();
        let cold = Body::compressed(text, n_copied, dictionary)?;
        let length = cold.compressed_length();
        // The old text is freed after the lock.
        let _old = std::mem::replace(&mut *self.0.body.lock(), cold);
        length
    }
}
