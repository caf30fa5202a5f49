//! Whether two objects are one object, or one version of it.

use parking_lot::Mutex;

use super::{Inner, METADATA_ONLY, NO_UUID, NOT_A_NUMBER, Object, RareFields};

// === impl Object ===

impl Object {
    /// Whether both are clones of one object in memory.
    pub fn is_same(&self, other: &Self) -> bool {
        triomphe::Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether both have the same resourceVersion.
    pub fn is_at_version_of(&self, other: &Self) -> bool {
        match (self.0.resource_version, other.0.resource_version) {
            (NOT_A_NUMBER, NOT_A_NUMBER) => self.resource_version() == other.resource_version(),
            (number, other) => number == other,
        }
    }

    /// Whether both have the same uid.
    pub fn has_uid_of(&self, other: &Self) -> bool {
        self.0.uid == other.0.uid && (self.0.uid != NO_UUID || self.uid() == other.uid())
    }

    /// Gives a transformed object the uid, resourceVersion and content of the original, whatever its own text
    /// says (PD-43).
    pub(crate) fn identified_as(self, original: &Self) -> Self {
        if self.is_at_version_of(original)
            && self.has_uid_of(original)
            && self.content() == original.content()
        {
            return self;
        }
        let (own, other) = (self.0.rare.as_deref(), original.0.rare.as_deref());
        let rare = RareFields {
            uid: other.map(|rare| rare.uid.clone()).unwrap_or_default(),
            resource_version: other.map(|rare| rare.resource_version.clone()).unwrap_or_default(),
            generation: own.and_then(|rare| rare.generation),
            deletion_timestamp: own.and_then(|rare| rare.deletion_timestamp.clone()),
        };
        Self(triomphe::Arc::new(Inner {
            key: self.0.key.clone(),
            type_meta: self.0.type_meta.clone(),
            labels: self.0.labels.clone(),
            uid: original.0.uid,
            resource_version: original.0.resource_version,
            rare: rare.is_needed().then(|| Box::new(rare)),
            length: self.0.length,
            generation: self.0.generation & !METADATA_ONLY | original.0.generation & METADATA_ONLY,
            metadata_start: self.0.metadata_start,
            body: Mutex::new(self.0.body.lock().clone()),
        }))
    }

    /// Whether both are one version of one object: they have the same uid and resourceVersion.
    ///
    /// Their texts may differ. The server makes the text from the stored object, and another conversion or
    /// default of a CRD, for example, makes another text.
    pub(crate) fn is_version_of(&self, other: &Self) -> bool {
        self.is_at_version_of(other) && self.has_uid_of(other) && !self.resource_version().is_empty()
    }

    /// Whether both are one version of one object with the same content and text. A cold text stays cold.
    pub(crate) fn is_equal_version_of(&self, other: &Self) -> bool {
        self.is_same(other) || self.is_version_of(other) && self.content() == other.content() && self == other
    }

    /// Returns the resourceVersion, if it is a number.
    pub(crate) fn version_number(&self) -> Option<u64> {
        (self.0.resource_version != NOT_A_NUMBER).then_some(self.0.resource_version)
    }
}
