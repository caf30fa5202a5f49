//! The key of an object: namespace and name.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use std::str::FromStr;
use std::sync::LazyLock;

use hashbrown::{HashMap, HashSet};
use triomphe::{Arc, ThinArc};

use super::Error;
use crate::intern::{Intern, Interner};

/// The key of an object within its resource: namespace and name.
///
/// Keys are ordered by namespace, then by name. The namespace of a cluster-scoped object is empty. A key is
/// one pointer, cheap to clone, and its hash is computed once, when it is created.
#[derive(Clone)]
pub struct ObjectKey(ThinArc<Head, u8>);

struct Head {
    hash: u64,
    namespace: Namespace,
}

/// The name of a namespace. All keys of the namespace share one copy.
#[derive(Clone, PartialEq, Eq)]
struct Namespace(Arc<Box<str>>);

/// A map by key. It uses the hash that each key stores.
pub(crate) type KeyMap<V> = HashMap<ObjectKey, V, BuildHasherDefault<KeyHasher>>;

/// A set of keys. It uses the hash that each key stores.
pub(crate) type KeySet = HashSet<ObjectKey, BuildHasherDefault<KeyHasher>>;

/// Passes the stored hash of a key on.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

static NAMESPACES: Interner<Namespace> = Interner::new();

static NO_NAMESPACE: LazyLock<Namespace> = LazyLock::new(|| Namespace(Arc::new(Box::from(""))));

/// The random seed of all hashes, so that clients cannot choose names that collide.
static RANDOM: LazyLock<RandomState> = LazyLock::new(RandomState::new);

// === impl ObjectKey ===

impl ObjectKey {
    /// Creates the key of an object. `namespace` is empty for a cluster-scoped object.
    pub fn new(namespace: impl AsRef<str>, name: impl AsRef<str>) -> Self {
        let (namespace, name) = (namespace.as_ref(), name.as_ref());
        let head = Head { hash: Self::hash_of(namespace, name), namespace: Namespace::named(namespace) };
        Self(ThinArc::from_header_and_slice(head, name.as_bytes()))
    }

    /// Returns the namespace; empty for a cluster-scoped object.
    pub fn namespace(&self) -> &str {
        &self.0.header.header.namespace.0
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        // The bytes come from a `str`.
        std::str::from_utf8(&self.0.slice).unwrap_or_default()
    }

    /// Returns the hash of namespace and name.
    pub(crate) fn hash_value(&self) -> u64 {
        self.0.header.header.hash
    }

    /// Returns the hash of the key of that name.
    pub(crate) fn hash_of(namespace: &str, name: &str) -> u64 {
        let mut hasher = RANDOM.build_hasher();
        hasher.write(namespace.as_bytes());
        hasher.write_u8(b'/');
        hasher.write(name.as_bytes());
        hasher.finish()
    }

    /// Returns whether this is the key of that name.
    pub(crate) fn is(&self, namespace: &str, name: &str) -> bool {
        self.0.slice == *name.as_bytes() && self.namespace() == namespace
    }

    fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(&self.0.slice, &other.0.slice)
    }
}

impl PartialEq for ObjectKey {
    fn eq(&self, other: &Self) -> bool {
        let (head, other_head) = (&self.0.header.header, &other.0.header.header);
        self.is_same(other)
            || head.hash == other_head.hash
                && self.0.slice == other.0.slice
                && head.namespace.is_equal(&other_head.namespace)
    }
}

impl Eq for ObjectKey {}

impl Hash for ObjectKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.header.header.hash);
    }
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.is_same(other) {
            return Ordering::Equal;
        }
        let (namespace, other_namespace) =
            (&self.0.header.header.namespace, &other.0.header.header.namespace);
        let namespaces = if Arc::ptr_eq(&namespace.0, &other_namespace.0) {
            Ordering::Equal
        } else {
            namespace.0.cmp(&other_namespace.0)
        };
        namespaces.then_with(|| self.0.slice.cmp(&other.0.slice))
    }
}

impl ObjectKey {
    /// Compares keys in the order of the API server's lists: by `namespace/name` as one text. In that order
    /// `a-b/x` is before `a/x`.
    pub(crate) fn cmp_in_list(&self, other: &Self) -> Ordering {
        let (namespace, other_namespace) =
            (&self.0.header.header.namespace, &other.0.header.header.namespace);
        if Arc::ptr_eq(&namespace.0, &other_namespace.0) || namespace == other_namespace {
            return self.0.slice.cmp(&other.0.slice);
        }
        let (left, right) = (namespace.0.as_bytes(), other_namespace.0.as_bytes());
        let n_common = left.len().min(right.len());
        let behind = |namespace: &[u8]| namespace.get(n_common).copied().unwrap_or(b'/');
        left[..n_common].cmp(&right[..n_common]).then_with(|| behind(left).cmp(&behind(right)))
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Writes `namespace/name`, or `name` if the namespace is empty (KEY-01).
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace() {
            "" => f.write_str(self.name()),
            namespace => write!(f, "{namespace}/{}", self.name()),
        }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Parses `name` or `namespace/name`; more parts are an error (KEY-04).
///
/// This accepts more than `Display` writes: `/x` is the same as `x`.
impl FromStr for ObjectKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.split_once('/') {
            None => Ok(Self::new("", text)),
            Some((namespace, name)) if !name.contains('/') => Ok(Self::new(namespace, name)),
            Some(_) => Err(Error::Key(text.to_owned())),
        }
    }
}

// === impl Namespace ===

impl Namespace {
    fn named(name: &str) -> Self {
        if name.is_empty() {
            return NO_NAMESPACE.clone();
        }
        NAMESPACES.find(name).unwrap_or_else(|| NAMESPACES.intern(Self(Arc::new(Box::from(name)))))
    }

    fn is_equal(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Hash for Namespace {
    fn hash<H: Hasher>(&self, state: &mut H) {
        str::hash(&self.0, state);
    }
}

impl Borrow<str> for Namespace {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Intern for Namespace {
    fn is_unique(&self) -> bool {
        self.0.is_unique()
    }
}

// === impl KeyHasher ===

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    /// Not used by keys. Other values get a poor hash.
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_displayed_as_namespace_and_name_key_01() {
        assert_eq!(ObjectKey::new("ns", "x").to_string(), "ns/x");
        assert_eq!(ObjectKey::new("", "x").to_string(), "x");
    }

    #[test]
    fn a_key_is_the_one_of_its_names() {
        let key = ObjectKey::new("ns", "x");
        assert_eq!(key.hash_value(), ObjectKey::hash_of("ns", "x"));
        assert!(key.is("ns", "x"));
        for (namespace, name) in [("ns", "y"), ("n", "x"), ("", "ns/x"), ("x", "ns")] {
            assert!(!key.is(namespace, name), "{namespace}/{name}");
        }
    }

    #[test]
    fn a_key_is_parsed_from_one_or_two_parts_key_04() {
        assert_eq!("x".parse(), Ok(ObjectKey::new("", "x")));
        assert_eq!("ns/x".parse(), Ok(ObjectKey::new("ns", "x")));
        assert_eq!("/x".parse(), Ok(ObjectKey::new("", "x")));
        assert_eq!("a/b/c".parse::<ObjectKey>(), Err(Error::Key("a/b/c".into())));
    }

    #[test]
    fn keys_are_compared_by_namespace_then_name() {
        let keys = ["a", "z", "a/b", "a/c", "a-b/a", "b/a"].map(|text| text.parse::<ObjectKey>().unwrap());
        assert!(keys.is_sorted());
        for (key, other) in
            keys.iter().zip(keys.iter().map(|key| ObjectKey::new(key.namespace(), key.name())))
        {
            assert_eq!((key, key.hash_value()), (&other, other.hash_value()));
        }
        assert_ne!(ObjectKey::new("a", "b"), ObjectKey::new("a", "c"));
        assert_ne!(ObjectKey::new("a", "b"), ObjectKey::new("b", "b"));
        assert_eq!(std::mem::size_of::<ObjectKey>(), 8);
    }
}
