//! The demo says the truth, both ways.

use std::process::Command;

use oarlock_tests::host_process::binary;

fn demo(arguments: &[&str]) -> (bool, String) {
    let demo = binary("oarlock-demo").expect("it is built");
    let output = Command::new(demo).arg("--once").args(arguments).output().expect("it can be started");
    let printed = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    (output.status.success(), printed)
}

#[test]
fn the_demo_loses_nothing() {
    let (success, printed) = demo(&[]);
    let verdict = printed.lines().last().unwrap_or_default();
    assert!(success && verdict.starts_with("demo: ok, ") && verdict.ends_with(", 0 lost"), "{printed}");
}

#[test]
fn the_demo_notices_a_single_swallowed_event() {
    let (success, printed) = demo(&["--fault-swallow", "25"]);
    let verdict = printed.lines().last().unwrap_or_default();
    assert!(!success && verdict.starts_with("demo: failed, "), "{printed}");
    assert!(printed.contains("  lost: "), "{printed}");
}
