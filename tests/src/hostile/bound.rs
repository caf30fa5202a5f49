//! The stated bound of the host's memory, as `docs/limits.md` has it.

use std::collections::BTreeMap;

use anyhow::ensure;
use serde::Serialize;
use serde_json::Value;

use super::cases::{Case, MEMORY};
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
/// For each plugin, whatever it does: its tasks, its status, its Linker's and its metrics' share.
pub const PLUGIN: u64 = 4 * MIB;
/// For each instance beside its linear memory: a stack of 3 MiB, tables, and the data of one call in each
/// direction (`limits.hostcall`, 8 MiB).
pub const INSTANCE: u64 = 3 * MIB + 2 * MIB + 2 * 8 * MIB;
/// A component's bytes, while it is read and while it is passed to the compiler, for each compile slot.
pub const COMPILE_SLOTS: u64 = 3 * 2 * 64 * MIB;
/// The program.
pub const PROGRAM: u64 = 256 * MIB;
/// The compiled code of a component of up to 1 MiB: 16 MiB for every component, and 16 bytes for each byte.
pub const CODE: u64 = 32 * MIB;

/// Returns the bound for these plugins and the three good ones. The account of each plugin counts with what
/// was charged to it, which the host bounds by 112 MiB.
#[must_use]
pub fn of(cases: &[Case], status: &BTreeMap<String, Value>) -> Bound {
    let charged: u64 = status.values().filter_map(|plugin| plugin["host-bytes"]["used"].as_u64()).sum();
    let Bound { anonymous, file_mapped } = of_plugins(cases.len() as u64);
    Bound { anonymous: anonymous + charged, file_mapped }
}

/// Returns the bound for this number of plugins and the three good ones, without their accounts.
#[must_use]
pub fn of_plugins(n: u64) -> Bound {
    let n = n + 3;
    Bound {
        anonymous: BASE + CACHES + COMPILE_SLOTS + n * (PLUGIN + MEMORY + INSTANCE),
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
