//! Components whose core module is written by hand, so that it can break the canonical ABI: pointers and
//! lengths that lie, texts that are not UTF-8, and code in places where compilers put none.
//!
//! The signatures, the layout of the description and the names of the exports come from `wit/`, so a change
//! of the contract needs no change here.

mod code;
mod image;

use std::fmt::Write as _;

use anyhow::Context;
use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::abi::{AbiVariant, WasmType};
use wit_parser::{Resolve, SizeAlign, Type, WorldId, WorldItem};

use self::code::Code;
use self::image::Image;
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
    let Code { import, start, realloc, after_describe, on_add } = Code::of(lie);
    let mut text = format!("(module\n{import}\n(memory (export \"memory\") 16)\n(table $table 1 funcref)\n");
    writeln!(text, "(global $heap (mut i32) (i32.const {HEAP}))")?;
    writeln!(
        text,
        "(func (export \"cabi_realloc\") (param i32 i32 i32 i32) (result i32) (local i32) {realloc})"
    )?;
    if !start.is_empty() {
        writeln!(text, "(func $start {start})\n(start $start)")?;
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
                "on-add" => on_add.clone(),
                _ => format!("(i32.const {ANSWER})"),
            };
            writeln!(text, "\n{body})")?;
            if signature.retptr {
                let after = if name == "describe" { after_describe } else { "" };
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
