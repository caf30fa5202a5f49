//! The limits of one plugin, with units such as `64Mi` and `500ms`.

pub mod units;

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The limits of one plugin: the value of `limits` in its file.
///
/// Every field has a default. An unknown field is an error. The units of sizes are `Ki`, `Mi`, `Gi`, `k`,
/// `M`, `G`, those of durations `ms`, `s`, `m`. Call [`Limits::check`] after reading a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "a mapping such as {memory: 64Mi}"
)]
pub struct Limits {
    /// The linear memory of one instance, all its memories together. 64Ki to 4Gi; default 128Mi.
    #[serde(with = "units::bytes")]
    pub memory: u64,
    /// The maximum time of one call, including waits for the host, but not for other guests. 1ms to 10m;
    /// default 5s.
    #[serde(with = "units::duration")]
    pub call_deadline: Duration,
    /// The maximum time of an instance's start, and of `describe`. 1ms to 10m; default 20s.
    #[serde(with = "units::duration")]
    pub start_deadline: Duration,
    /// Log lines per second, and the maximum burst. 0 to 100,000; default 100.
    pub log_lines_per_second: u32,
    /// Requests to the API server per second, Events included; twice as many at once. 1 to 10,000; default
    /// 100.
    pub requests_per_second: u32,
    /// Bytes that the guest may pass to the host in one call of either direction. 64Ki to 64Mi; default 8Mi.
    #[serde(with = "units::bytes")]
    pub hostcall: u64,
    /// Bytes that imports return to the guest in one call, together with the long arguments that it passes to
    /// them. Beyond it, imports return `limit-exceeded`. 64Ki to 64Gi; default 512Mi.
    #[serde(with = "units::bytes")]
    pub crossing: u64,
    /// Elements of all tables together. Default 100,000.
    pub table_elements: u32,
    /// Core instances in one instance of the component. Default 200.
    pub core_instances: u32,
    /// The number of calls for one object or key that return a failure until it is parked. 1 to 1,000;
    /// default 6.
    pub tries: u32,
    /// The number of calls for one object or key that end the instance (a trap, the deadline, the memory
    /// limit) until it is parked. 1 to 1,000; default 3.
    pub loss_tries: u32,
}

/// A limit outside of its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("limits.{field}: {got} is not between {least} and {most}")]
pub struct OutOfRange {
    /// The field's name in the file.
    pub field: &'static str,
    /// The value.
    pub got: String,
    /// The minimum.
    pub least: String,
    /// The maximum.
    pub most: String,
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 128 << 20,
            call_deadline: Duration::from_secs(5),
            start_deadline: Duration::from_secs(20),
            log_lines_per_second: 100,
            requests_per_second: 100,
            hostcall: 8 << 20,
            crossing: 512 << 20,
            table_elements: 100_000,
            core_instances: 200,
            tries: 6,
            loss_tries: 3,
        }
    }
}

impl Limits {
    /// Checks that every limit is within its range.
    ///
    /// # Errors
    ///
    /// For the first field that is out of its range.
    pub fn check(&self) -> Result<(), OutOfRange> {
        let Self {
            memory,
            call_deadline,
            start_deadline,
            log_lines_per_second,
            requests_per_second,
            hostcall,
            crossing,
            table_elements,
            core_instances,
            tries,
            loss_tries,
        } = self;
        bytes("memory", *memory, 64 << 10, 4 << 30)?;
        duration("callDeadline", *call_deadline)?;
        duration("startDeadline", *start_deadline)?;
        count("logLinesPerSecond", *log_lines_per_second, 0, 100_000)?;
        count("requestsPerSecond", *requests_per_second, 1, 10_000)?;
        bytes("hostcall", *hostcall, 64 << 10, 64 << 20)?;
        bytes("crossing", *crossing, 64 << 10, 64 << 30)?;
        count("tableElements", *table_elements, 1, 10_000_000)?;
        count("coreInstances", *core_instances, 1, 10_000)?;
        count("tries", *tries, 1, 1_000)?;
        count("lossTries", *loss_tries, 1, 1_000)
    }
}

fn bytes(field: &'static str, got: u64, least: u64, most: u64) -> Result<(), OutOfRange> {
    within(field, got, least, most, units::show_bytes)
}

fn duration(field: &'static str, got: Duration) -> Result<(), OutOfRange> {
    within(field, got, Duration::from_millis(1), Duration::from_secs(600), units::show_duration)
}

fn count(field: &'static str, got: u32, least: u32, most: u32) -> Result<(), OutOfRange> {
    within(field, got, least, most, |n| n.to_string())
}

fn within<T: PartialOrd + Copy>(
    field: &'static str,
    got: T,
    least: T,
    most: T,
    show: impl Fn(T) -> String,
) -> Result<(), OutOfRange> {
    if got >= least && got <= most {
        return Ok(());
    }
    Err(OutOfRange { field, got: show(got), least: show(least), most: show(most) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<Limits, String> {
        serde_json::from_str(json).map_err(|e| e.to_string())
    }

    #[test]
    fn sizes_and_durations_have_units() {
        let limits = parse(r#"{"memory":"64Mi","callDeadline":"500ms","hostcall":1048576}"#).unwrap();
        assert_eq!(limits.memory, 64 << 20);
        assert_eq!(limits.call_deadline, Duration::from_millis(500));
        assert_eq!(limits.hostcall, 1 << 20);
        assert_eq!(limits.start_deadline, Limits::default().start_deadline);
    }

    #[test]
    fn written_limits_can_be_read() {
        let limits = Limits { memory: 1000, call_deadline: Duration::from_millis(1500), ..Limits::default() };
        let text = serde_json::to_string(&limits).unwrap();
        assert_eq!(parse(&text).unwrap(), limits, "{text}");
    }

    #[test]
    fn unknown_keys_and_units_are_named() {
        let error = parse(r#"{"ram":"64Mi"}"#).unwrap_err();
        assert!(
            error.starts_with("unknown field `ram`, expected one of `memory`, `callDeadline`"),
            "{error}"
        );
        let error = parse(r#"{"memory":"64MB"}"#).unwrap_err();
        insta::assert_snapshot!(error, @r#"invalid value: string "64MB", expected a size in bytes such as 64Mi (units: k, M, G, Ki, Mi, Gi) at line 1 column 16"#);
        let error = parse(r#"{"callDeadline":5}"#).unwrap_err();
        insta::assert_snapshot!(error, @"invalid type: integer `5`, expected a duration such as 500ms (units: ms, s, m) at line 1 column 17");
    }

    #[test]
    fn an_error_names_the_range() {
        let limits = Limits { memory: 1, ..Limits::default() };
        insta::assert_snapshot!(limits.check().unwrap_err(), @"limits.memory: 1 is not between 64Ki and 4Gi");
        let limits = Limits { call_deadline: Duration::ZERO, ..Limits::default() };
        insta::assert_snapshot!(limits.check().unwrap_err(), @"limits.callDeadline: 0ms is not between 1ms and 10m");
        assert_eq!(Limits::default().check(), Ok(()));
    }

    /// The table of docs/limits.md has each setting, with the default and the range of the code.
    #[test]
    fn the_page_of_limits_has_every_setting_with_its_default_and_range() {
        let page = include_str!("../../../docs/limits.md");
        let separated = |number: String| {
            let digits = number.len();
            let separate = |(n, digit): (usize, char)| {
                let comma = (n > 0 && (digits - n).is_multiple_of(3)).then_some(',');
                comma.into_iter().chain([digit])
            };
            number.chars().enumerate().flat_map(separate).collect::<String>()
        };
        let shown = |text: &str| match text.parse::<u64>() {
            Ok(_) => separated(text.to_owned()),
            Err(_) => text.to_owned(),
        };
        let defaults = serde_json::to_value(Limits::default()).unwrap();
        for (name, default) in defaults.as_object().unwrap() {
            let (default, beyond) = match default {
                serde_json::Value::String(text) if text.ends_with('s') => {
                    (format!("`{text}`"), "\"100000m\"")
                }
                serde_json::Value::String(text) => (format!("`{text}`"), "\"1000000Gi\""),
                number => (separated(number.to_string()), "4294967295"),
            };
            let error = parse(&format!("{{\"{name}\":{beyond}}}")).unwrap().check().unwrap_err();
            assert_eq!(error.field, name);
            let range = format!("{} to {}", shown(&error.least), shown(&error.most));
            let row = page.lines().find(|line| line.starts_with(&format!("| `limits.{name}`: ")));
            let cells: Vec<_> = row.unwrap_or_else(|| panic!("no row of {name}")).split(" | ").collect();
            assert_eq!((cells[1], cells[2]), (&*default, &*range), "{name}");
        }
    }
}
