//! Roll-backs of Plugin objects, as other hosts see them.

use oarlock_component_source::Policy;
use oarlock_controller::control;
use oarlock_controller::plugin_resource::PluginStatus;
use oarlock_controller::runtime::Config;
use serde_json::{Value, json};

use crate::control_socket;
use crate::further_host::FurtherHost;
use crate::plugin_objects::{Objects, hello};
use crate::rig::until_ok;

const PLUGIN: &str = "default.hello";

fn probation(time: &str) -> Value {
    json!({"time": time, "maxLosses": 0})
}

async fn status(objects: &Objects, what: &str, is_so: impl Fn(&PluginStatus) -> bool) -> PluginStatus {
    until_ok(what, async || {
        let status = objects.plugins().get_status("hello").await.unwrap().status.unwrap_or_default();
        if is_so(&status) { Ok(status) } else { Err(format!("{:#}", json!(status))) }
    })
    .await
}

/// Applies a version that traps, and has the host that leads roll it back.
async fn roll_back(objects: &Objects) -> PluginStatus {
    let bad = json!({"source": {"file": {"path": "bad.wasm"}}, "probation": probation("60s")});
    objects.patch("hello", bad).await;
    objects.rig.serves(PLUGIN, 2).await;
    objects.rig.create("panic").await;
    objects.rig.event(PLUGIN, "plugin-rolled-back").await;
    objects.rig.delete("panic").await;
    status(objects, "the roll-back", |it| it.rolled_back.as_ref().is_some_and(|it| it.len() == 1)).await
}

/// Starts a host that leads and whose plugin has passed its probation.
async fn start(change: impl FnOnce(Config) -> Config) -> Objects {
    let objects = Objects::start_with(Policy::default(), change).await;
    objects.component("hello.wasm", "hello-rust");
    objects.component("bad.wasm", "traps");
    objects.account("hello").await;
    let mut spec = hello();
    spec["probation"] = probation("0s");
    objects.create("hello", spec).await;
    status(&objects, "a good version", |it| it.good_versions.len() == 1).await;
    objects
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_6_a_host_on_standby_follows_the_roll_backs_and_releases_of_the_leader() {
    let folder = tempfile::tempdir().unwrap();
    let socket = control::bind(&folder.path().join("run"), None).unwrap();
    let path = socket.path().to_owned();
    let objects = start(|config| Config { control: Some(socket), ..config }).await;
    let good = status(&objects, "the good version", |it| it.digest.is_some()).await.digest;
    let standby = FurtherHost::start(&objects).await;
    standby.event(PLUGIN, "plugin-loaded").await;

    let rolled_back = roll_back(&objects).await.rolled_back.unwrap();
    let event = standby.event(PLUGIN, "plugin-rolled-back").await;
    let digest = |key: &str| format!("sha256:{}", event[key].as_str().unwrap());
    assert_eq!((Some(digest("to-digest")), digest("digest")), (good, rolled_back[0].digest.clone()));
    let message = event["message"].as_str().unwrap();
    assert_eq!(message, format!("the host that led rolled it back: {}", rolled_back[0].reason));
    standby.event(PLUGIN, "plugin-refused").await;

    let loaded_before = standby.n_events(PLUGIN, "plugin-loaded");
    let (answer, body) = control_socket::request(&path, &format!("POST /v1/plugins/{PLUGIN}/release")).await;
    assert!(answer.contains("200"), "{answer} {body}");
    status(&objects, "the release", |it| it.rolled_back.as_deref() == Some(&[])).await;
    until_ok("the standby to load the version again", async || {
        let n = standby.n_events(PLUGIN, "plugin-loaded");
        if n > loaded_before { Ok(()) } else { Err(n) }
    })
    .await;
    standby.end().await;
    objects.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_6_a_fresh_host_that_takes_over_serves_the_good_version_and_not_what_was_rolled_back() {
    let mut objects = start(|config| config).await;
    let good = status(&objects, "the good version", |it| it.digest.is_some()).await.digest;
    let before = roll_back(&objects).await;

    let further = FurtherHost::start(&objects).await;
    let refused = further.event(PLUGIN, "plugin-refused").await;
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("was rolled back at") && message.contains("it lost"), "{message}");
    let last_good = further.event(PLUGIN, "plugin-last-good").await;
    assert_eq!(Some(format!("sha256:{}", last_good["digest"].as_str().unwrap())), good);
    further.event(PLUGIN, "plugin-loaded").await;

    objects.rig.end_host().await;
    further.lead(&objects).await;
    objects.rig.create("after").await;
    let is_led =
        |it: &PluginStatus| it.phase.as_deref() == Some("Serving") && it.generation != before.generation;
    let after = status(&objects, "the status of the new leader", is_led).await;
    assert_eq!(
        (after.digest, after.rolled_back, after.good_versions),
        (good, before.rolled_back, before.good_versions)
    );
    objects.condition("hello", "Degraded", "True", "RolledBack").await;
    let lines = further.end().await;
    let mut loaded = lines.iter().filter(|it| it["event"] == "plugin-loaded");
    assert!(loaded.all(|it| it["digest"] == last_good["digest"]), "only the good version served: {lines:#?}");
    objects.rig.end().await;
}
