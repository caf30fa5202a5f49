//! docs/plugin-file.md has every key of a plugin's file, with the default and the range of the code.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::super::{Instances, PluginFile, Probation, settings};

const PAGE: &str = include_str!("../../../../../docs/plugin-file.md");

/// A file with the required keys.
const LEAST: &str = "{name: a, component: a.wasm, serviceAccount: {namespace: b, name: c}";

/// Returns the second cell of each row, by the key in the first, without code marks and separators of digits.
fn rows() -> BTreeMap<String, String> {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.filter_map(|row| {
        let mut cells = row.split(" | ");
        Some((cells.next()?.trim_end_matches('`').to_owned(), cells.next()?.replace(['`', ','], "")))
    });
    cells.collect()
}

/// Returns the message about a file with one more key.
fn error(more: &str) -> String {
    PluginFile::parse(Path::new("a.yaml"), &format!("{LEAST}, {more}}}")).unwrap_err().to_string()
}

/// Returns the settings of a mapping with their defaults, by key.
fn settings_of(key: &str, default: &impl serde::Serialize) -> BTreeMap<String, String> {
    let default = serde_json::to_value(default).unwrap();
    let entries = default.as_object().unwrap().iter();
    let shown = |value: &serde_json::Value| value.as_str().map_or(value.to_string(), str::to_owned);
    entries.map(|(name, value)| (format!("{key}.{name}"), shown(value))).collect()
}

#[test]
fn the_page_of_plugin_files_has_every_key() {
    let message = error("unknown: 1");
    let (_, known) = message.split_once("(known keys: ").expect("the message lists the keys");
    let mut keys: BTreeSet<String> = known.trim_end_matches(')').split(", ").map(str::to_owned).collect();
    assert!(keys.remove("instances") && keys.remove("probation"), "{message}");
    keys.extend(settings_of("instances", &Instances::default()).into_keys());
    keys.extend(settings_of("probation", &Probation::default()).into_keys());
    assert_eq!(rows().into_keys().collect::<BTreeSet<_>>(), keys, "left: the page, right: the code");
}

#[test]
fn the_page_of_plugin_files_has_the_defaults_and_ranges_of_the_code() {
    let rows = rows();
    let mut defaults = BTreeMap::from([
        ("concurrency".to_owned(), settings::default_concurrency().to_string()),
        ("weight".to_owned(), settings::default_weight().to_string()),
    ]);
    defaults.extend(settings_of("instances", &Instances::default()));
    defaults.extend(settings_of("probation", &Probation::default()));
    for (key, default) in defaults {
        let cell = &rows[&key];
        assert!(cell.starts_with(default.as_str()), "{key}: the default is {default}, the page has {cell:?}");
        // Any number of calls is allowed.
        if key == "instances.recycleAfterCalls" {
            continue;
        }
        let beyond = match default.as_str() {
            time if time.parse::<u64>().is_err() => "100000m",
            _ if key.ends_with("Memory") => "1000000Gi",
            _ => "4294967295",
        };
        let message = match key.split_once('.') {
            Some((outer, inner)) => error(&format!("{outer}: {{{inner}: {beyond}}}")),
            None => error(&format!("{key}: {beyond}")),
        };
        let (_, range) = message.rsplit_once("between ").expect("the message names the range");
        let range = range.split(". ").next().unwrap_or(range).replace(" and ", " to ").replace(',', "");
        assert!(cell.contains(&range), "{key}: the range is {range}, the page has {cell:?}");
    }
}
