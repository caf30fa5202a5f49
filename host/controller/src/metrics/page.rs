//! The text of one page, in pieces: a page may be long, and no piece is copied. A piece of its own is not
//! kept when it was sent.

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;

/// The length of a piece, in bytes.
const PIECE: usize = 32 << 10;

/// A page that is written, and then sent.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pieces: VecDeque<Bytes>,
    last: Vec<u8>,
    bytes: usize,
}

// === impl Page ===

impl Page {
    /// Returns how many bytes it has.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Removes the next piece.
    pub(crate) fn next_piece(&mut self) -> Option<Bytes> {
        let last = || Some(std::mem::take(&mut self.last)).filter(|it| !it.is_empty()).map(Bytes::from);
        let piece = self.pieces.pop_front().or_else(last)?;
        self.bytes -= piece.len();
        Some(piece)
    }

    #[cfg(test)]
    pub(crate) fn into_text(mut self) -> String {
        let pieces: Vec<_> = std::iter::from_fn(|| self.next_piece()).collect();
        String::from_utf8(pieces.concat()).unwrap()
    }
}

/// The pieces are parts of the text, which is kept until the last one is sent.
impl From<Bytes> for Page {
    fn from(mut text: Bytes) -> Self {
        let mut page = Self { bytes: text.len(), ..Self::default() };
        while !text.is_empty() {
            page.pieces.push_back(text.split_to(text.len().min(PIECE)));
        }
        page
    }
}

impl fmt::Write for Page {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text.as_bytes();
        self.bytes += rest.len();
        while !rest.is_empty() {
            if self.last.capacity() == 0 {
                self.last.reserve_exact(PIECE);
            }
            let (now, later) = rest.split_at(rest.len().min(PIECE - self.last.len()));
            self.last.extend_from_slice(now);
            rest = later;
            if self.last.len() == PIECE {
                self.pieces.push_back(std::mem::take(&mut self.last).into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn a_page_is_written_and_sent_in_pieces() {
        let mut page = Page::default();
        let text = "größe ".repeat(PIECE / 3);
        page.write_str("a").unwrap();
        page.write_str(&text).unwrap();
        page.write_str("").unwrap();
        assert_eq!(page.bytes(), 1 + text.len());
        assert_eq!(page.next_piece().unwrap().len(), PIECE);
        assert_eq!(page.bytes(), 1 + text.len() - PIECE);
        let rest = page.into_text();
        assert!(text.ends_with(&rest), "{} bytes", rest.len());
    }

    #[test]
    fn a_text_is_sent_in_pieces_without_a_copy() {
        let text = Bytes::from("x".repeat(PIECE + 1));
        let mut page = Page::from(text.clone());
        assert_eq!(page.bytes(), PIECE + 1);
        let pieces = [page.next_piece().unwrap(), page.next_piece().unwrap()];
        let parts = [text.slice(..PIECE), text.slice(PIECE..)];
        let places = |parts: &[Bytes; 2]| parts.each_ref().map(|it| (it.as_ptr(), it.len()));
        assert_eq!(places(&pieces), places(&parts));
        assert!(page.next_piece().is_none() && page.bytes() == 0);
    }

    #[test]
    fn an_empty_page_has_no_piece() {
        assert!(Page::default().next_piece().is_none() && Page::from(Bytes::new()).next_piece().is_none());
    }
}
