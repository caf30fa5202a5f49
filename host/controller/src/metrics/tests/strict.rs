//! Strict parsers of both exposition formats: an error names the rule of the specification that is broken.

use std::collections::{BTreeMap, BTreeSet};

/// All samples of one name.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) help: String,
    pub(super) samples: Vec<Sample>,
}

#[derive(Debug)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
}

/// Reads the text format, version 0.0.4.
pub(super) fn text(page: &str) -> Result<Vec<Family>, String> {
    read(page, false)
}

/// Reads OpenMetrics 1.0.0.
pub(super) fn open(page: &str) -> Result<Vec<Family>, String> {
    let page = page.strip_suffix("# EOF\n").ok_or("it does not end in # EOF")?;
    read(page, true)
}

fn read(page: &str, is_open: bool) -> Result<Vec<Family>, String> {
    if !page.is_empty() && !page.ends_with('\n') {
        return Err("the last line has no end".to_owned());
    }
    let mut families: Vec<Family> = Vec::new();
    let mut taken = BTreeSet::new();
    let mut series = BTreeSet::new();
    for line in page.split_terminator('\n') {
        read_line(line, is_open, &mut families, &mut taken, &mut series)
            .map_err(|error| format!("{error}: {line}"))?;
    }
    for family in &families {
        check(family).map_err(|error| format!("{error}: {}", family.name))?;
    }
    Ok(families)
}

fn read_line(
    line: &str,
    is_open: bool,
    families: &mut Vec<Family>,
    taken: &mut BTreeSet<String>,
    series: &mut BTreeSet<String>,
) -> Result<(), String> {
    if let Some(described) = line.strip_prefix("# HELP ") {
        let (name, help) = described.split_once(' ').ok_or("no help")?;
        is_name(name)?;
        if help.contains('\\') {
            return Err("an escape in a help text".to_owned());
        }
        let (kind, samples) = (String::new(), Vec::new());
        families.push(Family { name: name.to_owned(), kind, help: help.to_owned(), samples });
        return Ok(());
    }
    let family = families.last_mut().ok_or("no family yet")?;
    if let Some(typed) = line.strip_prefix("# TYPE ") {
        let (name, kind) = typed.split_once(' ').ok_or("no type")?;
        if name != family.name || !family.kind.is_empty() || !family.samples.is_empty() {
            return Err("a type out of place".to_owned());
        }
        let kinds: &[&str] = match is_open {
            true => &["counter", "gauge", "histogram", "unknown", "info"],
            false => &["counter", "gauge", "histogram", "untyped"],
        };
        if !kinds.contains(&kind) {
            return Err("no such type".to_owned());
        }
        family.kind = kind.to_owned();
        // A family reserves every name that its samples may have.
        let suffixes: &[&str] = match (kind, is_open) {
            ("counter", true) => &["", "_total", "_created"],
            ("histogram", true) => &["", "_bucket", "_count", "_sum", "_created"],
            ("histogram", false) => &["", "_bucket", "_count", "_sum"],
            ("info", _) => &["", "_info"],
            _ => &[""],
        };
        for suffix in suffixes {
            if !taken.insert(format!("{name}{suffix}")) {
                return Err(format!("the name {name}{suffix} is another family's"));
            }
        }
        return Ok(());
    }
    if let Some(unit) = line.strip_prefix("# UNIT ") {
        let (name, unit) = unit.split_once(' ').ok_or("no unit")?;
        return (is_open && name == family.name && name.ends_with(&format!("_{unit}")))
            .then_some(())
            .ok_or_else(|| "a unit out of place".to_owned());
    }
    if line.starts_with('#') || line.is_empty() {
        return Err("neither a description nor a sample".to_owned());
    }
    let sample = sample(line)?;
    let suffixes: &[&str] = match (&*family.kind, is_open) {
        ("counter", true) => &["_total"],
        ("histogram", _) => &["_bucket", "_count", "_sum"],
        ("info", _) => &["_info"],
        ("", _) => return Err("a sample before its type".to_owned()),
        _ => &[""],
    };
    if !suffixes.iter().any(|suffix| sample.name == format!("{}{suffix}", family.name)) {
        return Err(format!("no sample of the family {}", family.name));
    }
    if !series.insert(format!("{} {:?}", sample.name, sample.labels)) {
        return Err("the same series twice".to_owned());
    }
    family.samples.push(sample);
    Ok(())
}

fn sample(line: &str) -> Result<Sample, String> {
    let end = line.find(['{', ' ']).ok_or("no value")?;
    let (name, mut rest) = line.split_at(end);
    is_name(name)?;
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"").ok_or("a label without a value")?;
            is_name(label)?;
            let (value, after) = unquoted(after)?;
            if labels.insert(label.to_owned(), value).is_some() {
                return Err(format!("the label {label} twice"));
            }
            rest = match after.strip_prefix(',') {
                Some(after) if !after.starts_with('}') => after,
                None if after.starts_with('}') => after,
                _ => return Err("labels without a comma between them".to_owned()),
            };
        }
        rest = &rest[1..];
    }
    let value = rest.strip_prefix(' ').ok_or("no space before the value")?;
    let value = value.parse().map_err(|_| format!("not a number: {value:?}"))?;
    Ok(Sample { name: name.to_owned(), labels, value })
}

/// Reads up to the closing quote; returns the value and the rest of the text.
fn unquoted(text: &str) -> Result<(String, &str), String> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => value.push(match chars.next() {
                Some((_, 'n')) => '\n',
                Some((_, it @ ('\\' | '"'))) => it,
                other => return Err(format!("no such escape: {other:?}")),
            }),
            char => value.push(char),
        }
    }
    Err("a label value without an end".to_owned())
}

fn is_name(name: &str) -> Result<(), String> {
    let is_first = |it: char| it.is_ascii_alphabetic() || it == '_';
    let is_good = name.starts_with(is_first) && name.chars().all(|it| is_first(it) || it.is_ascii_digit());
    is_good.then_some(()).ok_or_else(|| format!("{name:?} is not a valid name"))
}

/// Checks the rules for the samples of one family together.
fn check(family: &Family) -> Result<(), String> {
    match &*family.kind {
        "" => return Err("no type".to_owned()),
        "counter" if family.samples.iter().any(|sample| sample.value.is_nan() || sample.value < 0.0) => {
            return Err("a counter that is negative or not a number".to_owned());
        }
        "histogram" => {}
        _ => return Ok(()),
    }
    let mut buckets: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    let mut counts = BTreeMap::new();
    for Sample { name, labels, value } in &family.samples {
        let mut labels = labels.clone();
        let le = labels.remove("le");
        let of = format!("{labels:?}");
        if name.ends_with("_bucket") {
            let le = le.ok_or("a bucket without a limit")?;
            let le = if le == "+Inf" { f64::INFINITY } else { le.parse().map_err(|_| "no limit")? };
            buckets.entry(of).or_default().push((le, *value));
        } else if name.ends_with("_count") {
            counts.insert(of, *value);
        }
    }
    for (of, buckets) in buckets {
        if !buckets.is_sorted_by(|one, other| one.0 < other.0 && one.1 <= other.1) {
            return Err("buckets out of order".to_owned());
        }
        if buckets.last().map(|(le, n)| (*le, *n)) != counts.get(&of).map(|n| (f64::INFINITY, *n)) {
            return Err("the last bucket does not count all observations".to_owned());
        }
    }
    Ok(())
}
