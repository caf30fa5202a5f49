//! The clock of the leader jumps an hour ahead, and an hour back.
//!
//! A time namespace has no clock of its own for the time of day. So the image has one library more,
//! libfaketime, which changes what the C library returns for that clock, and not for the monotonic one: this
//! is what a process sees when the clock of its machine is set.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::Timestamp;
use serde_json::json;

use crate::cluster::{Cluster, NAMESPACE, Pod};

use super::Begun;

/// The file in a Pod that says how far the clock is ahead.
const FILE: &str = "/tmp/clock";
const HOUR: i64 = 3600;
/// How far the time of a renewal may be from that of the check.
const TOLERANCE: i64 = 300;

pub(super) async fn install(cluster: &mut Cluster) -> Result<()> {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("clock"))?;
    fs::copy(oarlock_node::clock_library()?, folder.path().join("clock/libfaketime.so.1"))?;
    let image = cluster.node.add_to_image(&cluster.images.current, "oarlock:clock", folder.path())?;
    let mut patch = vec![json!({
        "op": "replace",
        "path": "/spec/template/spec/containers/0/image",
        "value": image,
    })];
    for (name, value) in [
        ("LD_PRELOAD", "/clock/libfaketime.so.1"),
        ("FAKETIME_TIMESTAMP_FILE", FILE),
        ("FAKETIME_NO_CACHE", "1"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        // The times of files are those that the kernel wrote.
        ("NO_FAKE_STAT", "1"),
    ] {
        let path = "/spec/template/spec/containers/0/env/-";
        patch.push(json!({"op": "add", "path": path, "value": {"name": name, "value": value}}));
    }
    cluster.change_deployment(&patch.into()).await
}

impl Begun<'_> {
    pub(super) async fn move_clock(self) -> Result<(Duration, Instant)> {
        let Self { cluster, load, leader, .. } = self;
        set(cluster, &leader, HOUR)?;
        let fault_at = Instant::now();
        let gap = load.first_copy_since(fault_at).await?;
        until_renewed_by(cluster, HOUR)?;
        load.first_copy_since(Instant::now()).await?;
        set(cluster, &leader, 0)?;
        let ended_at = Instant::now();
        until_renewed_by(cluster, 0)?;
        load.first_copy_since(ended_at).await?;
        let (still, _) = cluster.leader_and_standby()?;
        ensure!(
            still.uid() == leader.uid() && still.restarts() == leader.restarts(),
            "the leader has changed"
        );
        Ok((gap, ended_at))
    }
}

fn set(cluster: &Cluster, pod: &Pod, ahead: i64) -> Result<()> {
    let folder = cluster.file_of(pod, "tmp")?;
    // A file that is replaced is never seen empty.
    let script = "echo \"$1\" >\"$2/clock.new\" && mv \"$2/clock.new\" \"$2/clock\"";
    cluster.node.run("sh", ["-c", script, "sh", &format!("+{ahead}"), &folder]).map(drop)
}

/// Waits until the Lease was renewed by a clock that is this far ahead.
fn until_renewed_by(cluster: &mut Cluster, ahead: i64) -> Result<()> {
    cluster.node.wait("a renewal of the Lease by the other clock", |node| {
        let renewed = ["get", "lease", "oarlock", "-n", NAMESPACE, "-o", "jsonpath={.spec.renewTime}"];
        let renewed: Timestamp = node.kubectl(renewed)?.parse().context("the Lease has no time")?;
        let found = renewed.as_second() - Timestamp::now().as_second();
        ensure!((found - ahead).abs() < TOLERANCE, "the clock is {found} s ahead, not {ahead} s");
        Ok(())
    })
}
