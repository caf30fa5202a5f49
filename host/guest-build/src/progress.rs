//! Progress lines on standard error.

use std::io::{self, Write};
use std::time::Instant;

/// Prints one line. Without a reader of standard error it is lost.
pub fn say(line: impl AsRef<str>) {
    let _ = writeln!(io::stderr(), "{}", line.as_ref());
}

/// Prints that `what` starts, runs it, and prints how long it took.
///
/// # Errors
///
/// Those of `work`.
pub fn step<T>(what: &str, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    say(format!("{what} …"));
    let start = Instant::now();
    let result = work();
    let how = if result.is_ok() { "done" } else { "failed" };
    say(format!("{what}: {how} in {:.1} s", start.elapsed().as_secs_f32()));
    result
}
