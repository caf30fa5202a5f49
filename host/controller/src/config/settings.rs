//! How the host runs a plugin: the keys `concurrency`, `weight`, `instances`, `probation` and `retry` of its
//! file.

use std::time::Duration;

use oarlock_plugin::limits::units;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many instances a stateless plugin has, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "a mapping such as {idleAfter: 60s}"
)]
pub struct Instances {
    /// An instance of a stateless plugin that was not called for this long is dropped, and made again at the
    /// next event; `0s` for never. Instances of a plugin with state stay.
    #[serde(with = "units::duration")]
    #[schemars(schema_with = "units::duration::schema", extend("x-range" = or_zero("0s", &units::duration::range(TIME))))]
    pub idle_after: Duration,
    /// An instance is replaced after so many calls; 0 for never. Refused for a plugin with state.
    pub recycle_after_calls: u64,
    /// An instance is replaced after a call that leaves it with more linear memory than this; 0 for never.
    /// Refused for a plugin with state.
    #[serde(with = "units::bytes")]
    #[schemars(schema_with = "units::bytes::schema", extend("x-range" = or_zero("0", &units::bytes::range(MEMORY))))]
    pub recycle_above_memory: u64,
}

/// The time after a switch to another version in which the host may switch back by itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "a mapping such as {time: 60s, maxLosses: 3}"
)]
pub struct Probation {
    /// How long a new version is watched after the switch to it; `0s` for no probation.
    #[serde(with = "units::duration")]
    #[schemars(schema_with = "units::duration::schema", extend("x-range" = or_zero("0s", &units::duration::range(TIME))))]
    pub time: Duration,
    /// The host switches back from a version that loses more instances than this on probation: by traps,
    /// missed deadlines, exceeded memory or failed starts.
    #[schemars(range(min = 0, max = MAX_LOSSES))]
    pub max_losses: u32,
}

/// When calls that failed are made again. `limits.tries` says how often.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "a mapping such as {initialDelay: 200ms, maxDelay: 30s}"
)]
pub struct Retry {
    /// The delay after the first failure of an object or key. It doubles with each further failure in a row.
    /// An event of the object does not shorten a delay that has begun; another version of the plugin ends it.
    /// A key that is added meanwhile is reconciled at once.
    #[serde(with = "units::duration")]
    #[schemars(schema_with = "units::duration::schema", extend("x-range" = units::duration::range(DELAY)))]
    pub initial_delay: Duration,
    /// The longest delay; not less than `initialDelay`.
    #[serde(with = "units::duration")]
    #[schemars(schema_with = "units::duration::schema", extend("x-range" = units::duration::range(DELAY)))]
    pub max_delay: Duration,
    /// The time after which everything that is parked is tried once more.
    #[serde(with = "units::duration")]
    #[schemars(schema_with = "units::duration::schema", extend("x-range" = units::duration::range(PARKED)))]
    pub parked_delay: Duration,
}

/// A value outside of its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {got} is not {allowed}")]
pub(crate) struct OutOfRange {
    /// The key in the file, such as `instances.idleAfter`.
    pub key: &'static str,
    /// The value.
    pub got: String,
    /// What is allowed, such as `between 1 and 256`.
    pub allowed: String,
}

/// The most instances of one plugin.
pub(crate) const MAX_CONCURRENCY: u32 = 256;
pub(crate) const MAX_WEIGHT: u32 = 1_000;
const MAX_LOSSES: u32 = 1_000;
const TIME: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(24 * 3_600));
const DELAY: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(600));
const PARKED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(24 * 3_600));
/// The range of `instances.recycleAboveMemory`, if it is not 0.
const MEMORY: (u64, u64) = (64 << 10, 4 << 30);

/// Returns the text for a range, or zero.
fn or_zero(zero: &str, range: &str) -> String {
    format!("{zero}, or {range}")
}

pub(crate) fn default_concurrency() -> u32 {
    1
}

pub(crate) fn default_weight() -> u32 {
    100
}

/// Checks all values.
pub(super) fn check(
    concurrency: u32,
    weight: u32,
    instances: &Instances,
    probation: &Probation,
    retry: Option<&Retry>,
) -> Result<(), OutOfRange> {
    let Instances { idle_after, recycle_after_calls: _, recycle_above_memory } = instances;
    let Probation { time, max_losses } = probation;
    count("concurrency", concurrency, 1, MAX_CONCURRENCY)?;
    count("weight", weight, 1, MAX_WEIGHT)?;
    time_or_off("instances.idleAfter", *idle_after)?;
    if *recycle_above_memory != 0 && !(MEMORY.0..=MEMORY.1).contains(recycle_above_memory) {
        return Err(OutOfRange {
            key: "instances.recycleAboveMemory",
            got: units::show_bytes(*recycle_above_memory),
            allowed: format!(
                "0 (never) or between {} and {}",
                units::show_bytes(MEMORY.0),
                units::show_bytes(MEMORY.1)
            ),
        });
    }
    time_or_off("probation.time", *time)?;
    count("probation.maxLosses", *max_losses, 0, MAX_LOSSES)?;
    retry.map_or(Ok(()), Retry::check)
}

fn count(key: &'static str, got: u32, least: u32, most: u32) -> Result<(), OutOfRange> {
    if (least..=most).contains(&got) {
        return Ok(());
    }
    Err(OutOfRange { key, got: got.to_string(), allowed: format!("between {least} and {most}") })
}

fn time_or_off(key: &'static str, got: Duration) -> Result<(), OutOfRange> {
    if got.is_zero() || (TIME.0..=TIME.1).contains(&got) {
        return Ok(());
    }
    let (least, most) = (units::show_duration(TIME.0), units::show_duration(TIME.1));
    Err(OutOfRange {
        key,
        got: units::show_duration(got),
        allowed: format!("0s (off) or between {least} and {most}"),
    })
}

fn delay(key: &'static str, got: Duration, (least, most): (Duration, Duration)) -> Result<(), OutOfRange> {
    if (least..=most).contains(&got) {
        return Ok(());
    }
    let (least, most) = (units::show_duration(least), units::show_duration(most));
    Err(OutOfRange { key, got: units::show_duration(got), allowed: format!("between {least} and {most}") })
}

// === impl Instances ===

impl Default for Instances {
    fn default() -> Self {
        Self { idle_after: Duration::from_secs(60), recycle_after_calls: 0, recycle_above_memory: 0 }
    }
}

impl Instances {
    /// Returns whether instances are replaced after a number of calls or above a size.
    #[must_use]
    pub fn recycles(&self) -> bool {
        self.recycle_after_calls != 0 || self.recycle_above_memory != 0
    }
}

// === impl Probation ===

impl Default for Probation {
    fn default() -> Self {
        // One object costs `limits.lossTries` instances, 3 by default, before it is parked.
        Self { time: Duration::from_secs(60), max_losses: 2 }
    }
}

// === impl Retry ===

impl Default for Retry {
    fn default() -> Self {
        Self {
            initial_delay: Duration::from_millis(200),
            max_delay: Duration::from_secs(30),
            parked_delay: Duration::from_secs(300),
        }
    }
}

impl Retry {
    fn check(&self) -> Result<(), OutOfRange> {
        let Self { initial_delay, max_delay, parked_delay } = self;
        delay("retry.initialDelay", *initial_delay, DELAY)?;
        delay("retry.maxDelay", *max_delay, DELAY)?;
        if max_delay < initial_delay {
            return Err(OutOfRange {
                key: "retry.maxDelay",
                got: units::show_duration(*max_delay),
                allowed: format!("at least `retry.initialDelay`, {}", units::show_duration(*initial_delay)),
            });
        }
        delay("retry.parkedDelay", *parked_delay, PARKED)
    }
}
