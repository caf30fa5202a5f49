//! A host's answers, as far as the commands show them. Fields that a host of another version lacks are empty.

use std::collections::BTreeMap;
use std::time::Duration;

use oarlock_controller::report::Timestamp;
use serde::Deserialize;

use crate::age::Age;

/// `/v1/plugins`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct PluginsView {
    /// When the host began.
    pub(crate) started: Option<Timestamp>,
    /// The host's clock, in microseconds.
    pub(crate) sampled_us: u64,
    pub(crate) plugins: Vec<PluginView>,
    pub(crate) refused_files: Vec<RefusedFile>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct RefusedFile {
    pub(crate) file: String,
    pub(crate) message: String,
}

/// `/v1/plugins/NAME`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct PluginView {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) component: String,
    pub(crate) service_account: String,
    pub(crate) phase: String,
    pub(crate) generation: u64,
    pub(crate) version: Option<String>,
    pub(crate) digest: Option<String>,
    /// Empty for a host of an earlier version.
    pub(crate) writes: String,
    pub(crate) generations: Vec<GenerationView>,
    pub(crate) waits_for: Vec<String>,
    pub(crate) subscriptions: Vec<SubscriptionView>,
    pub(crate) work_queue: Option<QueueView>,
    pub(crate) host_bytes: HostBytesView,
    pub(crate) record: Option<RecordView>,
    /// The comparison with its shadow, while one runs.
    pub(crate) shadow: Option<ShadowView>,
    pub(crate) instances_lost: u64,
    pub(crate) last_error: Option<RecordedError>,
    pub(crate) refused: Option<RecordedError>,
    pub(crate) usage: UsageView,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct GenerationView {
    pub(crate) number: u64,
    pub(crate) version: Option<String>,
    pub(crate) digest: Option<String>,
    pub(crate) state: String,
    pub(crate) reason: String,
    pub(crate) since: Option<Timestamp>,
    pub(crate) instances_lost: u64,
    pub(crate) on_probation: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct SubscriptionView {
    pub(crate) name: String,
    pub(crate) resource: String,
    pub(crate) namespaces: Option<Vec<String>>,
    pub(crate) forbidden: Option<String>,
    /// None from a host of an earlier version, for which such a subscription is forbidden.
    pub(crate) paused: Option<String>,
    pub(crate) synced: bool,
    pub(crate) backlog: BacklogView,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct BacklogView {
    pub(crate) pending: u64,
    pub(crate) parked: u64,
    pub(crate) delivered: u64,
    pub(crate) merged: u64,
    pub(crate) oldest_ms: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct QueueView {
    /// Keys that are ready or delayed.
    pub(crate) pending: u64,
    /// Keys that are ready. None from a host that does not tell them from delayed ones.
    pub(crate) ready: Option<u64>,
    pub(crate) delayed: u64,
    pub(crate) parked: u64,
    pub(crate) oldest_ms: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct HostBytesView {
    pub(crate) limit: u64,
    pub(crate) used: u64,
}

/// The record of a plugin's calls.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RecordView {
    pub(crate) file: String,
    pub(crate) bytes: u64,
    pub(crate) limit: u64,
    pub(crate) calls: u64,
    pub(crate) lost: u64,
    /// Whether it has values of Secrets.
    pub(crate) exact: bool,
    pub(crate) state: String,
    /// Why it has failed.
    pub(crate) reason: Option<String>,
}

/// The writes of a plugin, compared with those of its shadow.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct ShadowView {
    pub(crate) digest: String,
    pub(crate) compared: u64,
    pub(crate) equal: u64,
    pub(crate) different: u64,
    pub(crate) only_serving: u64,
    pub(crate) only_shadow: u64,
    pub(crate) waiting: u64,
    pub(crate) left_out: u64,
    pub(crate) differences: Vec<WriteDifference>,
}

/// A place where two writes differ, with a hash of the value of each side.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WriteDifference {
    pub(crate) verb: String,
    pub(crate) object: String,
    pub(crate) path: String,
    pub(crate) serving: Option<String>,
    pub(crate) shadow: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct RecordedError {
    pub(crate) time: Timestamp,
    pub(crate) message: String,
}

/// Counters since the plugin was loaded first.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct UsageView {
    pub(crate) guest_cpu_ns: u64,
    pub(crate) host_cpu_ns: u64,
    pub(crate) call_wall_ns: u64,
    pub(crate) import_wait_ns: u64,
    pub(crate) calls: u64,
    pub(crate) bytes_to_guest: u64,
    pub(crate) bytes_from_guest: u64,
    pub(crate) cache_reads: u64,
    pub(crate) requests: u64,
    pub(crate) instances: u64,
    pub(crate) linear_memory_bytes: u64,
    pub(crate) failures: u64,
    pub(crate) restarts: u64,
    pub(crate) call_duration: Durations,
    pub(crate) queue_duration: Durations,
    pub(crate) writes: Vec<WriteCount>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WriteCount {
    pub(crate) verb: String,
    pub(crate) code: String,
    pub(crate) count: u64,
}

/// A histogram: upper bounds in nanoseconds (0 for the last bucket) and counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Durations(pub(crate) Vec<(u64, u64)>);

/// `/v1/parked`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ParkedView {
    pub(crate) parked: Vec<ParkedOf>,
    pub(crate) total: u64,
    pub(crate) unanswered: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ParkedOf {
    pub(crate) plugin: String,
    pub(crate) subscription: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) tries: u32,
    pub(crate) since: Timestamp,
    pub(crate) reason: String,
    pub(crate) last_error: String,
}

// === impl PluginView ===

impl PluginView {
    pub(crate) fn n_parked(&self) -> u64 {
        let objects: u64 = self.subscriptions.iter().map(|it| it.backlog.parked).sum();
        objects + self.work_queue.as_ref().map_or(0, |queue| queue.parked)
    }

    /// Returns how many notifications and keys wait for a call that is due.
    pub(crate) fn backlog(&self) -> u64 {
        let notifications: u64 = self.subscriptions.iter().map(|it| it.backlog.pending).sum();
        notifications + self.work_queue.as_ref().map_or(0, QueueView::n_ready)
    }

    /// Returns how many keys wait for their time.
    pub(crate) fn n_delayed(&self) -> u64 {
        self.work_queue.as_ref().map_or(0, |queue| queue.delayed)
    }

    /// Returns the age of the oldest notification or key that waits.
    pub(crate) fn oldest(&self) -> Duration {
        let notifications = self.subscriptions.iter().map(|it| it.backlog.oldest_ms);
        let keys = self.work_queue.iter().map(|queue| queue.oldest_ms);
        Duration::from_millis(notifications.chain(keys).max().unwrap_or(0))
    }

    /// Returns the linear memory of its instances, and the bytes that the host keeps for it.
    pub(crate) fn memory(&self) -> u64 {
        self.usage.linear_memory_bytes + self.host_bytes.used
    }

    /// Returns how long the generation that serves has been serving.
    pub(crate) fn age(&self) -> Option<Age> {
        let serving = self.generations.iter().find(|it| it.number == self.generation)?;
        Some(Age(serving.since?.elapsed()))
    }
}

// === impl QueueView ===

impl QueueView {
    /// Returns how many keys wait and are due.
    pub(crate) fn n_ready(&self) -> u64 {
        self.ready.unwrap_or(self.pending)
    }
}

// === impl Durations ===

impl Durations {
    /// Returns the durations that were counted since an earlier state.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let before: BTreeMap<u64, u64> = before.0.iter().copied().collect();
        let counted = |&(bound, n): &(u64, u64)| {
            let n = n.saturating_sub(before.get(&bound).copied().unwrap_or(0));
            (n > 0).then_some((bound, n))
        };
        Self(self.0.iter().filter_map(counted).collect())
    }

    /// Returns the duration that 99 of 100 do not exceed: the upper bound of its bucket. None if nothing was
    /// counted.
    pub(crate) fn p99(&self) -> Option<Duration> {
        let total: u64 = self.0.iter().map(|(_, n)| n).sum();
        let rank = total - total / 100;
        let mut n_below = 0;
        let reached = self.0.iter().find(|(_, n)| {
            n_below += n;
            n_below >= rank
        });
        match reached?.0 {
            // The last bucket has no bound; it begins at half an hour.
            0 => Some(Duration::from_secs(1_800)),
            bound => Some(Duration::from_nanos(bound)),
        }
    }
}

/// Shows a duration in three digits.
pub(crate) fn short(duration: Duration) -> String {
    let us = duration.as_micros();
    match us {
        0..1_000 => format!("{us}µs"),
        1_000..10_000 => format!("{:.1}ms", us as f64 / 1e3),
        10_000..1_000_000 => format!("{}ms", us / 1_000),
        1_000_000..10_000_000 => format!("{:.1}s", us as f64 / 1e6),
        _ => Age(duration).to_string(),
    }
}

/// Shows a number of bytes as kubectl does.
pub(crate) fn bytes(n: u64) -> String {
    match n {
        0..1_024 => format!("{n}"),
        1_024..1_048_576 => format!("{}Ki", n >> 10),
        1_048_576..10_737_418_240 => format!("{}Mi", n >> 20),
        _ => format!("{}Gi", n >> 30),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_p99_is_of_what_was_counted_between_two_samples() {
        let before = Durations(vec![(1_000, 500), (2_000, 7)]);
        let after = Durations(vec![(1_000, 598), (2_000, 7), (5_000, 1), (0, 1)]);
        assert_eq!(after.since(&before), Durations(vec![(1_000, 98), (5_000, 1), (0, 1)]));
        assert_eq!(after.since(&before).p99(), Some(Duration::from_nanos(5_000)));
        assert_eq!(Durations(vec![(3_000, 1)]).p99(), Some(Duration::from_nanos(3_000)));
        assert_eq!(after.since(&after).p99(), None);
    }

    #[test]
    fn the_age_of_a_backlog_is_that_of_its_oldest_notification_or_key() {
        let oldest = |json: serde_json::Value| serde_json::from_value::<PluginView>(json).unwrap().oldest();
        let notifications = serde_json::json!([
            {"backlog": {"pending": 1, "oldest-ms": 1_500}},
            {"backlog": {"pending": 1, "oldest-ms": 500}},
        ]);
        let key = serde_json::json!({"pending": 1, "oldest-ms": 400_000});
        let none = serde_json::json!({});
        assert_eq!(oldest(none), Duration::ZERO);
        assert_eq!(oldest(serde_json::json!({"subscriptions": notifications})), Duration::from_millis(1_500));
        assert_eq!(
            oldest(serde_json::json!({"subscriptions": notifications, "work-queue": key})),
            Duration::from_secs(400)
        );
    }

    #[test]
    fn keys_that_wait_for_their_time_are_no_backlog() {
        let counts = |queue: serde_json::Value| {
            let json =
                serde_json::json!({"subscriptions": [{"backlog": {"pending": 3}}], "work-queue": queue});
            let plugin: PluginView = serde_json::from_value(json).unwrap();
            (plugin.backlog(), plugin.n_delayed())
        };
        assert_eq!(
            counts(serde_json::json!({"pending": 10_002, "ready": 2, "delayed": 10_000})),
            (5, 10_000)
        );
        // An older host.
        assert_eq!(counts(serde_json::json!({"pending": 4})), (7, 0));
        assert_eq!(counts(serde_json::Value::Null), (3, 0));
    }

    #[test]
    fn numbers_are_short() {
        let shown = [7, 999, 1_250, 56_000, 1_200_000, 20_000_000, 400_000_000];
        let shown = shown.map(|us| short(Duration::from_micros(us)));
        assert_eq!(shown, ["7µs", "999µs", "1.2ms", "56ms", "1.2s", "20s", "6m40s"]);
        assert_eq!([0, 2_048, 5 << 20, 20 << 30].map(bytes), ["0", "2Ki", "5Mi", "20Gi"]);
    }
}
