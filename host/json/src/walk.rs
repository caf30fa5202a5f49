//! One walk over a JSON text that finds the values of a set of pointers, in slices of bounded work.
//!
//! The walk skips values that no pointer leads into, in blocks (`scan`), and copies nothing. It ends when
//! each pointer has its value. In a text that is not JSON it finds any values or none; it never panics, and
//! goes no deeper than the longest pointer.
//!
//! Of a repeated key the first value counts. No API server sends one, but a guest may.

use crate::scan::{Cursor, Quoted};
use crate::set::{Found, PointerSet};

/// The cost of one key or element, in addition to its bytes.
const STEP: usize = 64;

/// The position of a value in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    start: u32,
    end: u32,
}

/// A walk and its result. It can be reused without a new allocation.
#[derive(Debug, Default)]
pub struct Walk {
    /// The value of each node of the set.
    spans: Vec<Span>,
    /// The objects and lists around the position.
    open: Vec<OpenValue>,
    position: usize,
    next: Next,
    /// The number of nodes at which pointers end and that have no value yet.
    n_missing: usize,
    /// A key that leads to a pointer came twice in an object.
    has_repeated: bool,
}

/// A walk over one text, a slice of work at a time.
#[derive(Debug)]
pub struct Finding<'s, T> {
    set: &'s PointerSet,
    text: T,
    walk: Walk,
}

#[derive(Debug)]
struct OpenValue {
    node: u32,
    start: u32,
    /// In a list: the index of the current element.
    element: Option<usize>,
}

/// The kind of token at the position.
#[derive(Clone, Copy, Debug, Default)]
enum Next {
    /// The value of this node.
    Value(u32),
    /// A key of the innermost object.
    Key,
    /// An element of the innermost list.
    Element,
    /// The end of a value.
    After,
    /// The walk has ended.
    #[default]
    End,
}

// === impl Span ===

impl Span {
    const NOTHING: Self = Self { start: u32::MAX, end: u32::MAX };

    /// Returns the value in its text.
    #[inline]
    #[must_use]
    pub fn of(self, text: &str) -> Option<&str> {
        if self == Self::NOTHING { None } else { text.get(self.start as usize..self.end as usize) }
    }

    /// Returns the length in bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a value has at least one byte")]
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }
}

// === impl Walk ===

impl Walk {
    /// Starts a walk at the beginning of a text.
    pub fn begin(&mut self, set: &PointerSet) {
        self.spans.clear();
        self.spans.resize(set.n_nodes(), Span::NOTHING);
        self.open.clear();
        self.position = 0;
        self.next = Next::Value(0);
        self.n_missing = set.n_ends();
        self.has_repeated = false;
    }

    /// Continues for about `n_left` bytes, and subtracts the work done; returns true when the walk has ended.
    /// The set and the text must be those of its start.
    pub fn advance(&mut self, set: &PointerSet, text: &str, n_left: &mut usize) -> bool {
        let mut cursor = Cursor::at(text, self.position);
        if self.position == 0 {
            cursor.blanks();
        }
        loop {
            let before = cursor.position();
            if self.step(set, &mut cursor).is_none() {
                // Malformed JSON has no more values.
                self.next = Next::End;
            }
            *n_left = n_left.saturating_sub(STEP + (cursor.position() - before));
            if matches!(self.next, Next::End) {
                return true;
            }
            if *n_left == 0 {
                self.position = cursor.position();
                return false;
            }
        }
    }

    /// Passes over one entry of the object at `node`, whose value is at the cursor, and finds the values that
    /// pointers lead to. Returns none if the entry is malformed; the position is then anywhere.
    ///
    /// This is for a caller that passes over the text itself. The walk must have [begun](Self::begin), and is
    /// not [advanced](Self::advance).
    #[inline]
    pub fn entry(
        &mut self,
        set: &PointerSet,
        node: u32,
        key: Quoted<'_>,
        cursor: &mut Cursor<'_>,
    ) -> Option<()> {
        match set.named(node, key) {
            Some(below) if self.n_missing > 0 && self.span(below) == Span::NOTHING => {
                self.value_of_entry(set, below, cursor)
            }
            _ => cursor.skip_value(),
        }
    }

    fn value_of_entry(&mut self, set: &PointerSet, node: u32, cursor: &mut Cursor<'_>) -> Option<()> {
        self.open.clear();
        self.next = Next::Value(node);
        loop {
            self.step(set, cursor)?;
            match self.next {
                // Each pointer has its value.
                Next::End => return cursor.leave(self.open.len()),
                Next::After if self.open.is_empty() => return Some(()),
                _ => {}
            }
        }
    }

    /// Returns whether an object in the text that the walk has read has a key twice that leads to a pointer.
    pub(crate) fn has_repeated(&self) -> bool {
        self.has_repeated
    }

    /// Returns the position of the value of a node, after the end of the walk.
    pub fn span(&self, node: u32) -> Span {
        self.spans[node as usize]
    }

    /// Takes one step; none if the text is malformed.
    #[inline]
    fn step(&mut self, set: &PointerSet, cursor: &mut Cursor<'_>) -> Option<()> {
        match self.next {
            Next::Value(node) => self.value(set, cursor, node)?,
            Next::Key => {
                let object = self.open.last()?.node;
                let key = cursor.key()?;
                cursor.blanks();
                cursor.take(b':')?;
                cursor.blanks();
                match set.named(object, key) {
                    Some(node) if self.span(node) == Span::NOTHING => self.next = Next::Value(node),
                    known => {
                        self.has_repeated |= known.is_some();
                        cursor.skip_value()?;
                        self.next = Next::After;
                    }
                }
            }
            Next::Element => {
                let OpenValue { node: list, element, .. } = self.open.last()?;
                match set.indexed(*list, (*element)?) {
                    None => {
                        cursor.skip_value()?;
                        self.next = Next::After;
                    }
                    Some(node) => self.next = Next::Value(node),
                }
            }
            Next::After => self.after(set, cursor)?,
            Next::End => {}
        }
        Some(())
    }

    fn value(&mut self, set: &PointerSet, cursor: &mut Cursor<'_>, node: u32) -> Option<()> {
        let start = cursor.position() as u32;
        let (closing, element) = match cursor.peek() {
            Some(b'{') if set.has_names(node) => (b'}', None),
            Some(b'[') if set.has_indices(node) => (b']', Some(0)),
            _ => {
                cursor.skip_value()?;
                self.end(set, node, start, cursor);
                return Some(());
            }
        };
        cursor.take(if closing == b'}' { b'{' } else { b'[' })?;
        cursor.blanks();
        if cursor.take_if(closing) {
            self.end(set, node, start, cursor);
        } else {
            self.open.push(OpenValue { node, start, element });
            self.next = if element.is_some() { Next::Element } else { Next::Key };
        }
        Some(())
    }

    fn after(&mut self, set: &PointerSet, cursor: &mut Cursor<'_>) -> Option<()> {
        let Some(open) = self.open.last_mut() else {
            self.next = Next::End;
            return Some(());
        };
        cursor.blanks();
        if cursor.take_if(b',') {
            cursor.blanks();
            self.next = match &mut open.element {
                Some(element) => {
                    *element += 1;
                    Next::Element
                }
                None => Next::Key,
            };
            return Some(());
        }
        cursor.take(if open.element.is_some() { b']' } else { b'}' })?;
        let (node, start) = (open.node, open.start);
        self.open.pop();
        self.end(set, node, start, cursor);
        Some(())
    }

    fn end(&mut self, set: &PointerSet, node: u32, start: u32, cursor: &Cursor<'_>) {
        self.spans[node as usize] = Span { start, end: cursor.position() as u32 };
        self.next = Next::After;
        if set.is_end(node) {
            self.n_missing -= 1;
            if self.n_missing == 0 {
                self.next = Next::End;
            }
        }
    }
}

// === impl Finding ===

impl<'s, T: AsRef<str>> Finding<'s, T> {
    /// Starts a walk over the text.
    #[must_use]
    pub fn new(set: &'s PointerSet, text: T) -> Self {
        let mut walk = Walk::default();
        walk.begin(set);
        Self { set, text, walk }
    }

    /// Continues for about `work` bytes; returns true when the walk has ended. 1 MiB takes about 1 ms.
    pub fn advance(&mut self, work: usize) -> bool {
        self.walk.advance(self.set, self.text.as_ref(), &mut { work })
    }

    /// Continues to the end, and returns the values.
    #[must_use]
    pub fn finish(mut self) -> Found<T> {
        while !self.advance(usize::MAX) {}
        Found::new(self.set, self.text, &self.walk)
    }
}
