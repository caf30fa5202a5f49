//! A plugin with rights in one namespace only tries every import and waits for every delivery of another.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use oarlock_built_guests::component;
use oarlock_tests::host_process::{Printed, checkout};
use oarlock_tests::hostile::{Plugin, Stage};
use oarlock_tests::wait::wait_until;
use serde_json::{Value, json};
use wit_parser::{Resolve, WorldItem};

/// The data of the namespace that the plugin may not read. No answer may contain it.
const HIDDEN: &str = "hidden-from-the-tenant";

/// What an import may answer about the other namespace.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// One of these errors.
    Refused(&'static [&'static str]),
    /// What the plugin may know anyway, of its own namespace or of itself.
    OfItself,
    /// Success at first; the API server denies the write that follows.
    DeniedLater,
}

/// Every import of the contract.
const IMPORTS: &[(&str, Expected)] = &[
    ("cache.get", Expected::Refused(&["Forbidden", "NotFound"])),
    ("cache.list", Expected::OfItself),
    ("cache.by-index", Expected::OfItself),
    ("cache.index-values", Expected::OfItself),
    ("cache.has-synced", Expected::OfItself),
    ("cache.wait-until-seen", Expected::Refused(&["Invalid"])),
    ("client.get", Expected::Refused(&["Forbidden"])),
    ("client.list", Expected::Refused(&["Forbidden"])),
    ("client.create", Expected::Refused(&["Forbidden", "Invalid"])),
    ("client.apply", Expected::Refused(&["Forbidden"])),
    ("client.patch", Expected::Refused(&["Forbidden"])),
    ("client.replace", Expected::Refused(&["Invalid", "Forbidden"])),
    ("client.delete", Expected::Refused(&["Forbidden"])),
    ("clock.now", Expected::OfItself),
    ("clock.elapsed-ms", Expected::OfItself),
    ("config.get", Expected::OfItself),
    ("config.json", Expected::OfItself),
    ("event.field", Expected::OfItself),
    ("event.fields", Expected::OfItself),
    ("event.json", Expected::OfItself),
    ("events.emit", Expected::DeniedLater),
    ("log.log", Expected::OfItself),
    ("log.enabled", Expected::OfItself),
    ("metrics.counter-add", Expected::OfItself),
    ("metrics.gauge-set", Expected::OfItself),
    ("work-queue.add", Expected::OfItself),
    ("work-queue.add-after", Expected::OfItself),
];

/// Every export of the contract that the host calls with an object or key.
const DELIVERIES: &[&str] =
    &["handler.on-add", "handler.on-update", "handler.on-delete", "reconciler.reconcile"];
/// Every other export.
const WITHOUT_OBJECTS: &[&str] = &["handler.on-synced", "metadata.describe"];

/// Returns the functions that a world imports or exports, as `INTERFACE.FUNCTION`.
fn functions(imports: bool) -> anyhow::Result<BTreeSet<String>> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(checkout().join("wit"))?;
    let world = resolve.select_world(&[package], Some("plugin"))?;
    let world = &resolve.worlds[world];
    let items = if imports { &world.imports } else { &world.exports };
    let mut functions = BTreeSet::new();
    for item in items.values() {
        match item {
            WorldItem::Interface { id, .. } => {
                let interface = &resolve.interfaces[*id];
                let name = interface.name.as_deref().context("an interface has a name")?;
                functions.extend(interface.functions.keys().map(|function| format!("{name}.{function}")));
            }
            WorldItem::Function(function) => drop(functions.insert(function.name.clone())),
            WorldItem::Type { .. } => {}
        }
    }
    Ok(functions)
}

#[test]
fn promise_5_every_function_of_the_contract_has_a_case() -> anyhow::Result<()> {
    let cases: BTreeSet<_> = IMPORTS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(functions(true)?, cases, "left: imports in wit/, right: the cases of this test");
    let cases: BTreeSet<_> =
        DELIVERIES.iter().chain(WITHOUT_OBJECTS).map(|name| (*name).to_owned()).collect();
    assert_eq!(functions(false)?, cases, "left: exports in wit/, right: the cases of this test");
    Ok(())
}

async fn put(stage: &Stage, namespace: &str, name: &str, value: &str) -> anyhow::Result<Value> {
    let object = json!({"metadata": {"name": name, "labels": {"of": value}}, "data": {"value": value}});
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    stage.cluster().request("POST", &path, Some(&object)).await
}

/// Returns the messages that a plugin logged.
fn messages(printed: &Printed, plugin: &str) -> Vec<String> {
    let lines = printed.events("guest-log").filter(|line| line["plugin"] == plugin);
    lines.filter_map(|line| line["message"].as_str().map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_5_a_plugin_of_one_namespace_learns_nothing_of_another() -> anyhow::Result<()> {
    let mut stage = Stage::start(&[]).await?;
    stage.grant("tenant", Some("mine")).await?;
    put(&stage, "other", "secret", HIDDEN).await?;
    put(&stage, "other", "early", HIDDEN).await?;
    put(&stage, "mine", "early", "visible").await?;
    let component = component("hostile");
    // `tenant` is notified, `tenant-keys` gets keys.
    for mode in ["tenant", "tenant-keys"] {
        let more =
            json!({"config": {"mode": mode}, "limits": {"logLinesPerSecond": 10_000, "callDeadline": "60s"}});
        stage.plugin(&Plugin { name: mode, component: &component, account: "tenant", more })?;
        stage
            .host()
            .wait_for("the tenant is synced", |printed| {
                printed.events("subscription-synced").find(|line| line["plugin"] == mode).map(drop)
            })
            .await?;
    }

    // Each kind of notification, in both namespaces.
    for namespace in ["other", "mine"] {
        put(&stage, namespace, "late", if namespace == "other" { HIDDEN } else { "visible" }).await?;
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/late");
        stage.cluster().request("PATCH", &path, Some(&json!({"data": {"more": HIDDEN}}))).await?;
        stage.cluster().request("DELETE", &path, None).await?;
    }
    put(&stage, "mine", "try", "visible").await?;
    stage
        .host()
        .wait_for("the tenant has tried everything", |printed| {
            messages(printed, "tenant").contains(&"done: \"\"".to_owned()).then_some(())
        })
        .await?;
    stage
        .host()
        .wait_for("the keys and the last notification", |printed| {
            let keys = messages(printed, "tenant-keys");
            keys.contains(&"reconcile: \"mine/try\"".to_owned()).then_some(())
        })
        .await?;

    let printed = stage.host().printed();
    let delivered: Vec<_> =
        ["tenant", "tenant-keys"].iter().flat_map(|plugin| messages(&printed, plugin)).collect();
    for delivery in DELIVERIES {
        let function = delivery.split('.').nth(1).unwrap();
        let of = |namespace: &str| {
            let begin = format!("{function}: \"{namespace}/");
            delivered.iter().filter(|line| line.starts_with(&begin)).count()
        };
        assert!(of("mine") > 0, "{delivery} was delivered for the own namespace: {delivered:#?}");
        // The plugin's own key names an object of the other namespace.
        let own_keys = usize::from(function == "reconcile") * 2;
        assert!(of("other") <= own_keys, "{delivery} was delivered for the other namespace: {delivered:#?}");
    }
    let mut answers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in &delivered {
        let (what, answer) = line.split_once(": ").unwrap();
        answers.entry(what).or_default().push(answer);
    }
    for (import, expected) in IMPORTS {
        let answers = answers.get(import).unwrap_or_else(|| panic!("the guest did not try {import}"));
        for answer in answers {
            assert!(!answer.contains(HIDDEN), "{import} returned data of the other namespace: {answer}");
            let tells = answer.contains("early") && answer.contains("other");
            assert!(!tells, "{import} names an object of the other namespace: {answer}");
            match expected {
                Expected::Refused(errors) => {
                    assert!(
                        errors.iter().any(|error| answer.contains(&format!("Err(Error::{error}"))),
                        "{import}: {answer}"
                    );
                }
                Expected::OfItself | Expected::DeniedLater => {}
            }
        }
    }
    let own = answers.get("own client.list").context("the guest lists its own namespace")?;
    assert!(own[0].contains("visible"), "{own:#?}");
    let wrong = own.iter().filter(|answer| answer.contains(HIDDEN) || answer.contains(r#""other""#));
    assert_eq!(wrong.count(), 0, "a live list returned objects of the other namespace: {own:#?}");
    // The other namespace is as it was.
    let secret = stage.cluster().request("GET", "/api/v1/namespaces/other/configmaps/secret", None).await?;
    assert_eq!(secret["data"], json!({"value": HIDDEN}));
    let mine = stage.cluster().request("GET", "/api/v1/namespaces/mine/configmaps", None).await?;
    assert!(!mine.to_string().contains("\"secret\""), "{mine}");
    // The API server has refused the ConfigMaps whose creation the guest saw fail, and one more: the Event.
    let is_refused = |answer: &&&str| answer.starts_with("Err(Error::Forbidden");
    let n_config_maps = answers["client.create"].iter().filter(is_refused).count() as f64;
    wait_until("the API server refused the Event", async || {
        let metrics = stage.page("/metrics").await.map_err(|error| error.to_string())?.1;
        let of_writes = |line: &&str| line.starts_with(r#"oarlock_plugin_writes_total{plugin="tenant","#);
        let writes: Vec<_> = metrics.lines().filter(of_writes).collect();
        let refused = r#"verb="create",code="403"} "#;
        let count = writes.iter().find_map(|line| line.split_once(refused)?.1.parse::<f64>().ok());
        if count.is_some_and(|count| count > n_config_maps) { Ok(()) } else { Err(writes.join("\n")) }
    })
    .await?;
    let events = stage.cluster().request("GET", "/api/v1/namespaces/other/events", None).await?;
    assert_eq!(events["items"].as_array().map(Vec::len), Some(0), "{events}");
    let unknown: Value = json!({"plugins": stage.status().await?});
    assert!(!unknown.to_string().contains(HIDDEN), "{unknown}");
    stage.end().await
}

/// Returns how often a plugin reconciled an object.
fn n_reconciled(printed: &Printed, plugin: &str, object: &str) -> usize {
    let line = format!("reconcile: \"{object}\"");
    messages(printed, plugin).iter().filter(|message| **message == line).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_5_what_a_key_may_not_read_does_not_wake_it_and_a_schedule_reads_no_more_than_others()
-> anyhow::Result<()> {
    let mut stage = Stage::start(&[]).await?;
    stage.grant("tenant", Some("mine")).await?;
    put(&stage, "other", "secret", HIDDEN).await?;
    put(&stage, "mine", "early", "visible").await?;
    let component = component("hostile");
    // `witness` may read everything: what it reports, the host has seen.
    for (name, mode, account) in [
        ("tenant", "tenant-wakes", "tenant"),
        ("witness", "tenant-keys", "good"),
        ("outsider", "tenant-of-another-namespace", "tenant"),
    ] {
        let more =
            json!({"config": {"mode": mode}, "limits": {"logLinesPerSecond": 10_000, "callDeadline": "60s"}});
        stage.plugin(&Plugin { name, component: &component, account, more })?;
    }
    let ticked = |printed: &Printed| n_reconciled(printed, "tenant", "other/secret");
    let is_awake = |printed: &Printed| {
        let reconciled = n_reconciled(printed, "tenant", "mine/early") == 1;
        (reconciled && n_reconciled(printed, "witness", "other/secret") == 1).then_some(())
    };
    stage.host().wait_for("both have reconciled what is there", is_awake).await?;

    put(&stage, "other", "late", HIDDEN).await?;
    let path = "/api/v1/namespaces/other/configmaps/secret";
    stage.cluster().request("PATCH", path, Some(&json!({"data": {"more": HIDDEN}}))).await?;
    stage.cluster().request("DELETE", path, None).await?;
    put(&stage, "other", "last", HIDDEN).await?;
    let seen = |printed: &Printed| (n_reconciled(printed, "witness", "other/last") >= 1).then_some(());
    stage.host().wait_for("the host has seen these changes", seen).await?;
    // Keys that these changes had woken would come before the schedule's second next one.
    let before = ticked(&stage.host().printed());
    let twice = |printed: &Printed| (ticked(printed) >= before + 2).then_some(());
    stage.host().wait_for("the schedule fires twice", twice).await?;
    assert_eq!(n_reconciled(&stage.host().printed(), "tenant", "mine/early"), 1);
    // What it may read wakes it.
    put(&stage, "mine", "late", "visible").await?;
    let woken = |printed: &Printed| (n_reconciled(printed, "tenant", "mine/early") == 2).then_some(());
    stage.host().wait_for("a change in the own namespace wakes the key", woken).await?;

    let printed = stage.host().printed();
    let said = messages(&printed, "tenant");
    for line in &said {
        assert!(!line.contains(HIDDEN), "data of the other namespace: {line}");
        let names_it = line.contains(r#""late""#) && line.contains(r#""other""#);
        assert!(!names_it, "an object of the other namespace: {line}");
    }
    assert!(said.iter().any(|line| line.starts_with("cache.list: Ok") && line.contains("visible")));
    assert_eq!(messages(&printed, "outsider"), [""; 0]);
    let status = stage.status().await?;
    assert!(!json!(status).to_string().contains(HIDDEN));
    assert_ne!(status["outsider"]["phase"], "serving", "{:#}", status["outsider"]);
    stage.end().await
}
