//! Waits for other processes: one generous deadline, after which the error says what was seen last.

use std::fmt::Display;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// The deadline of one wait. A node starts in half a minute on an idle machine; test machines are busy.
pub const LIMIT: Duration = Duration::from_secs(300);

/// The pause between two probes.
const PAUSE: Duration = Duration::from_millis(200);

/// Probes until the probe returns `Ok`, and returns its value.
///
/// # Errors
///
/// After [`LIMIT`], with `what` and the state that the probe saw last.
pub fn wait_until<T, S: Display>(what: &str, mut probe: impl FnMut() -> Result<T, S>) -> Result<T> {
    let begun_at = Instant::now();
    loop {
        match probe() {
            Ok(value) => return Ok(value),
            Err(state) if begun_at.elapsed() > LIMIT => {
                bail!("waited {LIMIT:?} for {what}; the last state was: {state:#}")
            }
            Err(_) => std::thread::park_timeout(PAUSE),
        }
    }
}
