//! The memory and CPU time of this process, from the kernel.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

/// A process is at rest when it takes less than [`IDLE`] of CPU in this long, [`QUIET_WINDOWS`] times in a
/// row.
const WINDOW: Duration = Duration::from_millis(250);
const QUIET_WINDOWS: u32 = 8;
const IDLE: Duration = Duration::from_millis(2);

/// The greatest time to wait for a process at rest.
const LONGEST_SETTLING: Duration = Duration::from_secs(60);

/// Returns the CPU time of all threads of this process, in user and kernel mode.
#[must_use]
pub fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let nanoseconds = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or_default())
}

/// Returns the exact resident memory in bytes.
///
/// # Errors
///
/// When `/proc` cannot be read.
pub fn resident() -> Result<u64> {
    field("/proc/self/smaps_rollup", "Rss:")
}

/// Returns the peak of resident memory since [`reset_peak`].
///
/// # Errors
///
/// When `/proc` cannot be read.
pub fn peak_resident() -> Result<u64> {
    field("/proc/self/status", "VmHWM:")
}

/// Resets the peak of resident memory.
///
/// # Errors
///
/// When `/proc` cannot be written.
pub fn reset_peak() -> Result<()> {
    fs::write("/proc/self/clear_refs", "5").context("cannot reset the peak of the resident memory")
}

/// Waits until the process is at rest: until deferred work, such as compression or garbage collection, is
/// done.
pub fn settle() {
    let begun = Instant::now();
    let (mut quiet, mut before) = (0, cpu());
    while quiet < QUIET_WINDOWS && begun.elapsed() < LONGEST_SETTLING {
        thread::park_timeout(WINDOW);
        let now = cpu();
        quiet = if now.saturating_sub(before) < IDLE { quiet + 1 } else { 0 };
        before = now;
    }
}

fn field(file: &str, name: &str) -> Result<u64> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes =
        line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse::<u64>().ok());
    kilobytes.map(|it| it * 1024).with_context(|| format!("{file} has no {name}"))
}
