//! The rules of `promtool check metrics`, and one rule of this workspace.

use super::strict::Family;

/// Units that are multiples of a base unit.
const NO_BASE_UNITS: [&str; 4] = ["minutes", "hours", "days", "weeks"];
const BASE_UNITS: [&str; 10] =
    ["amperes", "bytes", "celsius", "grams", "joules", "kelvin", "meters", "metres", "seconds", "volts"];
const PREFIXES: [&str; 14] = [
    "pico", "nano", "micro", "milli", "centi", "deci", "deca", "hecto", "kilo", "kibi", "mega", "mebi",
    "giga", "gibi",
];
const ABBREVIATIONS: [&str; 14] =
    ["s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d"];

/// Returns the problems of a family of the text format.
pub(super) fn problems(family: &Family) -> Vec<String> {
    let Family { name, kind, help, samples } = family;
    let mut problems = Vec::new();
    let mut add = |problem: String| problems.push(format!("{name}: {problem}"));
    // The rule of this workspace. promtool only requires a help text.
    if !help.ends_with('.') || help.ends_with("..") {
        add(format!("the help text does not end in one full stop: {help:?}"));
    }
    let is_counter = kind == "counter";
    if is_counter != name.ends_with("_total") {
        add("counters end in _total, other types do not".to_owned());
    }
    let is_histogram = kind == "histogram";
    for suffix in ["_bucket", "_count", "_sum"] {
        if !is_histogram && name.ends_with(suffix) {
            add(format!("only a histogram's series end in {suffix}"));
        }
    }
    for label in ["le", "quantile"] {
        let is_there = samples.iter().any(|sample| sample.labels.contains_key(label));
        if is_there && !(is_histogram && label == "le") {
            add(format!("the label {label} is a histogram's"));
        }
    }
    let has_part = |part: &str| name.ends_with(&format!("_{part}")) || name.contains(&format!("_{part}_"));
    for kind in ["counter", "gauge", "histogram", "summary"] {
        if has_part(kind) {
            add(format!("the type {kind} in the name"));
        }
    }
    for abbreviation in ABBREVIATIONS {
        if has_part(abbreviation) {
            add(format!("an abbreviated unit, {abbreviation}"));
        }
    }
    for part in name.split('_') {
        let is_multiple = BASE_UNITS
            .iter()
            .any(|unit| part.strip_suffix(unit).is_some_and(|prefix| PREFIXES.contains(&prefix)));
        if is_multiple || NO_BASE_UNITS.contains(&part) {
            add(format!("{part} is not a base unit"));
        }
    }
    let labels = samples.iter().flat_map(|sample| sample.labels.keys());
    for name in [name].into_iter().chain(labels) {
        if name.contains(':') || name.chars().any(|it| it.is_ascii_uppercase()) {
            add(format!("{name} is in camelCase, or has a colon"));
        }
    }
    problems
}
