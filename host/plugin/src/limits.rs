//! The limits of one plugin, with units such as `64Mi` and `500ms`.

pub mod units;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The limits of one plugin: the value of `limits` in its file.
///
/// Every field has a default. An unknown field is an error. The units of sizes are `Ki`, `Mi`, `Gi`, `k`,
/// `M`, `G`, those of durations `ms`, `s`, `m`. Call [`Limits::check`] after reading a file: it knows the
/// range of each field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "a mapping such as {memory: 64Mi}"
)]
pub struct Limits {
    /// The linear memory of one instance, all its memories together.
    #[serde(with = "units::bytes")]
    #[schemars(schema_with = "units::bytes::schema", extend("x-range" = units::bytes::range(MEMORY)))]
    pub memory: u64,
    /// The maximum time of one call, including waits for the host, but not for other guests.
    #[serde(with = "units::duration")]
    #[schemars(schema_with = "units::duration::schema", extend("x-range" = units::duration::range(DEADLINE)))]
    pub call_deadline: Duration,
    /// The maximum time of an instance's start, and of `describe`.
    #[serde(with = "units::duration")]
    #[schemars(schema_with = "units::duration::schema", extend("x-range" = units::duration::range(DEADLINE)))]
    pub start_deadline: Duration,
    /// Log lines per second, and the maximum burst.
    #[schemars(range(min = LOG_LINES.0, max = LOG_LINES.1))]
    pub log_lines_per_second: u32,
    /// Requests to the API server per second, Events included; twice as many at once.
    #[schemars(range(min = REQUESTS.0, max = REQUESTS.1))]
    pub requests_per_second: u32,
    /// Bytes that the guest may pass to the host in one call of either direction.
    #[serde(with = "units::bytes")]
    #[schemars(schema_with = "units::bytes::schema", extend("x-range" = units::bytes::range(HOSTCALL)))]
    pub hostcall: u64,
    /// Bytes of the arguments and answers of imports during one call of the plugin. Beyond it, imports
    /// return `limit-exceeded`.
    #[serde(with = "units::bytes")]
    #[schemars(schema_with = "units::bytes::schema", extend("x-range" = units::bytes::range(CROSSING)))]
    pub crossing: u64,
    /// Elements of all tables of one instance together.
    #[schemars(range(min = TABLE_ELEMENTS.0, max = TABLE_ELEMENTS.1))]
    pub table_elements: u32,
    /// Core instances in one instance of the component.
    #[schemars(range(min = CORE_INSTANCES.0, max = CORE_INSTANCES.1))]
    pub core_instances: u32,
    /// The number of calls for one object or key that return a failure until it is parked.
    #[schemars(range(min = TRIES.0, max = TRIES.1))]
    pub tries: u32,
    /// The number of calls for one object or key that end the instance (a trap, the deadline, the memory
    /// limit) until it is parked.
    #[schemars(range(min = TRIES.0, max = TRIES.1))]
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

/// A limit above the maximum of the host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("limits.{field}: {got} is above {most}")]
pub struct AboveMaximum {
    /// The field's name in the file.
    pub field: &'static str,
    /// The value.
    pub got: String,
    /// The maximum.
    pub most: String,
}

// The least and the most of each limit.
const MEMORY: (u64, u64) = (64 << 10, 4 << 30);
const DEADLINE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(600));
const LOG_LINES: (u32, u32) = (0, 100_000);
const REQUESTS: (u32, u32) = (1, 10_000);
const HOSTCALL: (u64, u64) = (64 << 10, 64 << 20);
const CROSSING: (u64, u64) = (64 << 10, 64 << 30);
const TABLE_ELEMENTS: (u32, u32) = (1, 10_000_000);
const CORE_INSTANCES: (u32, u32) = (1, 10_000);
const TRIES: (u32, u32) = (1, 1_000);

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
        within("memory", *memory, MEMORY, units::show_bytes)?;
        within("callDeadline", *call_deadline, DEADLINE, units::show_duration)?;
        within("startDeadline", *start_deadline, DEADLINE, units::show_duration)?;
        count("logLinesPerSecond", *log_lines_per_second, LOG_LINES)?;
        count("requestsPerSecond", *requests_per_second, REQUESTS)?;
        within("hostcall", *hostcall, HOSTCALL, units::show_bytes)?;
        within("crossing", *crossing, CROSSING, units::show_bytes)?;
        count("tableElements", *table_elements, TABLE_ELEMENTS)?;
        count("coreInstances", *core_instances, CORE_INSTANCES)?;
        count("tries", *tries, TRIES)?;
        count("lossTries", *loss_tries, TRIES)
    }

    /// Bounds every limit by `max`: one that `is_set` is checked, any other is lowered.
    ///
    /// # Errors
    ///
    /// For the first field that is set and above its maximum.
    pub fn bound(&mut self, max: &Self, is_set: impl Fn(&str) -> bool) -> Result<(), AboveMaximum> {
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
        let set = &is_set;
        let count = |n: u32| n.to_string();
        bound("memory", memory, max.memory, set, units::show_bytes)?;
        bound("callDeadline", call_deadline, max.call_deadline, set, units::show_duration)?;
        bound("startDeadline", start_deadline, max.start_deadline, set, units::show_duration)?;
        bound("logLinesPerSecond", log_lines_per_second, max.log_lines_per_second, set, count)?;
        bound("requestsPerSecond", requests_per_second, max.requests_per_second, set, count)?;
        bound("hostcall", hostcall, max.hostcall, set, units::show_bytes)?;
        bound("crossing", crossing, max.crossing, set, units::show_bytes)?;
        bound("tableElements", table_elements, max.table_elements, set, count)?;
        bound("coreInstances", core_instances, max.core_instances, set, count)?;
        bound("tries", tries, max.tries, set, count)?;
        bound("lossTries", loss_tries, max.loss_tries, set, count)
    }

    /// Returns the highest limits that [`Limits::check`] accepts.
    #[must_use]
    pub fn highest() -> Self {
        Self {
            memory: MEMORY.1,
            call_deadline: DEADLINE.1,
            start_deadline: DEADLINE.1,
            log_lines_per_second: LOG_LINES.1,
            requests_per_second: REQUESTS.1,
            hostcall: HOSTCALL.1,
            crossing: CROSSING.1,
            table_elements: TABLE_ELEMENTS.1,
            core_instances: CORE_INSTANCES.1,
            tries: TRIES.1,
            loss_tries: TRIES.1,
        }
    }
}

fn bound<T: PartialOrd + Copy>(
    field: &'static str,
    value: &mut T,
    max: T,
    is_set: impl Fn(&str) -> bool,
    show: impl Fn(T) -> String,
) -> Result<(), AboveMaximum> {
    if *value <= max {
        return Ok(());
    }
    if is_set(field) {
        return Err(AboveMaximum { field, got: show(*value), most: show(max) });
    }
    *value = max;
    Ok(())
}

fn count(field: &'static str, got: u32, range: (u32, u32)) -> Result<(), OutOfRange> {
    within(field, got, range, |n| n.to_string())
}

fn within<T: PartialOrd + Copy>(
    field: &'static str,
    got: T,
    (least, most): (T, T),
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
    fn a_maximum_refuses_what_is_set_and_lowers_defaults() {
        let max = Limits { memory: 64 << 20, tries: 5, ..Limits::highest() };
        let mut limits = Limits::default();
        limits.bound(&max, |_| false).unwrap();
        assert_eq!(limits, Limits { memory: 64 << 20, tries: 5, ..Limits::default() });
        let refused = Limits::default().bound(&max, |field| field == "tries").unwrap_err();
        assert_eq!(refused.to_string(), "limits.tries: 6 is above 5");
        assert_eq!(Limits::highest().check(), Ok(()));
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
