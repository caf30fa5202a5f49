//! The values that one state of an object has at the pointers of a plan, as copies of parts of its text.
//!
//! The decoder of a watch passes over each text anyway. So an informer tells it the pointers of its listeners
//! ([`SharedPointers`]), and the decoder copies short values there ([`CopiedPointers`]) and keeps them with
//! the hot text. Without them, a reader finds the values in a walk of its own ([`oarlock_json::Walk`]); the
//! result is the same.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use oarlock_json::scan::{Cursor, Quoted};
use oarlock_json::{JsonPointer, PointerSet, Walk};
use parking_lot::Mutex;
use triomphe::HeaderSlice;

/// States with more bytes of values than this carry none: their readers look into the text.
pub(crate) const MAX_CARRIED: usize = 8 << 10;

/// The decoder copies no more bytes of values than this with an object.
const MAX_DECODED: usize = 1 << 10;

/// No values are copied at more pointers than this.
pub(crate) const MAX_POINTERS: usize = 1 << 10;

/// The width of a position in [`StateValues`]: characters of [`DIGIT_BITS`] bits.
const WIDTH: usize = 2;

/// Such a number is a character of one byte.
const DIGIT_BITS: u32 = 7;

const _: () = assert!(MAX_CARRIED < 1 << (DIGIT_BITS * WIDTH as u32), "each position has room");

/// The node of the whole text in each [`PointerSet`].
const ROOT: u32 = 0;

/// Pointers whose values are copied. Each has a number, which its values have as well.
pub(crate) struct CopiedPointers {
    number: u32,
    set: PointerSet,
    /// The nodes of `metadata` and its annotations, if pointers lead there.
    metadata: Option<u32>,
    annotations: Option<u32>,
    can_decode: bool,
    /// Reused, so that no memory is allocated for each object.
    scratch: Mutex<Scratch>,
}

/// The pointers whose values a watch copies, as the informer sets them. Clones share them.
#[derive(Clone, Default)]
pub struct SharedPointers(Arc<Mutex<Option<Arc<CopiedPointers>>>>);

#[derive(Default)]
struct Scratch {
    walk: Walk,
    buffer: String,
}

/// Finds the values at pointers while a decoder passes over the text.
pub(super) struct Finder<'t> {
    pointers: &'t CopiedPointers,
    source: &'t str,
    scratch: Scratch,
    /// No value was malformed so far.
    is_sound: bool,
}

/// The JSON texts of one state at the pointers of a plan, in the order of the pointers. A clone costs one
/// reference count.
///
/// The text is the end of each value, relative to the end of these positions, and then the values. A value
/// that does not exist is empty. The positions are characters too, so that a value is a part of a text, which
/// need not be validated when it is read.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StateValues(triomphe::Arc<HeaderSlice<Header, str>>);

#[derive(Clone, Copy, PartialEq, Eq)]
struct Header {
    /// The number of the pointers.
    pointers: u32,
    n_values: u16,
}

// === impl CopiedPointers ===

impl CopiedPointers {
    /// The pointers keep their order.
    pub(crate) fn new<'p>(pointers: impl IntoIterator<Item = &'p JsonPointer>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let set = PointerSet::new(pointers);
        let metadata = set.node_at(&["metadata"]);
        let annotations = set.node_at(&["metadata", "annotations"]);
        // The text that is kept differs from the received one in these: parts of them may be pruned or added.
        let is_whole = |node: Option<u32>| node.is_some_and(|node| set.is_end(node));
        let needs_kept_text = [Some(ROOT), metadata, annotations].into_iter().any(is_whole)
            || set.node_at(&["kind"]).is_some()
            || set.node_at(&["apiVersion"]).is_some();
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            metadata,
            annotations,
            can_decode: !needs_kept_text && (1..=MAX_POINTERS).contains(&set.len()),
            set,
            scratch: Mutex::default(),
        }
    }

    pub(crate) fn set(&self) -> &PointerSet {
        &self.set
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Returns whether the decoder finds the values at these pointers as they are in the text that is kept.
    pub(crate) fn can_decode(&self) -> bool {
        self.can_decode
    }
}

impl fmt::Debug for CopiedPointers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CopiedPointers({:?}, number {})", self.set, self.number)
    }
}

// === impl SharedPointers ===

impl SharedPointers {
    /// Sets the pointers, from the next event on.
    pub(crate) fn set(&self, pointers: Option<Arc<CopiedPointers>>) {
        let before = std::mem::replace(&mut *self.0.lock(), pointers);
        drop(before);
    }

    pub(crate) fn get(&self) -> Option<Arc<CopiedPointers>> {
        self.0.lock().clone()
    }
}

impl fmt::Debug for SharedPointers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedPointers({:?})", self.get())
    }
}

/// Equal if they are clones.
impl PartialEq for SharedPointers {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SharedPointers {}

// === impl Finder ===

impl<'t> Finder<'t> {
    pub(super) fn new(pointers: &'t CopiedPointers, source: &'t str) -> Self {
        let mut scratch = std::mem::take(&mut *pointers.scratch.lock());
        scratch.walk.begin(&pointers.set);
        Self { pointers, source, scratch, is_sound: true }
    }

    /// Passes over the value of an entry of the object, except `metadata`.
    #[inline]
    pub(super) fn field(&mut self, cursor: &mut Cursor<'t>, key: Quoted<'t>) -> Option<()> {
        let start = cursor.position();
        if self.is_sound && self.scratch.walk.entry(&self.pointers.set, ROOT, key, cursor).is_some() {
            return Some(());
        }
        // The walk is stricter than the decoder.
        self.is_sound = false;
        *cursor = Cursor::at(self.source, start);
        cursor.skip_value()
    }

    /// Reads the value of an entry of the metadata, which starts at `start`.
    #[inline]
    pub(super) fn metadata_field(&mut self, start: usize, key: Quoted<'t>) {
        self.reread(self.pointers.metadata, start, key);
    }

    /// Reads the value of an annotation, which starts at `start`.
    #[inline]
    pub(super) fn annotation(&mut self, start: usize, key: Quoted<'t>) {
        self.reread(self.pointers.annotations, start, key);
    }

    #[inline]
    fn reread(&mut self, node: Option<u32>, start: usize, key: Quoted<'t>) {
        let Some(node) = node.filter(|node| self.pointers.set.leads_to(*node, key)) else { return };
        let mut cursor = Cursor::at(self.source, start);
        let read = self.scratch.walk.entry(&self.pointers.set, node, key, &mut cursor);
        self.is_sound &= read.is_some();
    }

    /// Returns the values; none if they are long, or something was malformed.
    pub(super) fn finish(self) -> Option<StateValues> {
        let Self { pointers, source, mut scratch, is_sound } = self;
        let Scratch { walk, buffer } = &mut scratch;
        let values = pointers.set.places().iter().map(|place| walk.span(*place).of(source));
        let copy = is_sound.then(|| StateValues::copy_within(MAX_DECODED, pointers.number, values, buffer));
        *pointers.scratch.lock() = scratch;
        copy.flatten()
    }
}

// === impl StateValues ===

impl StateValues {
    /// Copies values at the pointers with this number. Returns none if there are too many, or too many bytes.
    pub(crate) fn copy<'v>(
        pointers: u32,
        values: impl ExactSizeIterator<Item = Option<&'v str>> + Clone,
        buffer: &mut String,
    ) -> Option<Self> {
        Self::copy_within(MAX_CARRIED, pointers, values, buffer)
    }

    fn copy_within<'v>(
        max_bytes: usize,
        pointers: u32,
        values: impl ExactSizeIterator<Item = Option<&'v str>> + Clone,
        buffer: &mut String,
    ) -> Option<Self> {
        let n_values = values.len();
        if n_values > MAX_POINTERS {
            return None;
        }
        buffer.clear();
        let mut end = 0;
        for value in values.clone() {
            end += value.map_or(0, str::len);
            if end > max_bytes {
                return None;
            }
            let digit =
                |place: u32| char::from((end >> (DIGIT_BITS * place)) as u8 & ((1 << DIGIT_BITS) - 1));
            buffer.extend([digit(0), digit(1)]);
        }
        buffer.extend(values.flatten());
        let header = Header { pointers, n_values: n_values as u16 };
        Some(Self(triomphe::Arc::from_header_and_str(header, buffer)))
    }

    /// Returns whether they are the values at the pointers with this number.
    pub(crate) fn are_of(&self, pointers: u32) -> bool {
        self.0.header.pointers == pointers
    }

    /// Returns a value as bytes; empty if it does not exist.
    #[inline]
    pub(crate) fn bytes(&self, index: usize) -> &[u8] {
        self.get(index).unwrap_or_default().as_bytes()
    }

    /// Returns a value.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&str> {
        let n_values = usize::from(self.0.header.n_values);
        if index >= n_values {
            return None;
        }
        let texts = n_values * WIDTH;
        let start = if index == 0 { 0 } else { self.end(index - 1) };
        // A JSON value has at least one byte.
        self.0.slice.get(texts + start..texts + self.end(index)).filter(|value| !value.is_empty())
    }

    fn end(&self, index: usize) -> usize {
        let digits = self.0.slice.as_bytes().get(index * WIDTH..).and_then(|rest| rest.first_chunk());
        digits.map_or(0, |[low, high]| usize::from(*low) | usize::from(*high) << DIGIT_BITS)
    }

    /// Returns how many bytes these values take.
    pub(crate) fn size(&self) -> usize {
        // The reference count and the header.
        2 * size_of::<usize>() + self.0.slice.len()
    }
}

/// Shows sizes only: the values may be those of a Secret.
impl fmt::Debug for StateValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateValues({} values of {} bytes)", self.0.header.n_values, self.size())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(values: &[Option<&str>]) -> Option<StateValues> {
        StateValues::copy(7, values.iter().copied(), &mut "abc".to_owned())
    }

    #[test]
    fn values_are_copied_in_their_order() {
        let values = [Some("\"é\""), None, Some("1"), Some("{}"), None];
        let copied = copy(&values).unwrap();
        assert_eq!((0..5).map(|index| copied.get(index)).collect::<Vec<_>>(), values);
        assert_eq!(copied.get(5), None);
        assert!(copied.are_of(7) && !copied.are_of(8));
    }

    #[test]
    fn values_of_each_length_are_copied() {
        for length in [1, 126, 127, 128, 129, 1 << 13] {
            let text = "x".repeat(length - 1);
            let values = [Some("1"), Some(&*text).filter(|text| !text.is_empty())];
            let copied = copy(&values).unwrap();
            assert_eq!([copied.get(0), copied.get(1)], values, "{length} bytes");
        }
    }

    #[test]
    fn promise_4_neither_long_values_nor_many_are_copied() {
        let half = "x".repeat(MAX_CARRIED / 2);
        assert!(copy(&[Some(&half), None, Some(&half)]).is_some());
        assert!(copy(&[Some(&half), Some("1"), Some(&half)]).is_none());
        assert!(copy(&[Some("1"); MAX_POINTERS]).is_some());
        assert!(copy(&[None; MAX_POINTERS + 1]).is_none());
    }
}
