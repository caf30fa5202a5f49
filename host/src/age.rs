//! A length of time as kubectl shows it: `45s`, `3m20s`, `5d`.

use std::fmt;
use std::time::Duration;

/// Shows a length of time in one or two units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Age(pub(crate) Duration);

// === impl Age ===

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MINUTE: u64 = 60;
        const HOUR: u64 = 60 * MINUTE;
        const DAY: u64 = 24 * HOUR;
        // As `HumanDuration` in k8s.io/apimachinery.
        let seconds = self.0.as_secs();
        let two = |f: &mut fmt::Formatter<'_>, large: (u64, &str), small: (u64, &str)| match seconds % large.0
            / small.0
        {
            0 => write!(f, "{}{}", seconds / large.0, large.1),
            rest => write!(f, "{}{}{rest}{}", seconds / large.0, large.1, small.1),
        };
        match seconds {
            it if it < 2 * MINUTE => write!(f, "{it}s"),
            it if it < 10 * MINUTE => two(f, (MINUTE, "m"), (1, "s")),
            it if it < 3 * HOUR => write!(f, "{}m", it / MINUTE),
            it if it < 8 * HOUR => two(f, (HOUR, "h"), (MINUTE, "m")),
            it if it < 2 * DAY => write!(f, "{}h", it / HOUR),
            it if it < 8 * DAY => two(f, (DAY, "d"), (HOUR, "h")),
            it => write!(f, "{}d", it / DAY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_shown_as_kubectl_shows_it() {
        let shown = [0, 119, 120, 200, 599, 600, 10_799, 10_800, 12_000, 30_000, 172_799, 176_400, 8_640_000]
            .map(|seconds| Age(Duration::from_secs(seconds)).to_string());
        let expected =
            ["0s", "119s", "2m", "3m20s", "9m59s", "10m", "179m", "3h", "3h20m", "8h", "47h", "2d1h", "100d"];
        assert_eq!(shown, expected);
    }
}
