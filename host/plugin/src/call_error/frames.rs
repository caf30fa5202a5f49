//! The guest's frames as text.
//!
//! Names are not demangled: the guest chose them, and a demangler may need any amount of time and memory for
//! a name of a few bytes. A linker can demangle them when it builds the component, as Rust's does.

use std::fmt::Write as _;

use wasmtime::{FrameInfo, WasmBacktrace};

use crate::guest::{self, text::Bounded};

const MAX_FRAMES: usize = 32;
const MAX_MODULE_NAME_BYTES: usize = 64;
const MAX_FUNCTION_NAME_BYTES: usize = 200;
const MAX_BYTES: usize = 8 << 10;

/// Returns the frames of an error, innermost first, one on each line; may be empty.
pub(super) fn of(error: &wasmtime::Error) -> String {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else { return String::new() };
    if backtrace.frames().is_empty() {
        return String::new();
    }
    let mut text = Bounded::new(MAX_BYTES, true);
    // Fails when the text is full.
    let _ = write(&mut text, backtrace.frames());
    text.into_text()
}

fn write(text: &mut Bounded, frames: &[FrameInfo]) -> std::fmt::Result {
    text.write_str("wasm backtrace:")?;
    for (idx, frame) in frames.iter().take(MAX_FRAMES).enumerate() {
        write!(text, "\n  {idx:>3}: ")?;
        if let Some(offset) = frame.module_offset() {
            write!(text, "{offset:#8x} - ")?;
        }
        let module = frame.module().name().unwrap_or("<unknown>");
        write!(text, "{}!", guest::text::line(module, MAX_MODULE_NAME_BYTES))?;
        match frame.func_name() {
            Some(name) => text.write_str(&guest::text::line(name, MAX_FUNCTION_NAME_BYTES))?,
            None => write!(text, "<wasm function {}>", frame.func_index())?,
        }
    }
    match frames.len().saturating_sub(MAX_FRAMES) {
        0 => Ok(()),
        more => write!(text, "\n       and {more} more"),
    }
}
