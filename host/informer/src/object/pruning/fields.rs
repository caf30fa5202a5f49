//! Which fields of an object are kept, by pointers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use oarlock_json::scan::{Cursor, Quoted};
use oarlock_json::{JsonPointer, PointerPattern, Segment};
use serde::de::{Error as _, IgnoredAny};

use super::super::metadata::Error;

/// What tells one object from all others, and its versions from each other. It is always kept.
const IDENTITY: [&[&str]; 6] = [
    &["kind"],
    &["apiVersion"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "uid"],
    &["metadata", "resourceVersion"],
];

/// Which fields of the objects that come in are kept: all, all but some, or only some.
///
/// A field is named by a pointer, in which `*` stands for every element of a list: `/spec/containers/*/env`. A pointer to
/// what an object has not, or has otherwise (a text where the pointer descends), names nothing of it.
///
/// A list keeps the number and the order of its elements, whatever is left of each. So no pointer names a single element,
/// and a number in a pointer is refused, also where it would be a name. Kind, apiVersion, name, namespace, uid and
/// resourceVersion are always kept. What else the machinery looks at (labels, owners, deletionTimestamp) is not there for it
/// where it is left out: nothing selects by labels that were dropped.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Fields(Choice);

#[derive(Clone, PartialEq, Eq, Default)]
enum Choice {
    #[default]
    All,
    Without(Arc<Node>),
    Only(Arc<Node>),
}

/// A pointer that cannot be used to choose fields.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// It would leave out a part of the object's identity.
    #[error(
        "{0:?} cannot be left out: an object keeps its kind, apiVersion, name, namespace, uid and resourceVersion"
    )]
    Identity(String),
    /// It names the object as a whole.
    #[error("the empty pointer is the whole object, which is kept if no fields are named at all")]
    Whole,
    /// It names all elements of a list.
    #[error("{0:?} ends in '*', all elements of a list: name the list itself")]
    EndsInElements(String),
    /// It has a number, which might be an element of a list.
    #[error(
        "{pointer:?} has the number {number}: a single element of a list cannot be named, '*' is all of them"
    )]
    Number {
        /// The pointer.
        pointer: String,
        /// The segment.
        number: String,
    },
}

/// Pointers as a tree.
#[derive(PartialEq, Eq, Default)]
struct Node {
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

    /// Keeps all fields but these.
    ///
    /// # Errors
    ///
    /// When one of the pointers names a part of the identity, or is not definite.
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
    /// An object on the way to them stays, if only as `{}`; an element of a list into which no pointer leads becomes `null`.
    ///
    /// # Errors
    ///
    /// When one of the pointers is not definite.
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

    /// Whether anything is kept of what a pointer points at, in objects that have it.
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

    /// Returns the object's text with nothing but what is kept; none where that is all of it.
    pub(in super::super) fn apply(&self, object: &str) -> Result<Option<String>, Error> {
        let mut writer = Writer(String::new());
        let mut cursor = Cursor::new(object);
        let written = match &self.0 {
            Choice::All => return Ok(None),
            Choice::Without(root) => writer.without(&mut cursor, root),
            Choice::Only(root) => writer.only(&mut cursor, root),
        };
        if written.is_some() && cursor.is_at_end() {
            return Ok(Some(writer.0));
        }
        // What cannot be walked is not let in as it is: something in it may not be meant to be kept.
        let source = serde_json::from_str::<IgnoredAny>(object).err();
        Err(Error::Json(
            source.unwrap_or_else(|| serde_json::Error::custom("its fields cannot be told apart")),
        ))
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

/// Whether the pointer names the path's end, or something that it is a part of.
fn leads_to(pointer: &[Segment], path: &[&str]) -> bool {
    let is_name = |(segment, part): (&Segment, &&str)| matches!(segment, Segment::Name { name, .. } if **name == **part);
    !pointer.is_empty() && pointer.len() <= path.len() && pointer.iter().zip(path).all(is_name)
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

    /// Whether a pointer ends at, or leads into, a value that begins with this character.
    fn is_within(&self, first: u8) -> bool {
        match first {
            _ if self.is_end => true,
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

/// Writes what is kept. Goes no deeper than the longest pointer.
struct Writer(String);

// === impl Writer ===

impl Writer {
    /// Writes the value at the cursor without what the tree names.
    fn without(&mut self, cursor: &mut Cursor<'_>, node: &Node) -> Option<()> {
        match (cursor.peek()?, &node.elements) {
            (b'{', _) if !node.names.is_empty() => self.object(cursor, |writer, cursor, key| {
                let child = node.named(key);
                if child.is_some_and(|child| child.is_end) {
                    return cursor.skip_value();
                }
                writer.key(key);
                match child {
                    Some(child) => writer.without(cursor, child),
                    None => writer.whole(cursor),
                }
            }),
            (b'[', Some(node)) => self.array(cursor, |writer, cursor| writer.without(cursor, node)),
            _ => self.whole(cursor),
        }
    }

    /// Writes of the value at the cursor only what the tree names.
    fn only(&mut self, cursor: &mut Cursor<'_>, node: &Node) -> Option<()> {
        match (cursor.peek()?, &node.elements) {
            _ if node.is_end => self.whole(cursor),
            (b'{', _) => self.object(cursor, |writer, cursor, key| match node.named(key) {
                Some(child) if child.is_within(cursor.peek()?) => {
                    writer.key(key);
                    writer.only(cursor, child)
                }
                _ => cursor.skip_value(),
            }),
            (b'[', Some(node)) => self.array(cursor, |writer, cursor| {
                if node.is_within(cursor.peek()?) {
                    return writer.only(cursor, node);
                }
                writer.0.push_str("null");
                cursor.skip_value()
            }),
            _ => None,
        }
    }

    /// Writes an object's braces; `entry` is called at each value, with its key, and writes both or neither.
    fn object<'t>(
        &mut self,
        cursor: &mut Cursor<'t>,
        mut entry: impl FnMut(&mut Self, &mut Cursor<'t>, Quoted<'t>) -> Option<()>,
    ) -> Option<()> {
        self.0.push('{');
        cursor.object(|cursor, _, key| entry(self, cursor, key))?;
        self.0.push('}');
        Some(())
    }

    fn array<'t>(
        &mut self,
        cursor: &mut Cursor<'t>,
        mut element: impl FnMut(&mut Self, &mut Cursor<'t>) -> Option<()>,
    ) -> Option<()> {
        self.0.push('[');
        cursor.array(|cursor, idx| {
            if idx > 0 {
                self.0.push(',');
            }
            element(self, cursor)
        })?;
        self.0.push(']');
        Some(())
    }

    fn key(&mut self, key: Quoted<'_>) {
        let separator = if self.0.ends_with('{') { "\"" } else { ",\"" };
        self.0.push_str(separator);
        self.0.push_str(key.raw);
        self.0.push_str("\":");
    }

    /// Writes the value at the cursor as it stands.
    fn whole(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let start = cursor.position();
        cursor.skip_value()?;
        self.0.push_str(cursor.since(start)?);
        Some(())
    }
}

#[cfg(test)]
mod tests;
