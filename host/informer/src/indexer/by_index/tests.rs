//! Reads by readers of some namespaces, and full indices.

use oarlock_label_selector::LabelSelector;
use serde_json::json;

use super::*;
use crate::indexer::{IndexLimits, IndexSource, IndexerWriter};
use crate::names::TypeMeta;
use crate::testing::Draft;

fn object(key: &str, value: &str) -> Object {
    Draft::new(key).field("spec", json!({ "value": value })).at(&TypeMeta::new("v1", "Pod"), "uid", "1")
}

fn by_value() -> IndexSource {
    IndexSource::Pointer("/spec/value".parse().unwrap())
}

fn request(namespaces: &[&str]) -> PageRequest {
    PageRequest {
        after: None,
        limit: 100,
        namespaces: namespaces.iter().map(|&it| it.to_owned()).collect(),
        selector: LabelSelector::everything(),
    }
}

fn found(indexer: &Indexer, value: &str, namespaces: &[&str]) -> Result<Vec<String>, Error> {
    let page = indexer.by_index_page("value", value, &request(namespaces))?;
    Ok(page.objects.iter().map(|object| object.key().to_string()).collect())
}

/// How often each namespace was looked up since the last call.
fn lookups(indexer: &Indexer) -> Vec<(String, usize)> {
    let state = indexer.state.read();
    let lookups = state.index("value").unwrap().take_lookups();
    lookups.into_iter().map(|(namespace, n)| (namespace.into(), n)).collect()
}

#[test]
fn the_work_of_a_read_does_not_depend_on_forbidden_namespaces() {
    let mut writer = IndexerWriter::new();
    let indexer = writer.indexer().clone();
    indexer.add_index("value", by_value()).unwrap();
    writer.put(object("mine/a", "known"));
    for n in 0..50 {
        writer.put(object(&format!("theirs/{n}"), "password"));
        writer.put(object(&format!("theirs/other-{n}"), &format!("other-{n}")));
    }
    assert_eq!(found(&indexer, "known", &["mine"]).unwrap(), ["mine/a"]);
    lookups(&indexer);
    for guess in ["password", "other-7", "wrong"] {
        assert_eq!(found(&indexer, guess, &["mine"]).unwrap(), [""; 0]);
        assert_eq!(lookups(&indexer), [("mine".to_owned(), 1)], "{guess}");
    }
    for unknown in ["theirs-not", "nowhere"] {
        assert_eq!(found(&indexer, "password", &[unknown]).unwrap(), [""; 0]);
        assert_eq!(lookups(&indexer), [(unknown.to_owned(), 1)]);
    }
    assert_eq!(indexer.index_values("value", &Namespaces::one("mine")), ["known"]);
    assert_eq!(lookups(&indexer), [("mine".to_owned(), 1)]);
    assert_eq!(found(&indexer, "password", &["mine", "theirs"]).unwrap().len(), 50);
}

#[test]
fn an_index_is_split_by_namespace_while_it_is_written() {
    let mut writer = IndexerWriter::new();
    let indexer = writer.indexer().clone();
    indexer.add_index("value", by_value()).unwrap();
    let key = |n: usize| format!("ns-{}/{n:04}", n % 3);
    for n in 0..3_000 {
        writer.put(object(&key(n), &format!("v{}", n % 7)));
    }
    let some = Namespaces::Only(["ns-0".to_owned(), "ns-2".to_owned()].into());
    let mut n = 0;
    while !indexer.split_step("value", &some).unwrap() {
        // Delete, change and add an object before and after the slots that are split so far.
        for at in [n, 1_500 + n] {
            writer.delete(&key(at).parse().unwrap(), None);
            writer.put(object(&key(at + 3), "changed"));
            writer.put(object(&format!("ns-0/new-{at:04}"), "new"));
        }
        n += 100;
    }
    assert!(n > 300);
    for value in ["v0", "v3", "changed", "new", "none"] {
        let all = indexer.by_index("value", value).unwrap();
        let expected: Vec<_> =
            all.iter().map(|it| it.key().to_string()).filter(|it| !it.starts_with("ns-1")).collect();
        let mut request = PageRequest { limit: 60, ..request(&["ns-0", "ns-2"]) };
        let mut paged = Vec::new();
        loop {
            let page = indexer.by_index_step("value", value, &request, 50).unwrap();
            assert!(page.objects.len() <= 50);
            paged.extend(page.objects.iter().map(|it| it.key().to_string()));
            request.after = page.next;
            if request.after.is_none() {
                break;
            }
        }
        assert_eq!(paged, expected, "{value}");
    }
    for key in indexer.keys() {
        writer.delete(&key, None);
    }
    assert_eq!(indexer.index_status("value").unwrap(), crate::indexer::IndexStatus::default());
    writer.put(object("ns-0/last", "v0"));
    assert_eq!(found(&indexer, "v0", &["ns-0"]).unwrap(), ["ns-0/last"]);
}

#[test]
fn a_namespace_that_fills_its_part_takes_nothing_from_others_and_reads_of_it_fail() {
    let mut writer = IndexerWriter::new();
    writer.limit_indices(IndexLimits { values_per_object: 3, bytes_per_index: 80_000 });
    let indexer = writer.indexer().clone();
    indexer.add_index("value", by_value()).unwrap();
    for n in 0..1_000 {
        writer.put(object(&format!("tenant/{n:04}"), &format!("{n:04} {}", "x".repeat(200))));
    }
    let status = indexer.index_status("value").unwrap();
    assert!(status.left_out > 900 && status.incomplete_namespaces == 1, "{status:?}");
    writer.put(object("victim/a", "app"));
    assert_eq!(found(&indexer, "app", &["victim"]).unwrap(), ["victim/a"]);

    let Err(Error::Incomplete { namespace, left_out, .. }) = found(&indexer, "app", &["tenant", "victim"])
    else {
        panic!("a result that may lack objects");
    };
    assert_eq!((namespace.as_str(), left_out), ("tenant", status.left_out));
    assert!(matches!(indexer.by_index("value", "app"), Err(Error::Incomplete { .. })));
    assert!(matches!(indexer.view_by_index("value", "app"), Err(Error::Incomplete { .. })));
    assert!(matches!(indexer.index_keys("value", "app"), Err(Error::Incomplete { .. })));
    let mut found_values = BTreeSet::new();
    let step = indexer.index_values_step("value", &Namespaces::All, 9, &mut None, &mut found_values);
    assert!(matches!(step, Err(Error::Incomplete { .. })));

    // Deletes make room for the objects that were left out.
    for n in 0..999 {
        writer.delete(&format!("tenant/{n:04}").parse().unwrap(), None);
    }
    let status = indexer.index_status("value").unwrap();
    assert_eq!((status.left_out, status.failed), (0, 0));
    let last = format!("0999 {}", "x".repeat(200));
    assert_eq!(found(&indexer, &last, &["tenant"]).unwrap(), ["tenant/0999"]);
    assert!(indexer.index_failures("value").unwrap().is_empty());
}

#[test]
fn a_full_index_has_room_for_a_namespace_below_its_equal_share() {
    let mut writer = IndexerWriter::new();
    writer.limit_indices(IndexLimits { values_per_object: 3, bytes_per_index: 100_000 });
    let indexer = writer.indexer().clone();
    indexer.add_index("value", by_value()).unwrap();
    for tenant in 0..20 {
        for n in 0..200 {
            writer.put(object(&format!("tenant-{tenant}/{n}"), &format!("{n} {}", "x".repeat(200))));
        }
    }
    let used: usize = 100_000;
    assert!(indexer.index_status("value").unwrap().bytes < 8 * used, "the index is bounded");
    for n in 0..20 {
        writer.put(object(&format!("victim/{n}"), "app"));
    }
    assert_eq!(found(&indexer, "app", &["victim"]).unwrap().len(), 20);
}

#[test]
fn a_long_value_is_found_and_returned_whole_but_stored_short() {
    let mut writer = IndexerWriter::new();
    let indexer = writer.indexer().clone();
    indexer.add_index("value", by_value()).unwrap();
    let long = "ü".repeat(200_000);
    let other = format!("{long}!");
    for n in 0..100 {
        writer.put(object(&format!("a/{n:02}"), &long));
    }
    writer.put(object("b/x", &other));
    assert!(indexer.index_status("value").unwrap().bytes < 20_000);
    assert_eq!(indexer.by_index("value", &long).unwrap().len(), 100);
    assert_eq!(found(&indexer, &other, &["a", "b"]).unwrap(), ["b/x"]);
    assert_eq!(found(&indexer, &other[..300], &["a", "b"]).unwrap(), [""; 0]);
    assert_eq!(indexer.index_values("value", &Namespaces::All), [long.clone(), other.clone()]);
    assert_eq!(indexer.index_values("value", &Namespaces::one("b")), std::slice::from_ref(&other));
    // An update with the same value changes nothing; one with another value moves the object.
    writer.put(object("b/x", &other));
    writer.put(object("b/x", &long));
    assert_eq!(found(&indexer, &long, &["b"]).unwrap(), ["b/x"]);
    assert_eq!(found(&indexer, &other, &["b"]).unwrap(), [""; 0]);
}

#[test]
fn reads_of_a_namespace_fail_while_an_object_has_too_many_values() {
    let mut writer = IndexerWriter::new();
    writer.limit_indices(IndexLimits { values_per_object: 2, ..IndexLimits::default() });
    let indexer = writer.indexer().clone();
    indexer.add_index("value", IndexSource::Pointer("/spec/values/*".parse().unwrap())).unwrap();
    let with = |values: &[&str]| {
        Draft::new("a/x").field("spec", json!({ "values": values })).at(
            &TypeMeta::new("v1", "Pod"),
            "uid",
            "1",
        )
    };
    writer.put(object("b/y", ""));
    writer.put(with(&["1", "2", "3"]));
    assert!(matches!(found(&indexer, "1", &["a"]), Err(Error::Incomplete { .. })));
    assert_eq!(found(&indexer, "1", &["b"]).unwrap(), [""; 0]);
    writer.put(with(&["1", "2"]));
    assert_eq!(found(&indexer, "1", &["a"]).unwrap(), ["a/x"]);
}

#[test]
fn a_step_examines_a_bounded_number_of_objects() {
    let mut writer = IndexerWriter::new();
    let indexer = writer.indexer().clone();
    for n in 0..1_000 {
        writer.put(object(&format!("a/{n:04}"), "x"));
    }
    let nothing = PageRequest { selector: "app=none".parse().unwrap(), ..request(&["a"]) };
    let page = indexer.list_step(&nothing, 32);
    assert_eq!((page.objects.len(), page.next.unwrap().to_string()), (0, "a/0031".to_owned()));
    let last = PageRequest { after: Some("a/0990".parse().unwrap()), ..nothing };
    assert!(indexer.list_step(&last, 32).next.is_none());
}

#[tokio::test]
async fn an_index_is_added_in_slices_and_a_dropped_call_adds_nothing() {
    use futures::FutureExt;
    let mut writer = IndexerWriter::new();
    let indexer = writer.indexer().clone();
    for n in 0..2_000 {
        writer.put(object(&format!("a/{n:04}"), "x"));
    }
    assert!(indexer.add_index_in_slices("value", by_value()).now_or_never().is_none(), "the call yields");
    assert_eq!(indexer.state.read().indices.len(), 0);
    let adding = indexer.add_index_in_slices("value", by_value());
    futures::pin_mut!(adding);
    assert!(adding.as_mut().now_or_never().is_none());
    writer.put(object("a/0000", "y"));
    writer.put(object("a/1999", "y"));
    adding.await.unwrap();
    assert_eq!(indexer.by_index("value", "x").unwrap().len(), 1_998);
    assert_eq!(indexer.by_index("value", "y").unwrap().len(), 2);
    let again = indexer.add_index_in_slices("value", by_value()).await;
    assert_eq!(again, Err(Error::IndexExists("value".to_owned())));
}
