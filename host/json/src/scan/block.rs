//! 64 bytes as masks, one bit a byte.

use wide::u8x16;

pub(super) const BLOCK: usize = 64;

/// The positions of the structural characters of JSON in a block.
pub(super) struct Block {
    pub(super) quotes: u64,
    pub(super) backslashes: u64,
    /// `{` and `[`.
    pub(super) opening: u64,
    /// `}` and `]`.
    pub(super) closing: u64,
}

// === impl Block ===

impl Block {
    #[inline(always)]
    pub(super) fn new(bytes: &[u8; BLOCK]) -> Self {
        let (lanes, _) = bytes.as_chunks::<16>();
        let lanes = [lane(&lanes[0]), lane(&lanes[1]), lane(&lanes[2]), lane(&lanes[3])];
        // In ASCII a brace is its bracket with bit 0x20 set, and no other character becomes a brace by that
        // bit.
        let braces = lanes.map(|lane| lane | u8x16::splat(0x20));
        Self {
            quotes: equal(lanes, b'"'),
            backslashes: equal(lanes, b'\\'),
            opening: equal(braces, b'{'),
            closing: equal(braces, b'}'),
        }
    }
}

/// Returns the number of bytes before the first quote, backslash or control character; 16 without one.
#[inline(always)]
pub(super) fn n_plain(bytes: &[u8; 16]) -> usize {
    let lane = lane(bytes);
    let quotes = lane.simd_eq(u8x16::splat(b'"'));
    let backslashes = lane.simd_eq(u8x16::splat(b'\\'));
    let controls = lane.min(u8x16::splat(0x1f)).simd_eq(lane);
    let special = (quotes | backslashes | controls).to_bitmask() & 0xffff;
    (special | 1 << 16).trailing_zeros() as usize
}

#[inline(always)]
fn lane(bytes: &[u8; 16]) -> u8x16 {
    u8x16::new(*bytes)
}

#[inline(always)]
fn equal(lanes: [u8x16; 4], byte: u8) -> u64 {
    let byte = u8x16::splat(byte);
    let bits = lanes.map(|lane| u64::from(lane.simd_eq(byte).to_bitmask()));
    bits[0] | bits[1] << 16 | bits[2] << 32 | bits[3] << 48
}
