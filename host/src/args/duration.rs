//! Durations in Go's syntax, and with days: `15s`, `1m30s`, `500ms`, `1d12h`.

use std::time::Duration;

use k8s_openapi::jiff::{Span, SpanRelativeTo};

/// Parses a duration. clap puts the argument's name before the error.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let help = "use a duration such as 15s, 1m30s, 500ms or 1d12h";
    let span: Span = text.parse().map_err(|_| help.to_owned())?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| help.to_owned())?;
    Duration::try_from(duration).map_err(|_| help.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_in_go_and_may_have_days() {
        let millis = |text| parse(text).map(|it| it.as_millis());
        assert_eq!(millis("15s"), Ok(15_000));
        assert_eq!(millis("1m30s"), Ok(90_000));
        assert_eq!(millis("500ms"), Ok(500));
        assert_eq!(millis("1.5s"), Ok(1_500));
        assert_eq!(millis("2h"), Ok(7_200_000));
        assert_eq!(millis("1d"), Ok(86_400_000));
        assert_eq!(millis("1d12h"), Ok(129_600_000));
        assert_eq!(millis("400h"), Ok(1_440_000_000));
        for bad in ["", "15", "-1s", "-1d", "1y", "1mo", "soon"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
