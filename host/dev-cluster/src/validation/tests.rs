use super::*;

fn causes(kind: &str, object: &Value) -> Vec<String> {
    let kind = GroupKind::new("", kind);
    let mut all = metadata(object, true, NameRule::of(&kind));
    all.extend(builtin(&kind, object));
    all.iter().map(Cause::to_string).collect()
}

#[test]
fn malformed_names_labels_and_finalizers_are_refused() {
    let bad = json!({"metadata": {"namespace": "a", "name": "Bad_Name", "labels": {"bad key!": "x"}, "finalizers": ["nope"]}});
    let causes = causes("ServiceAccount", &bad);
    assert_eq!(causes.len(), 3, "{causes:#?}");
    assert!(
        causes[0].starts_with("metadata.name: Invalid value: \"Bad_Name\": a lowercase RFC 1123 subdomain")
    );
    assert!(causes[1].starts_with("metadata.labels: Invalid value: \"bad key!\": name part must consist"));
    assert!(causes[2].starts_with("metadata.finalizers[0]: Invalid value: \"nope\": name is neither"));
}

#[test]
fn a_pod_needs_containers_with_images() {
    let pod = |spec: Value| json!({"metadata": {"namespace": "a", "name": "p"}, "spec": spec});
    assert_eq!(causes("Pod", &pod(json!({}))), ["spec.containers: Required value"]);
    let causes = causes("Pod", &pod(json!({"containers": [{"name": "a"}], "restartPolicy": "Sometimes"})));
    assert_eq!(
        causes,
        [
            "spec.containers[0].image: Required value",
            "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"",
        ]
    );
}

#[test]
fn immutable_data_cannot_be_changed() {
    let old = json!({"immutable": true, "data": {"a": "1"}});
    let kind = GroupKind::new("", "ConfigMap");
    assert!(builtin_update(&kind, &old, &old).is_empty());
    let new = json!({"immutable": true, "data": {"a": "2"}});
    assert_eq!(
        builtin_update(&kind, &new, &old)[0].to_string(),
        "data: Forbidden: field is immutable when `immutable` is set"
    );
}
