//! Scans JSON text in blocks of 64 bytes, to find the ends of strings and brackets.
//!
//! Each block becomes bit masks, one bit per byte; a few operations on words find the brackets outside of
//! strings, as in simdjson (Langdale and Lemire). So the scanner skips a value of any depth at several GB/s,
//! without recursion. The process chooses the instructions for it at run time: AVX-512 (of Ice Lake and
//! later), AVX2, SSE4.2 or SSE2. A [`Cursor`] reads tokens, and skips values in this way.
//!
//! The scanner checks only that a skipped value is closed: its strings end, and it has as many closing as
//! opening brackets. It does not check commas, colons, numbers and escapes, nor that a brace closes a brace.

mod block;
mod cursor;

pub use cursor::{Cursor, Quoted};

use fearless_simd::{Level, Simd, dispatch};

use block::{BLOCK, Block};

/// Finds the end of an array or object whose bytes come in pieces.
#[derive(Clone, Debug, Default)]
pub struct Nesting {
    depth: usize,
    strings: Strings,
}

/// The state between two blocks.
#[derive(Clone, Debug, Default)]
struct Strings {
    /// All ones when the next byte is inside of a string.
    inside: u64,
    /// One when the next byte is escaped.
    escaped: u64,
}

// === impl Nesting ===

impl Nesting {
    /// Returns the state within so many brackets, outside of a string.
    fn within(depth: usize) -> Self {
        Self { depth, strings: Strings::default() }
    }

    /// Returns the position behind the bracket that closes the first one; none if the piece ends before it.
    pub fn end_in(&mut self, piece: &[u8]) -> Option<usize> {
        dispatch!(Level::new(), simd => self.end_in_with(simd, piece))
    }

    #[inline(always)]
    fn end_in_with<S: Simd>(&mut self, simd: S, piece: &[u8]) -> Option<usize> {
        let (blocks, rest) = piece.as_chunks::<BLOCK>();
        for (idx, block) in blocks.iter().enumerate() {
            if let Some(end) = self.end_in_block(simd, block, BLOCK) {
                return Some(idx * BLOCK + end);
            }
        }
        if rest.is_empty() {
            return None;
        }
        self.end_in_block(simd, &padded(rest), rest.len()).map(|end| blocks.len() * BLOCK + end)
    }

    #[inline(always)]
    fn end_in_block<S: Simd>(&mut self, simd: S, bytes: &[u8; BLOCK], length: usize) -> Option<usize> {
        let block = Block::new(simd, bytes);
        let outside = !self.strings.next(&block, length);
        let (opening, mut closing) = (block.opening & outside, block.closing & outside);
        let n_closing = closing.count_ones() as usize;
        if n_closing < self.depth {
            self.depth = self.depth + opening.count_ones() as usize - n_closing;
            return None;
        }
        let mut counted = 0;
        while closing != 0 {
            let bit = closing & closing.wrapping_neg();
            let before = opening & (bit - 1);
            self.depth = (self.depth + (before & !counted).count_ones() as usize).saturating_sub(1);
            counted = before;
            if self.depth == 0 {
                return Some(bit.trailing_zeros() as usize + 1);
            }
            closing &= closing - 1;
        }
        self.depth += (opening & !counted).count_ones() as usize;
        None
    }
}

// === impl Strings ===

impl Strings {
    /// Returns the bytes of the next block that are in a string, with its opening quote. Blanks pad the block
    /// behind its `length` bytes.
    #[inline(always)]
    fn next(&mut self, block: &Block, length: usize) -> u64 {
        let quotes = block.quotes & !self.escaped(block.backslashes, length);
        let strings = prefix_xor(quotes) ^ self.inside;
        self.inside = if strings >> 63 == 1 { u64::MAX } else { 0 };
        strings
    }

    /// Returns the position behind the next quote that is not escaped.
    #[inline(always)]
    fn end_in_block<S: Simd>(&mut self, simd: S, bytes: &[u8; BLOCK]) -> Option<usize> {
        let block = Block::new(simd, bytes);
        let quotes = block.quotes & !self.escaped(block.backslashes, BLOCK);
        (quotes != 0).then(|| quotes.trailing_zeros() as usize + 1)
    }

    /// Returns the bytes behind a backslash that is not itself escaped: behind an odd number of backslashes.
    #[inline(always)]
    fn escaped(&mut self, backslashes: u64, length: usize) -> u64 {
        const EVEN: u64 = 0x5555_5555_5555_5555;
        if backslashes == 0 {
            return std::mem::take(&mut self.escaped);
        }
        let backslashes = backslashes & !self.escaped;
        let behind = backslashes << 1 | self.escaped;
        let odd_starts = backslashes & !EVEN & !behind;
        let (ends_of_odd, overflows) = odd_starts.overflowing_add(backslashes);
        let escaped = (EVEN ^ (ends_of_odd << 1)) & behind;
        self.escaped = if length < BLOCK { (escaped >> length) & 1 } else { u64::from(overflows) };
        escaped
    }
}

/// Returns the position behind the array or object that begins at `start`.
#[inline]
fn end_of_nested(bytes: &[u8], start: usize) -> Option<usize> {
    Nesting::default().end_in(bytes.get(start..)?).map(|end| start + end)
}

/// Returns the position behind the bracket that closes the outermost of the `depth` brackets around `start`.
fn end_of_outer(bytes: &[u8], start: usize, depth: usize) -> Option<usize> {
    if depth == 0 {
        return Some(start);
    }
    Nesting::within(depth).end_in(bytes.get(start..)?).map(|end| start + end)
}

/// Returns the position behind the string whose opening quote is before `start`.
fn end_of_string(bytes: &[u8], start: usize) -> Option<usize> {
    let text = bytes.get(start..)?;
    dispatch!(Level::new(), simd => end_of_string_with(simd, text)).map(|end| start + end)
}

#[inline(always)]
fn end_of_string_with<S: Simd>(simd: S, text: &[u8]) -> Option<usize> {
    let mut strings = Strings::default();
    let (blocks, rest) = text.as_chunks::<BLOCK>();
    for (idx, block) in blocks.iter().enumerate() {
        if let Some(end) = strings.end_in_block(simd, block) {
            return Some(idx * BLOCK + end);
        }
    }
    strings.end_in_block(simd, &padded(rest)).map(|end| blocks.len() * BLOCK + end)
}

/// Each bit becomes the parity of itself and those below it.
#[inline(always)]
fn prefix_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

#[inline(always)]
fn padded(rest: &[u8]) -> [u8; BLOCK] {
    let mut block = [b' '; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    block
}

#[cfg(test)]
mod tests;
