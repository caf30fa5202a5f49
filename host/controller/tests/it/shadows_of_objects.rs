//! The shadow of a Plugin object: it runs as that of a plugin file does, and what it finds is in the status.

use std::sync::Arc;

use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use oarlock_component_source::Policy;
use oarlock_controller::plugin_resource::{Plugin, PluginStatus, ShadowStatus};
use serde_json::{Value, json};

use super::plugin_objects::{DAMAGED, Objects, hello, slow_registry};
use super::rig::until_ok;
use super::shadow::with_another_text;

fn shadow(file: &str) -> Value {
    json!({"shadow": {"source": {"file": {"path": file}}}})
}

async fn status(objects: &Objects, name: &str) -> PluginStatus {
    objects.plugins().get_status(name).await.unwrap().status.unwrap_or_default()
}

/// Waits until the status of a shadow is so.
async fn until(
    objects: &Objects,
    name: &str,
    what: &str,
    is_so: impl Fn(&ShadowStatus) -> bool,
) -> ShadowStatus {
    until_ok(what, async || {
        let status = status(objects, name).await;
        status.shadow.clone().filter(&is_so).ok_or_else(|| format!("{:#}", json!(status)))
    })
    .await
}

/// Returns how many versions of a plugin were loaded.
fn n_loaded(objects: &Objects, plugin: &str) -> usize {
    let lines = objects.rig.lines();
    lines.iter().filter(|it| it["event"] == "plugin-loaded" && it["plugin"] == plugin).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shadow_of_an_object_comes_changes_and_goes_while_its_plugin_serves_as_before() {
    let objects = Objects::start_with(Policy::default(), |config| config).await;
    objects.component("writes.wasm", "writes");
    objects
        .file("next.wasm", &with_another_text("writes", br#""kind":"ConfigMap""#, br#""kind":"ConfigMop""#));
    objects.account("writes").await;
    let spec = json!({"source": {"file": {"path": "writes.wasm"}}, "serviceAccountName": "writes"});
    objects.create("writes", spec).await;
    objects.condition("writes", "Ready", "True", "Serving").await;
    assert_eq!(status(&objects, "writes").await.shadow, None);

    objects.patch("writes", shadow("next.wasm")).await;
    objects.condition("writes", "ShadowReady", "True", "Serving").await;
    objects.rig.create("one").await;
    let found = until(&objects, "writes", "a difference", |it| it.different > 0).await;
    let serving = status(&objects, "writes").await;
    assert_eq!((found.phase.as_str(), found.compared, found.equal), ("Serving", 1, 0));
    assert!(found.digest.as_ref().is_some_and(|it| it.starts_with("sha256:")));
    assert_ne!(found.digest, serving.digest);
    let difference = json!({"verb": "create", "object": "configmaps default/copy-of-one", "path": "/kind"});
    assert_eq!(json!(found.differences), json!([difference]), "no values, and no hashes of them");
    until_ok("the generation of the spec with the shadow", async || {
        let status = status(&objects, "writes").await;
        if status.observed_generation == Some(2) { Ok(()) } else { Err(format!("{:#}", json!(status))) }
    })
    .await;

    // Another component of the shadow: the numbers begin again.
    objects.component("same.wasm", "writes");
    objects.patch("writes", shadow("same.wasm")).await;
    let found = until(&objects, "writes", "the other shadow", |it| it.digest == serving.digest).await;
    assert_eq!((found.compared, found.differences), (0, Vec::new()));
    objects.rig.create("two").await;
    until(&objects, "writes", "equal writes", |it| it.equal == 1).await;

    // A source without a component: the shadow before runs on.
    objects.patch("writes", shadow("none.wasm")).await;
    let why = objects.condition("writes", "ShadowReady", "False", "NotFound").await;
    assert!(why.contains("none.wasm"), "{why}");
    let now = status(&objects, "writes").await;
    assert_eq!(now.shadow.map(|it| it.digest), Some(serving.digest));
    assert_eq!((n_loaded(&objects, "default.writes"), n_loaded(&objects, "default.writes.shadow")), (1, 2));

    objects.patch("writes", json!({"shadow": null})).await;
    objects.rig.event("default.writes.shadow", "plugin-unloaded").await;
    until_ok("a status without a shadow", async || {
        let status = status(&objects, "writes").await;
        let is_gone = status.shadow.is_none() && status.conditions.iter().all(|it| it.type_ != "ShadowReady");
        if is_gone { Ok(()) } else { Err(format!("{:#}", json!(status))) }
    })
    .await;
    objects.condition("writes", "Ready", "True", "Serving").await;
    assert_eq!(n_loaded(&objects, "default.writes"), 1);
    objects.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_4_a_shadow_that_cannot_be_had_changes_nothing_of_its_plugin_and_says_why() {
    let (registry, policy) = slow_registry();
    let objects = Objects::start_under(policy).await;
    objects.file("damaged.wasm", DAMAGED);
    objects.account("hello").await;
    let mut spec = hello();
    spec["shadow"] = json!({"source": {"file": {"path": "none.wasm"}}});
    objects.create("hello", spec).await;
    objects.condition("hello", "Ready", "True", "Serving").await;
    let why = objects.condition("hello", "ShadowReady", "False", "NotFound").await;
    assert!(why.contains("none.wasm"), "{why}");
    let is_refused =
        |it: &Value| it["event"] == "plugin-refused" && it["file"] == "the shadow of Plugin default/hello";
    objects.rig.line(is_refused).await;
    let now = status(&objects, "hello").await;
    let phases = (now.phase.as_deref(), now.shadow.map(|it| (it.phase, it.digest)));
    assert_eq!(phases, (Some("Serving"), Some(("Refused".to_owned(), None))));

    objects.patch("hello", shadow("damaged.wasm")).await;
    objects.condition("hello", "ShadowReady", "False", "Refused").await;
    assert_eq!(n_loaded(&objects, "default.hello"), 1);

    // While the registry of the shadow does not answer, a new version of the plugin comes to serve.
    let reference = format!("{}/slow:1", registry.local_addr().unwrap());
    let slow = json!({"oci": {"reference": reference}, "file": null});
    objects.patch("hello", json!({"shadow": {"source": slow}})).await;
    let _connection = tokio::task::spawn_blocking(move || registry.accept().map(|it| (it, registry)))
        .await
        .unwrap()
        .unwrap();
    objects.patch("hello", json!({"config": {"greeting": "hi"}})).await;
    objects.rig.serves("default.hello", 2).await;
    objects.condition("hello", "ShadowReady", "Unknown", "Fetching").await;
    objects.condition("hello", "Ready", "True", "Serving").await;
    objects.rig.end().await;
}

async fn serving_with_a_shadow(policy: Policy) -> Objects {
    let objects = Objects::start_under(policy).await;
    objects.account("hello").await;
    let mut spec = hello();
    spec["shadow"] = json!({"source": {"file": {"path": "hello.wasm"}}});
    objects.create("hello", spec).await;
    objects.condition("hello", "ShadowReady", "True", "Serving").await;
    objects
}

#[tokio::test(flavor = "multi_thread")]
async fn the_removal_of_a_shadow_does_not_wait_for_a_slow_registry() {
    let (registry, policy) = slow_registry();
    let reference = format!("{}/slow:1", registry.local_addr().unwrap());
    let objects = serving_with_a_shadow(policy).await;
    let slow = json!({"oci": {"reference": reference}, "file": null});
    objects.patch("hello", json!({"source": slow, "shadow": null})).await;
    objects.rig.event("default.hello.shadow", "plugin-unloaded").await;
    until_ok("a status without a shadow", async || {
        let status = status(&objects, "hello").await;
        if status.shadow.is_none() { Ok(status) } else { Err(format!("{:#}", json!(status))) }
    })
    .await;
    let _connection = tokio::task::spawn_blocking(move || registry.accept().map(|it| (it, registry)))
        .await
        .unwrap()
        .unwrap();
    let status = status(&objects, "hello").await;
    assert_eq!(status.observed_generation, Some(1), "the newest spec is not resolved yet");
    assert_eq!(status.phase.as_deref(), Some("Serving"));
    objects.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shadow_that_is_removed_stays_removed_when_the_rest_of_the_spec_cannot_be_read() {
    let objects = Objects::start_under(Policy::default()).await;
    objects.account("hello").await;
    let mut spec = hello();
    spec["shadow"] = json!({"source": {"file": {"path": "hello.wasm"}}});
    objects.create("hello", spec).await;
    objects.condition("hello", "ShadowReady", "True", "Serving").await;
    let status = without_a_shadow_after(&objects, json!({"shadow": null})).await;
    assert_eq!(status["phase"], "Serving");
    assert_eq!(n_loaded(&objects, "default.hello.shadow"), 1);
    objects.rig.end().await;
}

/// Patches the spec, and with it a part that makes the spec unreadable. Returns the status, once it has no
/// shadow.
async fn without_a_shadow_after(objects: &Objects, mut spec: Value) -> Value {
    // The API server takes it for a size. A client that has the type of the spec cannot read it.
    spec["instances"] = json!({"recycleAboveMemory": -1});
    let patch = Patch::Merge(json!({"spec": spec}));
    let resource = ApiResource::erase::<Plugin>(&());
    let plugins = Api::<DynamicObject>::default_namespaced_with(objects.rig.client.clone(), &resource);
    plugins.patch("hello", &PatchParams::default(), &patch).await.unwrap();
    objects.rig.event("default.hello.shadow", "plugin-unloaded").await;
    let status = until_ok("a status without a shadow", async || {
        let status = plugins.get_status("hello").await.unwrap().data["status"].clone();
        let is_read = status["observedGeneration"] == 2;
        if is_read && status.get("shadow").is_none() { Ok(status) } else { Err(format!("{status:#}")) }
    })
    .await;
    assert!(status.to_string().contains("InvalidSpec"), "{status:#}");
    status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shadow_is_not_fetched_as_an_account_that_a_spec_that_cannot_be_read_does_not_name() {
    let objects = serving_with_a_shadow(Policy::default()).await;
    let status = without_a_shadow_after(&objects, json!({"serviceAccountName": "other"})).await;
    assert!(!status.to_string().contains("ShadowReady"), "{status:#}");
    let phases = (&status["phase"], n_loaded(&objects, "default.hello.shadow"));
    assert_eq!(phases, (&json!("Refused"), 1));
    // The shadow is fetched again when the spec is readable: as the account that it names.
    objects.account("other").await;
    let readable = json!({"spec": {"instances": null}});
    objects.plugins().patch("hello", &PatchParams::default(), &Patch::Merge(readable)).await.unwrap();
    objects.condition("hello", "ShadowReady", "True", "Serving").await;
    assert_eq!(n_loaded(&objects, "default.hello.shadow"), 2);
    objects.rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shadow_that_is_removed_while_it_is_fetched_is_not_reported() {
    let (registry, policy) = slow_registry();
    let registry_address = registry.local_addr().unwrap();
    let slow = |name| json!({"oci": {"reference": format!("{registry_address}/{name}:1")}, "file": null});
    let registry = Arc::new(registry);
    let connection = async || {
        let registry = registry.clone();
        tokio::task::spawn_blocking(move || registry.accept()).await.unwrap().unwrap()
    };
    let objects = serving_with_a_shadow(policy).await;
    objects.patch("hello", json!({"shadow": {"source": slow("shadow")}})).await;
    let of_shadow = connection().await;
    // The spec without the shadow waits until this one is resolved.
    objects.patch("hello", json!({"source": slow("plugin")})).await;
    let _of_plugin = connection().await;
    objects.patch("hello", json!({"shadow": null})).await;
    objects.rig.event("default.hello.shadow", "plugin-unloaded").await;
    drop(of_shadow);
    until_ok("a status without a shadow", async || {
        let status = status(&objects, "hello").await;
        if status.shadow.is_none() { Ok(()) } else { Err(format!("{:#}", json!(status))) }
    })
    .await;
    let is_of_shadow = |it: &Value| it["file"] == "the shadow of Plugin default/hello";
    assert!(!objects.rig.lines().iter().any(is_of_shadow), "{:#?}", objects.rig.lines());
    objects.rig.end().await;
}
