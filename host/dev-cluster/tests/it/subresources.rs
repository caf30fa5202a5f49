//! Subresources.

use crate::client::{Client, start};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn pod(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": "a"}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "i"}]},
    })
}

async fn deployment(client: &Client) {
    let template =
        json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": template});
    client.create(DEPLOYMENTS, &json!({"metadata": {"name": "d"}, "spec": spec})).await;
}

#[tokio::test]
async fn a_scheduler_can_bind_a_pod() {
    let (_cluster, client) = start().await;
    client.create(PODS, &pod("p")).await;
    let binding = json!({"metadata": {"name": "p", "annotations": {"k": "v"}}, "target": {"kind": "Node", "name": "n"}});
    let done = client.create(&format!("{PODS}/p/binding"), &binding).await;
    assert_eq!((&done["kind"], &done["status"]), (&json!("Status"), &json!("Success")));
    let (_, bound) = client.get(&format!("{PODS}/p")).await;
    assert_eq!(
        (&bound["spec"]["nodeName"], &bound["metadata"]["annotations"]["k"]),
        (&json!("n"), &json!("v"))
    );
    assert_eq!(bound["status"]["conditions"][0]["type"], "PodScheduled");
    let (code, again) = client.post(&format!("{PODS}/p/binding"), &binding).await;
    assert_eq!((code, again["reason"].as_str()), (409, Some("Conflict")));
    assert!(
        again["message"].as_str().unwrap().contains("pod p is already assigned to node \"n\""),
        "{again}"
    );
    // The older form, with the Pod's name in the body only.
    client.create(PODS, &pod("q")).await;
    let binding = json!({"metadata": {"name": "q"}, "target": {"name": "n"}});
    client.create("/api/v1/namespaces/default/bindings", &binding).await;
    assert_eq!(client.get(&format!("{PODS}/q")).await.1["spec"]["nodeName"], "n");
    let nowhere = json!({"metadata": {"name": "none"}, "target": {"name": "n"}});
    assert_eq!(client.post(&format!("{PODS}/none/binding"), &nowhere).await.0, 404);
}

#[tokio::test]
async fn an_eviction_respects_the_disruption_budget() {
    let (_cluster, client) = start().await;
    client.create(PODS, &pod("p")).await;
    let running =
        json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    assert_eq!(client.merge(&format!("{PODS}/p/status"), &running).await.0, 200);
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}});
    client.create(budgets, &json!({"metadata": {"name": "b"}, "spec": spec})).await;
    let eviction = json!({"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "p", "namespace": "default"}});
    let path = format!("{PODS}/p/eviction");
    let (code, refused) = client.post(&path, &eviction).await;
    assert_eq!((code, refused["details"]["causes"][0]["reason"].as_str()), (429, Some("DisruptionBudget")));
    let status = |allowed: i64| {
        json!({"status": {
            "observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1,
            "expectedPods": 1,
        }})
    };
    client.merge(&format!("{budgets}/b/status"), &status(0)).await;
    let (code, refused) = client.post(&path, &eviction).await;
    assert_eq!(code, 429);
    assert_eq!(
        refused["details"]["causes"][0]["message"],
        "The disruption budget b needs 1 healthy pods and has 1 currently"
    );
    client.merge(&format!("{budgets}/b/status"), &status(1)).await;
    assert_eq!(client.post(&format!("{path}?dryRun=All"), &eviction).await.0, 201);
    assert_eq!(client.get(&format!("{PODS}/p")).await.0, 200);
    assert_eq!(client.post(&path, &eviction).await.0, 201);
    assert_eq!(client.get(&format!("{PODS}/p")).await.0, 404);
    let (_, budget) = client.get(&format!("{budgets}/b")).await;
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    assert!(budget["status"]["disruptedPods"]["p"].is_string(), "{budget}");
}

#[tokio::test]
async fn ephemeral_containers_can_be_added_only() {
    let (_cluster, client) = start().await;
    client.create(PODS, &pod("p")).await;
    let path = format!("{PODS}/p/ephemeralcontainers");
    let debug = |image: &str| json!({"spec": {"nodeName": "x", "ephemeralContainers": [{"name": "debug", "image": image}]}});
    assert_eq!(client.merge(&format!("{PODS}/p"), &debug("i")).await.0, 422);
    let (code, added) = client.merge(&path, &debug("i")).await;
    assert_eq!((code, &added["kind"]), (200, &json!("Pod")), "{added}");
    assert_eq!(added["spec"]["ephemeralContainers"][0]["image"], "i");
    assert!(added["spec"].get("nodeName").is_none(), "nothing else changes that way: {added}");
    assert_eq!(added["metadata"]["generation"], 2);
    let (code, refused) = client.merge(&path, &debug("j")).await;
    assert_eq!(code, 422, "{refused}");
    let (code, refused) = client.merge(&path, &json!({"spec": {"ephemeralContainers": []}})).await;
    assert_eq!(code, 422);
    assert!(refused["message"].as_str().unwrap().contains("may not be removed"), "{refused}");
    let nameless =
        json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "i"}, {"image": "i"}]}});
    assert_eq!(
        client.merge(&path, &nameless).await.1["details"]["causes"][0]["field"],
        "spec.ephemeralContainers[1].name"
    );
}

#[tokio::test]
async fn a_namespace_waits_for_its_finalizers() {
    let (_cluster, client) = start().await;
    client.create("/api/v1/namespaces", &json!({"metadata": {"name": "held"}})).await;
    let path = "/api/v1/namespaces/held";
    let (_, mut namespace) = client.get(path).await;
    namespace["spec"]["finalizers"] = json!(["kubernetes", "x.dev/hold"]);
    // An ordinary update does not change them.
    assert_eq!(client.put(path, &namespace).await.1["spec"]["finalizers"], json!(["kubernetes"]));
    namespace["metadata"]["resourceVersion"] = "".into();
    let (code, finalized) = client.put(&format!("{path}/finalize"), &namespace).await;
    assert_eq!(
        (code, &finalized["spec"]["finalizers"]),
        (200, &json!(["kubernetes", "x.dev/hold"])),
        "{finalized}"
    );
    client.delete(path).await;
    let (code, mut waiting) = client.get(path).await;
    assert_eq!((code, &waiting["spec"]["finalizers"]), (200, &json!(["x.dev/hold"])), "{waiting}");
    waiting["spec"] = json!({});
    assert_eq!(client.put(&format!("{path}/finalize"), &waiting).await.0, 200);
    assert_eq!(client.get(path).await.0, 404);
    assert_eq!(client.get(&format!("{path}/finalize")).await.0, 405);
}

#[tokio::test]
async fn workloads_are_scaled_through_the_scale_subresource() {
    let (_cluster, client) = start().await;
    deployment(&client).await;
    let path = format!("{DEPLOYMENTS}/d/scale");
    let (code, mut scale) = client.get(&path).await;
    assert_eq!(
        (code, &scale["kind"], &scale["apiVersion"]),
        (200, &json!("Scale"), &json!("autoscaling/v1"))
    );
    assert_eq!((&scale["spec"]["replicas"], &scale["status"]["selector"]), (&json!(1), &json!("app=a")));
    scale["spec"]["replicas"] = 4.into();
    let (code, scaled) = client.put(&path, &scale).await;
    assert_eq!((code, &scaled["spec"]["replicas"]), (200, &json!(4)), "{scaled}");
    assert_eq!(client.put(&path, &scale).await.0, 409, "a stale scale");
    let (code, scaled) = client.merge(&path, &json!({"spec": {"replicas": 2}})).await;
    assert_eq!((code, &scaled["spec"]["replicas"]), (200, &json!(2)));
    let (_, deployment) = client.get(&format!("{DEPLOYMENTS}/d")).await;
    assert_eq!(
        (&deployment["spec"]["replicas"], &deployment["metadata"]["generation"]),
        (&json!(2), &json!(3))
    );
    let owners = deployment["metadata"]["managedFields"].as_array().unwrap();
    assert!(owners.iter().any(|owner| owner["subresource"] == "scale"), "{owners:?}");
    let (code, refused) = client.merge(&path, &json!({"spec": {"replicas": -1}})).await;
    assert_eq!((code, refused["details"]["kind"].as_str()), (422, Some("Scale")));
    let apply = client.with("content-type", "application/apply-patch+yaml");
    let applied = "{kind: Scale, apiVersion: autoscaling/v1, metadata: {name: d}, spec: {replicas: 7}}";
    let forced = format!("{path}?fieldManager=me&force=true");
    let (code, _, body) = apply.whole(http::Method::PATCH, &forced, applied).await;
    assert_eq!(code, 200, "{body:?}");
    assert_eq!(client.get(&format!("{DEPLOYMENTS}/d")).await.1["spec"]["replicas"], 7);
    assert_eq!(client.get("/apis/apps/v1/namespaces/default/daemonsets/d/scale").await.0, 404);
}

#[tokio::test]
async fn custom_resources_are_scaled_at_the_paths_of_their_definition() {
    let (_cluster, client) = start().await;
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = |scale: Value| {
        json!({
            "name": "v1", "served": true, "storage": true, "subresources": {"status": {}, "scale": scale},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}},
        })
    };
    let definition = |scale: Value| {
        json!({
            "metadata": {"name": "boats.x.dev"},
            "spec": {
                "group": "x.dev", "scope": "Namespaced", "versions": [version(scale)],
                "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"},
            },
        })
    };
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let wrong = definition(json!({"specReplicasPath": ".status.rowers"}));
    let (code, refused) = client.post(definitions, &wrong).await;
    assert_eq!(code, 422, "{refused}");
    let paths = json!({
        "specReplicasPath": ".spec.rowers", "statusReplicasPath": ".status.rowers", "labelSelectorPath": ".status.who",
    });
    client.create(definitions, &definition(paths)).await;
    let boats = "/apis/x.dev/v1/namespaces/default/boats";
    let boat = |name: &str, spec: Value| json!({"kind": "Boat", "apiVersion": "x.dev/v1", "metadata": {"name": name}, "spec": spec});
    client.create(boats, &boat("b", json!({"rowers": 2}))).await;
    client.merge(&format!("{boats}/b/status"), &json!({"status": {"rowers": 1, "who": "a=b"}})).await;
    let (code, mut scale) = client.get(&format!("{boats}/b/scale")).await;
    assert_eq!(code, 200, "{scale}");
    assert_eq!(scale["status"], json!({"replicas": 1, "selector": "a=b"}));
    scale["spec"]["replicas"] = 8.into();
    assert_eq!(client.put(&format!("{boats}/b/scale"), &scale).await.0, 200);
    assert_eq!(client.get(&format!("{boats}/b")).await.1["spec"]["rowers"], 8);
    client.create(boats, &boat("empty", json!({}))).await;
    assert_eq!(client.get(&format!("{boats}/empty/scale")).await.0, 500);
    assert_eq!(client.merge(&format!("{boats}/empty/scale"), &json!({})).await.0, 400);
    let (_, list) = client.get("/apis/x.dev/v1").await;
    assert!(list["resources"].as_array().unwrap().iter().any(|one| one["name"] == "boats/scale"), "{list}");
}

#[tokio::test]
async fn a_certificate_request_has_its_requester_and_can_be_approved_once() {
    let (_cluster, client) = start().await;
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let spec = json!({"request": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K", "signerName": "x.dev/signer", "usages": ["client auth"], "username": "forged"});
    let created = client.create(path, &json!({"metadata": {"name": "c"}, "spec": spec})).await;
    assert_eq!(created["spec"]["username"], "kubernetes-admin");
    let mut approved = created.clone();
    approved["status"] =
        json!({"conditions": [{"type": "Approved", "status": "True", "reason": "r", "message": "m"}]});
    approved["spec"]["username"] = "forged".into();
    let (code, now) = client.put(&format!("{path}/c/approval"), &approved).await;
    assert_eq!((code, &now["status"]["conditions"][0]["type"]), (200, &json!("Approved")), "{now}");
    assert_eq!(now["spec"]["username"], "kubernetes-admin");
    // A decision is final.
    let back = json!({"status": {"conditions": []}});
    assert_eq!(client.merge(&format!("{path}/c/approval"), &back).await.0, 422);
    assert_eq!(client.merge(&format!("{path}/c/status"), &back).await.0, 422);
    let none = json!({"metadata": {"name": "w"}, "spec": {"request": "YQ==", "signerName": "x"}});
    let (_, refused) = client.post(path, &none).await;
    assert_eq!(refused["details"]["causes"].as_array().unwrap().len(), 3, "{refused}");
}

#[tokio::test]
async fn kinds_without_a_controller_are_stored_and_validated() {
    let (_cluster, client) = start().await;
    let scale = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
    for (path, good, wrong) in [
        (
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            json!({"metadata": {"name": "a"}, "spec": {"maxReplicas": 3, "scaleTargetRef": scale}}),
            json!({"metadata": {"name": "b"}, "spec": {"minReplicas": 4, "maxReplicas": 3, "scaleTargetRef": scale}}),
        ),
        (
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            json!({"metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}]}),
            json!({"metadata": {"name": "b"}, "addressType": "IPv5", "endpoints": []}),
        ),
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            json!({"metadata": {"name": "a"}, "provisioner": "x.dev/y"}),
            json!({"metadata": {"name": "b"}}),
        ),
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            json!({"metadata": {"name": "a"}, "value": 7}),
            json!({"metadata": {"name": "system-b"}, "value": 7}),
        ),
    ] {
        client.create(path, &good).await;
        let (code, refused) = client.post(path, &wrong).await;
        assert_eq!(code, 422, "{refused}");
        assert_eq!(client.names(path).await, ["a"]);
    }
    let mut of_class = pod("p");
    of_class["spec"]["priorityClassName"] = "a".into();
    assert_eq!(client.create(PODS, &of_class).await["spec"]["priority"], 7);
    of_class["metadata"]["name"] = "q".into();
    of_class["spec"]["priorityClassName"] = "none".into();
    assert_eq!(client.post(PODS, &of_class).await.0, 403);
}
