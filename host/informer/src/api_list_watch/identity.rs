//! The type and the name of an object that cannot be decoded, as far as they stand before the fault.

use oarlock_json::scan::Cursor;

use crate::list_watch::{DecodeError, Undecodable};
use crate::names::{ObjectKey, TypeMeta};
use crate::object;

/// The most bytes that are searched: type and metadata stand at the beginning of an object.
pub(super) const MAX_BYTES: usize = 64 << 10;

/// The type and the name of an object, where they can be read.
#[derive(Default)]
pub(super) struct ObjectIdentity {
    api_version: Option<String>,
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
}

// === impl ObjectIdentity ===

impl ObjectIdentity {
    /// Reads them from the text, up to its first fault.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_BYTES)]);
        let mut cursor = Cursor::new(text.trim_ascii());
        let mut identity = Self::default();
        let Self { api_version, kind, namespace, name } = &mut identity;
        // None at a fault; the fields before the fault have been read.
        let _ = cursor.object(|cursor, _, key| {
            if key.is("metadata") {
                return cursor.object(|cursor, _, key| match () {
                    () if key.is("name") => read(cursor, name),
                    () if key.is("namespace") => read(cursor, namespace),
                    () => cursor.skip_value(),
                });
            }
            match () {
                () if key.is("apiVersion") => read(cursor, api_version),
                () if key.is("kind") => read(cursor, kind),
                () => cursor.skip_value(),
            }
        });
        identity
    }

    /// Returns whether the watch would drop even a decodable object of this type: a table, or another type
    /// than expected (RL-55).
    pub(super) fn is_of_another_type(&self, expected: Option<&TypeMeta>) -> bool {
        let (Some(api_version), Some(kind)) = (&self.api_version, &self.kind) else { return false };
        let is_meta = api_version.starts_with("meta.k8s.io/");
        if is_meta && kind == "PartialObjectMetadata" {
            return false;
        }
        let is_table = is_meta && kind == "Table";
        is_table
            || expected
                .is_some_and(|expected| *expected.api_version != **api_version || *expected.kind != **kind)
    }

    /// Returns the undecodable object of this identity.
    pub(super) fn undecodable(self, error: DecodeError) -> Undecodable {
        let namespace = self.namespace.unwrap_or_default();
        let name = self.name.filter(|name| !name.is_empty());
        let is_key = |name: &String| !name.contains('/') && !namespace.contains('/');
        let key = name.filter(is_key).map(|name| ObjectKey::new(&namespace, &name));
        Undecodable { key, error: error.into() }
    }
}

/// Returns whether an error says that the text is no object of any resource, so that a watch drops it
/// (RL-55).
pub(super) fn has_no_identity(error: &object::Error) -> bool {
    use object::Error;
    match error {
        Error::MissingMetadata | Error::MissingName | Error::MissingType(_) => true,
        Error::NotUtf8(_) | Error::Json(_) | Error::Metadata(_) | Error::BadName(_) | Error::TooLarge(_) => {
            false
        }
    }
}

/// Reads a string; skips any other value.
fn read(cursor: &mut Cursor<'_>, into: &mut Option<String>) -> Option<()> {
    if cursor.peek() != Some(b'"') {
        return cursor.skip_value();
    }
    let text = cursor.string()?.text()?;
    into.get_or_insert_with(|| text.into_owned());
    Some(())
}
