//! Many pointers at once, arranged by what they have in common, and what one walk over a text finds of them.

use std::collections::BTreeMap;
use std::fmt;

use crate::pointer::{JsonPointer, Segment};
use crate::scan::Quoted;
use crate::walk::{Span, Walk};

/// Several pointers that are looked for in one walk over a text, however many they are.
///
/// Equal pointers are one. What a walk costs depends on the text alone: at each name of an object, the set is asked once.
#[derive(Clone)]
pub struct PointerSet {
    /// In the order of a walk from the root, each before what is below it.
    nodes: Box<[Node]>,
    /// The node of each pointer that the set was made of, in their order.
    places: Box<[u32]>,
}

/// What a walk found: the texts at the pointers of a [`PointerSet`], as parts of the text that was walked.
#[derive(Clone)]
pub struct Found<T> {
    text: T,
    /// In the order of the set's pointers.
    spans: Box<[Span]>,
}

/// One place in an object to which pointers lead, or on the way there.
#[derive(Clone, Default)]
struct Node {
    /// Sorted by length, then by the bytes.
    by_name: Box<[(Box<str>, u32)]>,
    by_index: Box<[(usize, u32)]>,
    /// A bit for each length (modulo 64) that a name below has: most names of an object are none of them.
    lengths: u64,
    /// The first node that is not below this one.
    end: u32,
}

/// A set while it is arranged.
#[derive(Default)]
struct Draft {
    below: BTreeMap<Segment, Draft>,
    pointers: Vec<usize>,
}

// === impl PointerSet ===

impl PointerSet {
    /// Arranges pointers. They are numbered in the order in which they are given, equal ones too.
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
        Self { nodes: nodes.into(), places: places.into() }
    }

    /// Returns how many pointers the set was made of, equal ones counted each.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it was made of none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the node of a pointer: the same for equal ones.
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

    /// Returns the first node that is not below this one.
    #[must_use]
    pub fn end(&self, node: u32) -> u32 {
        self.nodes[node as usize].end
    }

    pub(crate) fn has_names(&self, node: u32) -> bool {
        self.nodes[node as usize].lengths != 0
    }

    pub(crate) fn has_indices(&self, node: u32) -> bool {
        !self.nodes[node as usize].by_index.is_empty()
    }

    /// Returns the node to which a key leads.
    #[inline]
    pub(crate) fn named(&self, node: u32, key: Quoted<'_>) -> Option<u32> {
        let node = &self.nodes[node as usize];
        if key.is_escaped {
            return node.named(&key.text()?);
        }
        if node.lengths & bit_of(key.raw) == 0 { None } else { node.named(key.raw) }
    }

    /// Returns the node to which an element of a list leads.
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
        set.0.push(Node::default());
        let (mut by_name, mut by_index, mut lengths) = (Vec::new(), Vec::new(), 0);
        for (segment, below) in self.below {
            let child = below.arrange(set);
            // A pointer has no segment that stands for every element.
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
        Self { text, spans }
    }

    /// Returns the JSON text at a pointer of the set, by the pointer's number, as it stands in the object; none where there is nothing.
    #[must_use]
    pub fn get(&self, pointer: usize) -> Option<&str> {
        self.spans.get(pointer)?.of(self.text.as_ref())
    }

    /// Returns the texts at all pointers of the set, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<&str>> {
        self.spans.iter().map(|span| span.of(self.text.as_ref()))
    }

    /// Returns how many bytes all of them have together, those of equal pointers counted each.
    #[must_use]
    pub fn n_bytes(&self) -> usize {
        self.spans.iter().map(|span| span.len()).sum()
    }
}

/// How much was found only: an object may be a Secret.
impl<T: AsRef<str>> fmt::Debug for Found<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Found({} bytes at {} pointers)", self.n_bytes(), self.spans.len())
    }
}
