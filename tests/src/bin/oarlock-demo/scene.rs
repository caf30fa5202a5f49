//! The scene: changes of objects, step by step.

use oarlock_tests::operator::{self, Versions};
use serde_json::{Value, json};

use crate::stage::{SWAPPED, Stage};

/// How often `greeting` changes while the component is swapped.
const CHANGES: usize = 200;

/// Runs all steps. Each ends when the guests have received every change, and the copies are in the API
/// server.
pub(crate) async fn play(stage: &mut Stage) -> anyhow::Result<()> {
    say("a ConfigMap labelled app=hello is created and changed; plugins in five languages receive it");
    create(
        stage,
        "default",
        "configmaps",
        "greeting",
        json!({"labels": {"app": "hello"}}),
        json!({"greeting": "ahoy"}),
    )
    .await?;
    change(stage, "default", "configmaps", "greeting", json!({"data": {"greeting": "ahoy, all"}})).await?;
    stage.settle("the plugins received greeting", async |_| true).await?;

    say("a ConfigMap and a Secret ask to be mirrored");
    for namespace in ["team-a", "team-b"] {
        stage.request("POST", "/api/v1/namespaces", Some(json!({"metadata": {"name": namespace}}))).await?;
    }
    let to = |namespaces: &str| json!({"annotations": {"oarlock.dev/mirror-to": namespaces}});
    create(stage, "default", "configmaps", "settings", to("team-a,team-b"), json!({"colour": "blue"}))
        .await?;
    create(stage, "default", "secrets", "registry", to("*"), json!({"token": "c2VjcmV0"})).await?;
    stage
        .settle("both are in team-a and team-b", async |stage| {
            is(stage, "team-a", "configmaps", "settings", "/data/colour", Some("blue")).await
                && is(stage, "team-b", "configmaps", "settings", "/data/colour", Some("blue")).await
                && is(stage, "team-a", "secrets", "registry", "/data/token", Some("c2VjcmV0")).await
                && is(stage, "team-b", "secrets", "registry", "/data/token", Some("c2VjcmV0")).await
        })
        .await?;

    say("the source changes; a user deletes one copy and edits another");
    change(stage, "default", "configmaps", "settings", json!({"data": {"colour": "red"}})).await?;
    stage.request("DELETE", &path("team-a", "secrets", "registry"), None).await?;
    change(stage, "team-b", "secrets", "registry", json!({"data": {"token": "Zm9yZ2Vk"}})).await?;
    stage
        .settle("the copies follow", async |stage| {
            is(stage, "team-a", "configmaps", "settings", "/data/colour", Some("red")).await
                && is(stage, "team-b", "configmaps", "settings", "/data/colour", Some("red")).await
                && is(stage, "team-a", "secrets", "registry", "/data/token", Some("c2VjcmV0")).await
                && is(stage, "team-b", "secrets", "registry", "/data/token", Some("c2VjcmV0")).await
        })
        .await?;

    say("a namespace is created, and in it an object that mirror must not overwrite");
    create(stage, "team-a", "configmaps", "limits", json!({}), json!({"cpu": "theirs"})).await?;
    create(stage, "default", "configmaps", "limits", to("team-a"), json!({"cpu": "ours"})).await?;
    stage.request("POST", "/api/v1/namespaces", Some(json!({"metadata": {"name": "team-c"}}))).await?;
    stage
        .settle("team-c has the Secret, and limits is unchanged", async |stage| {
            is(stage, "team-c", "secrets", "registry", "/data/token", Some("c2VjcmV0")).await
                && is(stage, "team-a", "configmaps", "limits", "/data/cpu", Some("theirs")).await
        })
        .await?;

    say(&format!("{CHANGES} changes while the plugin {SWAPPED} is swapped, from Rust to C"));
    for n in 0..CHANGES {
        if n == CHANGES / 4 {
            stage.swap("hello-c")?;
        }
        change(
            stage,
            "default",
            "configmaps",
            "greeting",
            json!({"data": {"greeting": format!("ahoy {n}")}}),
        )
        .await?;
    }
    stage
        .wait_for("the swap", |printed| {
            let swapped = |line: &&Value| line["plugin"] == SWAPPED && line["generation"] == 2;
            printed.events("plugin-loaded").find(swapped).map(|_| ())
        })
        .await?;
    change(stage, "default", "configmaps", "greeting", json!({"data": {"greeting": "ahoy, new version"}}))
        .await?;
    stage.settle("both versions received the changes, in order", async |_| true).await?;

    say("a Plugin object is applied in team-a, as with kubectl; its status says what becomes of it");
    operate(stage).await?;
    stage.settle("the Plugin is gone", async |_| true).await?;

    say("sources are deleted, one loses its annotation");
    stage.request("DELETE", &path("default", "configmaps", "settings"), None).await?;
    change(
        stage,
        "default",
        "secrets",
        "registry",
        json!({"metadata": {"annotations": {"oarlock.dev/mirror-to": null}}}),
    )
    .await?;
    stage.request("DELETE", &path("default", "configmaps", "greeting"), None).await?;
    stage
        .settle("no copy is left", async |stage| {
            let mut gone = true;
            for namespace in ["team-a", "team-b", "team-c"] {
                gone &= is(stage, namespace, "configmaps", "settings", "/data/colour", None).await
                    && is(stage, namespace, "secrets", "registry", "/data/token", None).await;
            }
            gone && is(stage, "default", "secrets", "registry", "/data/token", Some("c2VjcmV0")).await
        })
        .await
}

/// What an operator does with a Plugin, from its creation to its deletion.
async fn operate(stage: &Stage) -> anyhow::Result<()> {
    let cluster = stage.cluster();
    let file = |name: &str| json!({"file": {"path": format!("{name}.wasm")}});
    let versions = Versions {
        first: file("hello-rust"),
        second: file("hello-c"),
        broken: file("text"),
        trapping: file("traps"),
    };
    cluster.apply(operator::ACCOUNT).await?;
    operator::apply(cluster, &versions.first).await?;
    // The component `traps` panics when it is notified of it.
    create(stage, "team-a", "configmaps", "panic", json!({"labels": {"app": "hello"}}), json!({})).await?;
    operator::swap_break_and_suspend(cluster, &versions, |step| println!("      {step}")).await?;
    stage.request("DELETE", operator::PLUGIN, None).await?;
    stage.request("DELETE", &path("team-a", "configmaps", "panic"), None).await.map(drop)
}

fn say(step: &str) {
    println!("\n  {step}");
}

fn path(namespace: &str, resource: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/{resource}/{name}")
}

async fn create(
    stage: &Stage,
    namespace: &str,
    resource: &str,
    name: &str,
    mut metadata: Value,
    data: Value,
) -> anyhow::Result<Value> {
    metadata["name"] = json!(name);
    let object = json!({"metadata": metadata, "data": data});
    stage.request("POST", &format!("/api/v1/namespaces/{namespace}/{resource}"), Some(object)).await
}

async fn change(
    stage: &Stage,
    namespace: &str,
    resource: &str,
    name: &str,
    patch: Value,
) -> anyhow::Result<Value> {
    stage.request("PATCH", &path(namespace, resource, name), Some(patch)).await
}

/// Returns whether a field has the expected value; with `None`, whether the object does not exist.
async fn is(
    stage: &Stage,
    namespace: &str,
    resource: &str,
    name: &str,
    pointer: &str,
    expected: Option<&str>,
) -> bool {
    match stage.request("GET", &path(namespace, resource, name), None).await {
        Ok(object) => expected.is_some() && object.pointer(pointer).and_then(Value::as_str) == expected,
        Err(_) => expected.is_none(),
    }
}
