//! The hostile plugins, and the reasons that the status has to name.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::handwritten::{self, Lie};
use super::mutants;
use oarlock_built_guests::component;

/// A hostile plugin.
#[derive(Clone, Debug)]
pub struct Case {
    /// The plugin's name.
    pub name: &'static str,
    component: Source,
    /// Texts of which the status has to contain one. Empty for a plugin that stays within its limits, and
    /// serves.
    pub reasons: &'static [&'static str],
    /// Keys of `limits` in the plugin's file, in place of the suite's.
    limits: Value,
    /// Whether the plugin has a shadow of the same component.
    pub(super) has_shadow: bool,
}

/// Where a component comes from.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// The guest `hostile` in this mode.
    Mode(&'static str),
    /// The guest `hostile` in this mode, stateless.
    Stateless(&'static str),
    /// Another guest that `cargo xtask guests` builds.
    Guest(&'static str),
    /// A core module written by hand.
    Handwritten(Lie),
    /// These bytes.
    Bytes(fn() -> anyhow::Result<Vec<u8>>),
}

/// The linear memory of each hostile plugin.
pub const MEMORY: u64 = 24 << 20;

/// The cases of [`at_work`] beside the busy plugins.
const AT_WORK: [&str; 19] = [
    "spin-add",
    "spin-update",
    "spin-reconcile",
    "spin-in-start",
    "requeue-at-once",
    "allocate",
    "flood-log",
    "flood-cache",
    "flood-client",
    "flood-event",
    "flood-config",
    "flood-keys",
    "flood-events",
    "flood-series",
    "flood-namespaces",
    "scan",
    "trap-update",
    "trap-add",
    "flood-waits",
];

/// Plugins of [`at_work`] that always have a key to reconcile, and compute 2 ms for it.
const BUSY: [&str; 6] = ["busy-1", "busy-2", "busy-3", "busy-4", "busy-5", "busy-6"];

const DEADLINE: &str = "exceeded its deadline";
const MEMORY_LIMIT: &str = "memory limit";
const TRAP: &str = "trapped";
const LIMIT: &str = "LimitExceeded";
const THROTTLED: &str = "Throttled";
/// The description, which a call of the host's returned, is not what the contract says.
const INVALID: &str = "invalid";

/// Returns all hostile plugins.
#[must_use]
pub fn all() -> Vec<Case> {
    use Source::{Bytes, Guest, Handwritten, Mode, Stateless};
    let case =
        |name, component, reasons| Case { name, component, reasons, limits: json!({}), has_shadow: false };
    vec![
        // Code that never returns.
        case("spin-add", Mode("spin-add"), &[DEADLINE]),
        case("spin-update", Mode("spin-update"), &[DEADLINE]),
        case("spin-delete", Mode("spin-delete"), &[DEADLINE]),
        case("spin-synced", Mode("spin-synced"), &[DEADLINE]),
        case("spin-reconcile", Mode("spin-reconcile"), &[DEADLINE]),
        case("spin-describe", Mode("spin-describe"), &[DEADLINE]),
        case("spin-stateless", Stateless("spin-add"), &[DEADLINE]),
        case("spin-in-start", Handwritten(Lie::SpinInStart), &[DEADLINE]),
        case("spin-in-realloc", Handwritten(Lie::SpinInRealloc), &[DEADLINE]),
        case("spin-in-post-return", Handwritten(Lie::SpinInPostReturn), &[DEADLINE]),
        case("requeue-at-once", Mode("requeue-at-once"), &[]),
        // Memory.
        case("allocate", Mode("allocate"), &[MEMORY_LIMIT]),
        case("allocate-describe", Mode("allocate-describe"), &[MEMORY_LIMIT]),
        case("keep", Mode("keep"), &[MEMORY_LIMIT]),
        case("recurse", Mode("recurse"), &["out of bounds memory access"]),
        case("recurse-without-frames", Mode("recurse-without-frames"), &["call stack exhausted"]),
        case("grow-table", Handwritten(Lie::GrowTable), &[DEADLINE]),
        case("grow-memory", Handwritten(Lie::GrowMemory), &[DEADLINE]),
        case("keep-own-handles", Handwritten(Lie::KeepOwnHandles), &["handle limit"]),
        case("keep-pollables", Handwritten(Lie::KeepPollables), &["handle limit"]),
        case("random-bytes", Handwritten(Lie::RandomBytes), &[DEADLINE]),
        case("keep-pages", Mode("keep-pages"), &[MEMORY_LIMIT, DEADLINE]),
        case("keep-documents", Mode("keep-documents"), &[MEMORY_LIMIT, DEADLINE]),
        case("whole-documents", Mode("whole-documents"), &[LIMIT, DEADLINE]),
        // Texts.
        case("longest-text", Mode("longest-text"), &["limits.hostcall"]),
        case("many-pairs", Mode("many-pairs"), &[DEADLINE, "limits.hostcall"]),
        case("long-texts", Mode("long-texts"), &[DEADLINE, "limits.hostcall"]),
        case("fail-with-a-long-text", Mode("fail-with-a-long-text"), &["éé"]),
        case("refuse-with-a-long-text", Mode("refuse-with-a-long-text"), &["xxx"]),
        case("long-names", Mode("long-names"), &[INVALID, "limits.hostcall"]),
        // Calls of the host without end.
        case("flood-log", Mode("flood-log"), &[DEADLINE]),
        case("flood-cache", Mode("flood-cache"), &[DEADLINE, "NotFound"]),
        case("flood-client", Mode("flood-client"), &[DEADLINE, "NotFound"]),
        Case {
            // The API server is not what is tested.
            limits: json!({"requestsPerSecond": 5}),
            ..case("flood-live-lists", Mode("flood-live-lists"), &[DEADLINE, LIMIT])
        },
        case("flood-event", Mode("flood-event"), &[DEADLINE]),
        case("flood-config", Mode("flood-config"), &[DEADLINE]),
        case("flood-clock", Mode("flood-clock"), &[DEADLINE]),
        case("flood-keys", Mode("flood-keys"), &[THROTTLED, DEADLINE]),
        Case {
            limits: json!({"callDeadline": "5s"}),
            ..case("flood-delayed-keys", Stateless("flood-delayed-keys"), &[THROTTLED])
        },
        case("flood-events", Mode("flood-events"), &[THROTTLED, DEADLINE]),
        case("flood-series", Mode("flood-series"), &[LIMIT]),
        case("flood-metric-names", Mode("flood-metric-names"), &[LIMIT]),
        case("flood-long-labels", Mode("flood-long-labels"), &[LIMIT]),
        case("flood-namespaces", Mode("flood-namespaces"), &[DEADLINE, LIMIT]),
        case("flood-waits", Mode("flood-waits"), &[DEADLINE, LIMIT]),
        case("wait-for-own-writes", Mode("wait-for-own-writes"), &[DEADLINE, LIMIT]),
        case("scan", Mode("scan"), &[DEADLINE, LIMIT]),
        case("large-writes", Mode("large-writes"), &[DEADLINE, MEMORY_LIMIT, LIMIT]),
        // Traps, and instances that are lost at once, again and again.
        case("trap-add", Mode("trap-add"), &[TRAP]),
        case("trap-update", Stateless("trap-update"), &[TRAP]),
        case("trap-delete", Mode("trap-delete"), &[TRAP]),
        case("trap-synced", Mode("trap-synced"), &[TRAP]),
        case("trap-reconcile", Stateless("trap-reconcile"), &[TRAP]),
        case("trap-describe", Mode("trap-describe"), &[TRAP]),
        case("trap-in-start", Handwritten(Lie::TrapInStart), &[TRAP, "cannot be created"]),
        case("trap-in-realloc", Handwritten(Lie::TrapInRealloc), &[TRAP]),
        case("trap-in-post-return", Handwritten(Lie::TrapInPostReturn), &[TRAP]),
        case("fail-always", Mode("fail-always"), &["as asked"]),
        // Answers that break the canonical ABI.
        case("realloc-out-of-bounds", Handwritten(Lie::ReallocOutOfBounds), &["end of memory"]),
        case("realloc-misaligned", Handwritten(Lie::ReallocMisaligned), &["aligned"]),
        case("realloc-calls-import", Handwritten(Lie::ReallocCallsImport), &["cannot leave"]),
        case("result-out-of-bounds", Handwritten(Lie::ResultOutOfBounds), &["out of bounds"]),
        case("result-misaligned", Handwritten(Lie::ResultMisaligned), &["aligned"]),
        case("list-too-long", Handwritten(Lie::ListTooLong), &["out of bounds", "limits.hostcall"]),
        case("list-out-of-bounds", Handwritten(Lie::ListOutOfBounds), &["out of bounds"]),
        case("text-too-long", Handwritten(Lie::TextTooLong), &["out of bounds", "limits.hostcall"]),
        case("text-overlong", Handwritten(Lie::TextOverlong), &["utf-8"]),
        case("text-surrogate", Handwritten(Lie::TextSurrogate), &["utf-8"]),
        case("result-tag", Handwritten(Lie::ResultTag), &["discriminant", INVALID]),
        case("enum-tag", Handwritten(Lie::EnumTag), &["discriminant", INVALID]),
        case("variant-tag", Handwritten(Lie::VariantTag), &["discriminant", INVALID]),
        case("answer-out-of-bounds", Handwritten(Lie::AnswerOutOfBounds), &["out of bounds"]),
        // Descriptions.
        case("subscriptions-10000", Mode("10000-subscriptions"), &["more than 32"]),
        case("indices-10000", Mode("10000-indices"), &["more than 32"]),
        case("long-selector", Mode("long-selector"), &["4096", "4 KiB"]),
        case("selector-bomb", Mode("selector-bomb"), &[]),
        case("index-bomb", Mode("index-bomb"), &[]),
        case("declares-the-most", Guest("declares-the-most"), &[]),
        // Components.
        case("compile-bomb", Bytes(mutants::compile_bomb), &["compil", "more than", "limit"]),
        case("zeros", Bytes(|| Ok(vec![0; 64 << 20])), &["not WebAssembly"]),
        case("too-large", Bytes(|| Ok(vec![0; (64 << 20) + 1])), &["bytes"]),
        case("garbage", Bytes(|| Ok(mutants::garbage(1 << 20))), &["cannot be used"]),
        case("empty", Bytes(|| Ok(Vec::new())), &["empty", "not a"]),
        case("core-module", Bytes(|| Ok(b"\0asm\x01\0\0\0".to_vec())), &["core module", "not a component"]),
    ]
}

/// Returns 25 plugins that are hostile all the time: together they want far more CPU time than there is.
/// Their calls have a deadline of a second, and they make few requests, since the API server is not what is
/// measured.
#[must_use]
pub fn at_work() -> Vec<Case> {
    let limits = json!({"callDeadline": "1s", "requestsPerSecond": 10});
    let busy = BUSY.map(|name| Case {
        name,
        component: Source::Mode("busy"),
        reasons: &[],
        limits: limits.clone(),
        has_shadow: false,
    });
    let others = all().into_iter().filter(|case| AT_WORK.contains(&case.name));
    busy.into_iter().chain(others.map(|case| Case { limits: limits.clone(), ..case })).collect()
}

/// Returns the hostile plugins that call the host without end or lose their instances, of which a record and
/// a shadow keep the most.
#[must_use]
pub fn that_call_the_host() -> Vec<Case> {
    let kinds = ["flood-", "trap-", "keep-", "spin-"];
    let others =
        ["scan", "large-writes", "wait-for-own-writes", "whole-documents", "long-texts", "many-pairs"];
    let is_one = |name: &str| kinds.iter().any(|kind| name.starts_with(kind)) || others.contains(&name);
    all().into_iter().filter(|case| is_one(case.name)).collect()
}

/// Returns `n` hostile plugins of all kinds, or all if there are fewer.
#[must_use]
pub fn some(n: usize) -> Vec<Case> {
    let all = all();
    let len = all.len();
    let is_taken = |index: usize| (index + 1) * n / len > index * n / len;
    all.into_iter()
        .enumerate()
        .filter(|(index, _)| n >= len || is_taken(*index))
        .map(|(_, case)| case)
        .collect()
}

// === impl Case ===

impl Case {
    /// Gives the plugin a shadow that is as hostile.
    #[must_use]
    pub fn with_shadow(self) -> Self {
        Self { has_shadow: true, ..self }
    }

    /// Returns whether the plugin touches all of its stack, or makes its tables as large as they may be.
    pub(super) fn fills_stack_or_tables(&self) -> bool {
        ["recurse", "recurse-without-frames", "grow-table"].contains(&self.name)
    }

    /// Returns the path of the component if other plugins share it.
    pub(super) fn shared_component(&self) -> Option<PathBuf> {
        let guest = match self.component {
            Source::Mode(_) | Source::Stateless(_) => "hostile",
            Source::Guest(name) => name,
            Source::Handwritten(_) | Source::Bytes(_) => return None,
        };
        Some(component(guest))
    }

    /// Returns the bytes of the component.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    pub(super) fn component(&self) -> anyhow::Result<Vec<u8>> {
        match self.component {
            Source::Handwritten(lie) => handwritten::component(lie),
            Source::Bytes(make) => make(),
            Source::Mode(_) | Source::Stateless(_) | Source::Guest(_) => Ok(Vec::new()),
        }
    }

    /// Returns the keys of the plugin's file beside those that every plugin has.
    pub(super) fn file(&self) -> Value {
        let mut limits = json!({
            "memory": MEMORY,
            "callDeadline": "100ms",
            "startDeadline": "300ms",
            "logLinesPerSecond": 20,
        });
        for (key, value) in self.limits.as_object().into_iter().flatten() {
            limits[key] = value.clone();
        }
        let config = match self.component {
            Source::Mode(mode) => json!({"mode": mode}),
            Source::Stateless(mode) => json!({"mode": mode, "stateless": true}),
            _ => json!({}),
        };
        json!({"limits": limits, "config": config})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_cases_are_as_many_as_asked_for() {
        let all = all().len();
        assert_eq!([0, 1, 25, all, all + 1].map(|n| some(n).len()), [0, 1, 25, all, all]);
        assert_eq!(at_work().len(), 25);
        assert!(that_call_the_host().len() > 30);
    }
}
