use super::*;

fn model() -> Model {
    Model::builtin("", "v1", "ConfigMap").unwrap()
}

fn by(manager: &'static str) -> Writer<'static> {
    Writer { manager, subresource: "", now: "2026-01-01T00:00:00Z" }
}

fn config(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "labels": {"l": "1"}}, "data": data})
}

fn created(data: Value) -> Value {
    let mut new = config(data);
    after_update(&model(), None, &mut new, by("creator"));
    new["metadata"]["uid"] = "u".into();
    new
}

fn fields(object: &Value, manager: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    entries
        .iter()
        .find(|entry| entry["manager"] == manager)
        .map(|entry| entry["fieldsV1"].clone())
        .unwrap_or_default()
}

#[test]
fn the_creator_owns_fields_and_an_updater_takes_ownership() {
    let old = created(json!({"a": "1", "b": "1"}));
    assert_eq!(
        fields(&old, "creator"),
        json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}, "f:metadata": {"f:labels": {".": {}, "f:l": {}}}})
    );
    let mut new = old.clone();
    new["data"] = json!({"a": "2", "c": "1"});
    after_update(&model(), Some(&old), &mut new, by("other"));
    assert_eq!(
        fields(&new, "creator"),
        json!({"f:data": {}, "f:metadata": {"f:labels": {".": {}, "f:l": {}}}})
    );
    assert_eq!(fields(&new, "other"), json!({"f:data": {"f:a": {}, "f:c": {}}}));
}

#[test]
fn an_apply_conflicts_with_other_owners_unless_forced() {
    let live = created(json!({"a": "1", "b": "1"}));
    let wanted = config(json!({"a": "2"}));
    let error = apply(&model(), Some(&live), &wanted, false, by("me")).unwrap_err();
    assert_eq!(error.code, 409);
    assert_eq!(error.message, "Apply failed with 1 conflict: conflict with \"creator\" using v1: .data.a");
    let got = apply(&model(), Some(&live), &wanted, true, by("me")).unwrap();
    assert_eq!(got["data"], json!({"a": "2", "b": "1"}));
    assert_eq!(fields(&got, "me")["f:data"], json!({"f:a": {}}));
    assert_eq!(fields(&got, "creator")["f:data"], json!({".": {}, "f:b": {}}));
}

#[test]
fn a_field_that_is_no_longer_applied_is_removed_unless_another_manager_owns_it() {
    let first = apply(&model(), None, &config(json!({"a": "1", "b": "1"})), false, by("me")).unwrap();
    let shared = apply(&model(), Some(&first), &config(json!({"b": "1"})), false, by("you")).unwrap();
    let last = apply(&model(), Some(&shared), &config(json!({})), false, by("me")).unwrap();
    assert_eq!(last["data"], json!({"b": "1"}));
    assert_eq!(fields(&last, "you")["f:data"], json!({"f:b": {}}));
}

#[test]
fn lists_with_keys_are_owned_item_by_item() {
    let model = Model::builtin("apps", "v1", "Deployment").unwrap();
    let deployment = |containers: Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"template": {"spec": {"containers": containers}}}})
    };
    let first =
        apply(&model, None, &deployment(json!([{"name": "a", "image": "1"}])), false, by("me")).unwrap();
    let both =
        apply(&model, Some(&first), &deployment(json!([{"name": "b", "image": "1"}])), false, by("you"))
            .unwrap();
    assert_eq!(
        both["spec"]["template"]["spec"]["containers"],
        json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}])
    );
    let error =
        apply(&model, Some(&both), &deployment(json!([{"name": "a", "image": "2"}])), false, by("you"));
    assert_eq!(
        error.unwrap_err().message,
        "Apply failed with 1 conflict: conflict with \"me\": .spec.template.spec.containers[name=\"a\"].image"
    );
}

#[test]
fn an_unknown_field_or_a_wrong_type_cannot_be_applied() {
    let error = |data: Value| apply(&model(), None, &data, false, by("me")).unwrap_err();
    let unknown =
        error(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "nope": 1}));
    assert_eq!(unknown.code, 500);
    assert_eq!(
        unknown.message,
        "failed to create typed patch object (/c; /v1, Kind=ConfigMap): .nope: field not declared in schema"
    );
    let wrong = error(config(json!({"a": 1})));
    assert!(
        wrong.message.ends_with(".data.a: expected string, got &value.valueUnstructured{Value:1}"),
        "{}",
        wrong.message
    );
}
