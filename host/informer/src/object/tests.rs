use super::*;

const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","uid":"u-1","resourceVersion":"7","generation":3,"labels":{"app":"web"},"annotations":{"k":"v"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u-r","controller":true,"blockOwnerDeletion":true}]},"spec":{"nodeName":"n"}}"#;

fn pod_type() -> TypeMeta {
    TypeMeta::new("v1", "Pod")
}

fn parse(text: &str) -> Result<Object, Error> {
    Object::parse(text.as_bytes(), None)
}

#[test]
fn metadata_is_read_and_the_text_is_kept() {
    let pod = parse(POD).unwrap();
    assert_eq!(pod.key(), &ObjectKey::new("ns", "a"));
    assert_eq!(pod.type_meta(), &pod_type());
    assert_eq!((&*pod.uid(), &*pod.resource_version(), pod.generation()), ("u-1", "7", Some(3)));
    assert_eq!(pod.deletion_timestamp(), None);
    assert_eq!(pod.labels(), StringMap::from([("app".into(), "web".into())]));
    assert_eq!(pod.annotations(), StringMap::from([("k".into(), "v".into())]));
    let owners = pod.owner_references();
    assert_eq!((&*owners[0].kind, &*owners[0].uid, owners[0].controller), ("ReplicaSet", "u-r", true));
    assert_eq!(&*pod.json(), POD);
    assert_eq!(pod.pointer(&"/spec/nodeName".parse().unwrap()).as_deref(), Some("\"n\""));
    assert_eq!(format!("{pod:?}"), "Object(Pod ns/a at 7)");
}

#[test]
fn white_space_around_the_object_is_removed_and_inside_it_kept() {
    let text = "{ \"kind\" : \"Pod\",\n\"apiVersion\":\"v1\", \"metadata\" : {\"name\":\"a\", \"labels\" : { \"x\" : \"y\" } } }";
    let pod = parse(&format!("\n {text} \r\n")).unwrap();
    assert_eq!(&*pod.json(), text);
    assert_eq!(pod.labels(), StringMap::from([("x".into(), "y".into())]));
}

#[test]
fn a_list_item_gets_the_type_that_watch_events_carry_rl_73() {
    let item = POD.replace(r#""kind":"Pod","apiVersion":"v1","#, "");
    let from_list = Object::parse(item.as_bytes(), Some(&pod_type())).unwrap();
    assert_eq!(&*from_list.json(), POD);
    assert_eq!(from_list, parse(POD).unwrap());
    assert_eq!(from_list.labels(), parse(POD).unwrap().labels());

    let half = r#"{ "apiVersion":"v1", "metadata":{"name":"a"}}"#;
    let filled = Object::parse(half.as_bytes(), Some(&TypeMeta::new("v2", "Po\"d"))).unwrap();
    assert_eq!(&*filled.json(), r#"{"kind":"Po\"d", "apiVersion":"v1", "metadata":{"name":"a"}}"#);
    assert_eq!(filled.type_meta(), &TypeMeta::new("v1", "Po\"d"));
}

#[test]
fn pruning_removes_managed_fields_and_the_last_applied_configuration_only() {
    let text = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"managedFields":[{"manager":"x","fieldsV1":{"f:a":{}}}],"name":"a", "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"a\":\"\\\"managedFields\\\"\"}","b" : "c"},"labels":{"managedFields":"no"}},"spec":{"managedFields":1}}"#;
    let pruned = Object::parse_pruned(text.as_bytes(), None, &Pruning::default()).unwrap();
    insta::assert_snapshot!(&*pruned.json(), @r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a", "annotations":{"b" : "c"},"labels":{"managedFields":"no"}},"spec":{"managedFields":1}}"#);
    assert_eq!(pruned.annotations(), StringMap::from([("b".into(), "c".into())]));
    assert_eq!(pruned.labels().len(), 1);

    let only_fields = Pruning { last_applied: false, ..Pruning::default() };
    let pruned = Object::parse_pruned(text.as_bytes(), None, &only_fields).unwrap();
    assert_eq!(pruned.annotations().len(), 2);
    assert_eq!(&*parse(text).unwrap().json(), text);
}

#[test]
fn pruning_finds_keys_written_with_escapes() {
    let text = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"\u006danagedFields":[],"name":"a"}}"#;
    let pruned = Object::parse_pruned(text.as_bytes(), None, &Pruning::default()).unwrap();
    assert_eq!(&*pruned.json(), r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#);
}

#[test]
fn pruning_the_last_annotation_removes_the_map() {
    let text = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}}}"#;
    let pruned = Object::parse_pruned(text.as_bytes(), None, &Pruning::default()).unwrap();
    assert_eq!(&*pruned.json(), r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#);
    assert!(pruned.annotations().is_empty());
}

#[test]
fn metadata_json_has_type_and_metadata_only() {
    let pod = parse(r#"{"spec":{"a":1},"metadata":{"name":"a"},"kind":"Pod","apiVersion":"v1"}"#).unwrap();
    assert_eq!(pod.metadata_json(), r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#);
    assert_eq!(Object::parse(pod.metadata_json().as_bytes(), None).unwrap().key(), pod.key());
}

#[test]
fn malformed_objects_are_typed_errors() {
    let error = |text: &[u8]| Object::parse(text, Some(&pod_type())).unwrap_err();
    assert!(matches!(error(b"\xff{}"), Error::NotUtf8(_)));
    for text in [
        "",
        "null",
        "1",
        "[]",
        r#"["v1","Pod",{"name":"a"}]"#,
        "{",
        "{}x",
        "{\"metadata\":{}",
        "{\"a\":tru}",
        "{\"kind\":1,\"metadata\":{}}",
        "{\"kind\":null,\"metadata\":{}}",
        "{\"metadata\":{\"name\":\"a\"},\"metadata\":{\"name\":\"b\"}}",
    ] {
        assert!(matches!(error(text.as_bytes()), Error::Json(_)), "{text}");
    }
    for text in ["{}", r#"{"metadata":null}"#, r#"{"metadata":[]}"#, r#"{"metadata":"x"}"#] {
        assert!(matches!(error(text.as_bytes()), Error::MissingMetadata), "{text}");
    }
    for metadata in [
        r#"{"name":1}"#,
        r#"{"name":{}}"#,
        r#"{"name":"a","name":"b"}"#,
        r#"{"name":"a","labels":[]}"#,
        r#"{"name":"a","labels":{"x":1}}"#,
        r#"{"name":"a","annotations":"x"}"#,
        r#"{"name":"a","generation":"1"}"#,
        r#"{"name":"a","generation":9223372036854775808}"#,
        r#"{"name":"a","ownerReferences":{}}"#,
        r#"{"name":"a","ownerReferences":[{"kind":"x"}]}"#,
        r#"{"name":"\ud800"}"#,
        r#"{"name":"a","labels":{"x":"\ud800"}}"#,
    ] {
        let text = format!(r#"{{"metadata":{metadata}}}"#);
        assert!(matches!(error(text.as_bytes()), Error::Metadata(_)), "{text}");
    }
    assert!(matches!(error(br#"{"metadata":{}}"#), Error::MissingName));
    assert!(matches!(error(br#"{"metadata":{"name":""}}"#), Error::MissingName));
    assert!(matches!(error(br#"{"metadata":{"name":null}}"#), Error::MissingName));
    assert!(matches!(error(br#"{"metadata":{"name":"a/b"}}"#), Error::BadName(_)));
    assert!(matches!(error(br#"{"metadata":{"name":"a","namespace":"b/c"}}"#), Error::BadName(_)));
    assert!(matches!(parse(r#"{"metadata":{"name":"a"}}"#), Err(Error::MissingType("apiVersion"))));
    assert!(matches!(
        parse(r#"{"apiVersion":"v1","kind":"","metadata":{"name":"a"}}"#),
        Err(Error::MissingType("kind"))
    ));
}

#[test]
fn deep_and_huge_objects_are_decoded() {
    let deep = format!("{}{}", "{\"a\":[".repeat(50_000), "]}".repeat(50_000));
    let text = format!(r#"{{"spec":{deep},"metadata":{{"name":"a","x":{deep},"managedFields":{deep}}}}}"#);
    let object = Object::parse_pruned(text.as_bytes(), Some(&pod_type()), &Pruning::default()).unwrap();
    assert_eq!(object.pointer(&"/spec".parse().unwrap()), Some(deep));
    let long = "x".repeat(10 << 20);
    let text = format!(r#"{{"spec":"{long}","metadata":{{"name":"a"}}}}"#);
    assert!(Object::parse(text.as_bytes(), Some(&pod_type())).unwrap().json_length() > 10 << 20);
}

#[test]
fn null_is_the_same_as_absent() {
    let text = r#"{"metadata":{"name":"a","namespace":null,"uid":null,"labels":null,"annotations":null,"ownerReferences":null,"creationTimestamp":null,"generation":null,"deletionTimestamp":null}}"#;
    let object = Object::parse(text.as_bytes(), Some(&pod_type())).unwrap();
    assert_eq!(object.key(), &ObjectKey::new("", "a"));
    assert!(
        object.labels().is_empty() && object.annotations().is_empty() && object.owner_references().is_empty()
    );
}

proptest::proptest! {
    #[test]
    fn decoding_any_bytes_never_panics(text in proptest::prelude::any::<Vec<u8>>()) {
        let _ = Object::parse_pruned(&text, Some(&pod_type()), &Pruning::default());
    }

    #[test]
    fn decoding_fragments_of_objects_never_panics(text in r#"\{("metadata":|"name":|"managedFields":|"annotations":|"kind":|\{|\}|,|"a"|:|null|\[|\]| |1){0,14}\}"#) {
        let _ = Object::parse_pruned(text.as_bytes(), Some(&pod_type()), &Pruning::default());
    }
}

#[test]
fn every_uid_version_and_generation_reads_as_it_was_written() {
    for (uid, version) in [
        ("0f8fad5b-d9cb-469f-a165-70867728950e", "12345"),
        ("00000000-0000-0000-0000-000000000000", "0"),
        ("u-1", "18446744073709551615"),
        ("", ""),
        ("0F8FAD5B-D9CB-469F-A165-70867728950E", "007"),
    ] {
        let text = format!(r#"{{"metadata":{{"name":"a","uid":"{uid}","resourceVersion":"{version}"}}}}"#);
        let object = Object::parse(text.as_bytes(), Some(&pod_type())).unwrap();
        assert_eq!((&*object.uid(), &*object.resource_version()), (uid, version));
        let same = Object::parse(text.as_bytes(), Some(&pod_type())).unwrap();
        assert!(object.has_uid_of(&same) && object.is_at_version_of(&same));
        let other = parse(POD).unwrap();
        assert_eq!(object.has_uid_of(&other), uid == "u-1");
        assert!(!object.is_at_version_of(&other));
    }
    for generation in [0, 1, 65_534, 65_535, i64::MAX, -1] {
        let text = format!(r#"{{"metadata":{{"name":"a","generation":{generation}}}}}"#);
        let object = Object::parse(text.as_bytes(), Some(&pod_type())).unwrap();
        assert_eq!(object.generation(), Some(generation));
    }
}

#[test]
fn an_object_takes_88_bytes_beside_its_text() {
    assert_eq!(size_of::<Object>(), 8);
    assert!(size_of::<Inner>() <= 88, "{}", size_of::<Inner>());
}

#[test]
fn metadata_is_found_anywhere_in_the_text() {
    let long = "x".repeat(70_000);
    for text in [
        format!(r#"{{"spec":"{long}","metadata":{{"name":"a","annotations":{{"k":"v"}}}}}}"#),
        r#"{"spec":{"metadata":{"annotations":{"k":"no"}}}, "metadata" : {"name":"a", "annotations":{"k":"v"}},"x":1}"#.to_owned(),
    ] {
        let object = Object::parse(text.as_bytes(), Some(&pod_type())).unwrap();
        assert_eq!(object.annotations(), StringMap::from([("k".into(), "v".into())]));
        assert!(object.owner_references().is_empty());
        let metadata = Object::parse(object.metadata_json().as_bytes(), None).unwrap();
        assert_eq!(metadata.annotations().len(), 1);
    }
}
