use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::{Finding, PointerSet, Walk, extract};

fn find(json: &str, pointer: &str) -> Option<String> {
    let pointer: JsonPointer = pointer.parse().unwrap();
    extract(json, &[pointer.segments()]).remove(0).pop()
}

fn find_all(json: &str, pattern: &str) -> Vec<String> {
    let pattern: PointerPattern = pattern.parse().unwrap();
    extract(json, &[pattern.segments()]).remove(0)
}

/// Finds the values in one walk, in slices of this much work.
fn find_together(json: &str, pointers: &[&str], slice: usize) -> Vec<Option<String>> {
    let pointers: Vec<JsonPointer> = pointers.iter().map(|text| text.parse().unwrap()).collect();
    let set = PointerSet::new(&pointers);
    let mut walk = Walk::default();
    walk.begin(&set);
    while !walk.advance(&set, json, &mut { slice }) {}
    set.places().iter().map(|place| walk.span(*place).of(json).map(str::to_owned)).collect()
}

#[test]
fn the_examples_of_rfc_6901() {
    let json =
        r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}"#;
    let cases = [
        ("", json),
        ("/foo", r#"["bar","baz"]"#),
        ("/foo/0", r#""bar""#),
        ("/", "0"),
        ("/a~1b", "1"),
        ("/c%d", "2"),
        ("/e^f", "3"),
        ("/g|h", "4"),
        ("/i\\j", "5"),
        ("/k\"l", "6"),
        ("/ ", "7"),
        ("/m~0n", "8"),
    ];
    for (pointer, value) in cases {
        assert_eq!(find(json, pointer).as_deref(), Some(value), "{pointer}");
        assert_eq!(find_together(json, &[pointer], 1), [Some(value.to_owned())], "{pointer}");
        assert_eq!(pointer.parse::<JsonPointer>().unwrap().to_string(), pointer);
    }
    for pointer in ["/foo/2", "/foo/00", "/foo/-", "/foo/bar", "/none", "/foo/0/0", "/*", "/foo/*"] {
        assert_eq!(find(json, pointer), None, "{pointer}");
    }
}

#[test]
fn values_keep_the_bytes_of_the_text() {
    let json = "{ \"a\" : [ 1.0 , 1e2,\"\\u0041\" ] }";
    assert_eq!(find(json, "/a").as_deref(), Some("[ 1.0 , 1e2,\"\\u0041\" ]"));
    assert_eq!(find(json, "/a/2").as_deref(), Some("\"\\u0041\""));
    assert_eq!(find(r#"{"\u0061":1}"#, "/a").as_deref(), Some("1"));
    assert_eq!(find(r#"{"\ud800":{},"a":1}"#, "/a").as_deref(), Some("1"));
}

#[test]
fn the_first_value_of_a_repeated_key_counts() {
    assert_eq!(find(r#"{"a":1,"a":2}"#, "/a").as_deref(), Some("1"));
    assert_eq!(find(r#"{"a":{"b":1},"a":{"c":2}}"#, "/a/c"), None);
    assert_eq!(find(r#"{"a":3,"a":{"b":1}}"#, "/a/b"), None);
    assert_eq!(find_all(r#"{"a":[1,2],"a":[3]}"#, "/a/*"), ["1", "2"]);
    let more = ["/a", "/a/b", "/a/c", "/z"];
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        find_together(r#"{"a":{"b":1},"a":{"c":2}}"#, &more, 1),
        [text(r#"{"b":1}"#), text("1"), None, None]
    );
    assert_eq!(find_together(r#"{"a":3,"a":{"b":1}}"#, &more, 1), [text("3"), None, None, None]);
    for (json, is_repeated) in [
        (r#"{"a":{"b":1},"a":2}"#, true),
        (r#"{"a":{"b":1,"b":1}}"#, true),
        (r#"{"a":{"x":1,"x":1},"y":1,"y":1}"#, false),
        (r#"{"a":{"b":1},"c":{"b":1}}"#, false),
    ] {
        let set = PointerSet::new(&["", "/a", "/a/b"].map(|pointer| pointer.parse().unwrap()));
        assert_eq!(Finding::new(&set, json).finish().has_repeated(), is_repeated, "{json}");
    }
}

#[test]
fn a_walk_ends_when_each_pointer_has_its_value() {
    let json = format!(r#"{{"a":{{"b":1,"c":2}},"long":"{}"}}"#, "x".repeat(1 << 20));
    let ends_early = |pointers: &[&str]| {
        let pointers: Vec<JsonPointer> = pointers.iter().map(|text| text.parse().unwrap()).collect();
        Finding::new(&PointerSet::new(&pointers), &json).advance(1_000)
    };
    assert!(ends_early(&["/a/c", "/a/b", "/a/c"]));
    assert!(ends_early(&["/a"]));
    assert!(ends_early(&["/a", "/a/b"]));
    assert!(!ends_early(&["/a/b", "/none"]));
    assert!(!ends_early(&["/a/b", ""]));
}

#[test]
fn a_pattern_finds_the_values_of_every_element() {
    let json = r#"{"spec":{"containers":[{"image":"a"},{"name":"x"},{"image":"b"}]},"*":1}"#;
    assert_eq!(find_all(json, "/spec/containers/*/image"), [r#""a""#, r#""b""#]);
    assert_eq!(find_all(json, "/spec/containers/2/image"), [r#""b""#]);
    assert_eq!(find_all(json, "/*"), Vec::<String>::new());
    assert_eq!(find_all("[[1,2],[],[3]]", "/*/*"), ["1", "2", "3"]);
    assert_eq!(find(json, "/*").as_deref(), Some("1"));
}

#[test]
fn nested_and_equal_pointers_find_their_values() {
    let json = r#"{"a":{"b":[1,{"c":2}]}}"#;
    let pointers: Vec<JsonPointer> =
        ["/a/b/1/c", "/a", "/a/b", "/a/b", "", "/x"].iter().map(|text| text.parse().unwrap()).collect();
    let segments: Vec<&[Segment]> = pointers.iter().map(JsonPointer::segments).collect();
    let found = extract(json, &segments);
    let b = r#"[1,{"c":2}]"#;
    assert_eq!(found[0], ["2"]);
    assert_eq!(found[1], [r#"{"b":[1,{"c":2}]}"#]);
    assert_eq!(found[2], [b]);
    assert_eq!(found[3], [b]);
    assert_eq!(found[4], [json]);
    assert!(found[5].is_empty());
}

/// A plugin may declare thousands of pointers into an object with thousands of names.
#[test]
fn promise_4_the_cost_of_a_walk_does_not_depend_on_the_number_of_pointers() {
    let entries: Vec<String> = (0..5_000).map(|n| format!("\"key-{n}\":\"{n}\"")).collect();
    let json = format!("{{\"data\":{{{}}}}}", entries.join(","));
    let n_slices = |pointers: &[JsonPointer]| {
        let set = PointerSet::new(pointers);
        let mut walk = Walk::default();
        walk.begin(&set);
        (1..).find(|_| walk.advance(&set, &json, &mut 1_000)).unwrap()
    };
    // With the last key, since a walk ends when all are found.
    let pointers: Vec<JsonPointer> =
        (2_952..5_000).rev().map(|n| format!("/data/key-{n}").parse().unwrap()).collect();
    let (one, all) = (n_slices(&pointers[..1]), n_slices(&pointers));
    assert!(one > 100 && all < 2 * one, "{one} slices of work for one pointer, {all} for all");
}

#[test]
fn malformed_pointers_are_errors() {
    assert_eq!("a".parse::<JsonPointer>(), Err(PointerError::NoLeadingSlash("a".into())));
    assert_eq!("/~".parse::<JsonPointer>(), Err(PointerError::BadEscape("/~".into())));
    assert_eq!("/~2".parse::<JsonPointer>(), Err(PointerError::BadEscape("/~2".into())));
    assert!("/a".repeat(MAX_SEGMENTS).parse::<JsonPointer>().is_ok());
    assert_eq!("/a".repeat(65).parse::<JsonPointer>(), Err(PointerError::TooLong(65)));
}

#[test]
fn malformed_json_has_no_values_and_never_panics() {
    for json in ["", "{", "[1,", r#"{"a"#, "nul", r#"{"a":}"#] {
        assert_eq!(find(json, "/a"), None, "{json}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(find(&deep, "/1"), None);
    assert_eq!(find(&deep, &"/0".repeat(64)).map(|text| text.len()), Some(200_000 - 128));
    let together = find_together(&deep, &["/1", &"/0".repeat(64)], 1000);
    assert_eq!((together[0].is_none(), together[1].as_ref().map(String::len)), (true, Some(200_000 - 128)));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-c/~*0-2\"\\\\é]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-c/~*0-2\"\\\\é]{0,2}", inner), 0..5)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn walks_agree_with_a_parsed_tree(value in any_json(), pretty in any::<bool>(), slice in 1_usize..400, pointers in prop::collection::vec("(/([a-c*0-2é]|~0|~1){0,2}){0,4}", 1..8)) {
        let json = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let parsed: Vec<JsonPointer> = pointers.iter().map(|text| text.parse().unwrap()).collect();
        let segments: Vec<&[Segment]> = parsed.iter().map(JsonPointer::segments).collect();
        for (pointer, mut found) in pointers.iter().zip(extract(&json, &segments)) {
            let found: Option<Value> = found.pop().map(|text| serde_json::from_str(&text).unwrap());
            prop_assert_eq!(found.as_ref(), value.pointer(pointer), "{} in {}", pointer, json);
        }
        let texts: Vec<&str> = pointers.iter().map(String::as_str).collect();
        for (pointer, found) in pointers.iter().zip(find_together(&json, &texts, slice)) {
            let found: Option<Value> = found.map(|text| serde_json::from_str(&text).unwrap());
            prop_assert_eq!(found.as_ref(), value.pointer(pointer), "together: {} in {}", pointer, json);
        }
    }

    #[test]
    fn parse_and_display_are_inverse(text in "(/([a-z*]|~0|~1){0,4}){0,6}") {
        prop_assert_eq!(text.parse::<JsonPointer>().unwrap().to_string(), text.clone());
        prop_assert_eq!(text.parse::<PointerPattern>().unwrap().to_string(), text);
    }

    #[test]
    fn garbage_never_panics(text in any::<String>(), pointer in "(/[a-c0-1*]{0,1}){0,4}") {
        let _ = find(&text, &pointer);
        let _ = find_all(&text, &pointer);
        let _ = find_together(&text, &[&pointer, "/a"], 1);
        let _ = text.parse::<JsonPointer>();
    }
}
