//! The example plugin `pod-doctor`, which is called when declared fields change.

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::rig::{Rig, until_ok};

fn pods(rig: &Rig) -> Api<Pod> {
    Api::namespaced(rig.client.clone(), "default")
}

async fn set_status(rig: &Rig, status: &Value) {
    let patch = Patch::Merge(json!({"status": status}));
    pods(rig).patch_status("web", &PatchParams::default(), &patch).await.unwrap();
}

fn container(waiting: &Value, restarts: u32) -> Value {
    json!([{
        "name": "web", "image": "nginx:nope", "imageID": "", "ready": false, "restartCount": restarts,
        "state": {"waiting": waiting}, "lastState": {"terminated": {"exitCode": 127, "reason": "Error"}},
    }])
}

/// Waits until there are so many Events about the Pod; returns the reason and note of each, in their order.
async fn explanations(rig: &Rig, n: usize) -> Vec<[String; 2]> {
    let events = Api::<Event>::namespaced(rig.client.clone(), "default");
    until_ok("the Events about the Pod", async || {
        let mut events = events.list(&Default::default()).await.unwrap().items;
        events.retain(|event| event.involved_object.name.as_deref() == Some("web"));
        events.sort_by_key(|event| event.metadata.resource_version.clone().unwrap().parse::<u64>().unwrap());
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let said: Vec<_> = events.iter().map(|event| [text(&event.reason), text(&event.message)]).collect();
        if said.len() >= n { Ok(said) } else { Err(said) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn pod_doctor_explains_a_problem_once_and_is_not_called_for_other_changes() {
    let rig = Rig::start().await;
    let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "nginx:nope"}]}});
    let pod = serde_json::from_value(pod).unwrap();
    pods(&rig).create(&PostParams::default(), &pod).await.unwrap();
    rig.plugin("pod-doctor", "pod-doctor");
    let image = json!({"reason": "ImagePullBackOff", "message": "nginx:nope: not found"});
    set_status(&rig, &json!({"containerStatuses": container(&image, 0)})).await;
    let said = explanations(&rig, 1).await;
    assert_eq!(said[0][0], "ImageNotPulled");
    assert!(said[0][1].contains("the registry has no such image or tag"), "{said:?}");
    // The same problem, and a change that does not concern the plugin.
    let crash = json!({"reason": "CrashLoopBackOff", "message": "back-off"});
    set_status(&rig, &json!({"containerStatuses": container(&crash, 1)})).await;
    set_status(&rig, &json!({"containerStatuses": container(&crash, 2)})).await;
    set_status(&rig, &json!({"phase": "Pending", "podIP": "10.0.0.1"})).await;
    set_status(&rig, &json!({"containerStatuses": container(&image, 3)})).await;
    let explained = |lines: &[Value]| lines.iter().filter(|line| line["message"] == "explained").count();
    rig.until(|lines| explained(lines) >= 3).await;
    let said = explanations(&rig, 2).await;
    assert_eq!(said.len(), 2, "the second Event about the image counts as the first one again: {said:?}");
    let crashed = said.iter().find(|said| said[0] == "CrashLoop").unwrap_or_else(|| panic!("{said:?}"));
    assert!(crashed[1].contains("exit code 127"), "{said:?}");
    assert_eq!(explained(&rig.lines()), 3);
    let is_delivery = |line: &&Value| line["event"] == "delivered" && line["plugin"] == "pod-doctor";
    assert!(rig.lines().iter().filter(is_delivery).count() <= 5, "not called for the change of the address");
    rig.end().await;
}
