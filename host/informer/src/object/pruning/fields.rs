//! Chooses an object's fields by JSON pointers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use oarlock_json::scan::{Cursor, Quoted};
use oarlock_json::{JsonPointer, PointerPattern, Segment};

/// The fields that identify an object and its version. They are always kept.
const IDENTITY: [&[&str]; 6] = [
    &["kind"],
    &["apiVersion"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "uid"],
    &["metadata", "resourceVersion"],
];

/// The fields of an object that are kept: all, all but some, or only some.
///
/// A pointer names a field. `*` in it stands for every element of a list: `/spec/containers/*/env`. A pointer
/// names nothing in an object that lacks the field, or that has a scalar where the pointer descends.
///
/// A list keeps the number and the order of its elements. So a pointer cannot name a single element, and a
/// pointer with a number is refused, even if the number is the name of a field. Kind, apiVersion, name,
/// namespace, uid and resourceVersion are always kept. The informer itself sees only the kept fields, too: a
/// label selector does not match labels that were left out.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Fields(Choice);

#[derive(Clone, PartialEq, Eq, Default)]
enum Choice {
    #[default]
    All,
    Without(Arc<Node>),
    Only(Arc<Node>),
}

/// Why a pointer cannot choose fields.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// The pointer names a part of the object's identity, which cannot be left out.
    #[error(
        "{0:?} cannot be left out: an object keeps its kind, apiVersion, name, namespace, uid and resourceVersion"
    )]
    Identity(String),
    /// The pointer names the whole object.
    #[error("the empty pointer names the whole object: name fields, or none to keep all of them")]
    Whole,
    /// The pointer names all elements of a list instead of the list.
    #[error("{0:?} ends in '*', all elements of a list: name the list itself")]
    EndsInElements(String),
    /// The pointer has a number, which could be the index of an element.
    #[error(
        "{pointer:?} has the number {number}: a pointer cannot name one element of a list, '*' names all of them"
    )]
    Number {
        /// The pointer.
        pointer: String,
        /// The segment that is a number.
        number: String,
    },
}

/// What pruning does with one value.
#[derive(Clone, Copy)]
pub(super) enum Rule<'f> {
    /// Keeps the whole value.
    Keep,
    /// Removes the value.
    Remove,
    /// Keeps the value without the parts that the tree names. The value is an object or a list.
    Without(&'f Node),
    /// Keeps only the parts of the value that the tree names. The value is an object or a list.
    Only(&'f Node),
}

/// Pointers as a tree.
#[derive(PartialEq, Eq, Default)]
pub(super) struct Node {
    /// Whether a pointer ends here.
    is_end: bool,
    names: BTreeMap<Box<str>, Node>,
    elements: Option<Box<Node>>,
}

// === impl Fields ===

impl Fields {
    /// Keeps all fields.
    pub fn all() -> Self {
        Self(Choice::All)
    }

    /// Keeps all fields except these.
    ///
    /// # Errors
    ///
    /// A pointer names a part of the identity, the whole object, or an element of a list.
    pub fn without<'p>(pointers: impl IntoIterator<Item = &'p PointerPattern>) -> Result<Self, FieldsError> {
        let mut root = Node::default();
        for pointer in pointers {
            if IDENTITY.iter().any(|path| leads_to(pointer.segments(), path)) {
                return Err(FieldsError::Identity(pointer.to_string()));
            }
            root.add(pointer)?;
        }
        let is_empty = root == Node::default();
        Ok(Self(if is_empty { Choice::All } else { Choice::Without(Arc::new(root)) }))
    }

    /// Keeps only these fields, and the identity.
    ///
    /// An object that a pointer descends into stays, even as `{}`. An element of a list that no pointer
    /// descends into becomes `null`.
    ///
    /// # Errors
    ///
    /// A pointer names the whole object, or an element of a list.
    pub fn only<'p>(pointers: impl IntoIterator<Item = &'p PointerPattern>) -> Result<Self, FieldsError> {
        let mut root = Node::default();
        for path in IDENTITY {
            path.iter().fold(&mut root, |node, name| node.names.entry((*name).into()).or_default()).is_end =
                true;
        }
        for pointer in pointers {
            root.add(pointer)?;
        }
        Ok(Self(Choice::Only(Arc::new(root))))
    }

    /// Whether the field that a pointer names, or a part of it, is kept.
    pub fn keeps(&self, pointer: &JsonPointer) -> bool {
        let (mut node, is_only) = match &self.0 {
            Choice::All => return true,
            Choice::Without(root) => (&**root, false),
            Choice::Only(root) => (&**root, true),
        };
        for segment in pointer.segments() {
            if node.is_end {
                break;
            }
            let Segment::Name { name, index } = segment else { return true };
            let element = index.and(node.elements.as_deref());
            match node.names.get(name).or(element) {
                Some(next) => node = next,
                None => return !is_only,
            }
        }
        is_only || !node.is_end
    }

    /// Returns the rule for an object as a whole.
    pub(super) fn rule(&self) -> Rule<'_> {
        match &self.0 {
            Choice::All => Rule::Keep,
            Choice::Without(root) => Rule::Without(root),
            Choice::Only(root) => Rule::Only(root),
        }
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, root) = match &self.0 {
            Choice::All => return f.write_str("All"),
            Choice::Without(root) => ("Without", root),
            Choice::Only(root) => ("Only", root),
        };
        let mut pointers = Vec::new();
        root.pointers("", &mut pointers);
        f.debug_tuple(name).field(&pointers).finish()
    }
}

/// Whether the pointer names the field at `path`, or a field that contains it.
fn leads_to(pointer: &[Segment], path: &[&str]) -> bool {
    let is_name = |(segment, part): (&Segment, &&str)| matches!(segment, Segment::Name { name, .. } if **name == **part);
    !pointer.is_empty() && pointer.len() <= path.len() && pointer.iter().zip(path).all(is_name)
}

// === impl Rule ===

impl<'f> Rule<'f> {
    /// Returns the rule for the value at the cursor, which belongs to an entry of an object.
    #[inline(always)]
    pub(super) fn entry(self, key: Quoted<'_>, cursor: &Cursor<'_>) -> Option<Self> {
        match self {
            Self::Keep | Self::Remove => Some(self),
            Self::Without(_) | Self::Only(_) => Some(self.named(key, cursor.peek()?)),
        }
    }

    /// Returns the rule for the value at the cursor, which is an element of a list.
    pub(super) fn element(self, cursor: &Cursor<'_>) -> Option<Self> {
        let first = cursor.peek()?;
        Some(match self {
            Self::Keep | Self::Remove => self,
            Self::Without(node) => Self::without(node.elements.as_deref(), first),
            Self::Only(node) => Self::only(node.elements.as_deref(), first),
        })
    }

    #[inline(never)]
    fn named(self, key: Quoted<'_>, first: u8) -> Self {
        match self {
            Self::Keep | Self::Remove => self,
            Self::Without(node) => Self::without(node.named(key), first),
            Self::Only(node) => Self::only(node.named(key), first),
        }
    }

    fn without(node: Option<&'f Node>, first: u8) -> Self {
        match node {
            Some(node) if node.is_end => Self::Remove,
            Some(node) if node.is_within(first) => Self::Without(node),
            _ => Self::Keep,
        }
    }

    fn only(node: Option<&'f Node>, first: u8) -> Self {
        match node {
            Some(node) if node.is_end => Self::Keep,
            Some(node) if node.is_within(first) => Self::Only(node),
            _ => Self::Remove,
        }
    }
}

// === impl Node ===

impl Node {
    fn add(&mut self, pointer: &PointerPattern) -> Result<(), FieldsError> {
        let segments = pointer.segments();
        if matches!(segments.last(), Some(Segment::Every)) {
            return Err(FieldsError::EndsInElements(pointer.to_string()));
        }
        let mut node = self;
        for segment in segments {
            node = match segment {
                Segment::Every => node.elements.get_or_insert_default(),
                Segment::Name { name, index: None } => node.names.entry(name.clone()).or_default(),
                Segment::Name { name, index: Some(_) } => {
                    let (pointer, number) = (pointer.to_string(), name.to_string());
                    return Err(FieldsError::Number { pointer, number });
                }
            };
        }
        if segments.is_empty() {
            return Err(FieldsError::Whole);
        }
        node.is_end = true;
        Ok(())
    }

    fn named(&self, key: Quoted<'_>) -> Option<&Self> {
        self.names.get(&*key.text()?)
    }

    /// Whether a pointer descends into a value with this first byte.
    fn is_within(&self, first: u8) -> bool {
        match first {
            b'{' => !self.names.is_empty(),
            b'[' => self.elements.is_some(),
            _ => false,
        }
    }

    fn pointers(&self, path: &str, into: &mut Vec<String>) {
        if self.is_end {
            into.push(path.to_owned());
        }
        for (name, node) in &self.names {
            node.pointers(&format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")), into);
        }
        if let Some(node) = &self.elements {
            node.pointers(&format!("{path}/*"), into);
        }
    }
}

#[cfg(test)]
mod tests;
