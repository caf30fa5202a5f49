//! The series that guests define. No name, type or label that a guest chooses makes the page invalid.
//!
//! A series is named after the plugin's own name for it, whatever other plugins do: `oarlock_guest_NAME`,
//! with `_total` for a counter. If plugins use different types for one name, or if a counter's family would
//! take the name of another series in OpenMetrics, the type is unknown.
//!
//! Control characters in label values are escaped ([`shown`]). The exposition formats allow them, but people
//! also read the page in terminals, where they could move the cursor or change colours.
//!
//! The series of one plugin and one name are copied at a time: all of them together may have megabytes for
//! each plugin.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use oarlock_plugin::guest::GuestMetrics;
use oarlock_plugin::guest::metrics::{Family, Kind, shown};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// All series of one name, of all plugins.
#[derive(Default)]
struct Shown<'p> {
    /// The types that plugins use for the name.
    kinds: BTreeSet<Kind>,
    plugins: Vec<(&'p str, &'p GuestMetrics)>,
}

/// Writes the series of all plugins.
pub(super) fn encode(
    encoder: &mut DescriptorEncoder<'_>,
    plugins: &BTreeMap<Arc<str>, Arc<GuestMetrics>>,
) -> Result<(), fmt::Error> {
    let mut all: BTreeMap<String, Shown<'_>> = BTreeMap::new();
    for (plugin, metrics) in plugins {
        for (sample, kind) in metrics.kinds() {
            let shown = all.entry(sample).or_default();
            shown.kinds.insert(kind);
            shown.plugins.push((plugin, metrics));
        }
    }
    // The names in use. In OpenMetrics a counter uses three names.
    let mut taken: BTreeSet<String> = all.keys().cloned().collect();
    for (sample, Shown { kinds, plugins }) in all {
        let of = |kind| kinds.len() == 1 && kinds.contains(&kind);
        let base = sample.strip_suffix("_total").filter(|_| of(Kind::Counter));
        let names = base.map(|base| [base.to_owned(), format!("{base}_created")]);
        if let (Some(base), Some(names)) = (base, names)
            && names.iter().all(|name| !taken.contains(name))
        {
            taken.extend(names);
            let (base, help) = (format!("oarlock_guest_{base}"), "A counter of a plugin.");
            let mut metric = encoder.encode_descriptor(&base, help, None, MetricType::Counter)?;
            let encode = |value: f64, encoder: MetricEncoder<'_>| ConstCounter::new(value).encode(encoder);
            encode_series(&mut metric, &sample, &plugins, encode)?;
            continue;
        }
        let (help, kind) = match of(Kind::Gauge) {
            true => ("A gauge of a plugin.", MetricType::Gauge),
            false => ("A series of plugins that use different types for it.", MetricType::Unknown),
        };
        let name = format!("oarlock_guest_{sample}");
        let mut metric = encoder.encode_descriptor(&name, help, None, kind)?;
        let encode = |value: f64, encoder: MetricEncoder<'_>| ConstGauge::new(value).encode(encoder);
        encode_series(&mut metric, &sample, &plugins, encode)?;
    }
    Ok(())
}

/// Writes the series whose samples have this name.
fn encode_series(
    metric: &mut MetricEncoder<'_>,
    sample: &str,
    plugins: &[(&str, &GuestMetrics)],
    encode: impl Fn(f64, MetricEncoder<'_>) -> Result<(), fmt::Error>,
) -> Result<(), fmt::Error> {
    for (plugin, metrics) in plugins {
        let Some(Family { kind: _, series }) = metrics.family(sample) else { continue };
        for (own, value) in &series {
            let own = own.iter().map(|(name, value)| (name.as_str(), shown(value)));
            let labels: Vec<_> = std::iter::once(("plugin", Cow::Borrowed(*plugin))).chain(own).collect();
            encode(*value, metric.encode_family(&labels)?)?;
        }
    }
    Ok(())
}
