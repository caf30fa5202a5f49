//! Computes the figures: the median of each metric's readings.

use std::collections::BTreeMap;

use serde_json::json;

use super::plan::{Record, Run, Variant};

/// All readings, by subject and metric.
#[derive(Default)]
pub(crate) struct Figures {
    read: BTreeMap<(String, String), Vec<f64>>,
}

// === impl Figures ===

impl Figures {
    /// Adds the readings of one run.
    pub(crate) fn add(&mut self, run: &Run, record: &Record) {
        let subject = run.subject;
        let per_object =
            |bytes: u64| bytes.saturating_sub(record.resident_before) as f64 / record.objects.max(1) as f64;
        let at_rest = per_object(record.resident_after);
        let peak = per_object(record.resident_peak);
        let rate = record.events as f64 / record.events_cpu_seconds.max(1e-9);
        let sync = record.sync_cpu_seconds;
        match run.variant {
            Variant::Plain => {
                self.note(subject, "bytes_per_object", at_rest);
                self.note(subject, "bytes_per_object_before_events", per_object(record.resident_synced));
                self.note(subject, "peak_bytes_per_object", peak);
                self.note(subject, "sync_cpu_seconds", sync);
                self.note(subject, "events_per_cpu_second", rate);
                self.note(subject, "catching_up_cpu_seconds", record.catching_up_cpu_seconds);
            }
            Variant::TenHandlers => self.note(subject, "events_per_cpu_second_10_handlers", rate),
            Variant::Metadata => {
                self.note(subject, "metadata_events_per_cpu_second", rate);
                self.note(subject, "metadata_bytes_per_object", at_rest);
                self.note(subject, "metadata_sync_cpu_seconds", sync);
            }
            Variant::ManagedFields => {
                self.note(subject, "bytes_per_object_with_managed_fields", at_rest);
            }
            Variant::Pods100000 => {
                self.note(subject, "bytes_per_object_100000_pods", at_rest);
                self.note(subject, "peak_bytes_per_object_100000_pods", peak);
                self.note(subject, "sync_cpu_seconds_100000_pods", sync);
            }
            Variant::Pods200000 => self.note(subject, "bytes_per_object_200000_pods", at_rest),
            Variant::Small1000000 => {
                self.note(subject, "bytes_per_object_1000000_small", at_rest);
                self.note(subject, "peak_bytes_per_object_1000000_small", peak);
            }
            Variant::Transport => self.note(subject, "events_per_cpu_second", rate),
        }
        let suffix = if run.variant == Variant::Pods100000 { "_100000_pods" } else { "" };
        for (metric, value) in &record.more {
            self.note(subject, &format!("{metric}{suffix}"), *value);
        }
    }

    /// Adds one reading.
    pub(crate) fn note(&mut self, subject: &str, metric: &str, value: f64) {
        self.read.entry((subject.to_owned(), metric.to_owned())).or_default().push(value);
    }

    /// Returns the median of a metric's readings, if it has any.
    pub(crate) fn get(&self, subject: &str, metric: &str) -> Option<f64> {
        self.read.get(&(subject.to_owned(), metric.to_owned())).map(|values| median(values))
    }

    /// Returns every figure, one per line.
    pub(crate) fn json(&self) -> String {
        let line = |((subject, metric), values): (&(String, String), &Vec<f64>)| {
            let value = rounded(median(values));
            json!({"subject": subject, "metric": metric, "value": value, "unit": unit(metric)}).to_string()
                + "\n"
        };
        self.read.iter().map(line).collect()
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Rounds to the precision of the readings.
fn rounded(value: f64) -> f64 {
    if value.abs() >= 100.0 { value.round() } else { (value * 10_000.0).round() / 10_000.0 }
}

fn unit(metric: &str) -> &'static str {
    match metric {
        _ if metric.contains("bytes_per_object") => "B",
        _ if metric.contains("cpu_seconds") => "s",
        _ if metric.contains("per_cpu_second") => "1/s",
        _ if metric.contains("_ns") => "ns",
        _ if metric.contains("_cpu_ms_per_s") => "ms/s",
        _ if metric.contains("_us_") || metric.ends_with("_us") => "us",
        _ if metric.contains("kib_") => "KiB",
        _ if metric.contains("mib_") => "MiB",
        _ if metric.contains("_cpu_s") || metric.starts_with("cpu_s_") || metric.contains("_wall_s") => "s",
        _ if metric.contains("_ms") => "ms",
        _ => "1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_median_of_its_readings() {
        let mut figures = Figures::default();
        for value in [5.0, 1.0, 400_000.4] {
            figures.note("oarlock", "events_per_cpu_second", value);
        }
        figures.note("oarlock", "sync_cpu_seconds", 0.123_456);
        assert_eq!(figures.get("oarlock", "events_per_cpu_second"), Some(5.0));
        assert_eq!(figures.get("oarlock", "bytes_per_object"), None);
        let lines = figures.json();
        assert_eq!(
            lines.lines().next().unwrap(),
            r#"{"subject":"oarlock","metric":"events_per_cpu_second","value":5.0,"unit":"1/s"}"#
        );
        assert!(lines.contains(r#""metric":"sync_cpu_seconds","value":0.1235,"unit":"s""#), "{lines}");
    }
}
