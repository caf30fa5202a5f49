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
/// For each plugin, whatever it does: its tasks, its status, its metrics.
pub const PLUGIN: u64 = 2 * MIB;
/// For each plugin: what the host keeps outside of its account, which `docs/limits.md` lists: versions that
/// were fetched and seen, the event recorder, notes on what is parked.
pub const OUTSIDE: u64 = 10 * MIB;
/// For each plugin: the answer of an import that waits until the guest goes on. A plugin with state has one
/// instance in a call.
pub const ANSWER: u64 = 4 * MIB;
/// For each plugin: the stacks and the tables of its instance, and of one that is being replaced.
pub const STACKS: u64 = 2 * (3 + 2) * MIB;
/// The program.
pub const PROGRAM: u64 = 256 * MIB;
/// The compiled code of a component of up to 1 MiB: 16 MiB for every component, and 16 bytes for each byte.
pub const CODE: u64 = 32 * MIB;

/// Returns the bound for these plugins and the three good ones. The account and the linear memory of each
/// plugin count with what was charged to it, and with its peak. The host bounds them by 115 MiB and by
/// `limits.memory`, but plugins rarely use that.
#[must_use]
pub fn of(cases: &[Case], metrics: &str) -> Bound {
    let of_all = |name: &str| -> u64 {
        let samples = metrics.lines().filter(|line| line.starts_with(&format!("{name}{{")));
        let values = samples.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        values.sum::<f64>() as u64
    };
    let used = of_all("oarlock_plugin_host_bytes") + of_all("oarlock_plugin_linear_memory_peak_bytes");
    let Bound { anonymous, file_mapped } = of_plugins(cases.len() as u64, 0);
    Bound { anonymous: anonymous + used, file_mapped }
}

/// Returns the bound for this number of plugins and the three good ones, without their accounts. `memory` is
/// the linear memory of each.
#[must_use]
pub fn of_plugins(n: u64, memory: u64) -> Bound {
    let n = n + 3;
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let of_host = BASE + CACHES + COMPILE_SLOTS + 2 * workers * CROSSING;
    Bound {
        anonymous: of_host + n * (PLUGIN + OUTSIDE + ANSWER + STACKS + memory),
        file_mapped: PROGRAM + n * CODE,
    }
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
