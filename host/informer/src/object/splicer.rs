//! What is left of a text when entries are cut out of it.

use std::ops::Range;

/// The pieces of a text that are kept, in order.
pub(super) struct Splicer<'t> {
    text: &'t str,
    pieces: Vec<&'t str>,
    /// From here on everything is kept, so far.
    from: usize,
    n_cut: usize,
}

/// Takes entries out of one object, each with the comma that goes with it. The object has no white space around commas.
#[derive(Default)]
pub(super) struct EntrySplicer {
    has_kept: bool,
    /// Where a cut began that goes on up to the next entry.
    cut_from: Option<usize>,
}

/// How far a cutting has come.
pub(super) struct Mark {
    n_pieces: usize,
    from: usize,
    n_cut: usize,
}

// === impl Splicer ===

impl<'t> Splicer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, pieces: Vec::with_capacity(8), from: 0, n_cut: 0 }
    }

    /// Whether anything was cut.
    pub(super) fn is_whole(&self) -> bool {
        self.n_cut == 0
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { n_pieces: self.pieces.len(), from: self.from, n_cut: self.n_cut }
    }

    /// Whether nothing was cut since then.
    pub(super) fn is_at(&self, mark: &Mark) -> bool {
        self.n_cut == mark.n_cut
    }

    /// Takes back all cuts since then.
    pub(super) fn back_to(&mut self, mark: &Mark) {
        self.pieces.truncate(mark.n_pieces);
        (self.from, self.n_cut) = (mark.from, mark.n_cut);
    }

    /// Puts together `head`, what is left of this part of the text, and `tail`. All cuts were within the part.
    pub(super) fn finish(mut self, head: &str, part: Range<usize>, tail: &str) -> Option<String> {
        self.cut(part.end, part.end)?;
        if let Some(first) = self.pieces.first_mut() {
            *first = first.get(part.start..)?;
        }
        let length = head.len() + (part.len() - self.n_cut) + tail.len();
        let mut text = String::with_capacity(length);
        text.push_str(head);
        self.pieces.iter().for_each(|piece| text.push_str(piece));
        text.push_str(tail);
        Some(text)
    }

    fn cut(&mut self, start: usize, end: usize) -> Option<()> {
        let piece = self.text.get(self.from..start)?;
        if !piece.is_empty() {
            self.pieces.push(piece);
        }
        self.from = end;
        self.n_cut += end - start;
        Some(())
    }
}

// === impl EntrySplicer ===

impl EntrySplicer {
    /// Must be called at the beginning of each entry, and at the closing brace.
    #[inline]
    pub(super) fn next(&mut self, splicer: &mut Splicer<'_>, position: usize) -> Option<()> {
        match self.cut_from.take() {
            Some(start) => splicer.cut(start, position),
            None => Some(()),
        }
    }

    /// Keeps the entry.
    pub(super) fn keep(&mut self) {
        self.has_kept = true;
    }

    /// Cuts the entry out.
    pub(super) fn cut(&mut self, splicer: &mut Splicer<'_>, start: usize, end: usize) -> Option<()> {
        if self.has_kept {
            splicer.cut(start - 1, end)
        } else {
            self.cut_from = Some(start);
            Some(())
        }
    }

    pub(super) fn has_kept(&self) -> bool {
        self.has_kept
    }
}
