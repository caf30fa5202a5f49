//! Hostile plugins beside good ones, in one process.

use std::time::Duration;

use anyhow::ensure;
use oarlock_built_guests::component;
use oarlock_tests::host_process::binary;
use oarlock_tests::hostile::cases::Case;
use oarlock_tests::hostile::{Plugin, Settings, Stage, cases, mutants, run};
use serde_json::json;
use tokio::process::Command;

/// `cargo xtask soak mutants` runs 10,000.
const MUTANTS: u64 = 160;

/// Plugins that always have work.
const BUSY: usize = 1_000;

/// The memory of a busy plugin with its instance, of a guest with little in its linear memory: twice what was
/// measured.
const BUSY_BYTES: u64 = 256 << 10;

#[tokio::test(flavor = "multi_thread")]
async fn promise_4_hostile_plugins_harm_only_themselves() -> anyhow::Result<()> {
    let cases = cases::all();
    assert!(cases.len() >= 25, "{}", cases.len());
    check(&cases, false).await
}

/// The host copies what each call passes, and compares each write.
#[tokio::test(flavor = "multi_thread")]
async fn promise_4_hostile_plugins_with_records_and_shadows_harm_only_themselves() -> anyhow::Result<()> {
    let cases: Vec<_> = cases::that_call_the_host().into_iter().map(Case::with_shadow).collect();
    check(&cases, true).await
}

/// Runs the hostile plugins beside good ones, in a host that records all of them or none.
#[expect(clippy::print_stdout, reason = "a test prints what it measured")]
async fn check(cases: &[Case], records: bool) -> anyhow::Result<()> {
    let settings = Settings { changes: 80, pace: Duration::from_millis(25), records };
    let outcome = run(Command::new(binary("oarlock")?), settings, cases).await?;
    println!("{}", serde_json::to_string_pretty(&outcome)?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_4_mutated_components_harm_only_themselves() -> anyhow::Result<()> {
    let outcome = mutants::run(Command::new(binary("oarlock")?), MUTANTS, 1).await?;
    println!("{}", serde_json::to_string_pretty(&outcome)?);
    assert!(outcome.refused > 0 && outcome.served > 0, "mutants are neither all broken nor all whole");
    Ok(())
}

/// The host goes on with its own work, and calls the good plugins, while a thousand others always have
/// more to do than there is time.
#[tokio::test(flavor = "multi_thread")]
async fn promise_4_busy_plugins_starve_neither_good_ones_nor_the_host() -> anyhow::Result<()> {
    let lease = ["--leader-elect", "--leader-elect-resource-namespace", "default"];
    let mut stage = Stage::start(&lease).await?;
    let before = stage.resources()?;
    let component = component("hostile");
    let names: Vec<String> = (0..BUSY).map(|n| format!("busy-{n}")).collect();
    for name in &names {
        let more = json!({"config": {"mode": "busy", "busyMs": 2, "labelSelector": "app=none"}});
        stage.plugin(&Plugin { name, component: &component, account: "hostile", more })?;
    }
    // Each hundred has a deadline of its own: on a busy machine a thousand take a while.
    for n in (0..=BUSY).step_by(100) {
        let serve = stage.host().wait_for("the busy plugins serve", |printed| {
            let synced = printed.events("subscription-synced");
            let synced =
                synced.filter(|line| line["plugin"].as_str().is_some_and(|name| name.starts_with("busy")));
            (synced.count() >= n).then_some(())
        });
        serve.await?;
    }
    // Renewals of the Lease, answers about health, and notifications: each goes on.
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/oarlock";
    let mut renewals = std::collections::BTreeSet::new();
    while renewals.len() < 4 {
        stage.change(20, Duration::from_millis(5)).await?;
        stage.judge().await?;
        stage.expect_health().await?;
        let lease = stage.cluster().request("GET", path, None).await?;
        renewals.insert(lease["spec"]["renewTime"].to_string());
    }
    let printed = stage.host().printed();
    ensure!(printed.events("leadership-lost").next().is_none(), "the host lost its Lease");
    let status = stage.status().await?;
    let serving = names.iter().filter(|name| status[*name]["phase"] == "serving").count();
    ensure!(serving == BUSY, "{serving} of {BUSY} busy plugins serve");
    let each = stage.peak().anonymous.saturating_sub(before.anonymous) / BUSY as u64;
    println!("{each} bytes for each busy plugin");
    ensure!(each <= BUSY_BYTES, "each busy plugin takes {each} bytes, its bound is {BUSY_BYTES}");
    stage.end().await
}
