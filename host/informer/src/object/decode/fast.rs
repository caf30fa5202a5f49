//! The fast decoder: one walk over what API servers usually write.

use std::borrow::Cow;

use oarlock_json::scan::{Cursor, Quoted};

use super::super::copied_values::Finder;
use super::super::pruning::FieldReader;
use super::super::{Labels, Object};
use super::{DecodedObject, Options};

/// A field: `None` before it was read, `Some(None)` for null.
type Field<T> = Option<Option<T>>;

/// The fields that were read so far.
#[derive(Default)]
struct Fields<'t> {
    kind: Option<Cow<'t, str>>,
    api_version: Option<Cow<'t, str>>,
    name: Field<&'t str>,
    namespace: Field<&'t str>,
    uid: Field<&'t str>,
    resource_version: Field<&'t str>,
    generation: Field<i64>,
    deletion_timestamp: Field<&'t str>,
    labels: Option<Labels>,
    /// Set when they were checked.
    owner_references: Option<()>,
    finder: Option<Finder<'t>>,
}

/// Decodes an object. Returns `None` when something in it is unusual or wrong.
pub(super) fn decode(source: &str, options: Options<'_>) -> Option<Object> {
    let finder = options.copied.map(|pointers| Finder::new(pointers, source));
    let mut fields = Fields { finder, ..Fields::default() };
    let pruned = options.pruning.prune(source, options.content, &mut fields)?;
    let resolved = options.resolve_type(fields.api_version.as_deref(), fields.kind.as_deref()).ok()?;
    let (namespace, name) = (text(fields.namespace), text(fields.name));
    if name.is_empty() || name.contains('/') || namespace.contains('/') {
        return None;
    }
    let kept_text = options.copy(source, &pruned, &resolved)?;
    u32::try_from(kept_text.json.len()).ok()?;
    Some(Object::new(DecodedObject {
        type_meta: resolved.type_meta,
        namespace,
        name,
        uid: text(fields.uid),
        resource_version: text(fields.resource_version),
        generation: fields.generation.flatten(),
        deletion_timestamp: fields.deletion_timestamp.flatten(),
        labels: fields.labels.unwrap_or_default(),
        text: kept_text,
        content: options.content,
        values: fields.finder.and_then(Finder::finish),
    }))
}

// === impl Fields ===

impl<'t> FieldReader<'t> for Fields<'t> {
    #[inline]
    fn field(&mut self, cursor: &mut Cursor<'t>, key: Quoted<'t>) -> Option<()> {
        match key.plain()? {
            "kind" => set(&mut self.kind, cursor.string()?.text()?),
            "apiVersion" => set(&mut self.api_version, cursor.string()?.text()?),
            _ => match &mut self.finder {
                Some(finder) => finder.field(cursor, key),
                None => cursor.skip_value(),
            },
        }
    }

    #[inline]
    fn metadata_field(&mut self, cursor: &mut Cursor<'t>, key: Quoted<'t>) -> Option<()> {
        let start = cursor.position();
        match key.plain()? {
            "name" => set(&mut self.name, string(cursor)?),
            "namespace" => set(&mut self.namespace, string(cursor)?),
            "uid" => set(&mut self.uid, string(cursor)?),
            "resourceVersion" => set(&mut self.resource_version, string(cursor)?),
            "generation" => set(&mut self.generation, integer(cursor)?),
            "deletionTimestamp" => set(&mut self.deletion_timestamp, string(cursor)?),
            "labels" => set(&mut self.labels, labels(cursor)?),
            // The walk handles a map of annotations itself.
            "annotations" => cursor.take_null().then_some(()),
            "ownerReferences" => {
                or_null(cursor, owners)?;
                set(&mut self.owner_references, ())
            }
            _ => cursor.skip_value(),
        }?;
        if let Some(finder) = &mut self.finder {
            finder.metadata_field(start, key);
        }
        Some(())
    }

    #[inline]
    fn annotation(&mut self, cursor: &mut Cursor<'t>, key: Quoted<'t>) -> Option<()> {
        key.plain()?;
        let start = cursor.position();
        cursor.string()?;
        if let Some(finder) = &mut self.finder {
            finder.annotation(start, key);
        }
        Some(())
    }

    fn pruned_metadata_field(&mut self, pruned: &str, key: Quoted<'t>) -> Option<()> {
        match key.plain()? {
            "labels" => set(&mut self.labels, Labels::from_json(pruned).ok()?),
            "ownerReferences" => {
                owners(&mut Cursor::new(pruned))?;
                set(&mut self.owner_references, ())
            }
            // These are scalars, of which no part can be pruned.
            "name" | "namespace" | "uid" | "resourceVersion" | "generation" | "deletionTimestamp" => None,
            _ => Some(()),
        }
    }
}

/// Sets a field. Returns `None` if it was set before.
fn set<T>(field: &mut Option<T>, value: T) -> Option<()> {
    field.replace(value).is_none().then_some(())
}

fn text(field: Field<&str>) -> &str {
    field.flatten().unwrap_or_default()
}

fn string<'t>(cursor: &mut Cursor<'t>) -> Option<Option<&'t str>> {
    or_null(cursor, |cursor| cursor.string()?.plain())
}

fn integer(cursor: &mut Cursor<'_>) -> Option<Option<i64>> {
    or_null(cursor, |cursor| {
        let start = cursor.position();
        cursor.skip_value()?;
        let text = cursor.since(start)?;
        // JSON's minus zero is not an integer.
        if text.starts_with("-0") { None } else { text.parse().ok() }
    })
}

/// Passes over null, or over the value that `read` reads.
fn or_null<'t, T>(
    cursor: &mut Cursor<'t>,
    read: impl FnOnce(&mut Cursor<'t>) -> Option<T>,
) -> Option<Option<T>> {
    if cursor.take_null() { Some(None) } else { read(cursor).map(Some) }
}

fn labels(cursor: &mut Cursor<'_>) -> Option<Labels> {
    if cursor.take_null() {
        return Some(Labels::default());
    }
    let start = cursor.position();
    // `Labels` parses a text that it does not know yet.
    cursor.skip_value()?;
    Labels::from_json(cursor.since(start)?).ok()
}

/// Passes over the owner references, and checks that they can be parsed later.
fn owners(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.array(|cursor, _| {
        let [mut api_version, mut kind, mut name, mut uid, mut controller] = [None; 5];
        cursor.object(|cursor, _, key| match key.plain()? {
            "apiVersion" => set(&mut api_version, cursor.string().map(|_| ())?),
            "kind" => set(&mut kind, cursor.string().map(|_| ())?),
            "name" => set(&mut name, cursor.string().map(|_| ())?),
            "uid" => set(&mut uid, cursor.string().map(|_| ())?),
            "controller" => match cursor.peek()? {
                b't' | b'f' | b'n' => set(&mut controller, cursor.skip_value()?),
                _ => None,
            },
            _ => cursor.skip_value(),
        })?;
        api_version.and(kind).and(name).and(uid)
    })
}
