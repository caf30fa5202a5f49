use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::names::TypeMeta;
use crate::object::Fields;
use crate::testing::Draft;

fn pod() -> Object {
    let containers = json!([{"name": "a", "env": [1, 2]}, {"name": "b"}]);
    let draft = Draft::new("ns/a").label("app", "web").field("spec", json!({"containers": containers}));
    draft.at(&TypeMeta::new("v1", "Pod"), "u", "7")
}

fn value(object: &Object) -> Value {
    serde_json::from_str(&object.json()).unwrap()
}

fn pointer(text: &str) -> JsonPointer {
    text.parse().unwrap()
}

#[test]
fn a_transformer_sets_and_removes_fields_without_touching_text() {
    let pod = pod();
    let set = pod.with(&pointer("/metadata/annotations/example.com~1seen"), "yes \"indeed\"").unwrap();
    assert_eq!(set.annotations()["example.com/seen"], "yes \"indeed\"");
    assert_eq!((set.key(), &*set.resource_version(), &set.labels()["app"][..]), (pod.key(), "7", "web"));
    let labelled = set.with(&pointer("/metadata/labels/app"), "db").unwrap();
    assert_eq!(labelled.labels()["app"], "db", "the labels that selectors match are those of the text");
    let bare = labelled.without(&pointer("/spec/containers/0/env")).unwrap();
    assert_eq!(value(&bare)["spec"]["containers"], json!([{"name": "a"}, {"name": "b"}]));
    let fewer = bare.without(&pointer("/spec/containers/0")).unwrap();
    assert_eq!(value(&fewer)["spec"]["containers"], json!([{"name": "b"}]));
    let more = fewer.with(&pointer("/spec/containers/-"), json!({"name": "c"})).unwrap();
    let more = more.with(&pointer("/spec/containers/2/name"), "d").unwrap();
    assert_eq!(value(&more)["spec"]["containers"], json!([{"name": "b"}, {"name": "c"}, {"name": "d"}]));
    let fields = Fields::without([&"/spec/containers/*/name".parse().unwrap()]).unwrap();
    let pruned = more.pruned(&Pruning { fields, ..Pruning::none() }).unwrap();
    assert_eq!(value(&pruned)["spec"]["containers"], json!([{}, {}, {}]));
}

#[test]
fn removing_an_absent_field_returns_the_same_object() {
    let pod = pod();
    for nothing in ["/nope", "/metadata/name/deeper", "/spec/containers/7", "/spec/containers/name"] {
        assert!(pod.without(&pointer(nothing)).unwrap().is_same(&pod), "{nothing}");
    }
}

#[test]
fn an_impossible_change_is_an_error_that_names_the_pointer() {
    let pod = pod();
    for (at, error) in [
        ("/metadata/name/deeper", "no value can be set at /metadata/name/deeper"),
        ("/spec/containers/7", "no value can be set at /spec/containers/7"),
        ("/spec/containers/name", "no value can be set at /spec/containers/name"),
        ("/metadata/labels", "the changed text is not a Kubernetes object"),
        ("", "the changed text is not a Kubernetes object"),
    ] {
        let shown = pod.with(&pointer(at), 5).unwrap_err().to_string();
        assert!(shown.starts_with(error), "{at}: {shown}");
    }
    assert!(matches!(pod.without(&pointer("/metadata")), Err(EditError::Object(_))));
    assert!(matches!(pod.without(&pointer("")), Err(EditError::Object(_))));
}

/// Makes the same change to a tree of values.
fn expected(mut whole: Value, names: &[String], set: Option<Value>) -> Option<Value> {
    let (last, way) = names.split_last()?;
    let mut at = &mut whole;
    for name in way {
        let map = match at {
            Value::Object(map) => map,
            _ => return None,
        };
        if set.is_none() && !map.contains_key(name) {
            return Some(whole);
        }
        at = map.entry(name.clone()).or_insert_with(|| json!({}));
    }
    let map = at.as_object_mut()?;
    match set {
        Some(set) => drop(map.insert(last.clone(), set)),
        None => drop(map.shift_remove(last)),
    }
    Some(whole)
}

proptest! {
    #[test]
    fn a_change_of_the_text_equals_the_change_of_a_tree(
        names in prop::collection::vec("[ab/~\"é]{1,2}", 1..4),
        there in prop::collection::vec(prop::collection::vec("[ab/~\"é]{1,2}", 1..4), 0..4),
        set in prop::option::of(prop_oneof![Just(json!(null)), Just(json!({"x": [1]})), Just(json!("t\n"))]),
    ) {
        let mut object = pod();
        for path in &there {
            let text: String = path.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect();
            if let Ok(changed) = object.with(&pointer(&format!("/spec{text}")), 1) {
                object = changed;
            }
        }
        let path: Vec<_> = std::iter::once("spec".to_owned()).chain(names).collect();
        let text: String = path.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect();
        let changed = match &set {
            Some(set) => object.with(&pointer(&text), set),
            None => object.without(&pointer(&text)),
        };
        match (changed, expected(value(&object), &path, set.clone())) {
            (Ok(changed), Some(expected)) => prop_assert_eq!(value(&changed), expected),
            (Ok(changed), None) => prop_assert!(set.is_none() && changed.is_same(&object)),
            (Err(_), expected) => prop_assert!(expected.is_none()),
        }
    }
}
