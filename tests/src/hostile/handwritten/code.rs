//! The text of the code with which a module lies, one table for all lies.

use super::{ANSWER, BEYOND, HEAP, Lie};

/// The code in the places where a lie may have some of its own.
pub(super) struct Code {
    /// A function that the module imports.
    pub(super) import: &'static str,
    /// The start function.
    pub(super) start: &'static str,
    /// The body of the allocator.
    pub(super) realloc: String,
    /// The body of the function that frees the result of `describe`.
    pub(super) after_describe: &'static str,
    /// The body of `on-add`.
    pub(super) on_add: String,
}

// === impl Code ===

impl Code {
    /// Returns the code of a plugin that does nothing. Its allocator only ever advances, and begins again
    /// where little memory is left.
    fn plain() -> Self {
        let rounded = "(i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8))";
        let restart = format!(
            "(if (i32.gt_u (global.get $heap) (i32.const 700000)) (then (global.set $heap (i32.const {HEAP}))))"
        );
        Self {
            import: "",
            start: "",
            realloc: format!(
                "{restart} (local.set 4 {rounded}) (global.set $heap (i32.add (local.get 4) (local.get 3))) (local.get 4)"
            ),
            after_describe: "",
            on_add: format!("(i32.const {ANSWER})"),
        }
    }

    /// Returns the code of a lie.
    pub(super) fn of(lie: Lie) -> Self {
        const TRAP: &str = "unreachable";
        const SPIN: &str = "(loop $l (br $l)) unreachable";
        let plain = Self::plain();
        let beyond = || format!("(i32.const {BEYOND})");
        let forever = |body: &str| format!("(loop $l {body} (br $l)) unreachable");
        match lie {
            Lie::TrapInStart => Self { start: TRAP, ..plain },
            Lie::SpinInStart => Self { start: SPIN, ..plain },
            Lie::TrapInRealloc => Self { realloc: TRAP.to_owned(), ..plain },
            Lie::SpinInRealloc => Self { realloc: SPIN.to_owned(), ..plain },
            Lie::ReallocOutOfBounds => Self { realloc: beyond(), ..plain },
            Lie::ReallocMisaligned => Self { realloc: "(i32.const 3)".to_owned(), ..plain },
            Lie::ReallocCallsImport => Self {
                import: "(import \"oarlock:plugin/clock@0.1.0\" \"elapsed-ms\" (func $elapsed (result f64)))",
                realloc: format!("(drop (call $elapsed)) {}", plain.realloc),
                ..plain
            },
            Lie::TrapInPostReturn => Self { after_describe: TRAP, ..plain },
            Lie::SpinInPostReturn => Self { after_describe: SPIN, ..plain },
            Lie::AnswerOutOfBounds => Self { on_add: beyond(), ..plain },
            Lie::GrowTable => {
                let grow = "(drop (table.grow $table (ref.null func) (i32.const 1000)))";
                Self { on_add: forever(grow), ..plain }
            }
            Lie::GrowMemory => Self { on_add: forever("(drop (memory.grow (i32.const 16)))"), ..plain },
            Lie::KeepOwnHandles => Self {
                import: "(import \"[export]tests:handwritten/handles\" \"[resource-new]handle\" (func $new (param i32) (result i32)))",
                on_add: forever("(drop (call $new (i32.const 1)))"),
                ..plain
            },
            Lie::KeepPollables => Self {
                import: "(import \"wasi:clocks/monotonic-clock@0.2.0\" \"subscribe-duration\" (func $take (param i64) (result i32)))",
                on_add: forever("(drop (call $take (i64.const 1000000000000)))"),
                ..plain
            },
            Lie::RandomBytes => Self {
                import: "(import \"wasi:random/random@0.2.0\" \"get-random-bytes\" (func $random (param i64 i32)))",
                on_add: forever("(call $random (i64.const 60000) (i32.const 2048))"),
                ..plain
            },
            // These lie in the description.
            Lie::None
            | Lie::ResultOutOfBounds
            | Lie::ResultMisaligned
            | Lie::ListTooLong
            | Lie::ListOutOfBounds
            | Lie::TextTooLong
            | Lie::TextOverlong
            | Lie::TextSurrogate
            | Lie::ResultTag
            | Lie::EnumTag
            | Lie::VariantTag => plain,
        }
    }
}
