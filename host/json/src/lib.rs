//! Scanning JSON text: [JSON pointers](JsonPointer), and walks that find their values without building a
//! tree.
//!
//! ```text
//! JsonPointer ─┐                ┌─ Finding (one walk, in slices) → Found: all values
//! JsonPointer ─┼→ PointerSet ───┤
//! JsonPointer ─┘                └─ Walk (the same, reusable)     → Span of each value
//! PointerPattern (`*` = each element) → find_each: all values, borrowed from the text
//! scan::Cursor: reads tokens, skips values at several GB/s
//! ```
//!
//! No function panics on a text that is not JSON, and none recurses deeper than the longest pointer.
//!
//! ```
//! use oarlock_json::{Finding, JsonPointer, PointerPattern, PointerSet, find_each};
//!
//! let pod = r#"{"metadata":{"name":"web"},"spec":{"containers":[{"image":"a"},{"image":"b"}]}}"#;
//! let name = JsonPointer::from(["metadata", "name"]);
//! let second: JsonPointer = "/spec/containers/1/image".parse()?;
//! let set = PointerSet::new([&name, &second]);
//! let found = Finding::new(&set, pod).finish();
//! assert_eq!(found.get(0), Some("\"web\""));
//! assert_eq!(found.get(1), Some("\"b\""));
//!
//! let images: PointerPattern = "/spec/containers/*/image".parse()?;
//! assert_eq!(find_each(pod, &[images.segments()]), [["\"a\"", "\"b\""]]);
//! # Ok::<(), oarlock_json::PointerError>(())
//! ```

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod extract;
mod pointer;
pub mod scan;
mod set;
mod walk;

pub use extract::{extract, find_each};
pub use pointer::{JsonPointer, MAX_SEGMENTS, PointerError, PointerPattern, Segment};
pub use set::{Found, PointerSet};
pub use walk::{Finding, Span, Walk};
