//! The rules of `promtool check metrics`, and one of the house.

use super::strict::Family;

/// Units that have a base unit of which they are a multiple.
const NO_BASE_UNITS: [&str; 4] = ["minutes", "hours", "days", "weeks"];
const BASE_UNITS: [&str; 10] =
    ["amperes", "bytes", "celsius", "grams", "joules", "kelvin", "meters", "metres", "seconds", "volts"];
const PREFIXES: [&str; 14] = [
    "pico", "nano", "micro", "milli", "centi", "deci", "deca", "hecto", "kilo", "kibi", "mega", "mebi",
    "giga", "gibi",
];
const ABBREVIATIONS: [&str; 14] =
    ["s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d"];

/// Returns what is wrong with a family of the text format.
pub(super) fn complaints(family: &Family) -> Vec<String> {
    let Family { name, kind, help, samples } = family;
    let mut complaints = Vec::new();
    let mut complain = |what: String| complaints.push(format!("{name}: {what}"));
    // The house's: a sentence, which promtool only wants to be there.
    if !help.ends_with('.') || help.ends_with("..") {
        complain(format!("the help text is no sentence with one full stop: {help:?}"));
    }
    let is_counter = kind == "counter";
    if is_counter != name.ends_with("_total") {
        complain("counters, and they alone, end in _total".to_owned());
    }
    let is_histogram = kind == "histogram";
    for suffix in ["_bucket", "_count", "_sum"] {
        if !is_histogram && name.ends_with(suffix) {
            complain(format!("only a histogram's series end in {suffix}"));
        }
    }
    for label in ["le", "quantile"] {
        let is_there = samples.iter().any(|sample| sample.labels.contains_key(label));
        if is_there && !(is_histogram && label == "le") {
            complain(format!("the label {label} is a histogram's"));
        }
    }
    let has_part = |part: &str| name.ends_with(&format!("_{part}")) || name.contains(&format!("_{part}_"));
    for kind in ["counter", "gauge", "histogram", "summary"] {
        if has_part(kind) {
            complain(format!("the type {kind} in the name"));
        }
    }
    for abbreviation in ABBREVIATIONS {
        if has_part(abbreviation) {
            complain(format!("an abbreviated unit, {abbreviation}"));
        }
    }
    for part in name.split('_') {
        let is_multiple = BASE_UNITS
            .iter()
            .any(|unit| part.strip_suffix(unit).is_some_and(|prefix| PREFIXES.contains(&prefix)));
        if is_multiple || NO_BASE_UNITS.contains(&part) {
            complain(format!("{part} is not a base unit"));
        }
    }
    let labels = samples.iter().flat_map(|sample| sample.labels.keys());
    for name in [name].into_iter().chain(labels) {
        if name.contains(':') || name.chars().any(|it| it.is_ascii_uppercase()) {
            complain(format!("{name} is camelCase, or has a colon"));
        }
    }
    complaints
}
