//! A real guest with a lister that wakes: which changes reconcile a key again.
//!
//! Each ConfigMap with the label `role=reader` is a key of the fixture `wakes`, and says what the fixture
//! reads through its lister of Secrets.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::rig::Rig;

/// The reader of the Secret of the same name, which [`Stage::settle`] changes.
const MARKER: &str = "marker";

struct Stage {
    rig: Rig,
}

// === impl Stage ===

impl Stage {
    /// Starts a host with the plugin.
    async fn start(config: Value) -> Self {
        let rig = Rig::start().await;
        let stage = Self { rig };
        stage.put(MARKER, json!({})).await;
        stage.create_reader(MARKER, json!({"get": MARKER})).await;
        stage.plugin(config);
        stage.rig.serves("wakes", 1).await;
        stage.until_runs(MARKER, 1).await;
        stage
    }

    fn plugin(&self, config: Value) {
        self.rig.plugin_with("wakes", "wakes", json!({"config": config}));
    }

    /// Creates a reader when the cache has all changes of Secrets before this call: each of the two kinds has
    /// a watch, and there is no order between them.
    async fn reader(&self, name: &str, reads: Value) {
        self.settle().await;
        self.create_reader(name, reads).await;
    }

    async fn create_reader(&self, name: &str, reads: Value) {
        let metadata = json!({"name": name, "labels": {"role": "reader"}});
        let object: ConfigMap = serde_json::from_value(json!({"metadata": metadata, "data": reads})).unwrap();
        self.rig.config_maps().create(&PostParams::default(), &object).await.unwrap();
    }

    fn secrets(&self, namespace: &str) -> Api<Secret> {
        Api::namespaced(self.rig.client.clone(), namespace)
    }

    async fn put_in(&self, namespace: &str, name: &str, labels: Value) {
        let object = json!({"metadata": {"name": name, "labels": labels}});
        let object: Secret = serde_json::from_value(object).unwrap();
        self.secrets(namespace).create(&PostParams::default(), &object).await.unwrap();
    }

    /// Creates a Secret with labels.
    async fn put(&self, name: &str, labels: Value) {
        self.put_in("default", name, labels).await;
    }

    /// Changes the labels of a Secret.
    async fn label(&self, name: &str, labels: Value) {
        self.patch(name, json!({"metadata": {"labels": labels}})).await;
    }

    /// Changes the data of a Secret. Returns its resourceVersion.
    async fn change(&self, name: &str, to: usize) -> String {
        self.patch(name, json!({"stringData": {"value": to.to_string()}})).await
    }

    async fn patch(&self, name: &str, patch: Value) -> String {
        let secrets = self.secrets("default");
        let patched = secrets.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
        patched.metadata.resource_version.unwrap()
    }

    async fn delete(&self, name: &str) {
        self.secrets("default").delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Returns the number of times that a reader was reconciled.
    fn n_runs(&self, reader: &str) -> usize {
        runs(&self.rig.lines(), reader).count()
    }

    /// Waits until a reader was reconciled so many times.
    #[track_caller]
    fn until_runs(&self, reader: &str, n: usize) -> impl Future<Output = ()> {
        self.rig.until(move |lines| runs(lines, reader).count() >= n)
    }

    /// Waits until all keys are reconciled that the changes before this call have queued. Keys are queued and
    /// reconciled in the order of the changes.
    async fn settle(&self) {
        let n = self.n_runs(MARKER);
        self.change(MARKER, n).await;
        self.until_runs(MARKER, n + 1).await;
    }

    /// Checks after a change how often each reader was reconciled.
    #[track_caller]
    fn expect(&self, expected: &[(&str, usize)]) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        let expected: Vec<_> = expected.iter().map(|(reader, n)| ((*reader).to_owned(), *n)).collect();
        async move {
            for (reader, n) in &expected {
                self.until_runs(reader, *n).await;
            }
            self.settle().await;
            let n_runs: Vec<_> =
                expected.iter().map(|(reader, _)| (reader.clone(), self.n_runs(reader))).collect();
            assert_eq!(n_runs, expected, "{caller}");
        }
    }
}

/// Returns what the runs of a reader found.
fn runs<'a>(lines: &'a [Value], reader: &'a str) -> impl Iterator<Item = &'a Value> {
    let is_run = move |line: &&Value| line["message"] == "read" && line["pairs"]["reader"] == reader;
    lines.iter().filter(is_run).map(|line| &line["pairs"])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_queued_again_when_an_object_that_it_got_appears_changes_or_goes() {
    let stage = Stage::start(json!({})).await;
    stage.reader("r", json!({"get": "wanted"})).await;
    stage.expect(&[("r", 1)]).await;
    stage.put("wanted", json!({})).await;
    stage.expect(&[("r", 2)]).await;
    stage.change("wanted", 1).await;
    stage.expect(&[("r", 3)]).await;
    stage.put("other", json!({})).await;
    stage.change("other", 1).await;
    stage.delete("other").await;
    stage.expect(&[("r", 3)]).await;
    stage.delete("wanted").await;
    stage.expect(&[("r", 4)]).await;
    let lines = stage.rig.lines();
    let found: Vec<_> = runs(&lines, "r").map(|run| run["get"] != "").collect();
    assert_eq!(found, [false, true, true, false]);
    stage.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_queued_again_when_an_object_begins_or_ceases_to_match_what_it_listed() {
    let stage = Stage::start(json!({})).await;
    let namespaces: Api<Namespace> = Api::all(stage.rig.client.clone());
    let team = serde_json::from_value(json!({"metadata": {"name": "team"}})).unwrap();
    namespaces.create(&PostParams::default(), &team).await.unwrap();
    stage.put("x", json!({"app": "db"})).await;
    stage.reader("here", json!({"list": "app=web"})).await;
    stage.reader("everywhere", json!({"list-all": "app=web"})).await;
    stage.expect(&[("here", 1), ("everywhere", 1)]).await;
    // Begins to match.
    stage.label("x", json!({"app": "web"})).await;
    stage.expect(&[("here", 2), ("everywhere", 2)]).await;
    // Matches before and after.
    stage.change("x", 1).await;
    stage.expect(&[("here", 3), ("everywhere", 3)]).await;
    // Ceases to match.
    stage.label("x", json!({"app": null})).await;
    stage.expect(&[("here", 4), ("everywhere", 4)]).await;
    // Matches neither before nor after.
    stage.change("x", 2).await;
    stage.delete("x").await;
    stage.expect(&[("here", 4), ("everywhere", 4)]).await;
    // Another namespace.
    stage.put_in("team", "x", json!({"app": "web"})).await;
    stage.expect(&[("everywhere", 5), ("here", 4)]).await;
    stage.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_queued_again_when_the_values_of_an_index_change_that_it_read() {
    let stage = Stage::start(json!({})).await;
    stage.put("x", json!({"tier": "silver"})).await;
    stage.reader("gold", json!({"by-index": "gold"})).await;
    stage.reader("values", json!({"index-values": ""})).await;
    stage.expect(&[("gold", 1), ("values", 1)]).await;
    // A value appears.
    stage.put("y", json!({"tier": "gold"})).await;
    stage.expect(&[("gold", 2), ("values", 2)]).await;
    // The object with the value changes, the value does not.
    stage.change("y", 1).await;
    stage.expect(&[("gold", 3), ("values", 2)]).await;
    // Another value.
    stage.label("x", json!({"tier": "bronze"})).await;
    stage.expect(&[("values", 3), ("gold", 3)]).await;
    // An object without a value.
    stage.put("z", json!({})).await;
    stage.expect(&[("gold", 3), ("values", 3)]).await;
    // The value goes.
    stage.label("y", json!({"tier": null})).await;
    stage.expect(&[("gold", 4), ("values", 4)]).await;
    let lines = stage.rig.lines();
    let values: Vec<_> = runs(&lines, "values").map(|run| run["index-values"].as_str().unwrap()).collect();
    assert_eq!(values, ["silver", "gold silver", "bronze gold", "bronze"]);
    stage.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_fails_adds_its_reads_to_those_before_and_one_that_succeeds_replaces_them() {
    let stage = Stage::start(json!({})).await;
    for name in ["a", "b", "c"] {
        stage.put(name, json!({})).await;
    }
    stage.reader("r", json!({"get": "a"})).await;
    stage.expect(&[("r", 1)]).await;
    stage.rig.patch("r", &json!({"data": {"get": "b", "fail": "terminal"}})).await;
    stage.expect(&[("r", 2)]).await;
    // The key is parked. Both changes are events of it.
    stage.change("a", 1).await;
    stage.expect(&[("r", 3)]).await;
    stage.change("b", 1).await;
    stage.expect(&[("r", 4)]).await;
    stage.change("c", 1).await;
    stage.expect(&[("r", 4)]).await;
    stage.rig.patch("r", &json!({"data": {"get": "c", "fail": null}})).await;
    stage.expect(&[("r", 5)]).await;
    stage.change("a", 2).await;
    stage.change("b", 2).await;
    stage.expect(&[("r", 5)]).await;
    stage.change("c", 2).await;
    stage.expect(&[("r", 6)]).await;
    stage.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_traps_is_woken_by_what_it_read() {
    let stage = Stage::start(json!({})).await;
    stage.reader("r", json!({"get": "a", "fail": "trap"})).await;
    // It is parked after three lost instances, and gets one try each time.
    let parked = |n: usize| {
        move |lines: &[Value]| {
            let of_key = |line: &&Value| line["event"] == "reconciled" && line["name"] == "r";
            lines.iter().filter(of_key).filter(|line| line["outcome"] == "parked").count() >= n
        }
    };
    stage.rig.until(parked(1)).await;
    let n = stage.n_runs("r");
    stage.put("a", json!({})).await;
    stage.until_runs("r", n + 1).await;
    stage.rig.until(parked(2)).await;
    stage.rig.patch("r", &json!({"data": {"fail": null}})).await;
    stage.expect(&[("r", n + 2)]).await;
    stage.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swap_keeps_what_the_keys_read_unless_the_lister_has_another_index() {
    let stage = Stage::start(json!({})).await;
    stage.put("a", json!({})).await;
    stage.reader("r", json!({"get": "a"})).await;
    stage.expect(&[("r", 1)]).await;
    let n = stage.n_runs(MARKER);
    stage.plugin(json!({"version": 2}));
    let loaded = stage.rig.serves("wakes", 2).await;
    assert_eq!(loaded["mode"], "take-over", "{loaded}");
    assert_eq!(stage.n_runs(MARKER), n, "the swap reconciles nothing");
    stage.expect(&[("r", 1)]).await;
    // What the version before has read wakes its key.
    stage.change("a", 1).await;
    stage.expect(&[("r", 2)]).await;
    // No listener has followed the reads through another lister.
    let n = stage.n_runs(MARKER);
    stage.plugin(json!({"index": "level"}));
    stage.rig.serves("wakes", 3).await;
    stage.until_runs(MARKER, n + 1).await;
    stage.expect(&[("r", 3)]).await;
    stage.change("a", 2).await;
    stage.expect(&[("r", 4)]).await;
    stage.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_change_is_missed_while_versions_are_swapped() {
    for mode in ["take-over", "replay"] {
        let config = |version: usize| match mode {
            "replay" => json!({"stateful": true, "version": version}),
            _ => json!({"version": version}),
        };
        let stage = Stage::start(config(1)).await;
        stage.put("a", json!({})).await;
        stage.reader("r", json!({"get": "a"})).await;
        stage.until_runs("r", 1).await;
        for version in 2..6 {
            stage.plugin(config(version));
            let serves = stage.rig.serves("wakes", version as u64);
            let mut serves = std::pin::pin!(serves);
            let mut n = 0;
            // Changes until the host reports the switch.
            let newest = loop {
                n += 1;
                let newest = stage.change("a", version * 100_000 + n).await;
                tokio::select! {
                    biased;
                    loaded = &mut serves => {
                        assert_eq!(loaded["mode"], mode, "{loaded}");
                        break newest;
                    }
                    () = tokio::task::yield_now() => {}
                }
            };
            let newest = format!("a@{newest}");
            stage.rig.until(|lines| runs(lines, "r").last().is_some_and(|run| run["get"] == *newest)).await;
        }
        stage.rig.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_is_unloaded_and_loaded_again_wakes_its_keys() {
    let stage = Stage::start(json!({})).await;
    stage.put("a", json!({})).await;
    stage.reader("r", json!({"get": "a"})).await;
    stage.expect(&[("r", 1)]).await;
    stage.rig.remove("wakes");
    stage.rig.event("wakes", "plugin-unloaded").await;
    stage.change("a", 1).await;
    stage.plugin(json!({}));
    stage.until_runs("r", 2).await;
    stage.expect(&[("r", 2)]).await;
    stage.change("a", 2).await;
    stage.expect(&[("r", 3)]).await;
    stage.rig.end().await;
}
