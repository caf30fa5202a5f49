//! Plugins of the whole cluster, as objects.

use kube::api::{Api, PostParams};
use oarlock_controller::plugin_resource::ClusterPlugin;
use serde_json::json;

use crate::plugin_objects::{Objects, hello};
use crate::rig::until_ok;

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_plugin_with_the_name_of_a_plugin_file_waits_until_the_file_is_gone() {
    let objects = Objects::start().await;
    objects.account("hello").await;
    objects.rig.plugin("hello", "hello-rust");
    objects.rig.serves("hello", 1).await;
    let api: Api<ClusterPlugin> = Api::all(objects.rig.client.clone());
    let plugin = json!({
        "apiVersion": "oarlock.dev/v1alpha1", "kind": "ClusterPlugin", "metadata": {"name": "hello"}, "spec": hello(),
    });
    let plugin: ClusterPlugin = serde_json::from_value(plugin).unwrap();
    until_ok("the ClusterPlugin to be created", async || api.create(&PostParams::default(), &plugin).await)
        .await;
    let ready = async |status: &str, reason: &str| {
        until_ok(&format!("Ready={status} {reason}"), async || {
            let status_of = api.get("hello").await.unwrap().status.unwrap_or_default();
            let ready = status_of.conditions.into_iter().find(|it| it.type_ == "Ready");
            match ready {
                Some(ready) if ready.status == status && ready.reason == reason => Ok(ready.message),
                other => Err(other),
            }
        })
        .await
    };
    let message = ready("False", "NameTaken").await;
    assert!(message.contains("hello"), "{message}");
    let lines = objects.rig.lines();
    assert!(
        lines.iter().all(|it| it["event"] != "plugin-unloaded"),
        "the plugin of the file serves: {lines:#?}"
    );
    objects.rig.remove("hello");
    ready("True", "Serving").await;
    objects.rig.end().await;
}
