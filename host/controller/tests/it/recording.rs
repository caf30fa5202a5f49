//! Plugins that work in a cluster are recorded, and replayed without one.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use oarlock_component_source::Policy;
use oarlock_controller::recordings::RecordConfig;
use oarlock_controller::runtime::Config;
use oarlock_dev_cluster::faults::{Action, Fault, Match};
use oarlock_plugin::record::{EndReason, Ended, Entry, Reader};
use oarlock_plugin::replay::{Options, Report, replay};
use oarlock_plugin::{Component, Engine, EngineConfig};
use serde_json::json;

use super::plugin_objects::Objects;
use super::rig::{Rig, guest_path, until_ok};
use super::shadow::mirror_with_another_label;

const PASSWORD: &str = "correct-horse-battery-staple";
const BINARY: [u8; 12] = [0xff, 0xfe, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xfd];

async fn rig(folder: &Path) -> Rig {
    let record = RecordConfig { path: folder.to_owned(), plugin: None, limit: 64 << 20, secrets: false };
    Rig::start_with(|config| Config { record: Some(record), ..config }).await
}

async fn replay_file(file: &Path, guest: &str, options: &Options) -> Report {
    replay_bytes(file, std::fs::read(guest_path(guest)).unwrap(), options).await
}

async fn replay_bytes(file: &Path, component: Vec<u8>, options: &Options) -> Report {
    let engine = Engine::new(EngineConfig::default()).unwrap();
    let component = Component::compile(&engine, component).await.unwrap();
    let mut reader = Reader::new(std::fs::File::open(file).unwrap()).unwrap();
    Box::pin(replay(&mut reader, &component, options, |_| {})).await.unwrap()
}

/// Returns the unpacked bytes of a record.
fn unpacked(file: &Path) -> Vec<u8> {
    let mut packed = Vec::new();
    std::fs::File::open(file).unwrap().read_to_end(&mut packed).unwrap();
    let mut rest = &packed[12..];
    let mut bytes = Vec::new();
    while !rest.is_empty() {
        let length = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap()) as usize;
        let (block, raw) = (&rest[8..8 + length(0)], length(4));
        bytes.extend(zstd::bulk::decompress(block, raw).unwrap());
        rest = &rest[8 + length(0)..];
    }
    bytes
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|it| it == text)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_work_of_mirror_is_replayed_and_its_record_has_no_value_of_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let rig = rig(folder.path()).await;
    let namespaces: Api<Namespace> = Api::all(rig.client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "team-a"}})).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    rig.plugin("mirror", "mirror");
    rig.serves("mirror", 1).await;

    let secrets = |namespace: &str| Api::<Secret>::namespaced(rig.client.clone(), namespace);
    let mut secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": "database", "annotations": {"oarlock.dev/mirror-to": "team-a"}},
        "type": "Opaque",
    }))
    .unwrap();
    let data = [("password", PASSWORD.as_bytes().to_vec()), ("blob", BINARY.to_vec())];
    secret.data = Some(data.map(|(name, value)| (name.to_owned(), ByteString(value))).into());
    secrets("default").create(&PostParams::default(), &secret).await.unwrap();
    let copied = async |password: &str| {
        until_ok("the copy", async || {
            let copy = secrets("team-a").get_opt("database").await.unwrap();
            let data: BTreeMap<_, _> = copy.and_then(|it| it.data).unwrap_or_default();
            match data.get("password").map(|it| it.0.clone()) {
                Some(found) if found == password.as_bytes() => Ok(()),
                other => Err(other),
            }
        })
        .await;
    };
    copied(PASSWORD).await;
    let patch = json!({"stringData": {"password": "another-password-2"}});
    secrets("default").patch("database", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    copied("another-password-2").await;
    secrets("default").delete("database", &DeleteParams::default()).await.unwrap();
    until_ok("no copy", async || match secrets("team-a").get_opt("database").await.unwrap() {
        None => Ok(()),
        Some(copy) => Err(copy.metadata),
    })
    .await;
    rig.end().await;

    let file = folder.path().join("mirror.record");
    let bytes = unpacked(&file);
    assert!(contains(&bytes, b"client.create") || contains(&bytes, b"client.apply"));
    assert!(contains(&bytes, b"database"));
    let encoded = |value: &[u8]| serde_json::to_value(ByteString(value.to_vec())).unwrap();
    for value in [PASSWORD.as_bytes(), b"another-password-2", &BINARY] {
        assert!(!contains(&bytes, value), "{value:?}");
        assert!(!contains(&bytes, encoded(value).as_str().unwrap().as_bytes()), "{value:?}");
    }
    let report = replay_file(&file, "mirror", &Options::default()).await;
    assert_eq!(report.differences, [], "{report:?}");
    assert!(report.calls > 5 && report.imports > 20 && !report.exact, "{report:?}");
    assert_eq!((report.skipped, &report.notes[..]), (0, &[][..]));
    // Another version writes another label.
    let next = mirror_with_another_label();
    let report = replay_bytes(&file, next, &Options::default()).await;
    let [difference] = &report.differences[..] else { panic!("{report:?}") };
    assert_eq!(difference.at, "client.create /json → /metadata/labels/app.kubernetes.io~1managed-by");
    assert_eq!(
        (difference.recorded.as_str(), difference.actual.as_str()),
        ("\"oarlock-mirror\"", "\"oarlock-murror\"")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_plugin_and_all_its_generations_have_one_record() {
    let folder = tempfile::tempdir().unwrap();
    let rig = rig(folder.path()).await;
    rig.create("a").await;
    rig.plugin("first", "hello-rust");
    rig.plugin("second", "hello-c");
    rig.serves("first", 1).await;
    rig.serves("second", 1).await;
    rig.change("a", "hello").await;
    rig.until(|lines| {
        let updates = lines.iter().filter(|it| it["level"] == "info" && it.to_string().contains("update"));
        updates.count() >= 2
    })
    .await;
    rig.plugin("first", "hello-c");
    rig.serves("first", 2).await;
    rig.end().await;

    for (plugin, generations) in [("first", 2), ("second", 1)] {
        let file = folder.path().join(format!("{plugin}.record"));
        let mut reader = Reader::new(std::fs::File::open(&file).unwrap()).unwrap();
        let entries: Vec<_> = std::iter::from_fn(|| reader.next_entry().unwrap()).collect();
        let n = entries.iter().filter(|it| matches!(it, Entry::Generation(_))).count();
        assert_eq!(n, generations, "{plugin}");
        let Some(Entry::End(end)) = entries.last() else { panic!("{plugin}: {:?}", entries.last()) };
        assert_eq!((end.reason, end.lost), (EndReason::Stopped, 0), "{plugin}");
    }
    let report = replay_file(&folder.path().join("second.record"), "hello-c", &Options::default()).await;
    assert_eq!(report.differences, [], "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_ends_while_the_host_drains_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let rig = rig(folder.path()).await;
    rig.plugin("writes", "writes");
    rig.serves("writes", 1).await;
    // The first ConfigMap is the test's, the second one the plugin's copy of it.
    let on = Match { resource: Some("configmaps".into()), verbs: vec!["create".into()], ..Match::default() };
    let slow = Action::SlowBody { pause: Duration::from_secs(3) };
    let slow = rig.cluster.faults().add(Fault { on, action: slow, skip: 1, times: Some(1) });
    rig.create("a").await;
    until_ok("the call", async || if rig.cluster.faults().count(slow) == 1 { Ok(()) } else { Err(()) }).await;
    rig.end().await;
    let mut reader = Reader::new(std::fs::File::open(folder.path().join("writes.record")).unwrap()).unwrap();
    let entries: Vec<_> = std::iter::from_fn(|| reader.next_entry().unwrap()).collect();
    let is_it = |it: &&Entry| matches!(it, Entry::Call(call) if call.function == "on-add" && call.imports.iter().any(|it| it.function == "client.create"));
    let Some(Entry::Call(call)) = entries.iter().find(is_it) else { panic!("{entries:#?}") };
    assert!(matches!(call.ended, Ended::Answer(_)), "{call:?}");
    let Some(Entry::End(end)) = entries.last() else { panic!("{:?}", entries.last()) };
    assert_eq!((end.reason, end.lost), (EndReason::Stopped, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_has_no_value_of_a_configuration_that_is_of_a_secret() {
    const EXCLUDED: &str = "excluded-namespace-7";
    let folder = tempfile::tempdir().unwrap();
    let record =
        RecordConfig { path: folder.path().to_owned(), plugin: None, limit: 64 << 20, secrets: false };
    let objects =
        Objects::start_with(Policy::default(), |config| Config { record: Some(record), ..config }).await;
    objects.component("mirror.wasm", "mirror");
    let config = json!({"excludedNamespaces": [EXCLUDED]}).to_string();
    let data = [("conf".to_owned(), ByteString(config.into_bytes()))];
    let secret = Secret { data: Some(data.into()), ..Secret::default() };
    let secret = Secret { metadata: serde_json::from_value(json!({"name": "conf"})).unwrap(), ..secret };
    let secrets: Api<Secret> = Api::default_namespaced(objects.rig.client.clone());
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    for (name, spec) in [
        ("hidden", json!({"configFrom": {"secret": {"name": "conf", "key": "conf"}}})),
        ("plain", json!({"config": {"excludedNamespaces": [EXCLUDED]}})),
    ] {
        objects.account(name).await;
        let mut spec = spec;
        spec["source"] = json!({"file": {"path": "mirror.wasm"}});
        spec["serviceAccountName"] = json!(name);
        objects.create(name, spec).await;
        objects.condition(name, "Ready", "True", "Serving").await;
    }
    objects.rig.end().await;
    for (name, is_shown) in [("hidden", false), ("plain", true)] {
        let bytes = unpacked(&folder.path().join(format!("default.{name}.record")));
        assert!(contains(&bytes, b"config.get"), "{name} reads its configuration");
        assert_eq!(contains(&bytes, EXCLUDED.as_bytes()), is_shown, "{name}");
    }
}
