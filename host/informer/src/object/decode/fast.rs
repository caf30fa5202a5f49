//! The quick way in: one walk over what API servers commonly write.

use std::ops::Range;

use oarlock_json::scan::Cursor;

use super::super::pruning::LAST_APPLIED;
use super::super::splicer::{EntrySplicer, Splicer};
use super::super::{Content, Labels, Object, Pruning};
use super::{Parts, Terms, head_with, metadata_head};

/// A field: none if it was not seen, or what it was, none for null.
type Field<T> = Option<Option<T>>;

/// What is read of `metadata`.
#[derive(Default)]
struct Metadata<'t> {
    name: Field<&'t str>,
    namespace: Field<&'t str>,
    uid: Field<&'t str>,
    resource_version: Field<&'t str>,
    generation: Field<i64>,
    deletion_timestamp: Field<&'t str>,
    labels: Option<Labels>,
    /// Whether they were seen.
    annotations: Option<()>,
    owner_references: Option<()>,
    /// Where in the source the metadata stands.
    range: Range<usize>,
}

/// Takes an object in. None if there is anything unusual or wrong about it.
pub(super) fn decode(source: &str, terms: Terms<'_>) -> Option<Object> {
    let mut cursor = Cursor::new(source);
    let mut splicer = Splicer::new(source);
    let (mut kind, mut api_version, mut metadata) = (None, None, None);
    cursor.object(|cursor, _, key| match key.plain()? {
        "kind" => set(&mut kind, cursor.string()?.text()?),
        "apiVersion" => set(&mut api_version, cursor.string()?.text()?),
        "metadata" => set(&mut metadata, Metadata::read(cursor, &mut splicer, terms.pruning)?),
        _ => cursor.skip_value(),
    })?;
    if !cursor.is_at_end() {
        return None;
    }

    let metadata = metadata?;
    let filled_api_version = terms.type_meta.filter(|_| api_version.is_none()).map(|meta| &*meta.api_version);
    let filled_kind = terms.type_meta.filter(|_| kind.is_none()).map(|meta| &*meta.kind);
    let type_meta =
        terms.share(api_version.as_deref().or(filled_api_version)?, kind.as_deref().or(filled_kind)?).ok()?;
    let is_filled = filled_api_version.is_some() || filled_kind.is_some();
    // What stands in the place of which part of the source, and what behind.
    let (head, range, tail) = match terms.content {
        Content::Metadata => (metadata_head(&type_meta), metadata.range.clone(), "}"),
        Content::Full if is_filled => (head_with(filled_api_version, filled_kind), 1..source.len(), ""),
        Content::Full => (String::new(), 0..source.len(), ""),
    };
    let (namespace, name) = (text(metadata.namespace), text(metadata.name));
    if name.is_empty() || name.contains('/') || namespace.contains('/') {
        return None;
    }
    let json = splicer.finish(&head, range.clone(), tail)?;
    // What was filled in may have made it too long.
    u32::try_from(json.len()).ok()?;
    let metadata_start = head.len() + metadata.range.start - range.start;
    Some(Object::new(Parts {
        type_meta,
        namespace,
        name,
        uid: text(metadata.uid),
        resource_version: text(metadata.resource_version),
        generation: metadata.generation.flatten(),
        deletion_timestamp: metadata.deletion_timestamp.flatten(),
        labels: metadata.labels.unwrap_or_default(),
        text: json,
        content: terms.content,
        metadata_start,
    }))
}

// === impl Metadata ===

impl<'t> Metadata<'t> {
    /// Reads the metadata at the cursor, and takes out of `splicer` what is to be left out.
    fn read(cursor: &mut Cursor<'t>, splicer: &mut Splicer<'t>, pruning: &Pruning) -> Option<Self> {
        let (start, n_blanks) = (cursor.position(), cursor.n_blanks());
        let mut metadata = Self::default();
        let mut entries = EntrySplicer::default();
        cursor.object(|cursor, start, key| {
            entries.next(splicer, start)?;
            match key.plain()? {
                "name" => set(&mut metadata.name, string(cursor)?)?,
                "namespace" => set(&mut metadata.namespace, string(cursor)?)?,
                "uid" => set(&mut metadata.uid, string(cursor)?)?,
                "resourceVersion" => set(&mut metadata.resource_version, string(cursor)?)?,
                "generation" => set(&mut metadata.generation, integer(cursor)?)?,
                "deletionTimestamp" => set(&mut metadata.deletion_timestamp, string(cursor)?)?,
                "labels" => set(&mut metadata.labels, labels(cursor)?)?,
                "ownerReferences" => {
                    or_null(cursor, owners)?;
                    set(&mut metadata.owner_references, ())?;
                }
                "annotations" if pruning.last_applied => {
                    let mark = splicer.mark();
                    let has_kept = or_null(cursor, |cursor| annotations(cursor, splicer))?.unwrap_or(true);
                    set(&mut metadata.annotations, ())?;
                    if !has_kept {
                        if splicer.is_at(&mark) {
                            // An empty map: whether it stays is not decided here.
                            return None;
                        }
                        // Without any annotation the API server leaves the whole map out, and so do we.
                        splicer.back_to(&mark);
                        return entries.cut(splicer, start, cursor.position());
                    }
                }
                "annotations" => {
                    or_null(cursor, string_map)?;
                    set(&mut metadata.annotations, ())?;
                }
                "managedFields" if pruning.managed_fields => {
                    cursor.skip_value()?;
                    return entries.cut(splicer, start, cursor.position());
                }
                _ => cursor.skip_value()?,
            }
            entries.keep();
            Some(())
        })?;
        entries.next(splicer, cursor.position() - 1)?;
        if !splicer.is_whole() && cursor.n_blanks() != n_blanks {
            return None;
        }
        metadata.range = start..cursor.position();
        Some(metadata)
    }
}

/// Notes down a field; none if it stood there before.
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
        // JSON's minus zero is no integer.
        if text.starts_with("-0") { None } else { text.parse().ok() }
    })
}

/// Passes over null, or over what `read` reads.
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
    // That they are texts is seen when they are read for the first time.
    cursor.skip_value()?;
    Labels::from_json(cursor.since(start)?).ok()
}

fn string_map(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.object(|cursor, _, key| {
        key.plain()?;
        cursor.string().map(|_| ())
    })
}

/// Passes over the annotations and takes the last applied configuration out. Tells whether others are left.
fn annotations<'t>(cursor: &mut Cursor<'t>, splicer: &mut Splicer<'t>) -> Option<bool> {
    let mut entries = EntrySplicer::default();
    cursor.object(|cursor, start, key| {
        entries.next(splicer, start)?;
        if key.plain()? == LAST_APPLIED {
            cursor.skip_value()?;
            entries.cut(splicer, start, cursor.position())
        } else {
            entries.keep();
            cursor.string().map(|_| ())
        }
    })?;
    entries.next(splicer, cursor.position() - 1)?;
    Some(entries.has_kept())
}

/// Sees to it that the owners can be read on demand.
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
