//! Arithmetic with durations from outside: it saturates and never panics.
//!
//! A duration may come from a caller, a configuration, a header or a guest, and may be [`Duration::MAX`].
//! Only [`after`] adds such a duration to a moment, and only [`scaled`] multiplies it.

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

#[cfg(test)]
mod tests;
