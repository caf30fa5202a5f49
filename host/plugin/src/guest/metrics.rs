//! The metrics of one plugin on the host's metrics page.

use std::{borrow::Cow, collections::BTreeMap};

use parking_lot::Mutex;

use crate::{
    contract::{Entry, Error},
    guest::{
        host_bytes::{Charge, HostBytes, Use},
        text::is_escaped,
    },
};

const MAX_SERIES: usize = 256;
const MAX_LABELS: usize = 8;
const MAX_NAME: usize = 128;
const MAX_LABEL_VALUE: usize = 256;
/// The estimated memory of a series besides its texts. The texts count with their length on the page, which
/// is longer: so the length of a page is bounded by what is charged.
const SERIES_COST: usize = 256;

/// The series of one plugin. All its instances share them, and they survive a change of its generation.
#[derive(Debug, Default)]
pub struct GuestMetrics {
    families: Mutex<Families>,
    account: HostBytes,
}

#[derive(Debug, Default)]
struct Families {
    by_name: BTreeMap<String, Family>,
    /// Their memory, charged to the plugin's account.
    charges: Vec<Charge>,
}

/// All series of one name, as [`GuestMetrics::family`] returns them.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// Counter or gauge; set by the first use.
    pub kind: Kind,
    /// The values by labels, which are sorted by name.
    pub series: BTreeMap<Vec<(String, String)>, f64>,
}

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A value that only grows.
    Counter,
    /// A value that is set.
    Gauge,
}

// === impl GuestMetrics ===

impl GuestMetrics {
    /// Returns an empty set of series with an account of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an empty set of series, which is charged to a plugin's account.
    #[must_use]
    pub fn charged_to(account: HostBytes) -> Self {
        Self { families: Mutex::default(), account }
    }

    /// Increases a counter. Its series has the suffix `_total`, whether or not the name has it: `jobs` and
    /// `jobs_total` are one counter.
    ///
    /// # Errors
    ///
    /// When a name or label is not valid in Prometheus, the name belongs to a gauge, or a limit is exceeded.
    pub fn counter_add(&self, name: &str, by: f64, labels: Vec<Entry>) -> Result<(), Error> {
        if !by.is_finite() || by < 0.0 {
            return Err(Error::Invalid(format!("counter {name:?}: cannot add {by}")));
        }
        let series = format!("{}_total", name.strip_suffix("_total").unwrap_or(name));
        self.update(name, &series, Kind::Counter, labels, |value| value + by)
    }

    /// Sets a gauge.
    ///
    /// # Errors
    ///
    /// As [`counter_add`](Self::counter_add).
    pub fn gauge_set(&self, name: &str, to: f64, labels: Vec<Entry>) -> Result<(), Error> {
        self.update(name, name, Kind::Gauge, labels, |_| to)
    }

    /// Returns the types of all families, by the name of their samples.
    #[must_use]
    pub fn kinds(&self) -> BTreeMap<String, Kind> {
        self.families.lock().by_name.iter().map(|(name, family)| (name.clone(), family.kind)).collect()
    }

    /// Returns the current values of the series whose samples have this name.
    #[must_use]
    pub fn family(&self, name: &str) -> Option<Family> {
        self.families.lock().by_name.get(name).cloned()
    }

    fn update(
        &self,
        name: &str,
        series: &str,
        kind: Kind,
        labels: Vec<Entry>,
        change: impl FnOnce(f64) -> f64,
    ) -> Result<(), Error> {
        check_name("metric", name)?;
        let labels = check_labels(name, labels)?;
        let mut families = self.families.lock();
        let n_series: usize = families.by_name.values().map(|family| family.series.len()).sum();
        if let Some((taken, kind)) = clash(&families.by_name, series, kind) {
            return Err(Error::Invalid(format!("metric {name:?}: {taken:?} is a {}", kind.word())));
        }
        let family = families.by_name.get_mut(series);
        if let Some(value) = family.and_then(|family| family.series.get_mut(&labels)) {
            *value = change(*value);
            return Ok(());
        }
        if n_series >= MAX_SERIES {
            return Err(Error::LimitExceeded(format!("metric {name:?}: the plugin has {MAX_SERIES} series")));
        }
        let texts: usize = labels.iter().map(|(name, value)| name.len() + shown_bytes(value)).sum();
        let charge = self.account.charge(Use::Metrics, SERIES_COST + name.len() + texts)?;
        families.charges.push(charge);
        let family = families
            .by_name
            .entry(series.to_owned())
            .or_insert_with(|| Family { kind, series: BTreeMap::new() });
        family.series.insert(labels, change(0.0));
        Ok(())
    }
}

// === impl Kind ===

impl Kind {
    /// Returns the word that Prometheus has for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

/// Returns the value of a label as the page shows it: without control characters, which could move the cursor
/// of a terminal. Different values stay different, since backslashes are doubled.
#[must_use]
pub fn shown(value: &str) -> Cow<'_, str> {
    let needs_escape = |it: char| it == '\\' || is_escaped(it);
    if !value.contains(needs_escape) {
        return Cow::Borrowed(value);
    }
    let mut shown = String::with_capacity(value.len() + 16);
    for character in value.chars() {
        if needs_escape(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Returns how long the value of a label is on the page, up to seven times its length: the format escapes
/// quotes and the backslashes of [`shown`].
fn shown_bytes(value: &str) -> usize {
    let shown = shown(value);
    shown.len() + shown.bytes().filter(|it| matches!(it, b'\\' | b'"')).count()
}

/// Returns the series of the other kind that stands in the way of this one: of the same name, or with
/// `_total` more or less, since a counter `x` is the series `x_total` of the family `x`.
fn clash(families: &BTreeMap<String, Family>, series: &str, kind: Kind) -> Option<(String, Kind)> {
    let base = series.strip_suffix("_total").unwrap_or(series);
    let names = match kind {
        Kind::Counter => [base.to_owned(), series.to_owned()],
        Kind::Gauge => [series.to_owned(), format!("{series}_total")],
    };
    names.into_iter().find_map(|name| {
        let other = families.get(&name).filter(|family| family.kind != kind)?.kind;
        Some((name, other))
    })
}

fn check_labels(metric: &str, labels: Vec<Entry>) -> Result<Vec<(String, String)>, Error> {
    if labels.len() > MAX_LABELS {
        return Err(Error::LimitExceeded(format!("metric {metric:?}: more than {MAX_LABELS} labels")));
    }
    let mut labels: Vec<_> = labels.into_iter().map(|entry| (entry.name, entry.value)).collect();
    labels.sort();
    for (idx, (name, value)) in labels.iter().enumerate() {
        check_name("label", name)?;
        if name == "plugin" || name.starts_with("__") {
            return Err(Error::Invalid(format!(
                "metric {metric:?}: the label {name:?} is reserved for the host"
            )));
        }
        if idx > 0 && labels[idx - 1].0 == *name {
            return Err(Error::Invalid(format!("metric {metric:?}: the label {name:?} occurs twice")));
        }
        if value.len() > MAX_LABEL_VALUE {
            return Err(Error::LimitExceeded(format!(
                "metric {metric:?}: the value of label {name:?} has more than {MAX_LABEL_VALUE} bytes"
            )));
        }
    }
    Ok(labels)
}

fn check_name(what: &str, name: &str) -> Result<(), Error> {
    let mut bytes = name.bytes();
    let starts_well = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    if starts_well && name.len() <= MAX_NAME && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Ok(());
    }
    let shown = name.get(..64).unwrap_or(name);
    Err(Error::Invalid(format!(
        "{what} name {shown:?} is not [a-zA-Z_][a-zA-Z0-9_]*, at most {MAX_NAME} characters"
    )))
}

#[cfg(test)]
mod tests;
