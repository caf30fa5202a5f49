use std::fs;
use std::time::{Duration, Instant};

use oarlock_controller::control;
use oarlock_controller::runtime::Config;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::control_socket;
use crate::received;
use crate::rig::{Rig, guest_path, until_ok};

/// More losses than the `traps` plugins of these tests may have.
const TRAPS: [&str; 2] = ["panic", "overflow"];

/// The folder of the versions that are kept, in that of the state.
const KEPT: &str = "last-good/plugins";

fn probation(time: &str) -> Value {
    json!({"probation": {"time": time, "maxLosses": 2}})
}

async fn host_that_keeps(state: &TempDir) -> Rig {
    let state_dir = Some(state.path().to_owned());
    Rig::start_with(|config| Config { state_dir, ..config }).await
}

/// Returns the states that a generation entered, in order.
fn states(lines: &[Value], generation: u64) -> Vec<String> {
    let of_it =
        lines.iter().filter(|line| line["event"] == "generation-state" && line["generation"] == generation);
    of_it.map(|line| line["state"].as_str().unwrap().to_owned()).collect()
}

fn n_files(state: &TempDir, folder: &str, extension: &str) -> usize {
    let Ok(entries) = fs::read_dir(state.path().join(folder)) else { return 0 };
    entries.filter(|it| it.as_ref().unwrap().path().extension().is_some_and(|it| it == extension)).count()
}

/// Waits until this number of plugins have a version of this kind (`good`, `previous`) on disk.
async fn until_kept(state: &TempDir, kind: &str, expected: usize) {
    until_ok(kind, async || match n_files(state, KEPT, kind) {
        n if n == expected => Ok(()),
        n => Err(n),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_6_a_version_that_loses_its_instances_is_switched_back_and_not_tried_again() {
    let state = tempfile::tempdir().unwrap();
    let rig = host_that_keeps(&state).await;
    rig.plugin_with("p", "hello-rust", probation("60s"));
    let first = rig.serves("p", 1).await;
    for name in TRAPS {
        rig.create(name).await;
    }
    received::until_current(&rig, "p", 1).await;

    let bad = fs::read(guest_path("traps")).unwrap();
    rig.component("p", &bad);
    let bad_version = rig.serves("p", 2).await;
    let back = rig.event("p", "plugin-rolled-back").await;
    assert_eq!((&back["digest"], &back["to-digest"]), (&bad_version["digest"], &first["digest"]));
    // Instances that are lost while the host stores the version count, too.
    let reason = back["message"].as_str().unwrap();
    let lost = reason.strip_prefix("it lost ").and_then(|it| it.strip_suffix(" instances within 60 s"));
    assert!(lost.and_then(|it| it.parse::<u32>().ok()).is_some_and(|n| n >= 3), "{reason}");
    let serves = |line: &serde_json::Value| line["event"] == "plugin-loaded" && line["generation"] == 3;
    let before: Vec<_> = rig.lines().into_iter().take_while(|line| *line != back).collect();
    assert!(before.iter().any(serves), "the event is true when it is reported: {before:#?}");
    assert_eq!(rig.serves("p", 3).await["digest"], first["digest"]);
    rig.until(|lines| states(lines, 3).contains(&"serving".to_owned())).await;
    let passed = ["fetched", "compiled", "checked", "warming", "serving"];
    let lines = rig.lines();
    assert_eq!(states(&lines, 1), [&passed[..], &["draining", "gone"]].concat());
    assert_eq!(states(&lines, 2), [&passed[..], &["quarantined"]].concat());
    assert_eq!(states(&lines, 3), passed);
    rig.create("after").await;
    received::until_current(&rig, "p", 3).await;

    // The same bytes again, in another file.
    rig.component("p", &bad);
    let refused = rig.event("p", "plugin-refused").await;
    assert!(refused["message"].as_str().unwrap().contains(reason), "{refused}");
    assert_eq!(refused["older-version-serves"], true);
    rig.until(|lines| states(lines, 4) == ["fetched", "compiled", "quarantined"]).await;
    // Other bytes.
    rig.component("p", &fs::read(guest_path("hello-c")).unwrap());
    rig.serves("p", 5).await;
    received::until_current(&rig, "p", 5).await;
    // Other settings are another version, too.
    rig.plugin_with("p", "traps", json!({"probation": {"time": "60s", "maxLosses": 50}}));
    rig.serves("p", 6).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_version_has_nothing_to_go_back_to_and_its_instances_are_replaced() {
    let state = tempfile::tempdir().unwrap();
    let rig = host_that_keeps(&state).await;
    for name in TRAPS {
        rig.create(name).await;
    }
    rig.plugin_with("p", "traps", probation("60s"));
    rig.until(|lines| lines.iter().filter(|line| line["event"] == "instance-lost").count() > 4).await;
    rig.create("healthy").await;
    rig.line(|line| line["event"] == "delivered" && line["name"] == "healthy" && line["outcome"] == "done")
        .await;
    assert!(rig.lines().iter().all(|line| line["event"] != "plugin-rolled-back"));
    assert_eq!(n_files(&state, KEPT, "good"), 0);
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_on_probation_is_watched_while_a_broken_one_is_refused() {
    let rig = Rig::start().await;
    rig.plugin_with("p", "hello-rust", probation("60s"));
    let first = rig.serves("p", 1).await;
    rig.component("p", &fs::read(guest_path("traps")).unwrap());
    rig.serves("p", 2).await;
    rig.component("p", b"no component");
    rig.event("p", "plugin-refused").await;
    for name in TRAPS {
        rig.create(name).await;
    }
    rig.event("p", "plugin-rolled-back").await;
    // The broken version has a number, too.
    let back = rig.line(|line| line["event"] == "plugin-loaded" && line["generation"] == 4).await;
    assert_eq!(back["digest"], first["digest"]);
    received::until_current(&rig, "p", 4).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_kept_when_it_has_passed_its_probation() {
    let state = tempfile::tempdir().unwrap();
    let rig = host_that_keeps(&state).await;
    rig.plugin_with("p", "hello-rust", probation("100ms"));
    rig.serves("p", 1).await;
    until_kept(&state, "good", 1).await;
    assert_eq!(n_files(&state, "last-good/components", "wasm"), 1);
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_rolls_back_to_the_version_before_and_the_other_one_is_not_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let socket = control::bind(&folder.path().join("run"), None).unwrap();
    let path = socket.path().to_owned();
    let rig = Rig::start_with(|config| Config { control: Some(socket), ..config }).await;
    rig.plugin_with("p", "hello-rust", probation("60s"));
    let first = rig.serves("p", 1).await;
    let other = fs::read(guest_path("hello-c")).unwrap();
    rig.component("p", &other);
    rig.serves("p", 2).await;

    let (status, body) = control_socket::request(&path, "POST /v1/plugins/p/rollback").await;
    assert!(status.contains(" 200 "), "{status} {body}");
    assert_eq!(rig.serves("p", 3).await["digest"], first["digest"]);
    assert_eq!(rig.event("p", "plugin-rolled-back").await["to-digest"], first["digest"]);
    rig.create("after").await;
    received::until_current(&rig, "p", 3).await;
    rig.component("p", &other);
    rig.event("p", "plugin-refused").await;

    // The host keeps one version, and is on it.
    let (status, body) = control_socket::request(&path, "POST /v1/plugins/p/rollback").await;
    assert!(status.contains(" 409 "), "{status} {body}");
    assert!(body.contains("it went back to that one already") && body.contains("--release"), "{body}");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_passes_no_probation_while_the_plugin_is_suspended() {
    let state = tempfile::tempdir().unwrap();
    let rig = host_that_keeps(&state).await;
    rig.plugin_with("p", "hello-rust", probation("1s"));
    rig.serves("p", 1).await;
    until_kept(&state, "good", 1).await;

    let mut settings = probation("1s");
    settings["suspend"] = true.into();
    rig.plugin_with("p", "traps", settings);
    rig.serves("p", 2).await;
    // Its probation begins later, and is as long.
    rig.plugin_with("q", "hello-rust", probation("1s"));
    until_kept(&state, "good", 2).await;
    assert_eq!(n_files(&state, KEPT, "previous"), 0, "the suspended version was never called");
    rig.plugin_with("p", "traps", probation("1s"));
    until_kept(&state, "previous", 1).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspension_stops_the_time_of_the_probation_which_begins_again() {
    // On a slow machine a short time ends before the test has done the next step. That says nothing.
    for seconds in [5, 60] {
        if passes_late(Duration::from_secs(seconds)).await {
            return;
        }
    }
    panic!("each step took a minute");
}

/// Suspends and resumes a plugin on probation, and checks when it passes. Returns whether the steps took less
/// time than the probation.
async fn passes_late(time: Duration) -> bool {
    let (state, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let socket = control::bind(&folder.path().join("run"), None).unwrap();
    let path = socket.path().to_owned();
    let state_dir = Some(state.path().to_owned());
    let rig = Rig::start_with(|config| Config { state_dir, control: Some(socket), ..config }).await;
    let long = || probation(&format!("{}s", time.as_secs()));
    let until_phase = async |phase: &str| {
        until_ok("the phase of p", async || {
            let (_, body) = control_socket::request(&path, "GET /v1/plugins/p").await;
            let status: Value = serde_json::from_str(&body).unwrap();
            if status["phase"] == phase { Ok(()) } else { Err(status) }
        })
        .await;
    };
    let is_good = |name: &str| {
        let names = fs::read_dir(state.path().join(KEPT)).into_iter().flatten();
        let mut names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
        names.any(|it| it.starts_with(name) && it.ends_with(".good"))
    };
    let until_good = async |name: &str| {
        until_ok(name, async || if is_good(name) { Ok(()) } else { Err("it has not passed") }).await;
    };

    let began = Instant::now();
    rig.plugin_with("p", "hello-rust", long());
    rig.serves("p", 1).await;
    let mut suspended = long();
    suspended["suspend"] = true.into();
    rig.plugin_with("p", "hello-rust", suspended);
    until_phase("suspended").await;
    let mut in_time = began.elapsed() < time;
    if in_time {
        // The first time of p would end before that of q.
        rig.plugin_with("q", "hello-rust", long());
        until_good("q-").await;
        assert!(!is_good("p-"), "its time went on");
        let resumed = Instant::now();
        rig.plugin_with("p", "hello-rust", long());
        until_phase("serving").await;
        rig.plugin_with("r", "hello-rust", probation("100ms"));
        until_good("r-").await;
        // The second time of p has only begun.
        let has_passed = is_good("p-");
        in_time = resumed.elapsed() < time;
        assert!(!has_passed || !in_time, "its second time was shorter");
    }
    rig.end().await;
    in_time
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_misses_its_deadlines_is_switched_back() {
    let rig = Rig::start().await;
    let mut settings = probation("60s");
    let limits = |deadline: &str| json!({"callDeadline": deadline, "logLinesPerSecond": 100_000});
    settings["limits"] = limits("60s");
    rig.plugin_with("p", "hello-rust", settings);
    let first = rig.serves("p", 1).await;
    rig.create("any").await;
    received::until_current(&rig, "p", 1).await;
    // A deadline that the good version might miss on a slow machine.
    rig.component("loops", &fs::read(guest_path("loops")).unwrap());
    let mut file: Value = serde_json::from_str(&rig.text("p")).unwrap();
    (file["component"], file["limits"]) = ("../loops.wasm".into(), limits("1s"));
    rig.file("p", &file.to_string());
    let back = rig.event("p", "plugin-rolled-back").await;
    assert_eq!(back["to-digest"], first["digest"]);
    let lost = rig.event("p", "instance-lost").await;
    assert!(lost.to_string().contains("deadline"), "{lost}");
    received::until_current(&rig, "p", 3).await;
    rig.end().await;
}

/// An operator who suspends writes during an incident has no version to offer that can be used.
#[tokio::test(flavor = "multi_thread")]
async fn writes_are_suspended_and_allowed_again_while_the_newest_version_cannot_be_used() {
    let rig = Rig::start().await;
    rig.plugin("w", "writes");
    rig.serves("w", 1).await;
    rig.component("w", b"\0asm\x0d\0\x01\0\x63");
    rig.event("w", "plugin-refused").await;
    let usual = rig.text("w");
    let mut suspended: Value = serde_json::from_str(&usual).unwrap();
    suspended["suspendWrites"] = true.into();
    rig.file("w", &suspended.to_string());
    // The folder of plugins was refused as well if the host read it before the first file was there.
    let is_refused = |it: &&Value| it["event"] == "plugin-refused" && it["plugin"] == "w";
    rig.until(|lines| lines.iter().filter(is_refused).count() == 2).await;
    rig.create("one").await;
    let refused =
        rig.line(|it| it["event"] == "delivered" && it["name"] == "one" && it["outcome"] != "done").await;
    assert!(refused.to_string().contains("Suspended"), "{refused}");
    let copy = async || rig.config_maps().get_opt("copy-of-one").await.unwrap();
    assert_eq!(copy().await, None);
    rig.file("w", &usual);
    until_ok("the copy", async || copy().await.ok_or("there is none")).await;
    let loaded = rig.lines().iter().filter(|it| it["event"] == "plugin-loaded").count();
    assert_eq!(loaded, 1, "no other version was loaded");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_traps_for_the_only_object_is_switched_back_with_default_settings() {
    let rig = Rig::start().await;
    rig.plugin_with("p", "hello-rust", json!({}));
    rig.serves("p", 1).await;
    rig.create(TRAPS[0]).await;
    received::until_current(&rig, "p", 1).await;
    rig.component("p", &fs::read(guest_path("traps")).unwrap());
    let back = rig.event("p", "plugin-rolled-back").await;
    assert_eq!(back["message"], "it lost 3 instances within 60 s");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_folder_for_state_cannot_be_used_reports_it_and_runs() {
    let state = tempfile::tempdir().unwrap();
    // Also for root, who may write to any folder.
    fs::write(state.path().join("last-good"), b"").unwrap();
    let rig = host_that_keeps(&state).await;
    rig.create("a").await;
    rig.plugin_with("p", "hello-rust", probation("100ms"));
    let trouble = rig.event("p", "state-trouble").await;
    assert!(trouble["message"].as_str().unwrap().contains("last-good"), "{trouble}");
    received::until_current(&rig, "p", 1).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_comes_before_the_quarantine_was_read_releases_what_is_on_disk() {
    let state = tempfile::tempdir().unwrap();
    // A quarantine is that of a plugin's file, so both hosts have the same.
    let folder = tempfile::tempdir().unwrap();
    let sources = vec![folder.path().join("plugins")];
    fs::create_dir(&sources[0]).unwrap();
    let put = |file: &str, bytes: &[u8]| fs::write(folder.path().join(file), bytes).unwrap();
    put("p.wasm", &fs::read(guest_path("hello-rust")).unwrap());
    let mut file = probation("60s");
    file["name"] = "p".into();
    file["component"] = "../p.wasm".into();
    file["serviceAccount"] = json!({"namespace": "default", "name": "p"});
    put("plugins/p.yaml", file.to_string().as_bytes());

    let state_dir = Some(state.path().to_owned());
    let (of_host, kept) = (sources.clone(), state_dir.clone());
    let rig = Rig::start_with(|config| Config { state_dir: kept, sources: of_host, ..config }).await;
    rig.serves("p", 1).await;
    for name in TRAPS {
        rig.create(name).await;
    }
    put("p.wasm", &fs::read(guest_path("traps")).unwrap());
    let back = rig.event("p", "plugin-rolled-back").await;
    rig.end().await;

    let socket = control::bind(&folder.path().join("run"), None).unwrap();
    let path = socket.path().to_owned();
    let rig = Rig::start_with(|config| Config { state_dir, control: Some(socket), sources, ..config }).await;
    // Asked until the host knows the plugin, so that the first answer is as early as it can be.
    let released = until_ok("the host knows the plugin", async || {
        let (status, body) = control_socket::request(&path, "POST /v1/plugins/p/release").await;
        if status.contains(" 200 ") { Ok(body) } else { Err((status, body)) }
    })
    .await;
    assert_eq!(released.trim(), r#"{"plugin":"p","released":1}"#);
    rig.line(|line| line["event"] == "plugin-loaded" && line["digest"] == back["digest"]).await;
    rig.end().await;
}
