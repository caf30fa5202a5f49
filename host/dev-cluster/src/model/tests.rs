use super::*;
use serde_json::json;

fn model(group: &str, version: &str, kind: &str) -> Model {
    Model::builtin(group, version, kind).unwrap()
}

fn decoded(model: &Model, body: Value) -> Value {
    model.decode(body, FieldValidation::Warn).unwrap().object
}

#[test]
fn defaults_of_a_deployment_are_filled_in() {
    let got = decoded(
        &model("apps", "v1", "Deployment"),
        json!({"metadata": {"name": "d"}, "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [
                {"name": "c", "image": "nginx", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1000m"}}},
            ]}},
        }}),
    );
    assert_eq!(got["spec"]["replicas"], 1);
    assert_eq!(got["spec"]["strategy"]["rollingUpdate"]["maxSurge"], "25%");
    let container = &got["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["ports"][0]["protocol"], "TCP");
    assert_eq!(container["imagePullPolicy"], "Always");
    assert_eq!(container["resources"]["limits"]["cpu"], "1");
    assert_eq!(got["spec"]["template"]["spec"]["dnsPolicy"], "ClusterFirst");
    assert_eq!(got["status"], json!({}));
}

#[test]
fn decoding_drops_nulls_empty_values_and_unknown_fields() {
    let decoded = model("", "v1", "ConfigMap")
        .decode(
            json!({"metadata": {"name": "c", "labels": {}, "annotations": null}, "data": {}, "nope": 1}),
            FieldValidation::Warn,
        )
        .unwrap();
    assert_eq!(decoded.object, json!({"metadata": {"name": "c"}, "kind": "ConfigMap", "apiVersion": "v1"}));
    assert_eq!(decoded.warnings, ["unknown field \"nope\""]);
}

#[test]
fn a_wrong_type_has_the_error_of_gos_decoder() {
    let error =
        |body: Value| model("", "v1", "ConfigMap").decode(body, FieldValidation::Warn).unwrap_err().message;
    assert_eq!(
        error(json!({"data": {"k": 1}})),
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field \
         ConfigMap.data of type string"
    );
    assert_eq!(
        error(json!({"metadata": {"name": 1}})),
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field \
         ObjectMeta.metadata.name of type string"
    );
}

#[test]
fn string_data_is_moved_into_data() {
    let got = decoded(
        &model("", "v1", "Secret"),
        json!({"metadata": {"name": "s"}, "stringData": {"a": "b"}, "data": {"c": "ZA=="}}),
    );
    assert_eq!(got["data"], json!({"c": "ZA==", "a": "Yg=="}));
    assert_eq!(got["type"], "Opaque");
    assert_eq!(got.get("stringData"), None);
}

#[test]
fn only_the_status_subresource_changes_the_status() {
    let model = model("apps", "v1", "Deployment");
    let old = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 1}, "status": {"replicas": 1}});
    let mut new = json!({"metadata": {}, "spec": {"replicas": 2}, "status": {"replicas": 2}});
    model.prepare_update(&mut new, &old);
    assert_eq!(new["status"], old["status"]);
    assert!(model.changes_generation(&new, &old));
    let mut new = json!({"metadata": {}, "spec": {"replicas": 2}, "status": {"replicas": 2}});
    model.prepare_status_update(&mut new, &old);
    assert_eq!(
        new,
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 1}, "status": {"replicas": 2}})
    );
    assert!(!model.changes_generation(&new, &old));
}
