//! The memory of a module with a description in it, written byte by byte as the canonical ABI lays it out.

use std::collections::BTreeMap;

use anyhow::bail;
use wit_parser::{Resolve, SizeAlign, Type, TypeDefKind};

use super::HEAP;

/// The memory that has a description in it.
#[derive(Default)]
pub(super) struct Image {
    pub(super) bytes: BTreeMap<usize, u8>,
    pub(super) end: usize,
    /// Where a field lies, by its name; the first one counts.
    pub(super) places: BTreeMap<String, usize>,
}

// === impl Image ===

impl Image {
    pub(super) fn byte(&mut self, at: usize, byte: u8) {
        self.bytes.insert(at, byte);
    }

    pub(super) fn number(&mut self, at: usize, number: u32) {
        for (n, byte) in number.to_le_bytes().into_iter().enumerate() {
            self.byte(at + n, byte);
        }
    }

    /// Takes memory that nothing else uses.
    fn take(&mut self, bytes: usize) -> anyhow::Result<usize> {
        let at = self.end.next_multiple_of(8);
        self.end = at + bytes;
        if self.end > HEAP {
            bail!("the description is too large");
        }
        Ok(at)
    }

    /// Writes a string's bytes elsewhere, and its place and length here.
    pub(super) fn text(&mut self, at: usize, text: &[u8]) {
        let place = self.end.next_multiple_of(8);
        self.end = place + text.len();
        for (n, byte) in text.iter().enumerate() {
            self.byte(place + n, *byte);
        }
        self.number(at, place as u32);
        self.number(at + 4, text.len() as u32);
    }

    /// Writes a value that the host accepts: the first case of each variant, no elements in lists but one
    /// subscription, and a text for each field that needs one.
    pub(super) fn write(
        &mut self,
        resolve: &Resolve,
        sizes: &SizeAlign,
        ty: &Type,
        field: &str,
        at: usize,
    ) -> anyhow::Result<()> {
        self.places.entry(field.to_owned()).or_insert(at);
        let id = match ty {
            Type::String => {
                let text = match field {
                    "name" => "handwritten",
                    "version" => "v1",
                    "plural" => "configmaps",
                    _ => "",
                };
                self.text(at, text.as_bytes());
                return Ok(());
            }
            // Zero: false, 0, 0.0.
            Type::Id(id) => id,
            _ => return Ok(()),
        };
        match &resolve.types[*id].kind {
            TypeDefKind::Type(ty) => self.write(resolve, sizes, ty, field, at)?,
            TypeDefKind::Record(record) => {
                let fields = sizes.field_offsets(record.fields.iter().map(|field| &field.ty));
                for (inner, (offset, ty)) in record.fields.iter().zip(fields) {
                    self.write(resolve, sizes, ty, &inner.name, at + offset.size_wasm32())?;
                }
            }
            TypeDefKind::List(element) if field == "subscriptions" => {
                let place = self.take(sizes.size(element).size_wasm32())?;
                self.number(at, place as u32);
                self.number(at + 4, 1);
                self.write(resolve, sizes, element, "subscription", place)?;
            }
            TypeDefKind::Result(result) => {
                let cases = [result.ok.as_ref(), result.err.as_ref()];
                let offset = sizes.payload_offset(wit_parser::Int::U8, cases).size_wasm32();
                if let Some(ok) = &result.ok {
                    self.write(resolve, sizes, ok, "ok", at + offset)?;
                }
            }
            TypeDefKind::Variant(variant) => {
                let cases = variant.cases.iter().map(|case| case.ty.as_ref());
                let offset = sizes.payload_offset(variant.tag(), cases).size_wasm32();
                if let Some(ty) = variant.cases.first().and_then(|case| case.ty.as_ref()) {
                    self.write(resolve, sizes, ty, "payload", at + offset)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}
