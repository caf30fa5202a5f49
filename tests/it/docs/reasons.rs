//! docs/plugin-objects.md: each reason of a condition is on the page.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, ensure};
use oarlock_tests::host_process::checkout;

/// The files whose texts in CamelCase are reasons, types or statuses of conditions.
const FILES: [&str; 8] = [
    "host/controller/src/plugin_resource/conditions.rs",
    "host/controller/src/plugin_resource/resolve.rs",
    "host/controller/src/plugin_resource/authorization.rs",
    "host/controller/src/plugin_resource/controller.rs",
    "host/controller/src/plugin_resource/statuses.rs",
    "host/controller/src/plugin_resource/shadow_status.rs",
    "host/controller/src/plugin_resource/shadows.rs",
    "host/component-source/src/error.rs",
];

/// Returns the texts of a source that are one word in CamelCase, without those of its tests.
fn words(source: &str) -> BTreeSet<&str> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let texts = code.lines().filter(|line| !line.trim_start().starts_with("//")).flat_map(|line| {
        // Behind every second quote is a text.
        line.split('"').skip(1).step_by(2)
    });
    let is_word = |text: &&str| {
        text.starts_with(|char: char| char.is_ascii_uppercase())
            && text.len() > 3
            && text.chars().all(|char| char.is_ascii_alphabetic())
            && text.contains(|char: char| char.is_ascii_lowercase())
    };
    texts.filter(is_word).collect()
}

#[test]
fn every_reason_of_a_condition_is_on_the_page() -> anyhow::Result<()> {
    let page = fs::read_to_string(checkout().join("docs/plugin-objects.md"))?;
    let (mut n_reasons, mut missing) = (0, Vec::new());
    for file in FILES {
        let source = fs::read_to_string(checkout().join(file)).with_context(|| file.to_owned())?;
        for word in words(&source) {
            n_reasons += 1;
            if !page.contains(&format!("`{word}`")) {
                missing.push(format!("{file}: {word}"));
            }
        }
    }
    ensure!(missing.is_empty(), "docs/plugin-objects.md does not have:\n{}", missing.join("\n"));
    ensure!(n_reasons > 30, "{n_reasons} reasons were found: does the search know how they are written?");
    Ok(())
}
