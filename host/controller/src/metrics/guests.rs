//! The series that guests define. No name, type or label that a guest chooses makes the page invalid.
//!
//! A series is named after the plugin's own name for it, whatever other plugins do: `oarlock_guest_NAME`,
//! with `_total` for a counter. If plugins use different types for one name, or if a counter's family would
//! take the name of another series in OpenMetrics, the type is unknown.
//!
//! Control characters in label values are escaped ([`escaped`]). The exposition formats allow them, but
//! people also read the page in terminals, where they could move the cursor or change colours.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use oarlock_plugin::guest::metrics::{Family, Kind};
use oarlock_plugin::guest::text::is_escaped;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// The labels of one series, in their order.
type Labels = Vec<(String, String)>;

/// All series of one name, of all plugins.
#[derive(Default)]
struct Shown {
    /// The types that plugins use for the name.
    kinds: BTreeSet<Kind>,
    series: Vec<(Labels, f64)>,
}

/// Writes the series of all plugins. The maps are keyed by sample name.
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
                let mut labels = vec![("plugin".to_owned(), plugin.to_owned())];
                labels.extend(own.into_iter().map(|(name, value)| (name, escaped(value))));
                (labels, value)
            }));
        }
    }
    // The names in use. In OpenMetrics a counter uses three names.
    let mut taken: BTreeSet<String> = shown.keys().cloned().collect();
    for (sample, Shown { kinds, series }) in shown {
        let of = |kind| kinds.len() == 1 && kinds.contains(&kind);
        let base = sample.strip_suffix("_total").filter(|_| of(Kind::Counter));
        let names = base.map(|base| [base.to_owned(), format!("{base}_created")]);
        if let (Some(base), Some(names)) = (base, names)
            && names.iter().all(|name| !taken.contains(name))
        {
            taken.extend(names);
            let help = "A counter of a plugin.";
            let mut metric = encoder.encode_descriptor(base, help, None, MetricType::Counter)?;
            for (labels, value) in series {
                ConstCounter::new(value).encode(metric.encode_family(&labels)?)?;
            }
            continue;
        }
        let (help, kind) = match of(Kind::Gauge) {
            true => ("A gauge of a plugin.", MetricType::Gauge),
            false => ("A series of plugins that use different types for it.", MetricType::Unknown),
        };
        let mut metric = encoder.encode_descriptor(&sample, help, None, kind)?;
        for (labels, value) in series {
            ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

/// Escapes the control characters of a label value, and doubles its backslashes, so that different values
/// stay different.
pub(super) fn escaped(value: String) -> String {
    let needs_escape = |it: char| it == '\\' || is_escaped(it);
    if !value.contains(needs_escape) {
        return value;
    }
    let mut escaped = String::with_capacity(value.len() + 16);
    for character in value.chars() {
        if needs_escape(character) {
            escaped.extend(character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn different_label_values_stay_different_after_escaping() {
        let of = |value: &str| escaped(value.to_owned());
        assert_eq!(of("größe 1"), "größe 1");
        assert_eq!(of("a\u{1b}[2J\n"), r"a\u{1b}[2J\n");
        assert_eq!(of(r"a\n"), r"a\\n");
        assert_ne!(of("a\n"), of(r"a\n"));
    }
}
