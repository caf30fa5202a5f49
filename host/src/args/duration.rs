//! Durations in Go's syntax: `15s`, `1m30s`, `500ms`.

use std::time::Duration;

use k8s_openapi::jiff::SignedDuration;

/// Parses a duration. clap puts the argument's name before the error.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let help = "use a duration such as 15s, 1m30s or 500ms";
    let duration: SignedDuration = text.parse().map_err(|_| help.to_owned())?;
    Duration::try_from(duration).map_err(|_| help.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_in_go() {
        let millis = |text| parse(text).map(|it| it.as_millis());
        assert_eq!(millis("15s"), Ok(15_000));
        assert_eq!(millis("1m30s"), Ok(90_000));
        assert_eq!(millis("500ms"), Ok(500));
        assert_eq!(millis("1.5s"), Ok(1_500));
        assert_eq!(millis("2h"), Ok(7_200_000));
        for bad in ["", "15", "-1s", "soon"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
