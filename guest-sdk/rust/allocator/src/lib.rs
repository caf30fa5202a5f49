//! The global allocator of plugins in Rust.
//!
//! It is talc's, with a small [`Area`] for the arguments of calls. The host asks for a block for each
//! text and list of a call (`cabi_realloc`), a dozen for a notification, and the plugin frees most of
//! them before the call ends. So these blocks are taken from the area one after the other, and the area
//! is empty again when all of them are free. A plugin that keeps one of them fills the area up once, and
//! gets the blocks of later calls from talc.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;
use core::ptr::{null_mut, without_provenance_mut};

/// The size of the area, in bytes. The arguments of a notification take 300 to 500.
const SIZE: usize = 1 << 10;

/// The maximum alignment of a block in the area. No type of the component model has a larger one.
const ALIGN: usize = 8;

/// An allocator with an area for the arguments of calls. One thread may use it.
pub struct Allocator<A> {
    rest: A,
    area: Area,
}

/// Memory whose blocks are taken one after the other, and are free together.
struct Area {
    bytes: UnsafeCell<Bytes>,
    /// Where the next block begins.
    end: Cell<usize>,
    n_blocks: Cell<usize>,
}

#[repr(C, align(8))]
struct Bytes([MaybeUninit<u8>; SIZE]);

// === impl Allocator ===

impl<A> Allocator<A> {
    /// Returns an allocator with an empty area, and `rest` for all other blocks.
    pub const fn new(rest: A) -> Self {
        Self { rest, area: Area::new() }
    }
}

impl<A: GlobalAlloc> Allocator<A> {
    /// Returns a block for an argument of a call, or another size of such a block. Null if there is no
    /// memory. An empty block has no memory.
    ///
    /// # Safety
    ///
    /// `align` is a power of two, and no size is larger than the memory. A block with an old size was
    /// returned by this function with that size and alignment, and its new size is not zero. That is what
    /// the canonical ABI says of `realloc`.
    pub unsafe fn reallocate_argument(
        &self,
        block: *mut u8,
        old_size: usize,
        align: usize,
        new_size: usize,
    ) -> *mut u8 {
        // SAFETY: the caller promises it.
        let layout = |size| unsafe { Layout::from_size_align_unchecked(size, align) };
        if old_size > 0 {
            debug_assert!(new_size > 0);
            // SAFETY: the block is one of this allocator, with this layout.
            return unsafe { self.realloc(block, layout(old_size), new_size) };
        }
        if new_size == 0 {
            return without_provenance_mut(align);
        }
        let block = self.area.allocate(layout(new_size));
        // SAFETY: the size is not zero.
        if block.is_null() { unsafe { self.rest.alloc(layout(new_size)) } } else { block }
    }
}

// SAFETY: each block is of the area or of `rest`, and goes back to the one that gave it. The caller
// promises what `rest` asks for.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Allocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe { self.rest.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        unsafe { self.rest.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if self.area.has(block) {
            self.area.free();
        } else {
            unsafe { self.rest.dealloc(block, layout) };
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !self.area.has(block) {
            return unsafe { self.rest.realloc(block, layout, new_size) };
        }
        // SAFETY: the caller promises that the new size is valid for this alignment, and not zero.
        let moved = unsafe { self.rest.alloc(Layout::from_size_align_unchecked(new_size, layout.align())) };
        if !moved.is_null() {
            // SAFETY: both blocks are at least this long, and of different allocators.
            unsafe { moved.copy_from_nonoverlapping(block, layout.size().min(new_size)) };
            self.area.free();
        }
        moved
    }
}

// SAFETY: a component of the contract has one thread, and WebAssembly without atomics has no other.
#[cfg(all(target_family = "wasm", not(target_feature = "atomics")))]
unsafe impl<A: Sync> Sync for Allocator<A> {}

// === impl Area ===

impl Area {
    const fn new() -> Self {
        Self {
            bytes: UnsafeCell::new(Bytes([const { MaybeUninit::uninit() }; SIZE])),
            end: Cell::new(0),
            n_blocks: Cell::new(0),
        }
    }

    /// Takes a block. Null if there is no room.
    #[inline]
    fn allocate(&self, layout: Layout) -> *mut u8 {
        // An alignment is a power of two.
        let start = (self.end.get() + layout.align() - 1) & !(layout.align() - 1);
        if layout.align() > ALIGN || layout.size() > SIZE - start.min(SIZE) {
            return null_mut();
        }
        self.end.set(start + layout.size());
        self.n_blocks.set(self.n_blocks.get() + 1);
        // SAFETY: the block is within the area.
        unsafe { self.bytes.get().cast::<u8>().add(start) }
    }

    #[inline]
    fn has(&self, block: *mut u8) -> bool {
        block.addr().wrapping_sub(self.bytes.get().addr()) < SIZE
    }

    /// Frees one block of the area.
    #[inline]
    fn free(&self) {
        debug_assert!(self.n_blocks.get() > 0);
        let n_blocks = self.n_blocks.get() - 1;
        self.n_blocks.set(n_blocks);
        if n_blocks == 0 {
            self.end.set(0);
        }
    }
}

#[cfg(all(target_family = "wasm", not(target_feature = "atomics")))]
mod global {
    use talc::wasm::{WasmDynamicTalc, new_wasm_dynamic_allocator};

    use super::Allocator;

    // talc's code is 7 KiB smaller than that of the standard library's allocator, and the host compiles all
    // code of a plugin.
    #[global_allocator]
    static ALLOCATOR: Allocator<WasmDynamicTalc> = Allocator::new(new_wasm_dynamic_allocator());

    /// The function by which the host gets blocks for arguments and results. It replaces the one of
    /// wit-bindgen, which is a weak symbol. With WASI the one of its C library stays, which frees what the
    /// library's own imports return.
    ///
    /// # Safety
    ///
    /// As [`Allocator::reallocate_argument`].
    #[cfg(target_os = "unknown")]
    #[unsafe(no_mangle)]
    unsafe extern "C" fn cabi_realloc(
        block: *mut u8,
        old_size: usize,
        align: usize,
        new_size: usize,
    ) -> *mut u8 {
        // SAFETY: the host keeps to the canonical ABI.
        let block = unsafe { ALLOCATOR.reallocate_argument(block, old_size, align, new_size) };
        if block.is_null() {
            core::arch::wasm32::unreachable();
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::System;

    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    struct Blocks {
        allocator: Allocator<System>,
        blocks: Vec<(*mut u8, Layout, u8)>,
    }

    impl Blocks {
        fn new() -> Self {
            Self { allocator: Allocator::new(System), blocks: Vec::new() }
        }

        /// Allocates a block, and fills it with a byte of its own.
        fn allocate(&mut self, size: usize, align: usize) -> bool {
            let layout = layout(size, align);
            let block = unsafe { self.allocator.reallocate_argument(null_mut(), 0, align, size) };
            assert!(block.addr().is_multiple_of(align));
            let fill = self.blocks.len() as u8 + 1;
            unsafe { block.write_bytes(fill, size) };
            self.blocks.push((block, layout, fill));
            self.allocator.area.has(block)
        }

        fn check(block: *mut u8, size: usize, fill: u8) {
            let bytes = unsafe { std::slice::from_raw_parts(block, size) };
            assert!(bytes.iter().all(|byte| *byte == fill), "{bytes:?} are not all {fill}");
        }

        fn free(&mut self, index: usize) {
            let (block, layout, fill) = self.blocks.swap_remove(index);
            Self::check(block, layout.size(), fill);
            unsafe { self.allocator.dealloc(block, layout) };
        }

        fn resize(&mut self, index: usize, size: usize) -> bool {
            let (block, before, fill) = self.blocks[index];
            let (old_size, align) = (before.size(), before.align());
            let block = unsafe { self.allocator.reallocate_argument(block, old_size, align, size) };
            Self::check(block, before.size().min(size), fill);
            unsafe { block.write_bytes(fill, size) };
            self.blocks[index] = (block, layout(size, align), fill);
            self.allocator.area.has(block)
        }
    }

    impl Drop for Blocks {
        fn drop(&mut self) {
            while !self.blocks.is_empty() {
                self.free(0);
            }
            assert_eq!((self.allocator.area.end.get(), self.allocator.area.n_blocks.get()), (0, 0));
        }
    }

    #[test]
    fn the_area_is_empty_again_when_its_last_block_is_free() {
        let mut blocks = Blocks::new();
        for _ in 0..3 {
            for (size, align) in [(3, 1), (24, 4), (7, 1), (16, 8), (SIZE - 56, 8)] {
                assert!(blocks.allocate(size, align));
            }
            assert!(!blocks.allocate(1, 1), "the area is full");
            (0..6).for_each(|_| blocks.free(0));
        }
    }

    #[test]
    fn a_block_that_is_kept_sends_later_ones_to_the_other_allocator() {
        let mut blocks = Blocks::new();
        assert!(blocks.allocate(8, 1));
        let n_in_area = (0..1000).filter(|_| {
            let is_in_area = blocks.allocate(100, 1);
            blocks.free(1);
            is_in_area
        });
        assert_eq!(n_in_area.count(), (SIZE - 8) / 100);
        blocks.free(0);
        assert!(blocks.allocate(100, 1), "the area is empty again");
    }

    #[test]
    fn blocks_that_do_not_fit_are_of_the_other_allocator() {
        let mut blocks = Blocks::new();
        assert!(!blocks.allocate(SIZE + 1, 1));
        assert!(!blocks.allocate(16, 16), "its alignment is larger than the area's");
        assert!(blocks.allocate(SIZE, 1));
        assert!(!blocks.allocate(SIZE, 8));
    }

    #[test]
    fn a_block_that_grows_leaves_the_area() {
        let mut blocks = Blocks::new();
        assert!(blocks.allocate(10, 1));
        assert!(blocks.allocate(10, 4));
        assert!(!blocks.resize(0, 20));
        assert!(!blocks.resize(0, 5));
        assert!(!blocks.resize(1, 4));
        assert!(blocks.allocate(SIZE, 1), "both have left");
    }

    #[test]
    fn an_empty_block_takes_no_room() {
        let allocator = Allocator::new(System);
        let block = unsafe { allocator.reallocate_argument(null_mut(), 0, 4, 0) };
        assert_eq!((block.addr(), allocator.area.n_blocks.get()), (4, 0));
    }

    #[test]
    fn what_the_plugin_allocates_itself_is_not_of_the_area() {
        let allocator = Allocator::new(System);
        let layout = layout(8, 8);
        let block = unsafe { allocator.alloc(layout) };
        assert!(!block.is_null() && !allocator.area.has(block));
        unsafe { allocator.dealloc(block, layout) };
    }
}
