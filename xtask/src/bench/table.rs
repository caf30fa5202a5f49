//! Formats the figures as a table: ours, the goals and the peers, then the ratios.

use super::figures::Figures;

/// The columns after the goal.
const COLUMNS: [(&str, &str); 6] = [
    ("ours", "oarlock"),
    ("client-go JSON", "client-go-typed-json"),
    ("client-go protobuf", "client-go-typed-protobuf"),
    ("client-go dynamic", "client-go-dynamic"),
    ("kube-rs typed", "kube-rs-typed"),
    ("kube-rs dynamic", "kube-rs-dynamic"),
];

/// The title, the metric and the goal of each row.
const LINES: [(&str, &str, &str); 28] = [
    ("bytes per Pod, 10,000, after the events", "bytes_per_object", "≤ 1200"),
    ("the same before the events", "bytes_per_object_before_events", "≤ 1200"),
    ("the same, real API server", "bytes_per_object_real_api_server", "≤ 1200"),
    ("the same with managedFields", "bytes_per_object_with_managed_fields", "≤ 1600"),
    ("peak bytes per Pod while syncing", "peak_bytes_per_object", "≤ 2000"),
    ("CPU s to sync 10,000 Pods", "sync_cpu_seconds", "≤ 0.40"),
    ("events per CPU s, 1 handler", "events_per_cpu_second", "≥ 100000"),
    ("  CPU s of it to catch up", "catching_up_cpu_seconds", ""),
    ("events per CPU s, 10 handlers", "events_per_cpu_second_10_handlers", "≥ 95000"),
    ("events per CPU s, metadata only", "metadata_events_per_cpu_second", "≥ 150000"),
    ("bytes per Pod, metadata only", "metadata_bytes_per_object", ""),
    ("get by key, ns", "get_by_key_ns", "≤ 500"),
    ("get by key and read the body, ns", "get_by_key_ns_per_body", "≤ 5000"),
    ("by index of 50, ns", "by_index_of_50_ns", "≤ 500"),
    ("by index of 50, each reference counted, ns", "by_index_of_50_collected_ns", ""),
    ("by index of 50 and read the bodies, ns a body", "by_index_of_50_ns_per_body", "≤ 5000"),
    ("bytes per Pod, 100,000", "bytes_per_object_100000_pods", "≤ 900"),
    ("peak bytes per Pod while syncing, 100,000", "peak_bytes_per_object_100000_pods", "≤ 2000"),
    ("CPU s to sync 100,000 Pods", "sync_cpu_seconds_100000_pods", ""),
    ("get by key and read the body, ns, 100,000", "get_by_key_ns_per_body_100000_pods", ""),
    ("relist of 100,000 unchanged, growth at its peak", "relist_peak_growth_100000_pods", "≤ 0.05"),
    ("bytes per Pod, 200,000", "bytes_per_object_200000_pods", ""),
    ("bytes per small object, 1,000,000", "bytes_per_object_1000000_small", ""),
    ("peak bytes per small object while syncing", "peak_bytes_per_object_1000000_small", ""),
    ("write to handler, p50, ms", "write_to_handler_p50_ms", ""),
    ("write to handler, p99, ms", "write_to_handler_p99_ms", "≤ kube-rs"),
    ("CPU s to sync, metadata only", "metadata_sync_cpu_seconds", ""),
    ("relist, growth afterwards", "relist_growth_100000_pods", ""),
];

/// The title, the peer, the metric, whether smaller is better, and the goal of each ratio.
const RATIOS: [(&str, &str, &str, bool, f64); 6] = [
    ("memory, client-go typed JSON", "client-go-typed-json", "bytes_per_object", true, 12.0),
    ("memory, client-go typed protobuf", "client-go-typed-protobuf", "bytes_per_object", true, 12.0),
    ("events, client-go typed JSON", "client-go-typed-json", "events_per_cpu_second", false, 26.0),
    ("events, client-go typed protobuf", "client-go-typed-protobuf", "events_per_cpu_second", false, 4.0),
    ("events, kube-rs typed", "kube-rs-typed", "events_per_cpu_second", false, 4.9),
    ("events, transport alone", "transport", "events_per_cpu_second", false, 0.5),
];

/// Formats the table.
pub(crate) fn of(figures: &Figures) -> String {
    let mut rows =
        vec![["", "goal"].into_iter().chain(COLUMNS.iter().map(|it| it.0)).map(str::to_owned).collect()];
    for (what, metric, goal) in LINES {
        let values: Vec<_> = COLUMNS.iter().map(|(_, subject)| figure(figures, subject, metric)).collect();
        if values.iter().any(Option::is_some) {
            let values = values.into_iter().map(|value| value.map_or_else(String::new, shown));
            rows.push([what.to_owned(), goal.to_owned()].into_iter().chain(values).collect());
        }
    }
    let mut text = laid_out(&rows);
    text.push('\n');
    for (what, peer, metric, is_smaller_better, goal) in RATIOS {
        let Some(ratio) = ratio(figures, peer, metric, is_smaller_better) else { continue };
        text.push_str(&format!("{what}: {ratio:.1} times better (goal {goal})\n"));
    }
    text
}

/// The metadata-only clients are subjects of their own; the table shows them in the columns of their
/// projects.
fn figure(figures: &Figures, subject: &str, metric: &str) -> Option<f64> {
    let kin = match subject {
        "client-go-typed-protobuf" => "client-go-metadata",
        "kube-rs-typed" => "kube-rs-metadata",
        _ => subject,
    };
    let subject = if metric.starts_with("metadata_") { kin } else { subject };
    figures.get(subject, metric)
}

/// The smaller of a peer's memory figures before and after the events is compared with the larger of ours.
fn ratio(figures: &Figures, peer: &str, metric: &str, is_smaller_better: bool) -> Option<f64> {
    let (ours, theirs) = (figures.get("oarlock", metric)?, figures.get(peer, metric)?);
    if !is_smaller_better {
        return Some(ours / theirs);
    }
    let before = |subject: &str| figures.get(subject, "bytes_per_object_before_events");
    Some(theirs.min(before(peer).unwrap_or(theirs)) / ours.max(before("oarlock").unwrap_or(ours)))
}

pub(super) fn shown(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

pub(super) fn laid_out(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|it| it.chars().count()).max();
    let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_figures_are_omitted() {
        let mut figures = Figures::default();
        figures.note("oarlock", "bytes_per_object", 1180.0);
        figures.note("client-go-typed-json", "bytes_per_object", 20_000.0);
        figures.note("client-go-typed-json", "bytes_per_object_before_events", 14_160.0);
        let text = of(&figures);
        assert_eq!(text.lines().count(), 5, "{text}");
        assert!(text.contains("≤ 1200"), "{text}");
        assert!(text.contains("memory, client-go typed JSON: 12.0 times better"), "{text}");
    }
}
