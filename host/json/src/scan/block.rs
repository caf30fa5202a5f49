//! 64 bytes as masks, one bit a byte.

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch, u8x16, u8x64};

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
    pub(super) fn new<S: Simd>(simd: S, bytes: &[u8; BLOCK]) -> Self {
        let bytes = u8x64::load_array_ref(simd, bytes);
        // In ASCII a brace is its bracket with bit 0x20 set, and no other character becomes a brace by that
        // bit.
        let braces = bytes | 0x20;
        Self {
            quotes: bytes.simd_eq(b'"').to_bitmask(),
            backslashes: bytes.simd_eq(b'\\').to_bitmask(),
            opening: braces.simd_eq(b'{').to_bitmask(),
            closing: braces.simd_eq(b'}').to_bitmask(),
        }
    }
}

/// Returns the number of bytes before the first quote, backslash or control character; 16 without one.
#[inline(always)]
pub(super) fn n_plain(bytes: &[u8; 16]) -> usize {
    // A choice at run time would cost more than 16 bytes take: `Level::baseline` is known to the compiler.
    dispatch!(Level::baseline(), simd => n_plain_with(simd, bytes))
}

#[inline(always)]
pub(super) fn n_plain_with<S: Simd>(simd: S, bytes: &[u8; 16]) -> usize {
    let bytes = u8x16::load_array_ref(simd, bytes);
    let special = bytes.simd_eq(b'"') | bytes.simd_eq(b'\\') | bytes.simd_lt(b' ');
    (special.to_bitmask() | 1 << 16).trailing_zeros() as usize
}
