//! A plugin is swapped again and again while events flow. Broken and crash-looping versions are among the
//! new ones. Nothing is lost, in both modes: `replayed` gets every object again with each version,
//! `taken-over` is stateless and goes on where the version before stopped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use oarlock_built_guests::component;
use oarlock_tests::hostile::{Plugin, Stage};
use oarlock_tests::wait::WAIT_LIMIT;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The number of swaps of each plugin, without `OARLOCK_SWAPS`.
const SWAPS: usize = 24;

/// Changes during each swap at least, without `OARLOCK_SWAP_CHANGES`. More are made until the host has noted
/// the swap.
const CHANGES: usize = 100;

/// Changes a second, without `OARLOCK_SWAP_RATE`. With it, fewer are a failure.
const RATE: u32 = 500;

/// Changes that are made before it is looked whether the host has noted the swap.
const AT_ONCE: usize = 100;

/// After so many swaps it is checked that nothing was lost so far. Then a version serves that reports what it
/// receives: no multiple of this number is the swap to one that crashes.
const SWAPS_BETWEEN_CHECKPOINTS: usize = 10;

/// A version that replaces the one before.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Version {
    /// Reports every notification.
    Good,
    /// Is no component.
    Broken,
    /// Traps in `describe`.
    TrapsInDescribe,
    /// Traps at each notification.
    Crashes,
}

const PLUGINS: [(&str, bool); 2] = [("replayed", false), ("taken-over", true)];

/// Returns a number that the soak sets.
fn setting<N: std::str::FromStr>(name: &str, default: N) -> anyhow::Result<N> {
    let Some(text) = std::env::var_os(name) else { return Ok(default) };
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.with_context(|| format!("{name} is not a number: {}", text.display()))
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_6_plugins_are_swapped_while_events_flow_and_nothing_is_lost() -> anyhow::Result<()> {
    let (swaps, changes) = (setting("OARLOCK_SWAPS", SWAPS)?, setting("OARLOCK_SWAP_CHANGES", CHANGES)?);
    let least: u32 = setting("OARLOCK_SWAP_RATE", 0)?;
    // Somewhat faster, since looking takes time too.
    let pace = Duration::from_secs(1) / (least.max(RATE) / 4 * 5);
    let (mut n_changes, mut writing, mut latest) = (0, Duration::ZERO, Duration::ZERO);
    let mut received = 0;
    let guest = std::fs::read(component("hostile"))?;
    let mut stage = Stage::start(&[]).await?;
    for swap in 0..=swaps {
        let version = match swap % 6 {
            _ if swap == 0 || swap == swaps => Version::Good,
            2 => Version::Broken,
            3 => Version::TrapsInDescribe,
            5 => Version::Crashes,
            _ => Version::Good,
        };
        let n_before = stage.host().printed().lines.len();
        for (name, stateless) in PLUGINS {
            install(&stage, name, stateless, version, swap, &guest)?;
        }
        // The swap happens while events flow, until the host has taken note of it: the version serves, is
        // refused, or is rolled back.
        let digest = digest(&with_name(&guest, swap));
        let is_noted = |line: &Value| match version {
            Version::Good => line["event"] == "plugin-loaded" && line["digest"] == digest.as_str(),
            Version::Crashes => line["event"] == "plugin-rolled-back",
            Version::Broken | Version::TrapsInDescribe => line["event"] == "plugin-refused",
        };
        let begun = Instant::now();
        let mut flowed = 0;
        while flowed < changes || !all_noted(&stage.host().printed().lines[n_before..], is_noted) {
            let waited = begun.elapsed();
            ensure!(
                waited < WAIT_LIMIT,
                "swap {swap}, to one that is {version:?}, is not noted within {waited:?}"
            );
            stage.change(AT_ONCE, pace).await?;
            flowed += AT_ONCE;
        }
        n_changes += flowed;
        writing += begun.elapsed();
        latest = latest.max(begun.elapsed());
        if swap % SWAPS_BETWEEN_CHECKPOINTS == 0 {
            received += stage.checkpoint(&PLUGINS).await?;
            eprintln!(
                "{swap} of {swaps} swaps: nothing lost; {:.0} changes/s so far",
                n_changes as f64 / writing.as_secs_f64()
            );
        }
    }
    stage.change(changes, Duration::ZERO).await?;
    received += stage.checkpoint(&PLUGINS).await?;
    let status = stage.status().await?;
    for (name, _) in PLUGINS {
        ensure!(status[name]["phase"] == "serving", "{}", status[name]);
    }
    let per_second = f64::from(n_changes as u32) / writing.as_secs_f64();
    ensure!(per_second >= f64::from(least), "{per_second:.0} changes a second are fewer than {least}");
    let result = json!({
        "swaps": swaps,
        "changes": n_changes + changes,
        "changes_per_second": per_second.round(),
        "notifications": received,
        "longest_until_swapped_s": latest.as_secs_f64(),
    });
    println!("{result}");
    stage.end().await
}

/// Returns whether there is such a line about each of the plugins.
fn all_noted(lines: &[Arc<Value>], is_noted: impl Fn(&Value) -> bool) -> bool {
    PLUGINS.iter().all(|(name, _)| lines.iter().any(|line| line["plugin"] == *name && is_noted(line)))
}

/// Writes a version of the component, of which each has bytes of its own, and the plugin's file.
fn install(
    stage: &Stage,
    name: &str,
    stateless: bool,
    version: Version,
    swap: usize,
    guest: &[u8],
) -> anyhow::Result<()> {
    let bytes = match version {
        Version::Broken => b"\0asm\x0d\0\x01\0 no component".to_vec(),
        _ => with_name(guest, swap),
    };
    let component = stage.component(&format!("{name}-{swap}"), &bytes)?;
    let mode = match version {
        Version::TrapsInDescribe => "trap-describe",
        Version::Crashes => "trap-always",
        Version::Good | Version::Broken => "good",
    };
    // Another selector: the new version cannot go on with the listener of the version before.
    let selector = if swap.is_multiple_of(3) { "app=hello" } else { "app=hello,!swapped" };
    let config = json!({"mode": mode, "stateless": stateless, "labelSelector": selector});
    let mut more: Value = json!({"config": config, "limits": {"logLinesPerSecond": 100_000}});
    if stateless {
        more["concurrency"] = (1 + swap % 4).into();
    }
    stage.plugin(&Plugin { name, component: &component, account: "hostile", more })
}

/// Adds a custom section, so that the component is another one and does the same.
fn with_name(component: &[u8], swap: usize) -> Vec<u8> {
    let name = format!("swap-{swap}");
    let section = [&[0, name.len() as u8 + 2, 1, b'v'][..], name.as_bytes()].concat();
    [component, &section].concat()
}

/// Returns the digest by which the host names a component.
fn digest(component: &[u8]) -> String {
    Sha256::digest(component).iter().map(|byte| format!("{byte:02x}")).collect()
}
