//! The rows of `oarlock top`: what each plugin used between two samples, as a table and as JSON.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::args::SortBy;
use crate::table::Table;
use crate::view::{PluginView, PluginsView, UsageView, WriteCount, bytes, short};

/// What one plugin used between two samples.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) name: String,
    /// CPU time per time: 1 is one core.
    guest_cores: f64,
    host_cores: f64,
    pub(super) calls: f64,
    /// The time of all calls, and of the waits for imports within them, per time.
    call_wall: f64,
    import_wait: f64,
    p99: Option<Duration>,
    queue_p99: Option<Duration>,
    memory: u64,
    backlog: u64,
    oldest: Duration,
    /// Keys that wait for their time.
    delayed: u64,
    cache_reads: f64,
    requests: f64,
    writes: f64,
    /// Since the plugin was loaded, with the rate of each.
    writes_by_code: Vec<(WriteCount, f64)>,
    bytes_to_guest: f64,
    bytes_from_guest: f64,
    instances: u64,
    /// Since the plugin was loaded.
    errors: u64,
    restarts: u64,
}

/// Returns what each plugin used between two samples.
pub(super) fn rows(before: &PluginsView, now: &PluginsView) -> Vec<Row> {
    let seconds = (now.sampled_us.saturating_sub(before.sampled_us).max(1)) as f64 / 1e6;
    let before: HashMap<&str, &PluginView> = before.plugins.iter().map(|it| (it.name.as_str(), it)).collect();
    let none = UsageView::default();
    let row = |plugin: &PluginView| {
        // A plugin that was loaded meanwhile has used all of it since.
        let was = before.get(plugin.name.as_str()).map_or(&none, |it| &it.usage);
        Row::new(plugin, was, seconds)
    };
    now.plugins.iter().map(row).collect()
}

/// Compares by a column, the larger one is the greater.
pub(super) fn compare(a: &Row, b: &Row, by: SortBy) -> Ordering {
    match by {
        SortBy::Cpu => a.cores().total_cmp(&b.cores()),
        SortBy::Calls => a.calls.total_cmp(&b.calls),
        SortBy::P99 => a.p99.cmp(&b.p99),
        SortBy::Memory => a.memory.cmp(&b.memory),
        SortBy::Backlog => a.backlog.cmp(&b.backlog).then(a.oldest.cmp(&b.oldest)),
        SortBy::Errors => a.errors.cmp(&b.errors),
    }
}

/// Returns the table of the rows.
pub(super) fn table(rows: &[Row], is_wide: bool) -> Table {
    let mut headers = vec![
        "NAME",
        "CPU(cores)",
        "CALLS/S",
        "P99",
        "MEMORY",
        "BACKLOG",
        "OLDEST",
        "READS/S",
        "WRITES/S",
        "ERRORS",
        "RESTARTS",
    ];
    if is_wide {
        headers.extend([
            "GUEST",
            "HOST",
            "WAIT-P99",
            "REQUESTS/S",
            "IN/S",
            "OUT/S",
            "INSTANCES",
            "DELAYED",
            "WALL/S",
            "IMPORT-WAIT/S",
            "WRITES",
        ]);
    }
    let mut table = Table::new(&headers);
    for row in rows {
        let mut cells = vec![
            row.name.clone(),
            cores(row.cores()),
            rate(row.calls),
            row.p99.map_or_else(|| "-".to_owned(), short),
            bytes(row.memory),
            row.backlog.to_string(),
            if row.backlog == 0 { "-".to_owned() } else { short(row.oldest) },
            rate(row.cache_reads),
            rate(row.writes),
            row.errors.to_string(),
            row.restarts.to_string(),
        ];
        if is_wide {
            cells.extend([
                cores(row.guest_cores),
                cores(row.host_cores),
                row.queue_p99.map_or_else(|| "-".to_owned(), short),
                rate(row.requests),
                bytes(row.bytes_to_guest as u64),
                bytes(row.bytes_from_guest as u64),
                row.instances.to_string(),
                row.delayed.to_string(),
                per_second(row.call_wall),
                per_second(row.import_wait),
                row.n_writes().to_string(),
            ]);
        }
        table.row(cells);
    }
    table
}

/// Shows cores as kubectl does, in thousandths.
pub(super) fn cores(cores: f64) -> String {
    let milli = cores * 1e3;
    if milli == 0.0 || milli >= 10.0 { format!("{milli:.0}m") } else { format!("{milli:.1}m") }
}

/// Shows a number per second.
pub(super) fn rate(rate: f64) -> String {
    if rate == 0.0 || rate >= 10.0 { format!("{rate:.0}") } else { format!("{rate:.1}") }
}

/// Shows a time per second.
fn per_second(seconds: f64) -> String {
    short(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

// === impl Row ===

impl Row {
    fn new(plugin: &PluginView, before: &UsageView, seconds: f64) -> Self {
        let now = &plugin.usage;
        let with_rate = |it: &WriteCount| {
            let was = before.writes.iter().find(|was| (&was.verb, &was.code) == (&it.verb, &it.code));
            let since = it.count.saturating_sub(was.map_or(0, |was| was.count));
            (it.clone(), since as f64 / seconds)
        };
        let rate = |of: fn(&UsageView) -> u64| of(now).saturating_sub(of(before)) as f64 / seconds;
        let writes = |it: &UsageView| it.writes.iter().map(|WriteCount { count, .. }| count).sum();
        Self {
            name: plugin.name.clone(),
            guest_cores: rate(|it| it.guest_cpu_ns) / 1e9,
            host_cores: rate(|it| it.host_cpu_ns) / 1e9,
            calls: rate(|it| it.calls),
            call_wall: rate(|it| it.call_wall_ns) / 1e9,
            import_wait: rate(|it| it.import_wait_ns) / 1e9,
            p99: now.call_duration.since(&before.call_duration).p99(),
            queue_p99: now.queue_duration.since(&before.queue_duration).p99(),
            memory: plugin.memory(),
            backlog: plugin.backlog(),
            oldest: plugin.oldest(),
            delayed: plugin.n_delayed(),
            cache_reads: rate(|it| it.cache_reads),
            requests: rate(|it| it.requests),
            writes: rate(writes),
            writes_by_code: now.writes.iter().map(with_rate).collect(),
            bytes_to_guest: rate(|it| it.bytes_to_guest),
            bytes_from_guest: rate(|it| it.bytes_from_guest),
            instances: now.instances,
            errors: now.failures,
            restarts: now.restarts,
        }
    }

    /// Returns the CPU time per time of guest and host.
    pub(super) fn cores(&self) -> f64 {
        self.guest_cores + self.host_cores
    }

    /// Returns how many writes the plugin has made since it was loaded.
    fn n_writes(&self) -> u64 {
        self.writes_by_code.iter().map(|(it, _)| it.count).sum()
    }

    /// Returns the row as JSON.
    pub(super) fn json(&self) -> Value {
        let seconds = |it: Option<Duration>| it.map(|it| it.as_secs_f64());
        let write = |(write, per_second): &(WriteCount, f64)| {
            let WriteCount { verb, code, count } = write;
            json!({"verb": verb, "code": code, "count": count, "per-second": per_second})
        };
        let writes_by_code: Vec<_> = self.writes_by_code.iter().map(write).collect();
        json!({
            "name": self.name,
            "cpu-cores": self.cores(),
            "guest-cpu-cores": self.guest_cores,
            "host-cpu-cores": self.host_cores,
            "calls-per-second": self.calls,
            "call-wall-seconds-per-second": self.call_wall,
            "import-wait-seconds-per-second": self.import_wait,
            "call-p99-seconds": seconds(self.p99),
            "queue-wait-p99-seconds": seconds(self.queue_p99),
            "memory-bytes": self.memory,
            "backlog": self.backlog,
            "backlog-oldest-seconds": self.oldest.as_secs_f64(),
            "delayed-keys": self.delayed,
            "cache-reads-per-second": self.cache_reads,
            "requests-per-second": self.requests,
            "writes-per-second": self.writes,
            "writes": self.n_writes(),
            "writes-by-code": writes_by_code,
            "bytes-to-guest-per-second": self.bytes_to_guest,
            "bytes-from-guest-per-second": self.bytes_from_guest,
            "instances": self.instances,
            "errors": self.errors,
            "restarts": self.restarts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{Durations, HostBytesView, QueueView};

    fn sampled(sampled_us: u64, plugins: &[(&str, u64, u64)]) -> PluginsView {
        let plugin = |&(name, calls, cpu_ms): &(&str, u64, u64)| PluginView {
            name: name.to_owned(),
            usage: UsageView {
                calls,
                guest_cpu_ns: cpu_ms * 1_000_000,
                call_duration: Durations(vec![(50_000, calls)]),
                linear_memory_bytes: 1 << 20,
                ..UsageView::default()
            },
            ..PluginView::default()
        };
        PluginsView { sampled_us, plugins: plugins.iter().map(plugin).collect(), ..PluginsView::default() }
    }

    #[test]
    fn rates_are_of_the_time_between_the_samples() {
        let before = sampled(1_000_000, &[("a", 10, 5), ("b", 0, 0)]);
        let now = sampled(3_000_000, &[("a", 2_010, 25), ("b", 0, 0), ("c", 4, 2_400)]);
        let mut rows = rows(&before, &now);
        rows.sort_by(|a, b| compare(b, a, SortBy::Cpu));
        insta::assert_snapshot!(table(&rows, false).text(true), @"
        NAME   CPU(cores)   CALLS/S   P99    MEMORY   BACKLOG   OLDEST   READS/S   WRITES/S   ERRORS   RESTARTS
        c      1200m        2.0       50µs   1Mi      0         -        0         0          0        0
        a      10m          1000      50µs   1Mi      0         -        0         0          0        0
        b      0m           0         -      1Mi      0         -        0         0          0        0
        ");
        rows.sort_by(|a, b| compare(b, a, SortBy::Calls));
        assert_eq!(rows[0].name, "a");
        assert_eq!(rows[0].json()["calls-per-second"], 1000.0);
        assert_eq!(
            super::super::head(&rows, SortBy::Calls),
            "3 plugins, 1210m CPU, 1002 calls/s, sorted by calls, Ctrl-C ends"
        );
    }

    #[test]
    fn a_row_accounts_for_times_writes_and_keys() {
        let write = |code: &str, count: u64| WriteCount { verb: "apply".into(), code: code.into(), count };
        let view = |sampled_us: u64, call_wall_ms: u64, writes: Vec<WriteCount>| {
            let usage = UsageView {
                call_wall_ns: call_wall_ms * 1_000_000,
                import_wait_ns: call_wall_ms * 250_000,
                writes,
                instances: 2,
                ..UsageView::default()
            };
            let queue = QueueView {
                pending: 1_003,
                ready: Some(3),
                delayed: 1_000,
                oldest_ms: 400_000,
                ..QueueView::default()
            };
            let plugin = PluginView {
                name: "a".to_owned(),
                usage,
                work_queue: Some(queue),
                host_bytes: HostBytesView { used: 2_048, limit: 0 },
                ..PluginView::default()
            };
            PluginsView { sampled_us, plugins: vec![plugin], ..PluginsView::default() }
        };
        let before = view(1_000_000, 500, vec![write("200", 5)]);
        let now = view(3_000_000, 3_500, vec![write("200", 9), write("409", 1)]);
        let rows = rows(&before, &now);
        insta::assert_snapshot!(table(&rows, true).text(true), @"
        NAME   CPU(cores)   CALLS/S   P99   MEMORY   BACKLOG   OLDEST   READS/S   WRITES/S   ERRORS   RESTARTS   GUEST   HOST   WAIT-P99   REQUESTS/S   IN/S   OUT/S   INSTANCES   DELAYED   WALL/S   IMPORT-WAIT/S   WRITES
        a      0m           0         -     2Ki      3         6m40s    0         2.5        0        0          0m      0m     -          0            0      0       2           1000      1.5s     375ms           10
        ");
        let json = rows[0].json();
        let of = |field: &str| json[field].clone();
        assert_eq!(of("call-wall-seconds-per-second"), 1.5);
        assert_eq!(of("import-wait-seconds-per-second"), 0.375);
        assert_eq!((of("backlog"), of("delayed-keys")), (3.into(), 1_000.into()));
        assert_eq!((of("writes"), of("writes-per-second")), (10.into(), 2.5.into()));
        assert_eq!(
            of("writes-by-code"),
            json!([
                {"verb": "apply", "code": "200", "count": 9, "per-second": 2.0},
                {"verb": "apply", "code": "409", "count": 1, "per-second": 0.5},
            ])
        );
    }
}
