//! The formats of single cells: ages, counts, joined lists, and the status of a Pod.

use jiff::Timestamp;
use serde_json::Value;

/// Returns the text at a pointer, or `otherwise` if it is missing or empty.
pub(super) fn text<'a>(object: &'a Value, pointer: &str, otherwise: &'a str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty()).unwrap_or(otherwise)
}

pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

pub(super) fn items<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// Returns the number of entries in the maps at these pointers.
pub(super) fn entries(object: &Value, pointers: &[&str]) -> usize {
    let len =
        |pointer: &&str| object.pointer(pointer).and_then(Value::as_object).map_or(0, serde_json::Map::len);
    pointers.iter().map(len).sum()
}

pub(super) fn joined<'a>(texts: impl Iterator<Item = &'a str>, otherwise: &str) -> String {
    let joined = texts.collect::<Vec<_>>().join(",");
    if joined.is_empty() { otherwise.to_owned() } else { joined }
}

/// Returns a map of strings as `a=b,c=d`.
pub(super) fn labels(object: &Value, pointer: &str) -> String {
    let map = object.pointer(pointer).and_then(Value::as_object);
    let mut pairs: Vec<String> =
        map.into_iter().flatten().map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default())).collect();
    pairs.sort();
    if pairs.is_empty() { "<none>".into() } else { pairs.join(",") }
}

/// Returns the age of the time at a pointer.
pub(super) fn age(object: &Value, pointer: &str, now: Timestamp) -> String {
    match text(object, pointer, "") {
        // The object was never created, such as a bookmark's.
        "" if pointer == "/metadata/creationTimestamp" => "<unknown>".into(),
        time => age_of(time, now),
    }
}

pub(super) fn age_of(time: &str, now: Timestamp) -> String {
    match time.parse::<Timestamp>() {
        Ok(time) => human((now - time).total(jiff::Unit::Second).unwrap_or(0.0) as i64),
        Err(_) if time.is_empty() => "<none>".into(),
        Err(_) => "<unknown>".into(),
    }
}

/// Returns a duration in at most two units, as kubectl does.
pub(super) fn human(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let two = |big: i64, big_unit: char, small: i64, small_unit: char| match small {
        0 => format!("{big}{big_unit}"),
        small => format!("{big}{big_unit}{small}{small_unit}"),
    };
    match seconds {
        ..-1 => "<invalid>".into(),
        -1 => "0s".into(),
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(s / MINUTE, 'm', s % MINUTE, 's'),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => two(s / HOUR, 'h', s % HOUR / MINUTE, 'm'),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 8 * DAY => two(s / DAY, 'd', s % DAY / HOUR, 'h'),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s if s < 8 * YEAR => two(s / YEAR, 'y', s % YEAR / DAY, 'd'),
        s => format!("{}y", s / YEAR),
    }
}

/// Returns a Pod's `READY`, `STATUS` and `RESTARTS`.
pub(super) fn pod(pod: &Value) -> (String, String, String) {
    let total = items(pod, "/spec/containers").count();
    let statuses: Vec<&Value> = items(pod, "/status/containerStatuses").collect();
    let ready = statuses.iter().filter(|status| status["ready"] == true).count();
    let restarts: i64 = statuses.iter().map(|status| status["restartCount"].as_i64().unwrap_or(0)).sum();
    let mut reason = text(pod, "/status/reason", text(pod, "/status/phase", "")).to_owned();
    for status in statuses.iter().rev() {
        let state = |kind: &str| text(status, &format!("/state/{kind}/reason"), "").to_owned();
        let (waiting, terminated) = (state("waiting"), state("terminated"));
        if !waiting.is_empty() {
            reason = waiting;
        } else if !terminated.is_empty() {
            reason = terminated;
        } else if status.pointer("/state/terminated").is_some() {
            reason = format!("ExitCode:{}", number(status, "/state/terminated/exitCode"));
        }
    }
    if !text(pod, "/metadata/deletionTimestamp", "").is_empty() {
        reason = "Terminating".into();
    }
    (format!("{ready}/{total}"), reason, restarts.to_string())
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn durations_are_formatted_as_by_kubectl() {
        let texts: Vec<String> =
            [0, 119, 120, 125, 599, 600, 10_799, 10_800, 28_800, 172_800, 700_000, 63_072_001]
                .map(human)
                .to_vec();
        assert_eq!(texts, ["0s", "119s", "2m", "2m5s", "9m59s", "10m", "179m", "3h", "8h", "2d", "8d", "2y"]);
    }
}
