//! Sets of fields, and their form in objects (`fieldsV1`).
//!
//! Each path is a member or not, independently of its parents and children.

use crate::schema::Node;
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Bound;
use std::sync::Arc;

/// One step of a path, in the order of `fieldsV1`. Cheap to clone, since each path of a set holds all its
/// steps.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Field(Arc<str>),
    /// A list item with these values of its key fields, in order of name.
    Key(Arc<[(String, Scalar)]>),
    /// An item of a set.
    Value(Scalar),
    Index(usize),
}

/// A value that identifies an item.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scalar(pub Value);

pub(super) type Path = Vec<Step>;

/// A set of fields of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSet(BTreeSet<Arc<[Step]>>);

// === impl Step ===

impl Step {
    pub(super) fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    fn encode(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => {
                let fields: Map<String, Value> =
                    fields.iter().map(|(k, v)| (k.clone(), v.0.clone())).collect();
                format!("k:{}", Value::Object(fields))
            }
            Self::Value(value) => format!("v:{}", value.0),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    fn decode(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self::field(rest)),
            "k" => {
                let fields: Map<String, Value> = serde_json::from_str(rest).ok()?;
                let mut fields: Vec<(String, Scalar)> =
                    fields.into_iter().map(|(k, v)| (k, Scalar(v))).collect();
                fields.sort();
                Some(Self::Key(fields.into()))
            }
            "v" => Some(Self::Value(Scalar(serde_json::from_str(rest).ok()?))),
            "i" => Some(Self::Index(rest.parse().ok()?)),
            _ => None,
        }
    }
}

// === impl Scalar ===

impl Eq for Scalar {}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        let rank = |value: &Value| match value {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            _ => 3,
        };
        match (&self.0, &other.0) {
            (Value::Number(a), Value::Number(b)) => {
                a.as_f64().unwrap_or_default().total_cmp(&b.as_f64().unwrap_or_default())
            }
            (Value::String(a), Value::String(b)) => a.cmp(b),
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (a, b) => rank(a).cmp(&rank(b)).then_with(|| a.to_string().cmp(&b.to_string())),
        }
    }
}

// === impl FieldSet ===

impl FieldSet {
    pub(super) fn insert(&mut self, path: &[Step]) {
        self.0.insert(path.into());
    }

    pub(super) fn has(&self, path: &[Step]) -> bool {
        self.0.contains(path)
    }

    /// Returns whether a path below this one is a member.
    pub(super) fn has_below(&self, path: &[Step]) -> bool {
        self.0
            .range::<[Step], _>((Bound::Included(path), Bound::Unbounded))
            .find(|member| member.len() > path.len() || !member.starts_with(path))
            .is_some_and(|member| member.starts_with(path))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<[Step]>> {
        self.0.iter()
    }

    #[must_use]
    pub(super) fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).cloned().collect())
    }

    pub(super) fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.iter().cloned());
    }

    /// Removes the members of the other set; fast if the other set is small.
    pub(super) fn subtract(&mut self, other: &Self) {
        for path in &other.0 {
            self.0.remove(path);
        }
    }

    #[must_use]
    pub(super) fn difference(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).cloned().collect())
    }

    #[must_use]
    pub(super) fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).cloned().collect())
    }

    /// Returns the members that are neither one of these paths nor below one.
    #[must_use]
    pub(super) fn without(&self, prefixes: &[Path]) -> Self {
        let kept = |path: &&Arc<[Step]>| !prefixes.iter().any(|prefix| path.starts_with(prefix));
        Self(self.0.iter().filter(kept).cloned().collect())
    }

    /// Adds the named fields on the paths to all members.
    #[must_use]
    pub(super) fn with_named_parents(&self, root: &Node) -> Self {
        let mut all = self.0.clone();
        for path in &self.0 {
            let mut node = Some(root);
            for (depth, step) in path.iter().enumerate() {
                let Some(here) = node else {
                    break;
                };
                match step {
                    Step::Field(name) => {
                        if depth + 1 < path.len() && here.has_named_field(name) {
                            all.insert(path[..=depth].into());
                        }
                        node = here.field(name);
                    }
                    _ => node = Some(here.item()),
                }
            }
        }
        Self(all)
    }

    /// Encodes `fieldsV1`.
    pub(super) fn encode(&self) -> Value {
        let paths: Vec<&[Step]> = self.0.iter().map(|path| &**path).collect();
        Value::Object(encode_below(&paths))
    }

    /// Decodes `fieldsV1`; `None` if it is malformed.
    pub(super) fn decode(encoded: &Value) -> Option<Self> {
        let mut set = Self::default();
        set.decode_into(encoded, &mut Vec::new())?;
        Some(set)
    }

    fn decode_into(&mut self, encoded: &Value, path: &mut Path) -> Option<()> {
        for (key, child) in encoded.as_object()? {
            if key == "." {
                self.insert(path);
                continue;
            }
            path.push(Step::decode(key)?);
            if child.as_object()?.is_empty() {
                self.insert(path);
            }
            self.decode_into(child, path)?;
            path.pop();
        }
        Some(())
    }
}

/// Encodes sorted paths as a tree. A member with children has an entry `.`; a member without children needs
/// none.
fn encode_below(paths: &[&[Step]]) -> Map<String, Value> {
    let mut out = Map::new();
    let is_member = paths.first().is_some_and(|path| path.is_empty());
    let below = &paths[usize::from(is_member)..];
    if is_member && !below.is_empty() {
        out.insert(".".into(), Value::Object(Map::new()));
    }
    for children in below.chunk_by(|a, b| a.first() == b.first()) {
        if let Some(step) = children[0].first() {
            let rest: Vec<&[Step]> = children.iter().map(|path| &path[1..]).collect();
            out.insert(step.encode(), Value::Object(encode_below(&rest)));
        }
    }
    out
}

impl FromIterator<Path> for FieldSet {
    fn from_iter<T: IntoIterator<Item = Path>>(paths: T) -> Self {
        Self(paths.into_iter().map(Arc::from).collect())
    }
}

/// Writes a path as error messages name it: `.spec.containers[name="a"].image`.
pub(super) fn display(path: &[Step]) -> String {
    let mut out = String::new();
    for step in path {
        // Writing to a String does not fail.
        let _ = match step {
            Step::Field(name) => write!(out, ".{name}"),
            Step::Key(fields) => {
                let fields: Vec<String> = fields.iter().map(|(k, v)| format!("{k}={}", v.0)).collect();
                write!(out, "[{}]", fields.join(","))
            }
            Step::Value(value) => write!(out, "[={}]", value.0),
            Step::Index(index) => write!(out, "[{index}]"),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_survive_their_encoding() {
        let encoded = json!({
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:image": {}}}, "f:finalizers": {"v:\"x\"": {}}},
        });
        let set = FieldSet::decode(&encoded).unwrap();
        assert_eq!(set.encode(), encoded);
        assert_eq!(set.iter().count(), 5);
        let paths: Vec<String> = set.iter().map(|path| display(path)).collect();
        assert_eq!(
            paths,
            [
                ".metadata.labels",
                ".metadata.labels.a",
                ".spec.containers[name=\"c\"]",
                ".spec.containers[name=\"c\"].image",
                ".spec.finalizers[=\"x\"]"
            ]
        );
    }
}
