//! The example plugin `reloader`, which is woken by what it read.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use crate::rig::{Rig, until_ok};

fn deployments(rig: &Rig) -> Api<Deployment> {
    Api::namespaced(rig.client.clone(), "default")
}

/// Creates an annotated Deployment whose Pods read the ConfigMap `settings` and the Secret `password`.
async fn deploy(rig: &Rig) {
    let container = json!({
        "name": "web", "image": "web", "envFrom": [{"configMapRef": {"name": "settings"}}],
        "env": [{"name": "P", "valueFrom": {"secretKeyRef": {"name": "password", "key": "p"}}}],
    });
    let object = json!({
        "metadata": {"name": "web", "annotations": {"oarlock.dev/reload": "true"}},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        },
    });
    let object = serde_json::from_value(object).unwrap();
    deployments(rig).create(&PostParams::default(), &object).await.unwrap();
}

/// Waits until the Pod template has another hash than this one, and returns it.
async fn another_hash(rig: &Rig, than: Option<&str>) -> String {
    until_ok("another hash in the Pod template", async || {
        let deployment = serde_json::to_value(deployments(rig).get("web").await.unwrap()).unwrap();
        let annotations = &deployment["spec"]["template"]["metadata"]["annotations"];
        match annotations["oarlock.dev/reload-hash"].as_str() {
            Some(hash) if Some(hash) != than => Ok(hash.to_owned()),
            _ => Err(annotations.clone()),
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn reloader_restarts_a_deployment_when_what_its_pods_read_changes_and_only_then() {
    let rig = Rig::start().await;
    rig.create("settings").await;
    rig.create("other").await;
    deploy(&rig).await;
    rig.plugin("reloader", "reloader");
    let first = another_hash(&rig, None).await;
    rig.change("settings", "changed").await;
    let second = another_hash(&rig, Some(&first)).await;
    // What does not exist yet was read, too.
    let secret = json!({"metadata": {"name": "password"}, "stringData": {"p": "1"}});
    let secrets = Api::<Secret>::namespaced(rig.client.clone(), "default");
    let secret = serde_json::from_value(secret).unwrap();
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    let third = another_hash(&rig, Some(&second)).await;
    // The content is as it was: the hash, too.
    rig.change("other", "changed").await;
    rig.change("settings", "hi").await;
    let fourth = another_hash(&rig, Some(&third)).await;
    secrets.delete("password", &Default::default()).await.unwrap();
    assert_eq!(another_hash(&rig, Some(&fourth)).await, first);
    rig.delete("settings").await;
    another_hash(&rig, Some(&first)).await;
    // One patch for each of these changes, and no call for a patch or for the other ConfigMap.
    let count = |lines: &[Value], is_it: &dyn Fn(&Value) -> bool| lines.iter().filter(|it| is_it(it)).count();
    // A call that read a Deployment from before its last patch ends in a conflict, and is made again.
    let is_call = |line: &Value| {
        line["event"] == "reconciled" && line["plugin"] == "reloader" && line["outcome"] == "done"
    };
    rig.until(|lines| count(lines, &is_call) >= 6).await;
    let lines = rig.lines();
    assert_eq!(count(&lines, &|line| line["message"] == "restarted"), 6);
    assert_eq!(count(&lines, &is_call), 6);
    rig.end().await;
}
