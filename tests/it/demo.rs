//! The demo succeeds when nothing is lost, and fails when one notification is lost.

use std::process::Command;

use oarlock_built_guests::{OF_THE_DEMO, needs};
use oarlock_tests::host_process::binary;

fn demo(arguments: &[&str]) -> anyhow::Result<(bool, String)> {
    OF_THE_DEMO.iter().for_each(|plugin| needs(plugin));
    let output = Command::new(binary("oarlock-demo")?).arg("--once").args(arguments).output()?;
    let printed = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    Ok((output.status.success(), printed))
}

#[test]
fn the_demo_loses_nothing() -> anyhow::Result<()> {
    let (success, printed) = demo(&[])?;
    let result = printed.lines().last().unwrap_or_default();
    assert!(success && result.starts_with("demo: ok, ") && result.ends_with(", 0 lost"), "{printed}");
    Ok(())
}

#[test]
fn the_demo_finds_a_single_lost_notification() -> anyhow::Result<()> {
    let (success, printed) = demo(&["--fault-swallow", "25"])?;
    let result = printed.lines().last().unwrap_or_default();
    assert!(!success && result.starts_with("demo: failed, "), "{printed}");
    assert!(printed.contains("  lost: "), "{printed}");
    Ok(())
}
