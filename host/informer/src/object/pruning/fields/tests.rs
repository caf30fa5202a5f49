use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::names::TypeMeta;
use crate::object::{Content, Error, Object, Pruning};

const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7","labels":{"app":"x"},"annotations":{"a/b":"c","d":"e"}},"spec":{"nodeName":"m","containers":[{"name":"p","env":[{"name":"E"}],"image":"i"},{"name":"q"}]},"status":{"phase":"Running"}}"#;

fn patterns(pointers: &[&str]) -> Vec<PointerPattern> {
    pointers.iter().map(|pointer| pointer.parse().unwrap()).collect()
}

fn without(pointers: &[&str]) -> Result<Fields, FieldsError> {
    Fields::without(&patterns(pointers))
}

fn only(pointers: &[&str]) -> Result<Fields, FieldsError> {
    Fields::only(&patterns(pointers))
}

fn decoded(text: &str, fields: Fields) -> Object {
    let pruning = Pruning { fields, ..Pruning::default() };
    Object::parse_pruned(text.as_bytes(), Some(&TypeMeta::new("v1", "Pod")), &pruning).unwrap()
}

#[test]
fn without_removes_the_named_fields() {
    let fields =
        without(&["/status", "/spec/containers/*/env", "/metadata/annotations/a~1b", "/spec/x/y", "/kind/x"]);
    let pod = decoded(POD, fields.unwrap());
    insta::assert_snapshot!(&*pod.json(), @r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7","labels":{"app":"x"},"annotations":{"d":"e"}},"spec":{"nodeName":"m","containers":[{"name":"p","image":"i"},{"name":"q"}]}}"#);
    assert_eq!(pod.annotations().len(), 1);
    let pod = decoded(POD, without(&["/metadata/labels"]).unwrap());
    assert!(pod.labels().is_empty());
}

#[test]
fn only_keeps_the_named_fields_and_the_identity() {
    let pod =
        decoded(POD, only(&["/spec/containers/*/image", "/metadata/labels", "/status/phase/x"]).unwrap());
    insta::assert_snapshot!(&*pod.json(), @r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7","labels":{"app":"x"}},"spec":{"containers":[{"image":"i"},{}]},"status":{}}"#);
    let pod = decoded(POD, only(&[]).unwrap());
    insta::assert_snapshot!(&*pod.json(), @r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7"}}"#);
    // A pointer to a field includes the pointers to its parts.
    assert_eq!(
        *decoded(POD, only(&["/spec", "/spec/nodeName", "/status", "/metadata"]).unwrap()).json(),
        *POD
    );
}

#[test]
fn lists_keep_the_number_and_order_of_their_elements() {
    let text = r#"{"metadata":{"name":"a"},"l":[1,{"x":1,"y":[2]},[{"x":3}],null]}"#;
    let l = |fields: Fields| decoded(text, fields).pointer(&"/l".parse().unwrap()).unwrap();
    assert_eq!(l(only(&["/l/*/x"]).unwrap()), r#"[null,{"x":1},null,null]"#);
    assert_eq!(l(only(&["/l/*/*/x"]).unwrap()), r#"[null,null,[{"x":3}],null]"#);
    assert_eq!(l(without(&["/l/*/x", "/l/*/*/x"]).unwrap()), r#"[1,{"y":[2]},[{}],null]"#);
}

#[test]
fn the_identity_cannot_be_left_out_pd_43() {
    for pointer in [
        "/kind",
        "/apiVersion",
        "/metadata",
        "/metadata/name",
        "/metadata/namespace",
        "/metadata/uid",
        "/metadata/resourceVersion",
    ] {
        assert_eq!(without(&["/status", pointer]), Err(FieldsError::Identity(pointer.into())));
    }
    assert!(without(&["/metadata/generation", "/metadata/names", "/spec/kind"]).is_ok());
    // Names with escapes are the same names.
    let text = r#"{"metadata":{"n\u0061me":"a","l\u0061bels":{"x":"y"}}}"#;
    let object = decoded(text, only(&[]).unwrap());
    assert_eq!(object.key().name(), "a");
    assert!(object.labels().is_empty());
    assert!(decoded(text, without(&["/metadata/labels"]).unwrap()).labels().is_empty());
}

#[test]
fn pointers_to_the_whole_object_or_to_elements_are_refused() {
    assert_eq!(without(&[""]), Err(FieldsError::Whole));
    assert_eq!(only(&[""]), Err(FieldsError::Whole));
    assert_eq!(
        without(&["/spec/containers/*"]),
        Err(FieldsError::EndsInElements("/spec/containers/*".into()))
    );
    let error = only(&["/spec/containers/0/image"]).unwrap_err();
    insta::assert_snapshot!(error, @r#""/spec/containers/0/image" has the number 0: a pointer cannot name one element of a list, '*' names all of them"#);
    assert_eq!(without(&[]), Ok(Fields::all()));
    insta::assert_snapshot!(format!("{:?}", without(&["/b", "/a/*/c~1d", "/a"]).unwrap()), @r#"Without(["/a", "/a/*/c~1d", "/b"])"#);
}

#[test]
fn malformed_objects_are_refused_when_fields_are_pruned() {
    for text in ["", "{", r#"{"metadata":{"name":"a"},}"#, r#"{"metadata":{"name":"a"}}x"#, "[]"] {
        for fields in [without(&["/status"]), only(&[])] {
            let pruning = Pruning { fields: fields.unwrap(), ..Pruning::none() };
            let error = Object::parse_content(
                text.as_bytes(),
                Some(&TypeMeta::new("v1", "Pod")),
                &pruning,
                Content::Full,
            );
            assert!(matches!(error, Err(Error::Json(_))), "{text}: {error:?}");
        }
    }
}

fn pruned(text: &str, fields: Fields) -> String {
    let pruning = Pruning { fields, ..Pruning::none() };
    Object::parse_pruned(text.as_bytes(), None, &pruning).unwrap().json().to_string()
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i8>().prop_map(Value::from),
        "[a{\"\\\\é]{0,2}".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[ab\"/]", inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn remove(value: &mut Value, pointer: &[Segment]) {
    match (value, pointer) {
        (Value::Object(map), [Segment::Name { name, .. }]) => drop(map.shift_remove(&**name)),
        (Value::Object(map), [Segment::Name { name, .. }, rest @ ..]) => {
            map.get_mut(&**name).into_iter().for_each(|value| remove(value, rest));
        }
        (Value::Array(elements), [Segment::Every, rest @ ..]) => {
            elements.iter_mut().for_each(|value| remove(value, rest));
        }
        _ => {}
    }
}

/// Returns the parts of the value that the pointers name. Returns `None` if no pointer descends into it.
fn keep(value: &Value, pointers: &[&[Segment]]) -> Option<Value> {
    if pointers.iter().any(|pointer| pointer.is_empty()) {
        return Some(value.clone());
    }
    let under = |is: &dyn Fn(&Segment) -> bool| -> Vec<&[Segment]> {
        pointers.iter().filter(|pointer| is(&pointer[0])).map(|pointer| &pointer[1..]).collect()
    };
    match value {
        Value::Object(map) if !under(&|segment| matches!(segment, Segment::Name { .. })).is_empty() => {
            let kept = map.iter().filter_map(|(key, value)| {
                let under =
                    under(&|segment| matches!(segment, Segment::Name { name, .. } if **name == **key));
                keep(value, &under).map(|value| (key.clone(), value))
            });
            Some(Value::Object(kept.collect()))
        }
        Value::Array(elements) => {
            let under = under(&|segment| matches!(segment, Segment::Every));
            let kept = elements.iter().map(|value| keep(value, &under).unwrap_or_default());
            (!under.is_empty()).then(|| kept.collect())
        }
        _ => None,
    }
}

proptest! {
    #[test]
    fn pruning_a_text_equals_pruning_a_tree(
        value in any_json(),
        pointers in prop::collection::vec("(/(a|b|\"|~1|[*])){0,3}/(a|b|~1)", 1..4),
        is_pretty in any::<bool>(),
    ) {
        let object = json!({ "kind": "Pod", "apiVersion": "v1", "metadata": { "name": "a" }, "a": value, "b": [value] });
        let text = if is_pretty { format!("{object:#}") } else { object.to_string() };
        let patterns: Vec<PointerPattern> = pointers.iter().map(|pointer| pointer.parse().unwrap()).collect();

        let mut expected = object.clone();
        patterns.iter().for_each(|pattern| remove(&mut expected, pattern.segments()));
        let left = pruned(&text, Fields::without(&patterns).unwrap());
        prop_assert_eq!(serde_json::from_str::<Value>(&left).unwrap(), expected, "{}", text);

        let identity = ["/kind", "/apiVersion", "/metadata/name"].map(|pointer| pointer.parse::<PointerPattern>().unwrap());
        let all: Vec<&[Segment]> = identity.iter().chain(&patterns).map(PointerPattern::segments).collect();
        let left = pruned(&text, Fields::only(&patterns).unwrap());
        prop_assert_eq!(Some(serde_json::from_str::<Value>(&left).unwrap()), keep(&object, &all), "{}", text);
    }
}

#[test]
fn keeps_says_whether_a_pointer_leads_to_a_kept_field() {
    let patterns =
        |texts: &[&str]| -> Vec<PointerPattern> { texts.iter().map(|text| text.parse().unwrap()).collect() };
    let without = Fields::without(&patterns(&["/status/conditions", "/spec/containers/*/env"])).unwrap();
    let only = Fields::only(&patterns(&["/status/phase", "/spec/containers/*/image"])).unwrap();
    for (pointer, not_without, in_only) in [
        ("", true, true),
        ("/metadata/name", true, true),
        ("/metadata/labels/app", true, false),
        ("/status", true, true),
        ("/status/phase", true, true),
        ("/status/phase/x", true, true),
        ("/status/conditions", false, false),
        ("/status/conditions/0/type", false, false),
        ("/spec/containers", true, true),
        ("/spec/containers/0/env", false, false),
        ("/spec/containers/0/image", true, true),
        ("/spec/containers/x/env", true, false),
    ] {
        let pointer: JsonPointer = pointer.parse().unwrap();
        assert_eq!((without.keeps(&pointer), only.keeps(&pointer)), (not_without, in_only), "{pointer}");
        assert!(Fields::all().keeps(&pointer));
    }
}
