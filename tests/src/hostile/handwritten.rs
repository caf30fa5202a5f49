//! Components whose core module is written by hand, so that it can break the canonical ABI: pointers and
//! lengths that lie, texts that are not UTF-8, and code in places where compilers put none.
//!
//! The signatures, the layout of the description and the names of the exports come from `wit/`, so a change
//! of the contract needs no change here.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, bail};
use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::abi::{AbiVariant, WasmType};
use wit_parser::{Resolve, SizeAlign, Type, TypeDefKind, WorldId, WorldItem};

use crate::host_process::checkout;

/// A way to break the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// None: a plugin that does nothing.
    None,
    /// The module's start function traps.
    TrapInStart,
    /// The module's start function never returns.
    SpinInStart,
    /// The allocator traps.
    TrapInRealloc,
    /// The allocator never returns.
    SpinInRealloc,
    /// The allocator returns a place beyond the memory.
    ReallocOutOfBounds,
    /// The allocator returns a place that is not aligned.
    ReallocMisaligned,
    /// The allocator calls an import, which is forbidden there.
    ReallocCallsImport,
    /// The function after `describe`, which frees its result, traps.
    TrapInPostReturn,
    /// The same never returns.
    SpinInPostReturn,
    /// `describe` returns a place beyond the memory.
    ResultOutOfBounds,
    /// `describe` returns a place that is not aligned.
    ResultMisaligned,
    /// The list of subscriptions claims to have 4,294,967,295 elements.
    ListTooLong,
    /// The list of subscriptions lies beyond the memory.
    ListOutOfBounds,
    /// The name claims to have 4,294,967,295 bytes.
    TextTooLong,
    /// The name is an overlong encoding of NUL, which is not UTF-8.
    TextOverlong,
    /// The name contains half of a surrogate pair, which is not UTF-8.
    TextSurrogate,
    /// The result of `describe` is neither ok nor an error.
    ResultTag,
    /// An enum has a value that it does not have.
    EnumTag,
    /// A variant has a case that it does not have.
    VariantTag,
    /// The result of `on-add` lies beyond the memory.
    AnswerOutOfBounds,
    /// `on-add` grows a table without end.
    GrowTable,
    /// `on-add` grows the memory without end.
    GrowMemory,
    /// `on-add` makes resources of the component's own and keeps their handles.
    KeepOwnHandles,
    /// `on-add` subscribes to WASI's clock and keeps the handles.
    KeepPollables,
    /// `on-add` takes random bytes of WASI's without end.
    RandomBytes,
}

/// The world of the components: the plugin, WASI's clock, and a resource of the component's own.
const WORLD: &str = r#"
package tests:handwritten;

interface handles { resource handle; }

world handwritten {
    include oarlock:plugin/plugin@0.1.0;
    export handles;
}

world with-wasi {
    include oarlock:plugin/plugin@0.1.0;
    import wasi:clocks/monotonic-clock@0.2.0;
    import wasi:random/random@0.2.0;
}
"#;

const WASI: [(&str, &str); 3] = [
    ("poll.wit", "package wasi:io@0.2.0; interface poll { resource pollable; }"),
    (
        "clocks.wit",
        "package wasi:clocks@0.2.0; interface monotonic-clock { use wasi:io/poll@0.2.0.{pollable}; \
         subscribe-duration: func(when: u64) -> pollable; }",
    ),
    (
        "random.wit",
        "package wasi:random@0.2.0; interface random { get-random-bytes: func(len: u64) -> list<u8>; }",
    ),
];

/// The place of the description in the memory, and of the result of the other functions.
const DESCRIPTION: usize = 1 << 12;
const ANSWER: usize = 1 << 10;
/// The end of the memory, which has 16 pages, and a place beyond it.
const BEYOND: &str = "0xfff00000";
/// Where the allocator begins.
const HEAP: usize = 1 << 18;

/// The memory that has a description in it.
#[derive(Default)]
struct Image {
    bytes: BTreeMap<usize, u8>,
    end: usize,
    /// Where a field lies, by its name; the first one counts.
    places: BTreeMap<String, usize>,
}

/// Returns a component that breaks the rules in this way.
///
/// # Errors
///
/// When the contract in `wit/` has a type that this module cannot write.
pub fn component(lie: Lie) -> anyhow::Result<Vec<u8>> {
    let mut resolve = Resolve::default();
    resolve.push_path(checkout().join("wit"))?;
    for (path, text) in WASI {
        resolve.push_source(path, text)?;
    }
    let package = resolve.push_source("handwritten.wit", WORLD)?;
    let with_wasi = matches!(lie, Lie::KeepPollables | Lie::RandomBytes);
    let world = if with_wasi { "with-wasi" } else { "handwritten" };
    let world = resolve.select_world(&[package], Some(world))?;
    let text = module(&resolve, world, lie)?;
    let mut module = wat::parse_str(&text).with_context(|| text.clone())?;
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false)?;
    ComponentEncoder::default().module(&module)?.validate(true).encode().with_context(|| text)
}

/// Returns the text of the core module.
fn module(resolve: &Resolve, world: WorldId, lie: Lie) -> anyhow::Result<String> {
    let mut sizes = SizeAlign::default();
    sizes.fill(resolve)?;
    let mut text = String::from("(module\n");
    match lie {
        Lie::KeepPollables => text.push_str(
            "(import \"wasi:clocks/monotonic-clock@0.2.0\" \"subscribe-duration\" (func $take (param i64) (result i32)))\n",
        ),
        Lie::RandomBytes => text.push_str(
            "(import \"wasi:random/random@0.2.0\" \"get-random-bytes\" (func $random (param i64 i32)))\n",
        ),
        Lie::KeepOwnHandles => text.push_str(
            "(import \"[export]tests:handwritten/handles\" \"[resource-new]handle\" (func $new (param i32) (result i32)))\n",
        ),
        Lie::ReallocCallsImport => text.push_str(
            "(import \"oarlock:plugin/clock@0.1.0\" \"elapsed-ms\" (func $elapsed (result f64)))\n",
        ),
        _ => {}
    }
    text.push_str("(memory (export \"memory\") 16)\n(table $table 1 funcref)\n");
    writeln!(text, "(global $heap (mut i32) (i32.const {HEAP}))")?;
    text.push_str(&realloc(lie));
    match lie {
        Lie::TrapInStart => text.push_str("(func $start unreachable)\n(start $start)\n"),
        Lie::SpinInStart => text.push_str("(func $start (loop $l (br $l)))\n(start $start)\n"),
        _ => {}
    }
    let mut data = String::new();
    for (key, item) in &resolve.worlds[world].exports {
        let WorldItem::Interface { id, .. } = item else { continue };
        let interface = resolve.name_world_key(key);
        for (name, function) in &resolve.interfaces[*id].functions {
            let signature = resolve.wasm_signature(AbiVariant::GuestExport, function);
            let export = format!("{interface}#{name}");
            write!(text, "(func (export {export:?})")?;
            types(&mut text, "param", &signature.params)?;
            types(&mut text, "result", &signature.results)?;
            let body = match name.as_str() {
                "describe" => {
                    let (body, segments) = describe(resolve, &sizes, function.result.as_ref(), lie)?;
                    data = segments;
                    body
                }
                "on-add" => on_add(lie),
                _ => format!("(i32.const {ANSWER})"),
            };
            writeln!(text, "\n{body})")?;
            if signature.retptr {
                let after = match (name.as_str(), lie) {
                    ("describe", Lie::TrapInPostReturn) => "unreachable",
                    ("describe", Lie::SpinInPostReturn) => "(loop $l (br $l))",
                    _ => "",
                };
                writeln!(text, "(func (export \"cabi_post_{export}\") (param i32) {after})")?;
            }
        }
    }
    Ok(format!("{text}{data})"))
}

fn types(text: &mut String, what: &str, types: &[WasmType]) -> anyhow::Result<()> {
    for ty in types {
        let ty = match ty {
            WasmType::I32 | WasmType::Pointer | WasmType::Length => "i32",
            WasmType::I64 | WasmType::PointerOrI64 => "i64",
            WasmType::F32 => "f32",
            WasmType::F64 => "f64",
        };
        write!(text, " ({what} {ty})")?;
    }
    Ok(())
}

/// The allocator: it only ever advances, and begins again where little memory is left.
fn realloc(lie: Lie) -> String {
    let body = match lie {
        Lie::TrapInRealloc => "unreachable".to_owned(),
        Lie::SpinInRealloc => "(loop $l (br $l)) unreachable".to_owned(),
        Lie::ReallocOutOfBounds => format!("(i32.const {BEYOND})"),
        Lie::ReallocMisaligned => "(i32.const 3)".to_owned(),
        _ => {
            let call = if lie == Lie::ReallocCallsImport { "(drop (call $elapsed))" } else { "" };
            let rounded = "(i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8))";
            let restart = format!(
                "(if (i32.gt_u (global.get $heap) (i32.const 700000)) (then (global.set $heap (i32.const {HEAP}))))"
            );
            format!(
                "{call} {restart} (local.set 4 {rounded}) (global.set $heap (i32.add (local.get 4) (local.get 3))) (local.get 4)"
            )
        }
    };
    format!("(func (export \"cabi_realloc\") (param i32 i32 i32 i32) (result i32) (local i32) {body})\n")
}

fn on_add(lie: Lie) -> String {
    let grow_table = "(loop $l (drop (table.grow $table (ref.null func) (i32.const 1000))) (br $l))";
    let forever = |body: &str| format!("(loop $l {body} (br $l)) unreachable");
    match lie {
        Lie::AnswerOutOfBounds => format!("(i32.const {BEYOND})"),
        Lie::GrowTable => format!("{grow_table} unreachable"),
        Lie::GrowMemory => forever("(drop (memory.grow (i32.const 16)))"),
        Lie::KeepOwnHandles => forever("(drop (call $new (i32.const 1)))"),
        Lie::KeepPollables => forever("(drop (call $take (i64.const 1000000000000)))"),
        Lie::RandomBytes => forever("(call $random (i64.const 60000) (i32.const 2048))"),
        _ => format!("(i32.const {ANSWER})"),
    }
}

/// Returns the body of `describe`, and the data segments of the description.
fn describe(
    resolve: &Resolve,
    sizes: &SizeAlign,
    result: Option<&Type>,
    lie: Lie,
) -> anyhow::Result<(String, String)> {
    let result = result.context("describe has a result")?;
    let end = DESCRIPTION + sizes.size(result).size_wasm32();
    let mut image = Image { end, ..Image::default() };
    image.write(resolve, sizes, result, "", DESCRIPTION)?;
    let place = |name: &str| image.places.get(name).copied().with_context(|| format!("no field {name}"));
    let (subscriptions, name) = (place("subscriptions")?, place("name")?);
    let (content, namespaces) = (place("content")?, place("namespaces")?);
    let mut pointer = DESCRIPTION.to_string();
    match lie {
        Lie::ResultOutOfBounds => pointer = BEYOND.to_owned(),
        Lie::ResultMisaligned => pointer = (DESCRIPTION + 1).to_string(),
        Lie::ListTooLong => image.number(subscriptions + 4, u32::MAX),
        Lie::ListOutOfBounds => image.number(subscriptions, 0xfff0_0000),
        Lie::TextTooLong => image.number(name + 4, u32::MAX),
        Lie::TextOverlong => image.text(name, &[0xc0, 0x80]),
        Lie::TextSurrogate => image.text(name, &[0xed, 0xa0, 0x80]),
        Lie::ResultTag => image.byte(DESCRIPTION, 2),
        Lie::EnumTag => image.byte(content, 99),
        Lie::VariantTag => image.byte(namespaces, 99),
        _ => {}
    }
    let mut data = String::new();
    for (at, byte) in &image.bytes {
        writeln!(data, "(data (i32.const {at}) \"\\{byte:02x}\")")?;
    }
    Ok((format!("(i32.const {pointer})"), data))
}

// === impl Image ===

impl Image {
    fn byte(&mut self, at: usize, byte: u8) {
        self.bytes.insert(at, byte);
    }

    fn number(&mut self, at: usize, number: u32) {
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
    fn text(&mut self, at: usize, text: &[u8]) {
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
    fn write(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lie_is_a_valid_component() {
        use Lie::*;
        for lie in [
            None,
            TrapInStart,
            SpinInStart,
            TrapInRealloc,
            SpinInRealloc,
            ReallocOutOfBounds,
            ReallocMisaligned,
            ReallocCallsImport,
            TrapInPostReturn,
            SpinInPostReturn,
            ResultOutOfBounds,
            ResultMisaligned,
            ListTooLong,
            ListOutOfBounds,
            TextTooLong,
            TextOverlong,
            TextSurrogate,
            ResultTag,
            EnumTag,
            VariantTag,
            AnswerOutOfBounds,
            GrowTable,
            GrowMemory,
            KeepOwnHandles,
            KeepPollables,
            RandomBytes,
        ] {
            let bytes = component(lie).unwrap_or_else(|error| panic!("{lie:?}: {error:#}"));
            assert!(bytes.starts_with(b"\0asm\x0d\0\x01\0"), "{lie:?}");
        }
    }
}
