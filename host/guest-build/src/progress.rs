//! Progress lines on standard error.

use std::time::Instant;

/// Prints one line.
pub fn say(line: impl AsRef<str>) {
    eprintln!("{}", line.as_ref());
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
