//! The stated bound of the host's memory, as `docs/limits.md` has it.

use anyhow::ensure;
use serde::Serialize;

use super::cases::Case;
use super::process::Resources;

/// The maximum of the host's memory, in bytes.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Bound {
    /// Memory that no file backs.
    pub anonymous: u64,
    /// Memory that files back: the program, and compiled code.
    pub file_mapped: u64,
}

const MIB: u64 = 1 << 20;

/// The host without plugins and without objects.
pub const BASE: u64 = 128 * MIB;
/// `--max-cache-bytes` of the suite.
pub const CACHES: u64 = 128 * MIB;
/// A component's bytes, while it is read and while it is passed to the compiler, for each compile slot.
pub const COMPILE_SLOTS: u64 = 3 * 2 * 64 * MIB;
/// What a guest and the host copy between each other (`limits.hostcall`, 8 MiB each way), for each guest that
/// runs. There are as many as there are workers, and as many brief ones.
pub const CROSSING: u64 = 2 * 8 * MIB;
/// For each plugin, whatever it does: its tasks, its status, its metrics, the newest lines of its log, the
/// pages of stack and tables that an ordinary guest touches. Four times the 121 KiB that were measured.
pub const PLUGIN: u64 = 512 << 10;
/// What the host keeps outside of a plugin's account about its newest requests, which `docs/limits.md` lists:
/// versions that were fetched and seen, and the event recorder.
pub const REQUESTS: u64 = 9 * MIB;
/// The number of requests about which the host keeps something.
const KEPT_REQUESTS: u64 = 1_024;
/// The note on a parked object or key.
pub const NOTE: u64 = 1 << 10;
/// The answer of an import that waits until the guest goes on. A plugin with state has one instance in a
/// call.
pub const ANSWER: u64 = 4 * MIB;
/// The stacks and the tables of an instance that fills them, and of one that is being replaced.
pub const STACKS: u64 = 2 * (3 + 2) * MIB;
/// Writes of a plugin and of its shadow that wait for their counterpart.
pub const SHADOW: u64 = 16 * MIB;
/// What the records of all plugins of the suite hold: calls in progress, and those that wait for the writer.
/// The host would let each of them have more; the whole process used 642 MiB when this was measured.
pub const RECORDS: u64 = 1_024 * MIB;
/// The program.
pub const PROGRAM: u64 = 256 * MIB;
/// The compiled code of a component of up to 1 MiB: 16 MiB for every component, and 16 bytes for each byte.
pub const CODE: u64 = 32 * MIB;

/// Returns the bound for these plugins and the three good ones, of what they have used: the account and the
/// linear memory of each plugin count with what was charged to it, and with its peak; its other parts count
/// with its requests, parked objects and copied bytes. The host bounds them by 115 MiB, by `limits.memory`
/// and by the constants here, but plugins rarely use that.
#[must_use]
pub fn of(cases: &[Case], metrics: &str) -> Bound {
    let value = |line: &str| Some(line.rsplit_once(' ')?.1.parse::<f64>().ok()? as u64);
    let each = |name: &str| -> Vec<u64> {
        let samples = metrics.lines().filter(|line| line.starts_with(&format!("{name}{{")));
        samples.filter_map(value).collect()
    };
    let sum = |name: &str| -> u64 { each(name).iter().sum() };
    let used = sum("oarlock_plugin_host_bytes") + sum("oarlock_plugin_linear_memory_peak_bytes");
    // The page of metrics has the series of all plugins once more.
    let of_series =
        |line: &&str| line.starts_with("oarlock_plugin_host_bytes{") && line.contains("for=\"metrics\"");
    let page: u64 = metrics.lines().filter(of_series).filter_map(value).sum();
    let requests: u64 = each("oarlock_plugin_requests_total")
        .iter()
        .map(|requests| REQUESTS / KEPT_REQUESTS * requests.min(&KEPT_REQUESTS))
        .sum();
    // Of both directions, which is more than the answers.
    let answers: u64 = each("oarlock_plugin_copied_bytes_total").iter().map(|bytes| bytes.min(&ANSWER)).sum();
    let notes = NOTE * (sum("oarlock_plugin_parked") + sum("oarlock_plugin_work_queue_parked"));
    // A shadow is a plugin of the same component.
    let plugins = |case: &Case| if case.has_shadow { 2 } else { 1 };
    let fill_stacks = cases.iter().filter(|case| case.fills_stack_or_tables());
    let stacks = STACKS * fill_stacks.map(plugins).sum::<u64>();
    let n = cases.iter().map(plugins).sum::<u64>();
    let shadows = SHADOW * (n - cases.len() as u64);
    Bound {
        anonymous: of_host() + (n + 3) * PLUGIN + used + page + requests + answers + notes + stacks + shadows,
        file_mapped: file_mapped(cases.len() as u64),
    }
}

/// Returns the bound for this number of plugins and the three good ones, of all that they may use but their
/// accounts. `memory` is the linear memory of each.
#[must_use]
pub fn of_plugins(n: u64, memory: u64) -> Bound {
    let each = PLUGIN + REQUESTS + KEPT_REQUESTS * NOTE + ANSWER + STACKS + memory;
    Bound { anonymous: of_host() + (n + 3) * each, file_mapped: file_mapped(n) }
}

fn of_host() -> u64 {
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    BASE + CACHES + COMPILE_SLOTS + 2 * workers * CROSSING
}

fn file_mapped(n: u64) -> u64 {
    PROGRAM + (n + 3) * CODE
}

// === impl Bound ===

impl Bound {
    /// Checks the maximum that a process used.
    ///
    /// # Errors
    ///
    /// When it exceeds the bound.
    pub fn check(&self, peak: &Resources) -> anyhow::Result<()> {
        ensure!(
            peak.anonymous <= self.anonymous && peak.file_mapped <= self.file_mapped,
            "the host used {peak:?}, its bound is {self:?}"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::cases;

    #[test]
    fn plugins_that_do_nothing_have_a_small_bound() {
        let busy: Vec<_> = cases::at_work().into_iter().take(6).collect();
        let none = of(&[], "").anonymous;
        assert_eq!(of(&busy, "").anonymous - none, 6 * PLUGIN);
        const { assert!(PLUGIN < MIB, "a leak of a megabyte for each plugin is seen") };
    }

    #[test]
    fn what_a_plugin_has_used_is_in_its_bound_up_to_what_it_may_use() {
        let bound = |metrics: &str| of(&[], metrics).anonymous - of(&[], "").anonymous;
        assert_eq!(bound("oarlock_plugin_host_bytes{plugin=\"a\",for=\"events\"} 700\n"), 700);
        assert_eq!(bound("oarlock_plugin_host_bytes{plugin=\"a\",for=\"metrics\"} 700\n"), 1_400);
        assert_eq!(bound("oarlock_plugin_linear_memory_peak_bytes{plugin=\"a\"} 1e6"), 1_000_000);
        assert_eq!(bound("oarlock_plugin_requests_total{plugin=\"a\"} 1.0"), REQUESTS / KEPT_REQUESTS);
        assert_eq!(bound("oarlock_plugin_requests_total{plugin=\"a\"} 5000.0"), REQUESTS);
        assert_eq!(bound("oarlock_plugin_parked{plugin=\"a\"} 3"), 3 * NOTE);
        let copied = "oarlock_plugin_copied_bytes_total{plugin=\"a\",direction=\"to-guest\"}";
        assert_eq!(bound(&format!("{copied} 8")), 8);
        assert_eq!(bound(&format!("{copied} 1e12")), ANSWER);
    }
}
