//! Content negotiation, and the errors of unsupported requests.

use crate::client::{MAPS, config_map, start};
use http::Method;
use serde_json::json;

#[tokio::test]
async fn objects_are_returned_as_metadata_only_and_as_yaml() {
    let (_cluster, client) = start().await;
    client.create(MAPS, &config_map("a", "1")).await;
    let list = client.with("accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    let (_, answer) = list.get(MAPS).await;
    assert_eq!(
        (&answer["kind"], answer["items"][0].get("data")),
        (&json!("PartialObjectMetadataList"), None)
    );
    let one = client.with("accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    let (_, answer) = one.get(&format!("{MAPS}/a")).await;
    assert_eq!(
        (&answer["kind"], &answer["metadata"]["name"]),
        (&json!("PartialObjectMetadata"), &json!("a"))
    );
    let yaml = client.with("accept", "application/yaml");
    let (_, headers, body) = yaml.whole(Method::GET, &format!("{MAPS}/a"), "").await;
    assert_eq!(headers["content-type"], "application/yaml");
    assert!(std::str::from_utf8(&body).unwrap().contains("kind: ConfigMap\n"));
}

#[tokio::test]
async fn unsupported_requests_are_refused_by_name() {
    let (_cluster, client) = start().await;
    client.create(MAPS, &config_map("a", "1")).await;
    let summary = |(code, status): (u16, serde_json::Value)| {
        format!("{code} {} {}", status["reason"].as_str().unwrap(), status["message"].as_str().unwrap())
    };
    let cbor = client.with("accept", "application/cbor");
    insta::assert_snapshot!(summary(cbor.get(MAPS).await), @r"
    406 NotAcceptable 406: Not Acceptable

    Available representations: application/json, application/yaml, application/vnd.kubernetes.protobuf
    ");
    insta::assert_snapshot!(
        summary(client.get("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations").await),
        @"404 NotFound the embedded API server does not serve admissionregistration.k8s.io: it calls no webhooks and evaluates no admission policies; use a real API server (kind, or cargo xtask control-plane) for it"
    );
    let text = client.with("content-type", "text/plain");
    insta::assert_snapshot!(
        summary(text.post(MAPS, &json!({})).await),
        @"415 UnsupportedMediaType the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    );
    insta::assert_snapshot!(
        summary(client.put(MAPS, &json!({})).await),
        @"405 MethodNotAllowed the server does not allow this method on the requested resource"
    );
    insta::assert_snapshot!(
        summary(client.get("/api/v1/namespaces/default/pods/p/log").await),
        @r#"405 MethodNotAllowed get is not supported on resources of kind "pods/log""#
    );
    insta::assert_snapshot!(
        summary(client.get("/api/v1/nothings").await),
        @"404 NotFound the server could not find the requested resource"
    );
    let (code, _, body) = client.whole(Method::GET, "/apis/no.dev/v1/things", "").await;
    assert_eq!((code, &body[..]), (404, &b"404 page not found\n"[..]));
    let (code, status) = client.post(MAPS, &config_map("big", &"x".repeat(3 * 1024 * 1024))).await;
    assert_eq!((code, status["reason"].as_str()), (413, Some("RequestEntityTooLarge")));
}

#[tokio::test]
async fn discovery_is_served_aggregated_and_by_group() {
    let (_cluster, client) = start().await;
    let (_, core) = client.get("/api/v1").await;
    let pods = core["resources"].as_array().unwrap().iter().find(|r| r["name"] == "pods").unwrap();
    assert_eq!(pods["shortNames"], json!(["po"]));
    assert_eq!(pods["categories"], json!(["all"]));
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let (_, all) = client.with("accept", accept).get("/apis").await;
    assert_eq!(all["kind"], "APIGroupDiscoveryList");
    let (_, apps) = client.get("/apis/apps").await;
    assert_eq!(apps["preferredVersion"]["groupVersion"], "apps/v1");
    let (_, index) = client.get("/openapi/v3").await;
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap();
    let (_, document) = client.get(url).await;
    let patch = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Deployment");
    assert!(patch["parameters"].as_array().unwrap().iter().any(|p| p["name"] == "fieldValidation"));
}
