//! Formats the figures as a table: ours, the goals and the peers.

use super::super::table::{laid_out, shown};
use super::peers::{CLIENT_GO, TRANSPORT};
use crate::bench::figures::Figures;

/// The title, the metric and the goal of each row.
const LINES: &[(&str, &str, &str)] = &[
    (
        "events per CPU s, stream to one guest, two declared fields",
        "whole_path_events_per_cpu_second",
        "≥ 75000",
    ),
    ("  a guest that does nothing", "whole_path_events_per_cpu_second_nothing", ""),
    ("  a guest that pulls two fields", "whole_path_events_per_cpu_second_pulled", ""),
    ("  no subscription matches", "unmatched_events_per_cpu_second", ""),
    ("  share of merged notifications, declared fields", "merged_share", ""),
    (
        "CPU µs per notification above no plugin, two declared fields",
        "guest_overhead_us_per_notification",
        "≤ 2.5",
    ),
    ("  a guest that does nothing", "guest_overhead_us_per_notification_nothing", ""),
    ("  a guest that pulls two fields", "guest_overhead_us_per_notification_pulled", ""),
    ("CPU µs per skipped update, first plugin", "skipped_update_us_first_plugin", ""),
    ("CPU µs per skipped update and further plugin", "skipped_update_us_per_plugin", "≤ 0.3"),
    ("CPU µs per event and further plugin, two declared fields", "further_plugin_us_per_event", "≤ 3"),
    ("  that does nothing", "further_plugin_us_per_event_nothing", ""),
    ("cached get of one field, µs", "cached_get_field_us", "≤ 2"),
    ("  of a compressed object", "cached_get_field_us_compressed", "≤ 6"),
    ("compiled plugin on disk to Serving, ms, Rust", "load_compiled_ms_rust", "≤ 5"),
    ("  JavaScript", "load_compiled_ms_js", "≤ 10"),
    ("  Python", "load_compiled_ms_python", "≤ 25"),
    ("trap to fresh instance, ms", "replace_trapped_instance_ms_rust", "≤ 1"),
    ("KiB per further plugin", "kib_per_further_plugin", "≤ 200"),
    ("  of a component of its own", "kib_per_further_plugin_distinct", ""),
    ("KiB per idle stateless plugin", "kib_per_idle_stateless_plugin", "≤ 30"),
    ("  with an account each", "kib_per_idle_stateless_plugin_with_own_account", ""),
    ("CPU ms per s, no plugin", "idle_cpu_ms_per_s_0_plugins", ""),
    ("CPU ms per s, 100 idle plugins", "idle_cpu_ms_per_s_100_plugins", "≤ 0.5"),
    ("  with an account each", "idle_cpu_ms_per_s_100_accounts", ""),
    ("threads, 100 idle plugins", "threads_100_plugins", ""),
    ("CPU s to start 100 distinct components, cold", "start_100_distinct_cpu_s_cold", "≤ 4"),
    ("  second start", "start_100_distinct_cpu_s", "≤ 0.3"),
    ("wall s, cold", "start_100_distinct_wall_s_cold", ""),
    ("  second start", "start_100_distinct_wall_s", ""),
    ("CPU µs per event at 1,000 a second, no plugin matches", "paced_event_us_0_plugins", ""),
    ("  one plugin", "paced_event_us_1_plugins", "≤ 40"),
    ("  ten plugins", "paced_event_us_10_plugins", "≤ 60"),
    ("writes per second, 16 lanes, 5 ms each", "writes_per_second_16_lanes", "≥ 2560"),
    ("  CPU µs per write", "cpu_us_per_write_16_lanes", ""),
    ("longest pause of a swap at 5,000 events a second, ms, p50", "swap_pause_p50_ms", ""),
    ("  p99", "swap_pause_p99_ms", "≤ 20"),
    ("  longest latency without a swap, ms", "latency_longest_ms_without_swap", ""),
    ("  the same of a plugin with state, which gets every object again, p50", "swap_pause_replay_p50_ms", ""),
    ("  p99", "swap_pause_replay_p99_ms", ""),
    ("p99 of good plugins beside hostile ones, against without", "hostile_p99_ratio", "≤ 2"),
    ("  p50 ms without hostile ones", "latency_p50_ms_without_hostile", ""),
    ("  p50 ms beside hostile ones", "latency_p50_ms_beside_hostile", ""),
    ("  p99 ms without hostile ones", "latency_p99_ms_without_hostile", ""),
    ("  p99 ms beside hostile ones", "latency_p99_ms_beside_hostile", ""),
    ("MiB resident, 1 plugin working", "rss_mib_1_plugins", ""),
    ("  10", "rss_mib_10_plugins", ""),
    ("  100", "rss_mib_100_plugins", ""),
    ("  1,000", "rss_mib_1000_plugins", ""),
    ("  peak, 1 plugin", "peak_mib_1_plugins", ""),
    ("  peak, 10", "peak_mib_10_plugins", ""),
    ("  peak, 100", "peak_mib_100_plugins", ""),
    ("  peak, 1,000", "peak_mib_1000_plugins", ""),
    ("p99 ms from server to guest, 1 plugin", "latency_p99_ms_1_plugins", ""),
    ("  10", "latency_p99_ms_10_plugins", ""),
    ("  100", "latency_p99_ms_100_plugins", ""),
    ("  1,000", "latency_p99_ms_1000_plugins", ""),
    ("  p50, 1 plugin", "latency_p50_ms_1_plugins", ""),
    ("  p50, 10", "latency_p50_ms_10_plugins", ""),
    ("  p50, 100", "latency_p50_ms_100_plugins", ""),
    ("  p50, 1,000", "latency_p50_ms_1000_plugins", ""),
    ("CPU µs per notification, 1 plugin", "cpu_us_per_notification_1_plugins", ""),
    ("  10", "cpu_us_per_notification_10_plugins", ""),
    ("  100", "cpu_us_per_notification_100_plugins", ""),
    ("  1,000", "cpu_us_per_notification_1000_plugins", ""),
    ("CPU µs per event, 1 plugin", "cpu_us_per_event_1_plugins", ""),
    ("  10", "cpu_us_per_event_10_plugins", ""),
    ("  100", "cpu_us_per_event_100_plugins", ""),
    ("  1,000", "cpu_us_per_event_1000_plugins", ""),
    ("CPU s to start, 1 plugin", "start_cpu_s_1_plugins", ""),
    ("  10", "start_cpu_s_10_plugins", ""),
    ("  100", "start_cpu_s_100_plugins", ""),
    ("  1,000", "start_cpu_s_1000_plugins", ""),
    ("MiB, 100 controllers", "mib_100_controllers", ""),
    ("CPU s to sync, 100 controllers", "cpu_s_sync_100_controllers", ""),
    ("CPU s for 5,000 events, 100 controllers", "cpu_s_events_100_controllers", ""),
    ("memory of 100 controllers, client-go to ours", "memory_ratio_100_controllers", "≥ 100"),
    ("CPU of their events, client-go to ours", "cpu_ratio_100_controllers", ""),
];

/// Formats the table. Figures that were not measured are left out.
pub(super) fn of(figures: &Figures) -> String {
    let mut rows = vec![["", "goal", "ours", "client-go", "transport"].map(str::to_owned).to_vec()];
    for &(title, metric, goal) in LINES {
        let value = |subject| figures.get(subject, metric).map(shown);
        if let Some(ours) = value("oarlock") {
            let peers = [CLIENT_GO, TRANSPORT].map(|peer| value(peer).unwrap_or_default());
            rows.push([title.to_owned(), goal.to_owned(), ours].into_iter().chain(peers).collect());
        }
    }
    laid_out(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_measured_figures_are_shown() {
        let mut figures = Figures::default();
        figures.note("oarlock", "mib_100_controllers", 61.5);
        figures.note("client-go-typed-json", "mib_100_controllers", 19_000.0);
        let text = of(&figures);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(
            text.contains("MiB, 100 controllers") && text.contains("61.50") && text.contains("19000"),
            "{text}"
        );
    }
}
