//! A set of pointers as a tree, and the values that one walk over a text finds.

use std::collections::BTreeMap;
use std::fmt;

use crate::pointer::{JsonPointer, Segment};
use crate::scan::Quoted;
use crate::walk::{Span, Walk};

/// Pointers as a tree, so that one walk over a text finds the values of all.
///
/// Equal pointers share a node. The cost of a walk does not grow with the set: for each name of an object it
/// makes one lookup.
#[derive(Clone)]
pub struct PointerSet {
    /// In depth-first order: each node before those below it.
    nodes: Box<[Node]>,
    /// The node of each pointer, in the order of the pointers.
    places: Box<[u32]>,
    /// The number of different pointers.
    n_ends: usize,
}

/// The result of a walk: the values at the pointers of a [`PointerSet`], as parts of the text.
#[derive(Clone)]
pub struct Found<T> {
    text: T,
    /// In the order of the pointers of the set.
    spans: Box<[Span]>,
    has_repeated: bool,
}

/// A node of the tree: the end of a pointer, or a step to one.
#[derive(Clone, Default)]
struct Node {
    /// Sorted by length, then by the bytes.
    by_name: Box<[(Box<str>, u32)]>,
    by_index: Box<[(usize, u32)]>,
    /// One bit for each length (modulo 64) of a name below. Most names of an object have another length.
    lengths: u64,
    /// The first node after those below this one.
    end: u32,
    /// A pointer ends here.
    is_end: bool,
}

/// A tree during its construction.
#[derive(Default)]
struct Draft {
    below: BTreeMap<Segment, Draft>,
    pointers: Vec<usize>,
}

// === impl PointerSet ===

impl PointerSet {
    /// Makes a set. The pointers keep their order and their indices, also equal ones.
    #[must_use]
    pub fn new<'p>(pointers: impl IntoIterator<Item = &'p JsonPointer>) -> Self {
        let mut root = Draft::default();
        let mut n_pointers = 0;
        for pointer in pointers {
            let mut draft = &mut root;
            for segment in pointer.segments() {
                draft = draft.below.entry(segment.clone()).or_default();
            }
            draft.pointers.push(n_pointers);
            n_pointers += 1;
        }
        let mut set = (Vec::new(), vec![0; n_pointers]);
        root.arrange(&mut set);
        let (nodes, places) = set;
        let n_ends = nodes.iter().filter(|node: &&Node| node.is_end).count();
        Self { nodes: nodes.into(), places: places.into(), n_ends }
    }

    /// Returns the number of pointers, equal ones counted each.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns true without pointers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the node of a pointer. Equal pointers have the same.
    #[must_use]
    pub fn place(&self, pointer: usize) -> u32 {
        self.places[pointer]
    }

    /// Returns the node of each pointer, in the order of the pointers.
    #[must_use]
    pub fn places(&self) -> &[u32] {
        &self.places
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the first node after those below this one.
    #[must_use]
    pub fn end(&self, node: u32) -> u32 {
        self.nodes[node as usize].end
    }

    /// Returns the node at these names; none if no pointer leads there. No names are the whole text, whose
    /// node is 0.
    #[must_use]
    pub fn node_at(&self, names: &[&str]) -> Option<u32> {
        names.iter().try_fold(0, |node, name| self.nodes[node as usize].named(name))
    }

    /// Returns whether a pointer leads to the entry `key` of the object at a node.
    #[inline]
    #[must_use]
    pub fn leads_to(&self, node: u32, key: Quoted<'_>) -> bool {
        self.named(node, key).is_some()
    }

    /// Returns the number of different pointers.
    pub(crate) fn n_ends(&self) -> usize {
        self.n_ends
    }

    /// Returns whether a pointer ends at this node.
    #[must_use]
    pub fn is_end(&self, node: u32) -> bool {
        self.nodes[node as usize].is_end
    }

    pub(crate) fn has_names(&self, node: u32) -> bool {
        self.nodes[node as usize].lengths != 0
    }

    pub(crate) fn has_indices(&self, node: u32) -> bool {
        !self.nodes[node as usize].by_index.is_empty()
    }

    /// Returns the node below this one with this name.
    #[inline]
    pub(crate) fn named(&self, node: u32, key: Quoted<'_>) -> Option<u32> {
        let node = &self.nodes[node as usize];
        if key.is_escaped {
            return node.named(&key.text()?);
        }
        if node.lengths & bit_of(key.raw) == 0 { None } else { node.named(key.raw) }
    }

    /// Returns the node below this one with this index.
    #[inline]
    pub(crate) fn indexed(&self, node: u32, index: usize) -> Option<u32> {
        let by_index = &self.nodes[node as usize].by_index;
        by_index.binary_search_by_key(&index, |(index, _)| *index).ok().map(|place| by_index[place].1)
    }
}

impl fmt::Debug for PointerSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PointerSet({} pointers)", self.len())
    }
}

// === impl Node ===

impl Node {
    fn named(&self, name: &str) -> Option<u32> {
        if let [(only, node)] = &*self.by_name {
            return (**only == *name).then_some(*node);
        }
        let place = self.by_name.binary_search_by(|(other, _)| order(other).cmp(&order(name)));
        place.ok().map(|place| self.by_name[place].1)
    }
}

fn order(name: &str) -> (usize, &[u8]) {
    (name.len(), name.as_bytes())
}

fn bit_of(name: &str) -> u64 {
    1 << (name.len() % 64)
}

// === impl Draft ===

impl Draft {
    fn arrange(self, set: &mut (Vec<Node>, Vec<u32>)) -> u32 {
        let place = set.0.len() as u32;
        for pointer in &self.pointers {
            set.1[*pointer] = place;
        }
        set.0.push(Node { is_end: !self.pointers.is_empty(), ..Node::default() });
        let (mut by_name, mut by_index, mut lengths) = (Vec::new(), Vec::new(), 0);
        for (segment, below) in self.below {
            let child = below.arrange(set);
            // A pointer has no `Segment::Every`.
            let Segment::Name { name, index } = segment else { continue };
            lengths |= bit_of(&name);
            by_index.extend(index.map(|index| (index, child)));
            by_name.push((name, child));
        }
        by_name.sort_unstable_by(|(left, _), (right, _)| order(left).cmp(&order(right)));
        by_index.sort_unstable();
        let end = set.0.len() as u32;
        let node = &mut set.0[place as usize];
        (node.by_name, node.by_index, node.lengths, node.end) =
            (by_name.into(), by_index.into(), lengths, end);
        place
    }
}

// === impl Found ===

impl<T: AsRef<str>> Found<T> {
    pub(crate) fn new(set: &PointerSet, text: T, walk: &Walk) -> Self {
        let spans = set.places().iter().map(|place| walk.span(*place)).collect();
        Self { text, spans, has_repeated: walk.has_repeated() }
    }

    /// Returns whether an object has a key twice that leads to a pointer, of which the first counts. Only the
    /// text that was read is known: all of it, if one of the pointers is that of the whole text.
    #[must_use]
    pub fn has_repeated(&self) -> bool {
        self.has_repeated
    }

    /// Returns the value at a pointer, by its index in the set, as it is in the text; none if the text has no
    /// such value.
    #[must_use]
    pub fn get(&self, pointer: usize) -> Option<&str> {
        self.spans.get(pointer)?.of(self.text.as_ref())
    }

    /// Returns the values at all pointers, in the order of the pointers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<&str>> {
        self.spans.iter().map(|span| span.of(self.text.as_ref()))
    }

    /// Returns the sum of the lengths in bytes; values of equal pointers count each.
    #[must_use]
    pub fn n_bytes(&self) -> usize {
        self.spans.iter().map(|span| span.len()).sum()
    }
}

/// Shows sizes only: the text may be a Secret.
impl<T: AsRef<str>> fmt::Debug for Found<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Found({} bytes at {} pointers)", self.n_bytes(), self.spans.len())
    }
}
