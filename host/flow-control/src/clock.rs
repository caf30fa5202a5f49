//! Arithmetic with durations from outside: it saturates and never panics.
//!
//! A duration may come from a caller, a configuration, a header or a guest, and may be [`Duration::MAX`].
//! Only [`after`] adds such a duration to a moment, and only [`scaled`] multiplies it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;
use std::time::Duration;

use tokio::time::Instant;

/// The longest delay that [`after`] adds: 30 years, which means "never".
pub const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);

/// Returns the moment `delay` after `start`. A delay longer than [`FAR`] counts as [`FAR`].
#[must_use]
pub fn after(start: Instant, delay: Duration) -> Instant {
    start.checked_add(delay.min(FAR)).unwrap_or(start)
}

/// Returns the product of a duration and a factor, at most [`Duration::MAX`]. It is zero for a factor that is
/// negative or not a number.
#[must_use]
pub fn scaled(duration: Duration, factor: f64) -> Duration {
    // `max` turns NaN into zero.
    let seconds = duration.as_secs_f64() * factor.max(0.0);
    match Duration::try_from_secs_f64(seconds) {
        Ok(scaled) => scaled,
        // Zero times infinity.
        Err(_) if seconds.is_nan() => Duration::ZERO,
        Err(_) => Duration::MAX,
    }
}

/// The tasks of one period wake at so many different moments of it.
const N_PHASES: u128 = 8;

/// The moment that ticks are counted from.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Returns the next moment, after `now` and at most `period` after it, for a task that does something in each
/// period.
///
/// Many such tasks share few moments, so that the process wakes a few times in a period and not once for each
/// task. Tasks with equal keys share all of theirs. The moments are spread over the period, so that not all
/// tasks ask the same server at once.
#[must_use]
pub fn next_tick(now: Instant, period: Duration, key: &impl Hash) -> Instant {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let period = period.clamp(Duration::from_millis(1), FAR).as_nanos();
    let phase = u128::from(hasher.finish()) % N_PHASES * period / N_PHASES;
    let elapsed = now.saturating_duration_since(*ORIGIN).as_nanos();
    let since_tick = (elapsed + period - phase) % period;
    after(now, Duration::from_nanos((period - since_tick) as u64))
}

#[cfg(test)]
mod tests;
