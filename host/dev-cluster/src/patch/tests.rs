use super::*;
use serde_json::json;

fn deployment() -> Model {
    Model::builtin("apps", "v1", "Deployment").unwrap()
}

fn strategic(current: Value, patch: Value) -> Value {
    patched(PatchKind::Strategic, &deployment(), &current, patch.to_string().as_bytes()).unwrap()
}

fn with_containers(containers: Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

#[test]
fn a_strategic_patch_merges_lists_by_key_and_keeps_the_order() {
    let current =
        with_containers(json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1", "args": ["x"]}]));
    let got = strategic(current.clone(), with_containers(json!([{"name": "b", "image": "2"}])));
    assert_eq!(
        got,
        with_containers(json!([{"name": "a", "image": "1"}, {"name": "b", "image": "2", "args": ["x"]}]))
    );
    let got = strategic(current.clone(), with_containers(json!([{"name": "a", "$patch": "delete"}])));
    assert_eq!(got, with_containers(json!([{"name": "b", "image": "1", "args": ["x"]}])));
    let got = strategic(
        current.clone(),
        with_containers(json!([{"name": "c", "image": "3"}, {"$patch": "replace"}])),
    );
    assert_eq!(got, with_containers(json!([{"name": "c", "image": "3"}])));
    let ordered = json!({"spec": {"template": {"spec": {
        "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "a", "image": "9"}],
    }}}});
    let got = strategic(current, ordered);
    assert_eq!(
        got,
        with_containers(json!([{"name": "b", "image": "1", "args": ["x"]}, {"name": "a", "image": "9"}]))
    );
}

#[test]
fn directives_of_a_strategic_patch_are_applied() {
    let current = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
    let got =
        strategic(current, json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}));
    assert_eq!(got, json!({"spec": {"strategy": {"type": "Recreate"}}}));
    let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
    let got = strategic(
        finalizers(json!(["a/a", "b/b", "c/c"])),
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["b/b"], "finalizers": ["d/d"]}}),
    );
    let Value::Array(mut list) = got["metadata"]["finalizers"].clone() else { panic!("a list") };
    list.sort_by_key(Value::to_string);
    assert_eq!(list, ["a/a", "c/c", "d/d"]);
    let labels = |map: Value| json!({"metadata": {"labels": map}});
    let got = strategic(labels(json!({"a": "1"})), labels(json!({"$patch": "replace", "b": "2"})));
    assert_eq!(got, labels(json!({"b": "2"})));
    let error = patched(
        PatchKind::Strategic,
        &deployment(),
        &labels(json!({"a": "1"})),
        br#"{"metadata":{"labels":{"$patch":"bogus"}}}"#,
    );
    assert_eq!(error.unwrap_err().message, "unknown patch type: bogus in map: map[$patch:bogus]");
}

#[test]
fn a_json_patch_is_as_tolerant_as_kube_apiserver() {
    let apply = |patch: Value| {
        let current = json!({"a": {"b": 1}, "l": [1, 2, 3]});
        patched(PatchKind::Json, &deployment(), &current, patch.to_string().as_bytes())
    };
    let got = apply(json!([
        {"op": "replace", "path": "/a/new", "value": 2}, {"op": "copy", "from": "/a/none", "path": "/a/copied"},
        {"op": "remove", "path": "/l/-1"}, {"op": "add", "path": "/l/-", "value": 9}, {"op": "test", "path": "/a/b", "value": 1},
    ]));
    assert_eq!(got.unwrap(), json!({"a": {"b": 1, "new": 2, "copied": null}, "l": [1, 2, 9]}));
    for bad in [
        json!([{"op": "remove", "path": "/a/none"}]),
        json!([{"op": "test", "path": "/a/b", "value": 2}]),
        json!([{"op": "add", "path": "/none/x", "value": 2}]),
        json!([{"op": "add", "path": "/l/7", "value": 2}]),
        json!([{"op": "replace", "path": "/l/3", "value": 2}]),
        json!([{"op": "remove", "path": "/l/-4"}]),
        json!([{"op": "copy", "from": "/none/x", "path": "/a/copied"}]),
        json!([{"op": "move", "from": "/a", "path": "/a/b"}]),
        json!([{"op": "add", "path": "", "value": {}}]),
        json!([{"op": "bogus", "path": "/a"}]),
    ] {
        let error = apply(bad).unwrap_err();
        assert_eq!((error.code, error.details), (422, Some(Box::default())));
    }
    assert_eq!(apply(json!({})).unwrap_err().code, 400);
}

#[test]
fn a_merge_patch_merges_objects_and_deletes_nulls() {
    let mut value = json!({"a": {"b": 1, "c": 2}, "l": [1]});
    json_patch::merge(&mut value, &json!({"a": {"b": null, "d": {"e": null, "f": 1}}, "l": [2]}));
    assert_eq!(value, json!({"a": {"c": 2, "d": {"f": 1}}, "l": [2]}));
}

#[test]
fn custom_resources_have_no_strategic_merge_patch() {
    assert_eq!(PatchKind::from_content_type(STRATEGIC, false), Ok(PatchKind::Strategic));
    assert_eq!(PatchKind::from_content_type(STRATEGIC, true).unwrap_err().code, 415);
    assert_eq!(PatchKind::from_content_type("application/json", false).unwrap_err().code, 415);
}
