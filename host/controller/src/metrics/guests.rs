//! The guests' own series, so named and typed that no choice of theirs breaks the page.
//!
//! A series is called as its plugin calls it, whatever other plugins do: `oarlock_guest_NAME`, with `_total` for a counter. Where plugins
//! disagree on what that is, or where a counter's family in OpenMetrics would have the name of another series, the type is unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use oarlock_plugin::guest_metrics::{Family, Kind};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::scrape::{Labels, labels};

/// All series of one name, of all plugins.
#[derive(Default)]
struct Shown {
    /// None where plugins disagree.
    kinds: BTreeSet<Kind>,
    series: Vec<(Labels, f64)>,
}

/// Writes the series of all plugins. Each plugin's are by the names of their samples.
pub(super) fn encode<'p>(
    encoder: &mut DescriptorEncoder<'_>,
    plugins: impl IntoIterator<Item = (&'p str, BTreeMap<String, Family>)>,
) -> Result<(), fmt::Error> {
    let mut shown: BTreeMap<String, Shown> = BTreeMap::new();
    for (plugin, families) in plugins {
        for (sample, family) in families {
            let shown = shown.entry(format!("oarlock_guest_{sample}")).or_default();
            shown.kinds.insert(family.kind);
            shown.series.extend(family.series.into_iter().map(|(own, value)| {
                let mut labels = labels("plugin", plugin);
                labels.extend(own);
                (labels, value)
            }));
        }
    }
    // What the families have taken so far in OpenMetrics, where a counter takes three names.
    let mut taken: BTreeSet<String> = shown.keys().cloned().collect();
    for (sample, Shown { kinds, series }) in shown {
        let of = |kind| kinds.len() == 1 && kinds.contains(&kind);
        let base = sample.strip_suffix("_total").filter(|_| of(Kind::Counter));
        let names = base.map(|base| [base.to_owned(), format!("{base}_created")]);
        if let (Some(base), Some(names)) = (base, names)
            && names.iter().all(|name| !taken.contains(name))
        {
            taken.extend(names);
            let help = "Counted by a plugin.";
            let mut metric = encoder.encode_descriptor(base, help, None, MetricType::Counter)?;
            for (labels, value) in series {
                ConstCounter::new(value).encode(metric.encode_family(&labels)?)?;
            }
            continue;
        }
        let (help, kind) = match of(Kind::Gauge) {
            true => ("Set by a plugin.", MetricType::Gauge),
            false => ("Kept by a plugin.", MetricType::Unknown),
        };
        let mut metric = encoder.encode_descriptor(&sample, help, None, kind)?;
        for (labels, value) in series {
            ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
        }
    }
    Ok(())
}
