//! Arithmetic with durations from outside: it saturates, it never panics.
//!
//! A duration may come from a caller, a configuration, a header or a guest, and may be [`Duration::MAX`]. The sum of such
//! a duration and a moment is made by [`after`], its product with a factor by [`scaled`], and nowhere else.

use std::time::Duration;

use tokio::time::Instant;

/// The longest delay that [`after`] adds: 30 years, which stands for "never".
pub const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);

/// Returns the moment `delay` after `start`. A delay longer than [`FAR`] counts as [`FAR`].
#[must_use]
pub fn after(start: Instant, delay: Duration) -> Instant {
    start.checked_add(delay.min(FAR)).unwrap_or(start)
}

/// Returns the duration times the factor: nothing for a factor that is negative or no number, [`Duration::MAX`] for what is longer
/// than that.
#[must_use]
pub fn scaled(duration: Duration, factor: f64) -> Duration {
    // `max` turns what is no number into zero.
    let seconds = duration.as_secs_f64() * factor.max(0.0);
    match Duration::try_from_secs_f64(seconds) {
        Ok(scaled) => scaled,
        // Nothing, infinitely often.
        Err(_) if seconds.is_nan() => Duration::ZERO,
        Err(_) => Duration::MAX,
    }
}

#[cfg(test)]
mod tests;
