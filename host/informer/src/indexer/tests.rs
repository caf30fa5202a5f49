//! Tests of the clauses ST-…, IX-… and LS-…, and of client-go's cases 8, 22 and 23.

mod model;
mod upstream;

use serde_json::json;

use super::*;
use crate::names::TypeMeta;
use crate::testing::Draft;

fn at(draft: Draft, version: &str) -> Object {
    draft.at(&TypeMeta::new("v1", "Pod"), "uid", version)
}

fn labelled(name: &str, value: &str) -> Object {
    at(Draft::new(name).label("foo", value), "1")
}

fn by_label() -> IndexSource {
    IndexSource::Label("foo".into())
}

fn names(objects: &[Object]) -> Vec<String> {
    objects.iter().map(|object| object.key().to_string()).collect()
}

fn values(indexer: &Indexer, index: &str) -> Vec<String> {
    indexer.index_values(index, &Namespaces::All)
}

fn filled(objects: impl IntoIterator<Item = Object>) -> (IndexerWriter, Indexer) {
    let mut writer = IndexerWriter::new();
    for object in objects {
        writer.put(object);
    }
    let indexer = writer.indexer().clone();
    (writer, indexer)
}

#[test]
fn put_upserts_and_deleting_an_absent_key_changes_nothing_st_02() {
    let (mut writer, indexer) = filled([]);
    assert!(writer.put(at("ns/a".into(), "1")).is_none());
    assert_eq!(writer.put(at("ns/a".into(), "2")).unwrap().resource_version(), "1");
    assert!(writer.delete(&ObjectKey::new("ns", "b"), None).is_none());
    assert_eq!(indexer.len(), 1);
}

#[test]
fn readers_share_the_stored_object_st_03() {
    let (_writer, indexer) = filled([at("ns/a".into(), "1")]);
    let key = ObjectKey::new("ns", "a");
    assert!(indexer.get(&key).unwrap().is_same(&indexer.get(&key).unwrap()));
    assert!(indexer.list(None, &LabelSelector::everything())[0].is_same(&indexer.get(&key).unwrap()));
}

#[test]
fn replace_swaps_all_objects_and_rebuilds_the_indices_st_05() {
    let (mut writer, indexer) = filled([labelled("ns/a", "old"), labelled("ns/b", "both")]);
    indexer.add_index("foo", by_label()).unwrap();
    writer.replace(vec![labelled("ns/c", "both"), labelled("ns/d", "first"), labelled("ns/d", "last")], "");
    assert_eq!(names(&indexer.snapshot(&Namespaces::All)), ["ns/c", "ns/d"]);
    assert_eq!(values(&indexer, "foo"), ["both", "last"]);
    assert_eq!(&*indexer.resource_version(), "");
    assert_eq!(
        indexer.bytes(),
        indexer.snapshot(&Namespaces::All).iter().map(Object::json_length).sum::<usize>()
    );
}

// Conformance: 1.14
#[test]
fn the_resource_version_is_that_of_the_last_change_even_if_lower_st_06_st_07() {
    let (mut writer, indexer) = filled([at("ns/a".into(), "9")]);
    assert_eq!(&*indexer.resource_version(), "9");
    writer.put(at("ns/b".into(), "3"));
    assert_eq!(&*indexer.resource_version(), "3");
    writer.delete(&ObjectKey::new("ns", "a"), Some(&at("ns/a".into(), "12")));
    assert_eq!(&*indexer.resource_version(), "12");
    writer.delete(&ObjectKey::new("ns", "b"), None);
    assert_eq!(&*indexer.resource_version(), "12");
}

#[test]
fn the_cache_counts_its_objects_and_bytes() {
    let (mut writer, indexer) = filled([]);
    let small = at("ns/a".into(), "1");
    let large = at(Draft::new("ns/a").field("spec", json!("x".repeat(1000))), "2");
    writer.put(small.clone());
    assert_eq!((indexer.len(), indexer.bytes()), (1, small.json_length()));
    writer.put(large.clone());
    assert_eq!((indexer.len(), indexer.bytes()), (1, large.json_length()));
    writer.delete(small.key(), None);
    assert_eq!((indexer.len(), indexer.bytes()), (0, 0));
}

#[test]
fn an_object_is_filed_under_each_of_its_values_once_ix_01() {
    let owners = json!([{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u1"}, {"apiVersion": "v1", "kind": "B", "name": "b", "uid": "u2"}]);
    let containers = json!({"containers": [{"image": "x"}, {"image": "y"}, {"image": "x"}, {"name": "no image"}], "n": 3, "none": null});
    let draft =
        Draft::new("ns/a").label("foo", "bar").metadata("ownerReferences", owners).field("spec", containers);
    let (_writer, indexer) = filled([at(draft, "1")]);
    let pointer = |pattern: &str| IndexSource::Pointer(pattern.parse().unwrap());
    for (source, expected) in [
        (by_label(), vec!["bar"]),
        (IndexSource::Label("none".into()), vec![]),
        (IndexSource::OwnerUid, vec!["u1", "u2"]),
        (pointer("/spec/containers/*/image"), vec!["x", "y"]),
        (pointer("/spec/n"), vec!["3"]),
        (pointer("/spec/none"), vec![]),
        (pointer("/spec/absent"), vec![]),
    ] {
        indexer.add_index("index", source.clone()).unwrap();
        assert_eq!(values(&indexer, "index"), expected, "{source:?}");
        for value in expected {
            assert_eq!(names(&indexer.by_index("index", value).unwrap()), ["ns/a"]);
        }
        assert!(indexer.remove_index("index"));
    }
}

#[test]
fn an_update_moves_the_object_between_values_ix_02() {
    let (mut writer, indexer) = filled([labelled("ns/a", "one"), labelled("ns/b", "two")]);
    indexer.add_index("foo", by_label()).unwrap();
    writer.put(labelled("ns/a", "two"));
    assert_eq!(values(&indexer, "foo"), ["two"]);
    assert_eq!(names(&indexer.by_index("foo", "two").unwrap()), ["ns/a", "ns/b"]);
    writer.put(at("ns/a".into(), "2"));
    assert_eq!(names(&indexer.by_index("foo", "two").unwrap()), ["ns/b"]);
}

// Conformance: 8.1, 23.1, 23.2
#[test]
fn a_value_without_objects_is_removed_ix_03() {
    let (mut writer, indexer) =
        filled([labelled("ns/a", "bar"), labelled("ns/b", "bar"), labelled("ns/c", "biz")]);
    indexer.add_index("foo", by_label()).unwrap();
    assert_eq!(values(&indexer, "foo"), ["bar", "biz"]);
    writer.delete(&ObjectKey::new("ns", "a"), None);
    assert_eq!(values(&indexer, "foo"), ["bar", "biz"]);
    writer.delete(&ObjectKey::new("ns", "b"), None);
    assert_eq!(values(&indexer, "foo"), ["biz"]);
}

// Conformance: G.39
#[test]
fn an_object_that_cannot_be_filed_is_stored_and_counted_as_a_failure_ix_04() {
    let (mut writer, indexer) = filled([at(Draft::new("ns/a").field("spec", json!({"x": {}})), "1")]);
    indexer.add_index("x", IndexSource::Pointer("/spec/x".parse().unwrap())).unwrap();
    writer.put(at(Draft::new("ns/b").field("spec", json!({"x": []})), "1"));
    writer.put(at(Draft::new("ns/c").field("spec", json!({"x": "fine"})), "1"));
    assert_eq!(indexer.len(), 3);
    let failures = indexer.index_failures("x").unwrap();
    assert_eq!(failures.keys().map(ToString::to_string).collect::<Vec<_>>(), ["ns/a", "ns/b"]);
    let bad = indexer.get(&ObjectKey::new("ns", "a")).unwrap();
    let error = indexer.index("x", &bad).unwrap_err();
    insta::assert_snapshot!(error, @"cannot be indexed: the value at /spec/x is not a scalar");

    writer.put(at(Draft::new("ns/a").field("spec", json!({"x": 1})), "2"));
    writer.delete(&ObjectKey::new("ns", "b"), None);
    assert!(indexer.index_failures("x").unwrap().is_empty());
    assert_eq!(values(&indexer, "x"), ["1", "fine"]);
}

#[test]
fn reading_an_unknown_index_is_an_error_that_names_it_ix_05() {
    let (_writer, indexer) = filled([]);
    let request = PageRequest { limit: 1, ..PageRequest::default() };
    let unknown = Error::UnknownIndex("nope".into());
    assert_eq!(indexer.by_index("nope", "x").unwrap_err(), unknown);
    assert_eq!(indexer.index_keys("nope", "x").unwrap_err(), unknown);
    assert_eq!(indexer.by_index_page("nope", "x", &request).unwrap_err(), unknown);
    assert_eq!(indexer.index("nope", &at("a".into(), "1")).unwrap_err(), unknown);
    assert_eq!(values(&indexer, "nope"), [""; 0]);
}

// Conformance: G.56
#[test]
fn index_returns_the_objects_that_share_a_value_and_keys_are_sorted_ix_06_ix_07() {
    let function = IndexFunction::new(|object| {
        Ok(object
            .labels()
            .get("foo")
            .map(|all| all.split('-').map(str::to_owned).collect())
            .unwrap_or_default())
    });
    let objects =
        [labelled("ns/c", "x-y"), labelled("ns/a", "x"), labelled("ns/b", "y"), labelled("ns/d", "z")];
    let (_writer, indexer) = filled(objects);
    indexer.add_index("parts", IndexSource::Function(function)).unwrap();
    let like = labelled("ns/q", "x-y");
    assert_eq!(names(&indexer.index("parts", &like).unwrap()), ["ns/a", "ns/b", "ns/c"]);
    let keys = indexer.index_keys("parts", "x").unwrap();
    assert_eq!(keys.iter().map(ToString::to_string).collect::<Vec<_>>(), ["ns/a", "ns/c"]);
}

// Conformance: G.39
#[test]
fn indices_can_be_added_at_any_time_all_or_none_ix_08() {
    let (mut writer, indexer) = filled((0..2000).map(|i| labelled(&format!("ns/{i:04}"), "early")));
    indexer.add_index("foo", by_label()).unwrap();
    assert_eq!(indexer.index_keys("foo", "early").unwrap().len(), 2000);
    writer.put(labelled("ns/late", "late"));
    assert_eq!(values(&indexer, "foo"), ["early", "late"]);

    let taken =
        indexer.add_indices([("new".to_owned(), IndexSource::OwnerUid), ("foo".to_owned(), by_label())]);
    assert_eq!(taken, Err(Error::IndexExists("foo".into())));
    assert_eq!(indexer.index_names(), ["foo"]);
    assert_eq!(
        indexer.add_index(NAMESPACE_INDEX, by_label()),
        Err(Error::IndexExists(NAMESPACE_INDEX.into()))
    );
}

#[test]
fn equal_indices_are_shared_and_freed_with_their_last_name() {
    let (_writer, indexer) = filled([labelled("ns/a", "bar")]);
    indexer.add_index("one", by_label()).unwrap();
    indexer.add_index("two", by_label()).unwrap();
    indexer.add_index("three", IndexSource::OwnerUid).unwrap();
    assert_eq!(indexer.state.read().indices.len(), 2);
    assert!(indexer.remove_index("one"));
    assert!(!indexer.remove_index("one"));
    assert_eq!(values(&indexer, "two"), ["bar"]);
    assert!(indexer.remove_index("two"));
    assert_eq!(indexer.state.read().indices.len(), 1);
}

// Conformance: G.56
#[test]
fn the_namespace_index_always_exists_ix_09() {
    let (_writer, indexer) =
        filled(["b/x", "a/y", "a/x", "cluster-wide", "a-b/x"].map(|name| at(name.into(), "1")));
    assert_eq!(values(&indexer, NAMESPACE_INDEX), ["", "a", "a-b", "b"]);
    assert_eq!(names(&indexer.by_index(NAMESPACE_INDEX, "a").unwrap()), ["a/x", "a/y"]);
    assert_eq!(indexer.index_keys(NAMESPACE_INDEX, "").unwrap().len(), 1);
    let narrow = Namespaces::one("b");
    assert_eq!(indexer.index_values(NAMESPACE_INDEX, &narrow), ["b"]);
}

#[test]
fn index_values_are_those_of_the_requested_namespaces() {
    let (_writer, indexer) =
        filled([labelled("a/x", "seen"), labelled("b/x", "hidden"), labelled("b/y", "seen")]);
    indexer.add_index("foo", by_label()).unwrap();
    assert_eq!(indexer.index_values("foo", &Namespaces::one("a")), ["seen"]);
    assert_eq!(indexer.index_values("foo", &Namespaces::Only([].into())), [""; 0]);
    let request = PageRequest { limit: 10, namespaces: Namespaces::one("a"), ..PageRequest::default() };
    assert_eq!(names(&indexer.by_index_page("foo", "seen", &request).unwrap().objects), ["a/x"]);
}

#[test]
fn list_selects_by_namespace_and_labels_ls_01_ls_02() {
    let (_writer, indexer) = filled([labelled("a/x", "1"), labelled("b/x", "1"), labelled("a/y", "2")]);
    let selector: LabelSelector = "foo=1".parse().unwrap();
    let everything = LabelSelector::everything();
    assert_eq!(names(&indexer.list(None, &everything)), ["a/x", "a/y", "b/x"]);
    assert_eq!(names(&indexer.list(None, &selector)), ["a/x", "b/x"]);
    assert_eq!(names(&indexer.list(Some("a"), &selector)), ["a/x"]);
    assert_eq!(names(&indexer.list(Some("none"), &everything)), [""; 0]);
}

#[test]
fn pages_contain_each_object_once_and_in_order() {
    let objects =
        (0..700).map(|i| labelled(&format!("{}/{i:03}", ["a", "b", "c"][i % 3]), ["x", "y"][i % 2]));
    let (mut writer, indexer) = filled(objects);
    indexer.add_index("foo", by_label()).unwrap();
    for namespaces in [Namespaces::All, Namespaces::Only(["a".into(), "c".into(), "zz".into()].into())] {
        for selector in ["", "foo=x"] {
            let selector: LabelSelector = selector.parse().unwrap();
            let expected: Vec<_> = indexer.list(None, &selector);
            let expected: Vec<_> =
                expected.into_iter().filter(|object| namespaces.contains(object.key().namespace())).collect();
            for limit in [1, 7, 256, 5000] {
                let mut request = PageRequest {
                    after: None,
                    limit,
                    namespaces: namespaces.clone(),
                    selector: selector.clone(),
                };
                let mut found = Vec::new();
                loop {
                    let page = indexer.list_page(&request);
                    assert!(page.objects.len() <= limit);
                    found.extend(page.objects);
                    request.after = page.next;
                    if request.after.is_none() {
                        break;
                    }
                }
                assert_eq!(names(&found), names(&expected));
            }
        }
    }
    // The last object of a page may be deleted before the next page.
    let request = PageRequest { limit: 3, ..PageRequest::default() };
    let page = indexer.by_index_page("foo", "x", &request).unwrap();
    let last = page.next.clone().unwrap();
    writer.delete(&last, None);
    let next = indexer.by_index_page("foo", "x", &PageRequest { after: page.next, ..request }).unwrap();
    assert!(next.objects[0].key() > &last);
}

#[test]
fn a_view_does_not_change_when_the_cache_is_written() {
    let (mut writer, indexer) = filled(["a/x", "a/y", "b/x"].map(|name| labelled(name, "one")));
    indexer.add_index("foo", by_label()).unwrap();
    let of_value = indexer.view_by_index("foo", "one").unwrap();
    let of_namespace = indexer.view_by_index(NAMESPACE_INDEX, "a").unwrap();
    writer.delete(&"a/x".parse().unwrap(), None);
    writer.put(labelled("a/y", "two"));
    writer.put(labelled("a/z", "one"));
    let walked = |view: &Objects| names(&view.iter().cloned().collect::<Vec<_>>());
    assert_eq!((walked(&of_value), of_value.len()), (["a/x", "a/y", "b/x"].map(str::to_owned).to_vec(), 3));
    assert_eq!((walked(&of_namespace), of_namespace.len()), (["a/x", "a/y"].map(str::to_owned).to_vec(), 2));
    assert!(of_value.iter().all(|object| object.labels()["foo"] == "one"));

    assert_eq!(walked(&indexer.view_by_index("foo", "one").unwrap()), ["a/z", "b/x"]);
    assert!(indexer.view_by_index("foo", "none").unwrap().is_empty());
    let unknown = indexer.view_by_index("nope", "x").err();
    assert_eq!(unknown, Some(Error::UnknownIndex("nope".to_owned())));
}
