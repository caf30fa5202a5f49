//! What a metric is: its name, type, labels and meaning, for the page and for its documentation.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Metric, Registry};
use serde::Serialize;

use super::HistogramView;

/// The description of one family of series.
#[derive(Debug, Serialize)]
pub struct Description {
    /// The name, as the text format has it.
    pub name: &'static str,
    /// The type.
    pub kind: Kind,
    /// The names of the labels, in their order.
    pub labels: &'static [&'static str],
    /// The meaning.
    pub help: &'static str,
}

/// The type of a family.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Grows and shrinks.
    Gauge,
    /// Counts durations by their length.
    Histogram,
}

// === impl Description ===

impl Description {
    /// Registers a metric that the registry owns.
    pub(super) fn register(&self, registry: &mut Registry, metric: impl Metric) {
        // The registry adds the full stop and the suffix.
        registry.register(self.family(), self.help.trim_end_matches('.'), metric);
    }

    /// Writes gauges or counters: the values of the labels, and that of the series.
    pub(super) fn encode<const N: usize>(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        series: impl IntoIterator<Item = ([String; N], f64)>,
    ) -> Result<(), fmt::Error> {
        self.encode_with(encoder, series, |value, encoder| match self.kind {
            Kind::Counter => ConstCounter::new(value).encode(encoder),
            Kind::Gauge | Kind::Histogram => ConstGauge::new(value).encode(encoder),
        })
    }

    /// Writes histograms.
    pub(super) fn encode_histograms<const N: usize>(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        series: impl IntoIterator<Item = ([String; N], HistogramView)>,
    ) -> Result<(), fmt::Error> {
        self.encode_with(encoder, series, |view, mut encoder| {
            encoder.encode_histogram::<Vec<(String, String)>>(
                view.sum_seconds(),
                view.count(),
                &view.page_buckets(),
                None,
            )
        })
    }

    fn encode_with<V, const N: usize>(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        series: impl IntoIterator<Item = ([String; N], V)>,
        encode: impl Fn(V, MetricEncoder<'_>) -> Result<(), fmt::Error>,
    ) -> Result<(), fmt::Error> {
        debug_assert_eq!(self.labels.len(), N, "{}", self.name);
        let kind = match self.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram => MetricType::Histogram,
        };
        let mut series = series.into_iter().peekable();
        // A family without a series would be a type without a value.
        if series.peek().is_none() {
            return Ok(());
        }
        let mut metric = encoder.encode_descriptor(self.family(), self.help, None, kind)?;
        for (values, value) in series {
            if N == 0 {
                encode(value, metric)?;
                break;
            }
            let labels: Vec<_> = self.labels.iter().copied().zip(values).collect();
            encode(value, metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// Returns the name in OpenMetrics, which has no suffix of a counter.
    fn family(&self) -> &'static str {
        match self.kind {
            Kind::Counter => self.name.strip_suffix("_total").unwrap_or(self.name),
            Kind::Gauge | Kind::Histogram => self.name,
        }
    }
}
