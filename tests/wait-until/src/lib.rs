//! Waits of tests. Each has one deadline, and panics after it with the state that it saw last.
//!
//! A test that waits for another process, thread or task calls [`wait_until`]. A test whose clock is paused
//! calls [`yield_until`], which lets the other tasks run and never moves the clock. A test without a runtime
//! calls [`wait_until_blocking`].
//!
//! The probe returns `Ok` with what the test goes on with, or `Err` with the state it saw, which is what the
//! panic prints:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! use std::sync::atomic::{AtomicUsize, Ordering};
//! use std::time::Duration;
//!
//! use oarlock_wait_until::{LIMIT, wait_until};
//!
//! let n_calls = AtomicUsize::new(1);
//! let seen = wait_until("the first call", LIMIT, || match n_calls.load(Ordering::SeqCst) {
//!     0 => Err("no call yet"),
//!     n => Ok(n),
//! });
//! assert_eq!(seen.await, 1);
//! # });
//! ```

#![forbid(unsafe_code)]

use std::fmt::Debug;
use std::panic::Location;
use std::time::{Duration, Instant};

/// The deadline of a wait for another process: generous, since test machines are slow at times.
pub const LIMIT: Duration = Duration::from_secs(60);

/// The pause between two probes.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until the probe returns `Ok`, and returns its value; the clock must not be paused.
///
/// # Panics
///
/// When the limit has passed, with `what` and the last state that the probe returned.
#[track_caller]
pub fn wait_until<T, S: Debug>(
    what: &str,
    limit: Duration,
    probe: impl FnMut() -> Result<T, S>,
) -> impl Future<Output = T> {
    repeat(what, limit, Location::caller(), probe, || tokio::time::sleep(PAUSE))
}

/// Lets other tasks of this runtime run until the probe returns `Ok`, and returns its value. A paused clock
/// stays where it is; the limit is of real time.
///
/// # Panics
///
/// When the limit has passed, with `what` and the last state that the probe returned.
#[track_caller]
pub fn yield_until<T, S: Debug>(
    what: &str,
    limit: Duration,
    probe: impl FnMut() -> Result<T, S>,
) -> impl Future<Output = T> {
    repeat(what, limit, Location::caller(), probe, tokio::task::yield_now)
}

/// Blocks this thread until the probe returns `Ok`, and returns its value.
///
/// # Panics
///
/// When the limit has passed, with `what` and the last state that the probe returned.
#[track_caller]
pub fn wait_until_blocking<T, S: Debug>(
    what: &str,
    limit: Duration,
    mut probe: impl FnMut() -> Result<T, S>,
) -> T {
    let caller = Location::caller();
    let begun_at = Instant::now();
    loop {
        match probe() {
            Ok(value) => return value,
            Err(state) => check(what, begun_at, limit, &state, caller),
        }
        std::thread::park_timeout(PAUSE);
    }
}

/// Probes, with a pause after each probe that fails, until the probe returns `Ok`.
async fn repeat<T, S: Debug, P: Future<Output = ()>>(
    what: &str,
    limit: Duration,
    caller: &'static Location<'static>,
    mut probe: impl FnMut() -> Result<T, S>,
    pause: impl Fn() -> P,
) -> T {
    let begun_at = Instant::now();
    loop {
        match probe() {
            Ok(value) => return value,
            Err(state) => check(what, begun_at, limit, &state, caller),
        }
        pause().await;
    }
}

fn check(what: &str, begun_at: Instant, limit: Duration, state: &impl Debug, caller: &Location<'_>) {
    assert!(
        begun_at.elapsed() < limit,
        "{caller}: waited {limit:?} for {what}; the last state was: {state:#?}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "for a call that never comes; the last state was: \"no call yet\"")]
    fn a_wait_that_fails_prints_the_last_state() {
        wait_until_blocking("a call that never comes", Duration::from_millis(20), || {
            Err::<(), _>("no call yet")
        });
    }

    #[tokio::test(start_paused = true)]
    async fn yield_until_does_not_move_a_paused_clock() {
        let begun_at = tokio::time::Instant::now();
        let mut n_probes = 0;
        yield_until("the tenth probe", LIMIT, || {
            n_probes += 1;
            if n_probes == 10 { Ok(()) } else { Err(n_probes) }
        })
        .await;
        assert_eq!(begun_at.elapsed(), Duration::ZERO);
    }
}
