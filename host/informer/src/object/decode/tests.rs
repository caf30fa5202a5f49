//! Compares the fast decoder with the strict one, and both with a tree of values.

use oarlock_json::{JsonPointer, PointerPattern};
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::names::ObjectKey;
use crate::object::{Fields, OwnerReference, StringMap};

const OWNER: &str =
    r#"{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u-r","controller":true,"x":[1]}"#;

/// Everything that a reader can see of an object.
#[derive(Debug, PartialEq)]
struct Seen {
    key: ObjectKey,
    type_meta: TypeMeta,
    texts: [Option<String>; 3],
    generation: Option<i64>,
    maps: [StringMap; 2],
    owners: Vec<OwnerReference>,
    json: String,
    metadata: String,
}

impl Seen {
    fn of(object: &Object) -> Self {
        Self {
            key: object.key().clone(),
            type_meta: object.type_meta().clone(),
            texts: [
                Some(object.uid().to_string()),
                Some(object.resource_version().to_string()),
                object.deletion_timestamp().map(str::to_owned),
            ],
            generation: object.generation(),
            maps: [object.labels(), object.annotations()],
            owners: object.owner_references(),
            json: object.json().to_string(),
            metadata: object.metadata_json(),
        }
    }
}

fn pod() -> TypeMeta {
    TypeMeta::new("v1", "Pod")
}

type Settings = (Pruning, Content);

fn fast(text: &str, (pruning, content): &Settings) -> Option<Object> {
    fast::decode(text, Options { type_meta: Some(&pod()), pruning, content: *content, copied: None })
}

fn strict(text: &str, (pruning, content): &Settings) -> Result<Object, Error> {
    strict::decode(text, Options { type_meta: Some(&pod()), pruning, content: *content, copied: None })
}

fn prunings() -> impl Strategy<Value = Pruning> {
    (any::<bool>(), any::<bool>()).prop_map(|(managed_fields, last_applied)| Pruning {
        managed_fields,
        last_applied,
        ..Pruning::none()
    })
}

fn fields() -> impl Strategy<Value = Fields> {
    let pointers = [
        "/spec/metadata/name",
        "/spec/metadata/name/*/x",
        "/spec",
        "/n",
        "/metadata/labels",
        "/metadata/labels/app",
        "/metadata/annotations",
        "/metadata/annotations/é",
        "/metadata/ownerReferences/*/x",
        "/metadata/ownerReferences/*/uid",
        "/metadata/generation",
    ];
    let patterns = pointers.map(|pointer| pointer.parse::<PointerPattern>().unwrap()).to_vec();
    let some = prop::sample::subsequence(patterns, 0..4);
    prop_oneof![
        2 => Just(Fields::all()),
        1 => some.clone().prop_map(|patterns| Fields::without(&patterns).unwrap()),
        1 => some.prop_map(|patterns| Fields::only(&patterns).unwrap()),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let content = prop_oneof![3 => Just(Content::Full), 1 => Just(Content::Metadata)];
    (prunings(), fields(), content)
        .prop_map(|(pruning, fields, content)| (Pruning { fields, ..pruning }, content))
}

#[test]
fn the_fast_decoder_decodes_what_api_servers_usually_write() {
    let last_applied = r#""kubectl.kubernetes.io/last-applied-configuration":"{\"a\":\"\\\"\"}\n""#;
    let fields = r#""managedFields":[{"manager":"k","fieldsV1":{"f:a":{".":{}}}}]"#;
    for metadata in [
        r#""name":"a""#.to_owned(),
        format!(r#""name":"a","namespace":"n","generation":1,"creationTimestamp":null,{fields}"#),
        format!(r#"{fields},"name":"a","labels":{{"app":"é \u00e9"}},"deletionTimestamp":"t""#),
        format!(r#""name":"a",{fields},"annotations":{{{last_applied}}},"ownerReferences":[{OWNER}]"#),
        format!(r#""annotations":{{{last_applied},"a":"b"}},"name":"a""#),
        format!(r#""name":"a","annotations":{{"a":"b",{last_applied}}},{fields}"#),
        format!(r#""annotations":{{"a":"b",{last_applied},"c":"d\n"}},{fields},"name":"a""#),
    ] {
        for text in [
            format!(r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{{metadata}}},"spec":{{"a":[{{}}]}}}}"#),
            format!(r#"{{"metadata":{{{metadata}}},"spec":{{}}}}"#),
            format!(r#"{{"spec":{{}},"apiVersion":"v1","n":-1.5e3,"metadata":{{{metadata}}}}}"#),
        ] {
            for pruning in [Pruning::none(), Pruning::default()] {
                for content in [Content::Full, Content::Metadata] {
                    let settings = (pruning.clone(), content);
                    let fast = fast(&text, &settings).unwrap_or_else(|| panic!("{text}"));
                    assert_eq!(Seen::of(&fast), Seen::of(&strict(&text, &settings).unwrap()));
                }
            }
        }
    }
}

#[test]
fn a_fault_inside_of_a_skipped_value_is_accepted() {
    let object = decode(
        br#"{"metadata":{"name":"a"},"spec":{"a":tru,}}"#,
        Some(&pod()),
        &Pruning::none(),
        Content::Full,
        None,
    );
    assert!(object.is_ok());
    // The object's own text is accepted again, whatever its type.
    let odd = TypeMeta::new("v1", "P\"d\n");
    let text = br#"{"metadata":{"name":"a"},"spec":{"a":tru,}}"#;
    let object = decode(text, Some(&odd), &Pruning::none(), Content::Full, None).unwrap();
    let again = decode(object.json().as_bytes(), None, &Pruning::none(), Content::Full, None).unwrap();
    assert_eq!(Seen::of(&again), Seen::of(&object));
    // A fault that leaves a value open is refused.
    for text in [r#"{"metadata":{"name":"a"},"spec":{"a":"}}"#, r#"{"metadata":{"name":"a"},"spec":{"a":[}}"#]
    {
        assert!(matches!(
            decode(text.as_bytes(), Some(&pod()), &Pruning::none(), Content::Full, None),
            Err(Error::Json(_))
        ));
    }
}

/// Objects with entries of these keys and values, some with white space.
fn entries(
    keys: &'static [&'static str],
    values: &'static [&'static str],
    inner: BoxedStrategy<String>,
) -> BoxedStrategy<String> {
    let value = prop_oneof![3 => prop::sample::select(values).prop_map(str::to_owned), 1 => inner];
    let blank = prop_oneof![20 => Just(""), 1 => Just(" "), 1 => Just("\n\t")];
    let entry = (prop::sample::select(keys), value, blank.clone(), blank.clone()).prop_map(
        |(key, value, before, behind)| format!("{before}\"{key}\"{behind}:{before}{value}{behind}"),
    );
    (prop::collection::vec(entry, 0..6), blank)
        .prop_map(|(entries, blank)| format!("{{{}{blank}}}", entries.join(",")))
        .boxed()
}

fn metadata() -> BoxedStrategy<String> {
    let map = entries(
        &["app", "é", "kubectl.kubernetes.io/last-applied-configuration", "\\u0061pp"],
        &["\"x\"", "\"\\n\\\"{\"", "\"\"", "1", "null", "\"\\ud800\""],
        Just("{}".to_owned()).boxed(),
    );
    let owner = entries(
        &["apiVersion", "kind", "name", "uid", "controller", "x"],
        &["\"x\"", "true", "null", "\"\\t\""],
        Just("[]".to_owned()).boxed(),
    );
    let owners = prop_oneof![Just(OWNER.to_owned()), owner].prop_map(|owner| format!("[{owner},{OWNER}]"));
    let named = |name: &'static str, value: BoxedStrategy<String>| {
        value.prop_map(move |value| format!("\"{name}\":{value}"))
    };
    let text = prop::sample::select(&["\"x\"", "\"a/b\"", "\"\"", "null", "\"\\u0061\"", "1"][..]);
    let number = prop::sample::select(&["0", "-0", "-7", "1.0", "9223372036854775808", "null", "01"][..]);
    let texts = prop::sample::select(&["namespace", "uid", "resourceVersion", "deletionTimestamp"][..]);
    let entry = prop_oneof![
        3 => Just("\"name\":\"a\"".to_owned()),
        2 => (texts, text).prop_map(|(name, value)| format!("\"{name}\":{value}")),
        1 => number.prop_map(|value| format!("\"generation\":{value}")),
        2 => named("labels", map.clone()),
        3 => named("annotations", map),
        2 => Just(format!("\"ownerReferences\":[{OWNER}]")),
        1 => named("ownerReferences", owners.boxed()),
        3 => Just(r#""managedFields":[{"a":{"f:\"}":{}}}]"#.to_owned()),
        1 => Just(r#""\u006danagedFields":[]"#.to_owned()),
        1 => Just(r#""creationTimestamp":null"#.to_owned()),
        1 => Just(r#""labels":null"#.to_owned()),
    ];
    let blank = prop_oneof![30 => Just(""), 1 => Just(" ")];
    (prop::collection::vec(entry, 1..7), blank)
        .prop_map(|(entries, blank)| format!("{{{}}}", entries.join(&format!(",{blank}"))))
        .boxed()
}

fn documents() -> impl Strategy<Value = String> {
    let entry = prop_oneof![
        6 => metadata().prop_map(|metadata| format!("\"metadata\":{metadata}")),
        1 => Just("\"kind\":\"Pod\"".to_owned()),
        1 => Just("\"kind\":\"P\\u006fd\"".to_owned()),
        1 => Just("\"apiVersion\":\"v2\"".to_owned()),
        1 => Just("\"apiVersion\":null".to_owned()),
        1 => Just(r#""kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1""#.to_owned()),
        2 => Just(r#""spec":{"metadata":{"name":[1,"\"]}"]},"x":1.5e-3}"#.to_owned()),
        1 => Just("\"n\" : -1 ".to_owned()),
    ];
    prop::collection::vec(entry, 1..4).prop_map(|entries| format!("{{{}}}", entries.join(",")))
}

fn agree(text: &str, settings: &Settings) -> Result<(), TestCaseError> {
    let (fast, strict) = (fast(text, settings), strict(text, settings));
    match (fast, strict) {
        (Some(fast), Ok(strict)) => prop_assert_eq!(Seen::of(&fast), Seen::of(&strict), "{}", text),
        // The text has a fault inside of a value that the fast decoder skips.
        (Some(_), Err(Error::Json(_))) => prop_assert!(serde_json::from_str::<Value>(text).is_err()),
        (Some(_), Err(error)) => prop_assert!(false, "{text}: {error}"),
        (None, _) => {}
    }
    Ok(())
}

#[test]
fn a_duplicate_field_is_refused_even_if_pruning_empties_it() {
    for last in ["{}", r#"{"kubectl.kubernetes.io/last-applied-configuration":"{}"}"#] {
        let text =
            format!(r#"{{"metadata":{{"annotations":{{"a":"b"}},"name":"n","annot\u0061tions":{last}}}}}"#);
        let refused =
            decode(text.as_bytes(), Some(&pod()), &Pruning::default(), Content::Full, None).unwrap_err();
        assert!(format!("{refused:?}").contains("duplicate field `annotations`"), "{refused:?}");
    }
}

#[test]
fn pruned_fields_are_removed_in_the_same_walk_as_the_metadata_is_read() {
    let text = r#"{"data":{"a":1},"apiVersion":"v1","metadata":{"labels":{"app":"x","b":"y"},"managedFields":[],"name":"n","annotations":{"a":"b"},"ownerReferences":[]},"spec":{"a":[{"b":1,"c":2}]},"status":{}}"#;
    let fields = |pointers: &[&str]| -> Vec<PointerPattern> {
        pointers.iter().map(|pointer| pointer.parse().unwrap()).collect()
    };
    let without = Fields::without(&fields(&[
        "/data",
        "/status",
        "/spec/a/*/c",
        "/metadata/labels/b",
        "/metadata/annotations/a",
        "/metadata/ownerReferences",
    ]));
    let pruning = Pruning { fields: without.unwrap(), ..Pruning::default() };
    let object = fast(text, &(pruning.clone(), Content::Full)).unwrap();
    insta::assert_snapshot!(&*object.json(), @r#"{"kind":"Pod","apiVersion":"v1","metadata":{"labels":{"app":"x"},"name":"n","annotations":{}},"spec":{"a":[{"b":1}]}}"#);
    assert_eq!(object.labels(), StringMap::from([("app".into(), "x".into())]));
    assert_eq!(
        object.metadata_json(),
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"labels":{"app":"x"},"name":"n","annotations":{}}}"#
    );
    let metadata = fast(text, &(pruning, Content::Metadata)).unwrap();
    assert_eq!(*metadata.json(), *object.metadata_json());

    let only = Fields::only(&fields(&["/spec/a/*/c", "/metadata/labels/b"])).unwrap();
    let object = fast(text, &(Pruning { fields: only, ..Pruning::none() }, Content::Full)).unwrap();
    insta::assert_snapshot!(&*object.json(), @r#"{"kind":"Pod","apiVersion":"v1","metadata":{"labels":{"b":"y"},"name":"n"},"spec":{"a":[{"c":2}]}}"#);
}

/// Pointers as listeners declare them.
fn declared() -> impl Strategy<Value = Vec<JsonPointer>> {
    let pointers = [
        "/spec/metadata/name",
        "/spec/metadata",
        "/spec",
        "/n",
        "/status/phase",
        "/metadata/name",
        "/metadata/resourceVersion",
        "/metadata/labels",
        "/metadata/labels/app",
        "/metadata/managedFields",
        "/metadata/managedFields/0",
        "/metadata/annotations/a",
        "/metadata/annotations/é",
        "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration",
        "/metadata/ownerReferences/0/uid",
        "/metadata/annotations",
        "/metadata",
        "/kind",
        "",
    ];
    prop::sample::subsequence(pointers.map(|pointer| pointer.parse().unwrap()).to_vec(), 0..6)
}

/// Checks that the decoder copies the values that the text of the object has, and changes nothing else.
fn copies_what_it_keeps(
    text: &str,
    (pruning, content): &Settings,
    pointers: &[JsonPointer],
) -> Result<(), TestCaseError> {
    let pointers = CopiedPointers::new(pointers);
    let decode = |copied| decode(text.as_bytes(), Some(&pod()), pruning, *content, copied);
    let (Ok(plain), Ok(copying)) = (decode(None), decode(Some(&pointers))) else {
        prop_assert_eq!(decode(None).is_ok(), decode(Some(&pointers)).is_ok());
        return Ok(());
    };
    prop_assert_eq!(Seen::of(&copying), Seen::of(&plain));
    prop_assert!(copying.copied_values(pointers.number() + 1).is_none(), "values of other pointers");
    if let Some(values) = copying.copied_values(pointers.number()) {
        let found = plain.find(pointers.set());
        for index in 0..pointers.set().len() {
            prop_assert_eq!(values.get(index), found.get(index), "{}", index);
        }
    }
    Ok(())
}

#[test]
fn values_at_pointers_are_copied_from_what_api_servers_usually_write() {
    let text = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"app":"x"},"annotations":{"a":"b"},"managedFields":[1],"resourceVersion":"7"},"spec":{"containers":[{"image":"i"}],"nodeName":"n"},"status":{"phase":"Running"}}"#;
    let copied = |text: &str, pointers: &[&str]| {
        let pointers: Vec<JsonPointer> = pointers.iter().map(|pointer| pointer.parse().unwrap()).collect();
        let pointers = CopiedPointers::new(&pointers);
        let pruning = Pruning::default();
        let object = decode(text.as_bytes(), None, &pruning, Content::Full, Some(&pointers)).unwrap();
        let values = object.copied_values(pointers.number())?;
        Some((0..pointers.set().len()).map(|index| values.get(index).map(str::to_owned)).collect::<Vec<_>>())
    };
    let of = |values: &[Option<&str>]| Some(values.iter().map(|value| value.map(str::to_owned)).collect());
    assert_eq!(
        copied(text, &["/spec/nodeName", "/metadata/resourceVersion", "/spec/containers/0/image"]),
        of(&[Some("\"n\""), Some("\"7\""), Some("\"i\"")])
    );
    assert_eq!(
        copied(text, &["/metadata/annotations/a", "/metadata/labels/app", "/metadata/managedFields"]),
        of(&[Some("\"b\""), Some("\"x\""), None]),
        "a pruned field has no value"
    );
    assert_eq!(copied(text, &["/metadata"]), None, "the text that is kept has another value");
    assert_eq!(copied(text, &["/kind"]), None, "the received text may lack it");
    let long = text.replace("Running", &"x".repeat(2 << 10));
    assert_eq!(copied(&long, &["/status/phase"]), None, "a long value");
    assert_eq!(copied(&long, &["/spec/nodeName"]), of(&[Some("\"n\"")]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn copied_values_are_those_of_the_text(text in documents(), settings in settings(), pointers in declared()) {
        copies_what_it_keeps(&text, &settings, &pointers)?;
    }

    #[test]
    fn copied_values_are_those_of_a_damaged_text(text in documents(), settings in settings(), pointers in declared(), at in any::<prop::sample::Index>(), n_removed in 0..3_usize, added in r#"[{}\[\]",:\\ a1n\n]{0,2}"#) {
        let (at, mut text) = (at.index(text.len()), text.into_bytes());
        text.splice(at..text.len().min(at + n_removed), added.bytes());
        if let Ok(text) = std::str::from_utf8(&text) {
            copies_what_it_keeps(text.trim_ascii(), &settings, &pointers)?;
        }
    }

    #[test]
    fn both_decoders_agree(text in documents(), settings in settings()) {
        agree(&text, &settings)?;
    }

    #[test]
    fn both_decoders_agree_on_damaged_texts(text in documents(), settings in settings(), at in any::<prop::sample::Index>(), n_removed in 0..3_usize, added in r#"[{}\[\]",:\\ a1n\n]{0,2}"#) {
        let (at, mut text) = (at.index(text.len()), text.into_bytes());
        text.splice(at..text.len().min(at + n_removed), added.bytes());
        if let Ok(text) = std::str::from_utf8(&text) {
            agree(text.trim_ascii(), &settings)?;
        }
    }

    #[test]
    fn an_object_has_the_fields_of_a_tree(text in documents(), pruning in prunings()) {
        let Ok(object) = decode(text.as_bytes(), Some(&pod()), &pruning, Content::Full, None) else { return Ok(()) };
        // A pruned annotation may have been malformed.
        let Ok(tree) = serde_json::from_str::<Value>(&text) else { return Ok(()) };
        let metadata = &tree["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let map = |value: &Value| -> StringMap {
            value.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect()
        };
        prop_assert_eq!(object.key(), &ObjectKey::new(text(&metadata["namespace"]), text(&metadata["name"])));
        prop_assert_eq!(object.uid().to_string(), text(&metadata["uid"]));
        prop_assert_eq!(object.resource_version().to_string(), text(&metadata["resourceVersion"]));
        prop_assert_eq!(object.generation(), metadata["generation"].as_i64());
        prop_assert_eq!(object.deletion_timestamp(), metadata["deletionTimestamp"].as_str());
        prop_assert_eq!(object.labels(), map(&metadata["labels"]));
        let mut annotations = map(&metadata["annotations"]);
        if pruning.last_applied {
            annotations.remove(crate::object::pruning::LAST_APPLIED);
        }
        prop_assert_eq!(object.annotations(), annotations);
        let owners = metadata["ownerReferences"].as_array().map_or(0, Vec::len);
        prop_assert_eq!(object.owner_references().len(), owners);

        let mut pruned: Value = serde_json::from_str(&object.json()).unwrap();
        let mut expected = tree.clone();
        expected["kind"] = tree.get("kind").cloned().unwrap_or("Pod".into());
        expected["apiVersion"] = tree.get("apiVersion").cloned().unwrap_or("v1".into());
        let prune = |object: &mut Value| {
            let metadata = object["metadata"].as_object_mut().unwrap();
            if pruning.managed_fields {
                metadata.remove("managedFields");
            }
            if pruning.last_applied {
                let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
                let is_empty = annotations.is_some_and(|annotations| {
                    annotations.remove(crate::object::pruning::LAST_APPLIED);
                    annotations.is_empty()
                });
                if is_empty {
                    metadata.remove("annotations");
                }
            }
        };
        // Pruning again changes nothing, except a map of annotations that was empty when it was received.
        let before = pruned.clone();
        prune(&mut pruned);
        prop_assert!(before == pruned || before["metadata"]["annotations"].as_object().is_some_and(|map| map.is_empty()));
        prune(&mut expected);
        prop_assert_eq!(pruned, expected);
    }
}
