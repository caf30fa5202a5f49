//! A plugin is swapped again and again while events flow. Broken and crash-looping versions are among the
//! new ones. Nothing is lost, in both modes: `replayed` gets every object again with each version,
//! `taken-over` is stateless and goes on where the version before stopped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use oarlock_built_guests::component;
use oarlock_tests::hostile::{Plugin, Stage};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The number of swaps of each plugin, without `OARLOCK_SWAPS`.
const SWAPS: usize = 24;

/// Changes between two swaps, without `OARLOCK_SWAP_CHANGES`.
const CHANGES: usize = 40;

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
    let (mut writing, mut latest) = (Duration::ZERO, Duration::ZERO);
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
        // The swap happens while these events flow.
        let begun = Instant::now();
        stage.change(changes, Duration::ZERO).await?;
        writing += begun.elapsed();
        // The host has taken note of the version: it serves, or is refused.
        let digest = digest(&with_name(&guest, swap));
        for (name, _) in PLUGINS {
            let is_it = |line: &Value| match version {
                Version::Good | Version::Crashes => {
                    line["event"] == "plugin-loaded" && line["digest"] == digest.as_str()
                }
                Version::Broken | Version::TrapsInDescribe => line["event"] == "plugin-refused",
            };
            let is_it = |line: &Arc<Value>| line["plugin"] == name && is_it(line);
            stage
                .host()
                .wait_for(&format!("version {swap} of {name}, which is {version:?}"), |printed| {
                    printed.lines[n_before..].iter().any(is_it).then_some(())
                })
                .await?;
        }
        latest = latest.max(begun.elapsed());
        if swap % SWAPS_BETWEEN_CHECKPOINTS == 0 {
            received += stage.checkpoint(&PLUGINS).await?;
            eprintln!(
                "{swap} of {swaps} swaps: nothing lost; {:.0} changes/s so far",
                ((swap + 1) * changes) as f64 / writing.as_secs_f64()
            );
        }
    }
    stage.change(changes, Duration::ZERO).await?;
    received += stage.checkpoint(&PLUGINS).await?;
    let status = stage.status().await?;
    for (name, _) in PLUGINS {
        ensure!(status[name]["phase"] == "serving", "{}", status[name]);
    }
    let per_second = ((swaps + 1) * changes) as f64 / writing.as_secs_f64();
    let result = json!({
        "swaps": swaps,
        "changes": (swaps + 2) * changes,
        "changes_per_second": per_second.round(),
        "notifications": received,
        "longest_until_swapped_s": latest.as_secs_f64(),
    });
    println!("{result}");
    stage.end().await
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
    let config = json!({"mode": mode, "stateless": stateless, "labelSelector": "app=hello"});
    let more: Value = json!({"config": config, "limits": {"logLinesPerSecond": 100_000}});
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
