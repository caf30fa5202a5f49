//! Chooses the segments that many texts share.
//!
//! A piece is a sequence of eight bytes. Its score is the number of texts that have it. The texts are divided
//! into groups. From each group in turn the segment with the highest score is chosen, and the score of its
//! pieces becomes zero, so that each piece is chosen once. zstd's own trainer does the same, but tries
//! several parameters. This one takes a sixth of the time and a tenth of the memory.

/// The length of a piece.
const PIECE: usize = 8;

/// The length of a segment.
const SEGMENT: usize = 640;

/// How many bits of its hash identify a piece.
const BITS: u32 = 17;

/// The score of each piece.
struct Scores {
    scores: Vec<u16>,
    /// How often each piece occurs in the current segment.
    inside: Vec<u16>,
}

/// Returns segments of the texts, at most `size` bytes together. The best segments are last, where zstd needs
/// the fewest bits to refer to them.
pub(super) fn cover(texts: &[&[u8]], size: usize) -> Vec<u8> {
    let mut scores = Scores::count(texts);
    let n_groups = (size / SEGMENT).clamp(1, texts.len().max(1));
    let mut chosen: Vec<&[u8]> = Vec::new();
    let mut room = size;
    let mut n_without_result = 0;
    for group in (0..n_groups).cycle() {
        let members = texts.len() * group / n_groups..texts.len() * (group + 1) / n_groups;
        let best =
            texts[members].iter().map(|text| scores.best_segment(text)).max_by_key(|(score, _)| *score);
        match best {
            Some((score, segment)) if score > 0 => {
                let segment = &segment[..segment.len().min(room)];
                scores.reset(segment);
                room -= segment.len();
                chosen.push(segment);
                n_without_result = 0;
            }
            _ => n_without_result += 1,
        }
        if room < PIECE || n_without_result == n_groups {
            break;
        }
    }
    chosen.reverse();
    chosen.concat()
}

// === impl Scores ===

impl Scores {
    /// Counts for each piece the texts that have it. The score of a piece of only one text is zero.
    fn count(texts: &[&[u8]]) -> Self {
        let mut scores = vec![0u16; 1 << BITS];
        let mut last_text = vec![u16::MAX; 1 << BITS];
        for (number, text) in texts.iter().enumerate() {
            let number = (number % usize::from(u16::MAX)) as u16;
            for piece in text.windows(PIECE) {
                let slot = slot(piece);
                if last_text[slot] != number {
                    last_text[slot] = number;
                    scores[slot] = scores[slot].saturating_add(1);
                }
            }
        }
        for count in &mut scores {
            if *count < 2 {
                *count = 0;
            }
        }
        Self { scores, inside: vec![0; 1 << BITS] }
    }

    /// Returns the highest score of a segment of the text, and the segment without ends of score zero.
    fn best_segment<'t>(&mut self, text: &'t [u8]) -> (u64, &'t [u8]) {
        let width = SEGMENT - PIECE + 1;
        let n_pieces = (text.len() + 1).saturating_sub(PIECE);
        let (mut score, mut best, mut best_end) = (0, 0, 0);
        for at in 0..n_pieces {
            let new = slot(&text[at..at + PIECE]);
            if self.inside[new] == 0 {
                score += u64::from(self.scores[new]);
            }
            self.inside[new] += 1;
            if at >= width {
                let old = slot(&text[at - width..at - width + PIECE]);
                self.inside[old] -= 1;
                if self.inside[old] == 0 {
                    score -= u64::from(self.scores[old]);
                }
            }
            if score > best {
                (best, best_end) = (score, at + 1);
            }
        }
        for at in n_pieces.saturating_sub(width)..n_pieces {
            self.inside[slot(&text[at..at + PIECE])] = 0;
        }
        let (mut start, mut end) = (best_end.saturating_sub(width), best_end);
        let is_zero = |at: usize| self.scores[slot(&text[at..at + PIECE])] == 0;
        while start < end && is_zero(start) {
            start += 1;
        }
        while start < end && is_zero(end - 1) {
            end -= 1;
        }
        (best, if start < end { &text[start..end - 1 + PIECE] } else { &[] })
    }

    /// Sets the score of a segment's pieces to zero.
    fn reset(&mut self, segment: &[u8]) {
        for piece in segment.windows(PIECE) {
            self.scores[slot(piece)] = 0;
        }
    }
}

/// Returns the index of a piece's score.
fn slot(piece: &[u8]) -> usize {
    let mut bytes = [0; PIECE];
    bytes.copy_from_slice(piece);
    (u64::from_le_bytes(bytes).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_that_all_texts_share_is_chosen() {
        let common = "the quick brown fox jumps over the lazy dog";
        let texts: Vec<_> = (0..50u32)
            .map(|i| {
                format!("{:08x}{common}{:08x}", i.wrapping_mul(0x9e37_79b9), i.wrapping_mul(0x85eb_ca6b))
            })
            .collect();
        let texts: Vec<_> = texts.iter().map(String::as_bytes).collect();
        let chosen = cover(&texts, 4096);
        assert!(String::from_utf8(chosen).unwrap().contains(common));
        assert!(cover(&texts, 20).len() <= 20);
    }

    #[test]
    fn texts_without_common_pieces_give_no_segment() {
        assert!(cover(&[], 100).is_empty());
        let small: Vec<&[u8]> = vec![b"", b"a", b"1234567", b"12345678"];
        assert!(cover(&small, 100).is_empty());
        let twice: Vec<&[u8]> = vec![b"12345678", b"12345678"];
        assert_eq!(cover(&twice, 100), b"12345678");
    }

    proptest::proptest! {
        #[test]
        fn the_segments_of_any_texts_stay_within_the_size(
            texts in proptest::collection::vec("[ab]{0,2000}", 0..20),
            size in 0usize..4000,
        ) {
            let texts: Vec<_> = texts.iter().map(String::as_bytes).collect();
            proptest::prop_assert!(cover(&texts, size).len() <= size);
        }
    }
}
