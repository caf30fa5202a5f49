//! Prunes an object's text in one walk, while a [`FieldReader`] reads the fields that are kept.
//!
//! Both decoders use this walk: the fast decoder reads the fields during it, the strict decoder has serde
//! read the pruned text afterwards.

use std::ops::Range;

use oarlock_json::scan::{Cursor, Quoted};

use super::super::content::Content;
use super::super::splicer::{Splice, Splicer};
use super::fields::Rule;
use super::{LAST_APPLIED, Pruning};

/// Passes over the values that pruning keeps whole, and may read them.
///
/// Each method stands at the value of `key` and returns `None` to end the walk.
pub(in crate::object) trait FieldReader<'t> {
    /// Passes over the value of an entry of the object, except `metadata`.
    fn field(&mut self, cursor: &mut Cursor<'t>, key: Quoted<'t>) -> Option<()>;

    /// Passes over the value of an entry of the metadata, except a map of annotations.
    fn metadata_field(&mut self, cursor: &mut Cursor<'t>, key: Quoted<'t>) -> Option<()>;

    /// Passes over the value of an annotation.
    fn annotation(&mut self, cursor: &mut Cursor<'t>, key: Quoted<'t>) -> Option<()>;

    /// Receives a value of the metadata of which only a part is kept.
    fn pruned_metadata_field(&mut self, pruned: &str, key: Quoted<'t>) -> Option<()>;
}

/// An object's text with its cuts, before it is copied.
pub(in crate::object) struct Pruned<'t> {
    pub(in crate::object) splicer: Splicer<'t>,
    /// Where the value of `metadata` stands in the text.
    pub(in crate::object) metadata: Range<usize>,
    /// Where the value of `metadata` stands in the copy of the whole text.
    pub(in crate::object) pruned_metadata: Range<usize>,
}

// === impl Pruning ===

impl Pruning {
    /// Walks over an object, and cuts out the fields that are not kept.
    ///
    /// With [`Content::Metadata`] nothing outside of the metadata is cut, since the caller copies only the
    /// metadata. Returns `None` when the text is not an object with metadata, when `metadata` or its
    /// annotations occur twice, or when the reader ended the walk.
    pub(in crate::object) fn prune<'t>(
        &self,
        text: &'t str,
        content: Content,
        reader: &mut impl FieldReader<'t>,
    ) -> Option<Pruned<'t>> {
        let mut cursor = Cursor::new(text);
        let mut splicer = Splicer::new(text);
        let root = self.fields.rule();
        let mut found = None;
        splicer.object(&mut cursor, |splicer, cursor, key| {
            let rule = root.entry(key, cursor)?;
            if key.is("metadata") {
                let (start, pruned_start) = (cursor.position(), splicer.output_position(cursor.position()));
                self.prune_metadata(splicer, cursor, rule, reader)?;
                let end = cursor.position();
                let ranges = (start..end, pruned_start..splicer.output_position(end));
                return found.replace(ranges).is_none().then_some(Splice::Keep);
            }
            match rule {
                Rule::Keep => reader.field(cursor, key)?,
                _ if content == Content::Metadata => reader.field(cursor, key)?,
                Rule::Remove => {
                    cursor.skip_value()?;
                    return Some(Splice::Cut);
                }
                rule => prune_value(splicer, cursor, rule)?,
            }
            Some(Splice::Keep)
        })?;
        let (metadata, pruned_metadata) = found?;
        cursor.is_at_end().then_some(Pruned { splicer, metadata, pruned_metadata })
    }

    #[inline]
    fn prune_metadata<'t>(
        &self,
        splicer: &mut Splicer<'t>,
        cursor: &mut Cursor<'t>,
        metadata: Rule<'_>,
        reader: &mut impl FieldReader<'t>,
    ) -> Option<()> {
        let mut has_annotations = false;
        splicer.object(cursor, |splicer, cursor, key| {
            let rule = metadata.entry(key, cursor)?;
            let is_removed = matches!(rule, Rule::Remove) || self.managed_fields && key.is("managedFields");
            if is_removed {
                cursor.skip_value()?;
                return Some(Splice::Cut);
            }
            if key.is("annotations") {
                // Pruning may remove one of two maps, and the reader would not notice the duplicate field.
                if std::mem::replace(&mut has_annotations, true) {
                    return None;
                }
                if cursor.peek()? == b'{' {
                    return self.prune_annotations(splicer, cursor, rule, reader);
                }
            }
            if let Rule::Keep = rule {
                reader.metadata_field(cursor, key)?;
            } else {
                let start = splicer.output_position(cursor.position());
                prune_value(splicer, cursor, rule)?;
                reader.pruned_metadata_field(&splicer.output(start, cursor.position())?, key)?;
            }
            Some(Splice::Keep)
        })?;
        Some(())
    }

    #[inline]
    fn prune_annotations<'t>(
        &self,
        splicer: &mut Splicer<'t>,
        cursor: &mut Cursor<'t>,
        annotations: Rule<'_>,
        reader: &mut impl FieldReader<'t>,
    ) -> Option<Splice> {
        let mark = splicer.mark();
        let mut has_removed_last_applied = false;
        let has_annotations = splicer.object(cursor, |_, cursor, key| {
            let is_last_applied = self.last_applied && key.is(LAST_APPLIED);
            has_removed_last_applied |= is_last_applied;
            if is_last_applied || matches!(annotations.entry(key, cursor)?, Rule::Remove) {
                cursor.skip_value()?;
                return Some(Splice::Cut);
            }
            reader.annotation(cursor, key)?;
            Some(Splice::Keep)
        })?;
        if has_annotations || !has_removed_last_applied {
            return Some(Splice::Keep);
        }
        splicer.rewind(&mark);
        Some(Splice::Cut)
    }
}

/// Prunes the value at the cursor. Recurses no deeper than the longest pointer of the rules.
fn prune_value<'t>(splicer: &mut Splicer<'t>, cursor: &mut Cursor<'t>, rule: Rule<'_>) -> Option<()> {
    match (rule, cursor.peek()?) {
        (Rule::Without(_) | Rule::Only(_), b'{') => {
            splicer.object(cursor, |splicer, cursor, key| {
                match rule.entry(key, cursor)? {
                    Rule::Remove => {
                        cursor.skip_value()?;
                        return Some(Splice::Cut);
                    }
                    rule => prune_value(splicer, cursor, rule)?,
                }
                Some(Splice::Keep)
            })?;
            Some(())
        }
        (Rule::Without(_) | Rule::Only(_), b'[') => {
            cursor.array(|cursor, _| match rule.element(cursor)? {
                // A list keeps the number of its elements.
                Rule::Remove => splicer.replace_value(cursor, "null"),
                rule => prune_value(splicer, cursor, rule),
            })
        }
        _ => cursor.skip_value(),
    }
}
