//! The global allocator of plugins in Rust.
//!
//! It is talc's, with two things before it that take a few instructions instead of a search:
//!
//! - An [`Area`] for what the host passes. It asks for a block for each text and list of a call, and of an
//!   import's answer (`cabi_realloc`), a dozen for a notification, and the plugin frees most of them
//!   before the call ends. So these blocks are taken from the area one after the other, and the area is
//!   empty again when all of them are free. If the plugin keeps one of them, the area becomes full and stays
//!   full: later blocks are then taken like those that the plugin allocates itself.
//! - Lists of [free small blocks](FreeBlocks), for what the plugin allocates itself: its next block of
//!   about the same size is the one that it freed last.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;
use core::ptr::{null_mut, without_provenance_mut};

/// The size of the area, in bytes. The arguments of a notification take 300 to 500.
const SIZE: usize = 1 << 10;

/// The maximum alignment of a block in the area, and of a small block. No type of the component model has a
/// larger one; blocks with a larger one, such as those of `u128`, are always talc's.
const ALIGN: usize = 8;

/// What talc adds to each block, on WebAssembly.
const TAIL: usize = 4;

/// A small block and its tail have a multiple of this, as talc's blocks have.
const STEP: usize = 16;

/// The number of sizes of small blocks.
const N_SIZES: usize = 8;

/// The maximum number of free blocks of one size that are kept, also when memory is short: 9 KiB of all
/// sizes.
const MOST_KEPT: u8 = 16;

/// An allocator with an area for what the host passes. One thread may use it.
pub struct Allocator<A> {
    rest: A,
    area: Area,
    /// By size, the smallest one first.
    free: [FreeBlocks; N_SIZES],
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

/// Free blocks of one size. Each one contains the address of the next.
struct FreeBlocks {
    first: Cell<*mut u8>,
    n: Cell<u8>,
}

// === impl Allocator ===

impl<A> Allocator<A> {
    /// Returns an allocator with an empty area, and `rest` for all other memory.
    pub const fn new(rest: A) -> Self {
        Self { rest, area: Area::new(), free: [const { FreeBlocks::new() }; N_SIZES] }
    }

    /// Returns the free blocks of this size, and the layout of each. `None` if the size or the alignment is
    /// too large.
    #[inline]
    fn small(&self, layout: Layout) -> Option<(&FreeBlocks, Layout)> {
        // A layout has at most `isize::MAX` bytes.
        let total = layout.size() + TAIL;
        let free = self.free.get((total - 1) / STEP)?;
        if layout.align() > ALIGN {
            return None;
        }
        let size = total.next_multiple_of(STEP) - TAIL;
        // SAFETY: the alignment is a power of two, and the size is small.
        Some((free, unsafe { Layout::from_size_align_unchecked(size, ALIGN) }))
    }
}

impl<A: GlobalAlloc> Allocator<A> {
    /// Returns a block for a value that the host passes, or another size of such a block. Null if there is
    /// no memory. An empty block has no memory.
    ///
    /// # Safety
    ///
    /// `align` is a power of two. A block with an old size was returned by this function with that size and
    /// alignment, and its new size is not zero. That is what the canonical ABI says of `realloc`.
    pub unsafe fn reallocate_argument(
        &self,
        block: *mut u8,
        old_size: usize,
        align: usize,
        new_size: usize,
    ) -> *mut u8 {
        // A list of the component model may be longer than a block.
        let Ok(wanted) = Layout::from_size_align(new_size, align) else { return null_mut() };
        if old_size > 0 {
            debug_assert!(new_size > 0);
            // SAFETY: the block is one of this allocator, with this layout.
            return unsafe {
                self.realloc(block, Layout::from_size_align_unchecked(old_size, align), new_size)
            };
        }
        if new_size == 0 {
            return without_provenance_mut(align);
        }
        let block = self.area.allocate(wanted);
        // SAFETY: the size is not zero.
        if block.is_null() { unsafe { self.alloc(wanted) } } else { block }
    }

    /// Replaces a block by one of another layout. Null if there is no memory.
    ///
    /// # Safety
    ///
    /// The block is one of this allocator, with this layout, and the size of the other is not zero.
    unsafe fn move_block(&self, block: *mut u8, layout: Layout, wanted: Layout) -> *mut u8 {
        // SAFETY: the caller promises it. Both blocks are at least as long as the shorter layout, and both
        // are in use, so they do not overlap.
        unsafe {
            let moved = self.alloc(wanted);
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(block, layout.size().min(wanted.size()));
                self.dealloc(block, layout);
            }
            moved
        }
    }

    /// Frees a block that is not of the area.
    ///
    /// # Safety
    ///
    /// The block is one of this allocator, with this layout.
    unsafe fn free_own(&self, block: *mut u8, layout: Layout) {
        match self.small(layout) {
            None => unsafe { self.rest.dealloc(block, layout) },
            // SAFETY: a block of this layout was taken as one of this size.
            Some((free, layout)) => unsafe {
                if !free.keep(block) {
                    self.rest.dealloc(block, layout);
                }
            },
        }
    }
}

// SAFETY: each block is of the area, or of `rest`, to which it goes back with the layout with which it was
// taken. While it is free, nothing else uses it.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Allocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.small(layout) {
            None => unsafe { self.rest.alloc(layout) },
            // SAFETY: the blocks in the list are free, and large enough for an address.
            Some((free, layout)) => unsafe { free.take().unwrap_or_else(|| self.rest.alloc(layout)) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if self.small(layout).is_none() {
            return unsafe { self.rest.alloc_zeroed(layout) };
        }
        let block = unsafe { self.alloc(layout) };
        if !block.is_null() {
            // SAFETY: the block is at least this long.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if self.area.has(block) {
            self.area.free();
        } else {
            unsafe { self.free_own(block, layout) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the new size is valid for this alignment, and not zero.
        let wanted = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        match (self.small(layout), self.small(wanted)) {
            _ if self.area.has(block) => unsafe { self.move_block(block, layout, wanted) },
            (None, None) => unsafe { self.rest.realloc(block, layout, new_size) },
            (Some((_, has)), Some((_, needs))) if has == needs => block,
            _ => unsafe { self.move_block(block, layout, wanted) },
        }
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

// === impl FreeBlocks ===

impl FreeBlocks {
    const fn new() -> Self {
        Self { first: Cell::new(null_mut()), n: Cell::new(0) }
    }

    /// Takes the block that was freed last.
    ///
    /// # Safety
    ///
    /// Nothing else uses the blocks that were kept.
    #[inline]
    unsafe fn take(&self) -> Option<*mut u8> {
        let block = self.first.get();
        if block.is_null() {
            return None;
        }
        // SAFETY: `keep` wrote the address of the next one there.
        self.first.set(unsafe { block.cast::<*mut u8>().read() });
        self.n.set(self.n.get() - 1);
        Some(block)
    }

    /// Keeps a free block, unless there are enough. Returns whether it does.
    ///
    /// # Safety
    ///
    /// Nothing uses the block any more, and it has room and the alignment for an address.
    #[inline]
    unsafe fn keep(&self, block: *mut u8) -> bool {
        if self.n.get() >= MOST_KEPT {
            return false;
        }
        // SAFETY: the caller promises it.
        unsafe { block.cast::<*mut u8>().write(self.first.get()) };
        self.first.set(block);
        self.n.set(self.n.get() + 1);
        true
    }
}

/// Not with WASI: there the host takes its blocks from the C library, whose allocator is also that of the
/// standard library.
#[cfg(all(target_family = "wasm", target_os = "unknown", not(target_feature = "atomics")))]
mod global {
    use talc::wasm::{WasmDynamicTalc, new_wasm_dynamic_allocator};

    use super::Allocator;

    // talc's code is 7 KiB smaller than that of the standard library's allocator, and the host compiles all
    // code of a plugin.
    #[global_allocator]
    static ALLOCATOR: Allocator<WasmDynamicTalc> = Allocator::new(new_wasm_dynamic_allocator());

    /// The function by which the host gets blocks for arguments and results. It replaces the one of
    /// wit-bindgen, which is a weak symbol.
    ///
    /// # Safety
    ///
    /// As [`Allocator::reallocate_argument`].
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
    use std::cell::RefCell;
    use std::collections::HashMap;

    use super::*;

    /// The maximum size of a small block.
    const LARGEST: usize = N_SIZES * STEP - TAIL;

    /// Checks that each block comes back with the layout with which it was taken.
    #[derive(Default)]
    struct Checked {
        blocks: RefCell<HashMap<usize, Layout>>,
        n_taken: Cell<usize>,
    }

    impl Checked {
        fn took(&self, block: *mut u8, layout: Layout) -> *mut u8 {
            self.n_taken.set(self.n_taken.get() + 1);
            assert_eq!(self.blocks.borrow_mut().insert(block.expose_provenance(), layout), None);
            block
        }

        fn gives_back(&self, block: *mut u8, layout: Layout) {
            assert_eq!(self.blocks.borrow_mut().remove(&block.addr()), Some(layout));
        }
    }

    unsafe impl GlobalAlloc for Checked {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let block = unsafe { System.alloc(layout) };
            // What is not written must not be expected to be zero.
            unsafe { block.write_bytes(0xaa, layout.size()) };
            self.took(block, layout)
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            self.took(unsafe { System.alloc_zeroed(layout) }, layout)
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            self.gives_back(block, layout);
            unsafe { System.dealloc(block, layout) };
        }

        unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
            self.gives_back(block, layout);
            let block = unsafe { System.realloc(block, layout, new_size) };
            self.took(block, Layout::from_size_align(new_size, layout.align()).unwrap())
        }
    }

    fn new() -> Allocator<Checked> {
        Allocator::new(Checked::default())
    }

    impl Drop for Checked {
        fn drop(&mut self) {
            for (block, layout) in self.blocks.take() {
                unsafe { System.dealloc(std::ptr::with_exposed_provenance_mut(block), layout) };
            }
        }
    }

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    struct Blocks {
        allocator: Allocator<Checked>,
        blocks: Vec<(*mut u8, Layout, u8)>,
    }

    impl Blocks {
        fn new() -> Self {
            Self { allocator: new(), blocks: Vec::new() }
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
        let allocator = new();
        let block = unsafe { allocator.reallocate_argument(null_mut(), 0, 4, 0) };
        assert_eq!((block.addr(), allocator.area.n_blocks.get()), (4, 0));
    }

    #[test]
    fn what_the_plugin_allocates_itself_is_not_of_the_area() {
        let allocator = new();
        let layout = layout(8, 8);
        let block = unsafe { allocator.alloc(layout) };
        assert!(!block.is_null() && !allocator.area.has(block));
        unsafe { allocator.dealloc(block, layout) };
    }

    #[test]
    fn a_small_block_is_used_again_for_any_of_its_size() {
        let allocator = new();
        let block = unsafe { allocator.alloc(layout(13, 1)) };
        unsafe { allocator.dealloc(block, layout(13, 1)) };
        for (size, align) in [(28, 8), (20, 4), (13, 2)] {
            assert_eq!(unsafe { allocator.alloc(layout(size, align)) }, block);
            unsafe { allocator.dealloc(block, layout(size, align)) };
        }
        for (size, align) in [(12, 8), (29, 8), (28, 16)] {
            let other = unsafe { allocator.alloc(layout(size, align)) };
            assert_ne!(other, block, "{size} bytes, aligned to {align}");
            unsafe { allocator.dealloc(other, layout(size, align)) };
        }
        assert_eq!(allocator.rest.n_taken.get(), 4);
    }

    #[test]
    fn a_zeroed_block_is_zero_although_it_was_used() {
        let allocator = new();
        for size in [40, LARGEST, LARGEST + 1] {
            for _ in 0..2 {
                let block = unsafe { allocator.alloc_zeroed(layout(size, 8)) };
                let bytes = unsafe { std::slice::from_raw_parts_mut(block, size) };
                assert!(bytes.iter().all(|byte| *byte == 0), "{bytes:?}");
                bytes.fill(7);
                unsafe { allocator.dealloc(block, layout(size, 8)) };
            }
        }
    }

    #[test]
    fn more_free_blocks_than_are_kept_go_back() {
        let allocator = new();
        let take = |n: u8, size, align| {
            (0..n).map(|_| unsafe { allocator.alloc(layout(size, align)) }).collect::<Vec<_>>()
        };
        let free = |blocks: Vec<*mut u8>, size, align| {
            blocks.into_iter().for_each(|block| unsafe { allocator.dealloc(block, layout(size, align)) });
        };
        free(take(40, 50, 1), 50, 1);
        assert_eq!(allocator.rest.blocks.borrow().len(), usize::from(MOST_KEPT));
        let kept = take(MOST_KEPT, 60, 8);
        assert_eq!(allocator.rest.n_taken.get(), 40, "they are used first");
        let others = take(MOST_KEPT, 50, 1);
        free(others, 50, 1);
        free(kept, 60, 8);
        assert_eq!(allocator.rest.blocks.borrow().len(), usize::from(MOST_KEPT));
    }

    #[test]
    fn a_block_that_grows_and_shrinks_keeps_its_bytes() {
        let allocator = new();
        let sizes = [1, 12, 13, 28, 100, LARGEST, LARGEST + 1, 1_000, LARGEST + 1, LARGEST, 5, 3_000, 1];
        let mut block = unsafe { allocator.alloc(layout(sizes[0], 1)) };
        unsafe { block.write(1) };
        for pair in sizes.windows(2) {
            let [before, after] = *pair else { unreachable!() };
            block = unsafe { allocator.realloc(block, layout(before, 1), after) };
            assert!(allocator.rest.blocks.borrow()[&block.addr()].size() >= after);
            Blocks::check(block, before.min(after), 1);
            unsafe { block.write_bytes(1, after) };
        }
        unsafe { allocator.dealloc(block, layout(1, 1)) };
        let n_kept: usize = allocator.free.iter().map(|blocks| usize::from(blocks.n.get())).sum();
        assert_eq!(allocator.rest.blocks.borrow().len(), n_kept, "no block is lost");
    }

    #[test]
    fn a_value_that_is_too_long_for_a_block_gets_none() {
        let block = unsafe { new().reallocate_argument(null_mut(), 0, 1, usize::MAX) };
        assert!(block.is_null());
    }
}
