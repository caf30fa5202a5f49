//! The clauses DF-…, and the upstream cases 2.… of delta_fifo_test.go.

mod model;
mod upstream;

use std::collections::BTreeMap;
use std::task::Poll;

use futures::poll;
use parking_lot::RwLock;

use super::*;
use crate::names::TypeMeta;
use crate::testing::Draft;

/// The objects that a consumer has stored.
#[derive(Default)]
struct Known(RwLock<BTreeMap<ObjectKey, Object>>);

impl KnownObjects for Known {
    fn known(&self, key: &ObjectKey) -> Option<Object> {
        self.0.read().get(key).cloned()
    }

    fn known_keys(&self) -> Vec<ObjectKey> {
        self.0.read().keys().cloned().collect()
    }
}

fn object(name: &str, version: u32) -> Object {
    let type_meta = TypeMeta::new("v1", "Pod");
    Draft::new(name).at(&type_meta, "uid", &version.to_string())
}

fn tombstone(name: &str, version: u32) -> Tombstone {
    Tombstone { key: key(name), object: Some(object(name, version)) }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("", name)
}

fn without_known_objects() -> DeltaFifo {
    DeltaFifo::new(Config::default())
}

fn knowing(objects: &[Object]) -> DeltaFifo {
    let known = Known::default();
    known.0.write().extend(objects.iter().map(|object| (object.key().clone(), object.clone())));
    DeltaFifo::new(Config { known_objects: Some(Arc::new(known)), ..Config::default() })
}

/// Formats deltas: A, U, D, R, S with the version, T for a tombstone.
fn text(deltas: &Deltas) -> String {
    let one = |delta: &Delta| {
        let letter = match delta {
            Delta::Added(_) => 'A',
            Delta::Updated(_) => 'U',
            Delta::Deleted(DeltaObject::Object(_)) => 'D',
            Delta::Deleted(DeltaObject::Tombstone(_)) => 'T',
            Delta::Replaced(_) => 'R',
            Delta::Sync(_) => 'S',
        };
        let version = |object: &Object| object.resource_version().to_owned();
        format!("{letter}{}", delta.last_known().map_or("-".to_owned(), version))
    };
    deltas.as_slice().iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Pops all keys and formats their deltas.
fn pop_all(fifo: &DeltaFifo) -> Vec<String> {
    let mut popped = Vec::new();
    let mut pop = || {
        fifo.try_pop(|key, deltas, is_initial| {
            let initial = if is_initial { " (initial)" } else { "" };
            popped.push(format!("{key}: {}{initial}", text(deltas)));
            Processed::Done
        })
    };
    while pop() == Ok(true) {}
    popped
}

fn queued(fifo: &DeltaFifo, name: &str) -> String {
    fifo.queued(&key(name)).map(|deltas| text(&deltas)).unwrap_or_default()
}

// Conformance: 2.17
#[test]
fn a_queued_key_keeps_its_place_df_01() {
    let fifo = without_known_objects();
    for (name, version) in [("foo", 10), ("bar", 1), ("foo", 11), ("foo", 13), ("zab", 30)] {
        fifo.add(object(name, version)).unwrap();
    }
    fifo.try_pop(|key, deltas, _| {
        assert_eq!((key.name(), text(deltas)), ("foo", "A10 A11 A13".to_owned()));
        Processed::Done
    })
    .unwrap();
    fifo.add(object("foo", 14)).unwrap();
    assert_eq!(pop_all(&fifo), ["bar: A1", "zab: A30", "foo: A14"]);
}

#[test]
fn of_two_deletes_the_one_with_the_final_state_is_kept_df_02() {
    let fifo = without_known_objects();
    fifo.add(object("a", 1)).unwrap();
    fifo.delete(object("a", 2)).unwrap();
    fifo.delete_tombstone(tombstone("a", 1));
    assert_eq!(queued(&fifo, "a"), "A1 D2", "a real final state is kept");

    fifo.add(object("b", 1)).unwrap();
    fifo.delete_tombstone(tombstone("b", 1));
    fifo.delete(object("b", 2)).unwrap();
    assert_eq!(queued(&fifo, "b"), "A1 D2", "a final state replaces a tombstone");

    fifo.add(object("c", 1)).unwrap();
    fifo.delete_tombstone(tombstone("c", 1));
    fifo.delete_tombstone(tombstone("c", 2));
    assert_eq!(queued(&fifo, "c"), "A1 T2", "the newer of two tombstones is kept");
}

#[test]
fn only_the_last_two_deltas_are_compared_df_03() {
    let fifo = without_known_objects();
    fifo.add(object("a", 1)).unwrap();
    fifo.delete(object("a", 2)).unwrap();
    fifo.add(object("a", 3)).unwrap();
    fifo.delete(object("a", 4)).unwrap();
    assert_eq!(queued(&fifo, "a"), "A1 D2 A3 D4");
}

#[test]
fn a_delete_of_an_unknown_object_is_ignored_df_04() {
    let fifo = without_known_objects();
    fifo.delete(object("a", 1)).unwrap();
    assert_eq!(pop_all(&fifo), [""; 0]);

    let fifo = knowing(&[object("known", 1)]);
    fifo.delete(object("unknown", 1)).unwrap();
    fifo.delete(object("known", 2)).unwrap();
    assert_eq!(pop_all(&fifo), ["known: D2"]);
}

#[test]
fn two_deletes_in_a_row_become_one_df_05() {
    let fifo = without_known_objects();
    fifo.add(object("a", 1)).unwrap();
    fifo.delete(object("a", 2)).unwrap();
    fifo.delete(object("a", 3)).unwrap();
    assert_eq!(queued(&fifo, "a"), "A1 D2");
}

#[test]
fn the_transformer_runs_once_per_object_and_not_on_tombstones_or_resync_df_06() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let transformer: Transformer = {
        let calls = calls.clone();
        Arc::new(move |object: Object| {
            calls.lock().push(object.resource_version().to_owned());
            Ok(object)
        })
    };
    let known = Known::default();
    for known_object in [object("known", 1), object("gone", 1)] {
        known.0.write().insert(known_object.key().clone(), known_object);
    }
    let config =
        Config { known_objects: Some(Arc::new(known)), transformer: Some(transformer), ..Config::default() };
    let fifo = DeltaFifo::new(config);
    fifo.resync();
    fifo.add(object("a", 2)).unwrap();
    fifo.update(object("a", 3)).unwrap();
    fifo.delete(object("a", 4)).unwrap();
    fifo.replace(vec![object("known", 5)]).unwrap();
    assert_eq!(*calls.lock(), ["2", "3", "4", "5"]);
}

#[test]
fn an_object_that_the_transformer_rejects_is_not_queued_df_07() {
    let transformer: Transformer = Arc::new(|object: Object| match object.key().name() {
        "bad" => Err(TransformError("no".into())),
        _ => Ok(object),
    });
    let fifo = DeltaFifo::new(Config { transformer: Some(transformer), ..Config::default() });
    let error = fifo.add(object("bad", 1)).unwrap_err();
    assert_eq!(error.to_string(), "transforming: no");
    assert!(fifo.is_empty());
    assert!(fifo.replace(vec![object("good", 1), object("bad", 1), object("late", 1)]).is_err());
    assert_eq!(pop_all(&fifo), ["good: R1"]);
}

#[tokio::test]
async fn each_change_wakes_all_waiting_pops_df_08() {
    let fifo = without_known_objects();
    let mut first = Box::pin(fifo.pop(|_, _, _| Processed::Done));
    let mut second = Box::pin(fifo.pop(|_, _, _| Processed::Done));
    assert_eq!(poll!(&mut first), Poll::Pending);
    assert_eq!(poll!(&mut second), Poll::Pending);
    fifo.add(object("a", 1)).unwrap();
    fifo.add(object("b", 1)).unwrap();
    assert_eq!(first.await, Ok(()));
    assert_eq!(second.await, Ok(()));
}

#[test]
fn a_listed_object_is_queued_as_replaced_even_after_a_delete_df_10() {
    let fifo = without_known_objects();
    fifo.add(object("a", 10)).unwrap();
    fifo.delete(object("a", 11)).unwrap();
    fifo.replace(vec![object("a", 15)]).unwrap();
    assert_eq!(pop_all(&fifo), ["a: A10 D11 R15"]);
}

// Conformance: G.10
#[test]
fn a_queued_object_that_is_not_listed_is_deleted_without_nested_tombstones_df_11() {
    let fifo = without_known_objects();
    fifo.add(object("a", 1)).unwrap();
    fifo.update(object("a", 2)).unwrap();
    fifo.add(object("b", 1)).unwrap();
    fifo.delete_tombstone(tombstone("b", 7));
    fifo.add(object("c", 1)).unwrap();
    fifo.delete(object("c", 2)).unwrap();
    fifo.replace(vec![]).unwrap();
    assert_eq!(queued(&fifo, "a"), "A1 U2 T2");
    assert_eq!(queued(&fifo, "b"), "A1 T7");
    assert_eq!(queued(&fifo, "c"), "A1 D2", "the deltas end in a delete already");
}

// Conformance: 2.13
#[test]
fn a_known_object_that_is_neither_listed_nor_queued_is_deleted_df_12() {
    let fifo = knowing(&[object("foo", 5), object("bar", 6), object("baz", 7)]);
    fifo.delete(object("baz", 10)).unwrap();
    fifo.replace(vec![object("foo", 5)]).unwrap();
    assert_eq!(pop_all(&fifo), ["baz: D10", "foo: R5", "bar: T6"]);
}

#[test]
fn replace_keeps_queued_keys_first_then_the_list_then_deletes_df_13() {
    let fifo = knowing(&[object("k1", 1), object("k2", 1)]);
    fifo.add(object("q", 1)).unwrap();
    fifo.replace(vec![object("z", 2), object("a", 2), object("q", 2)]).unwrap();
    assert_eq!(pop_all(&fifo), ["q: A1 R2", "z: R2", "a: R2", "k1: T1", "k2: T1"]);
}

/// Objects have the key `custom/NAME`, and the object `bad` has none.
fn custom_keys() -> KeyFunction {
    KeyFunction::new(|object| match object.key().name() {
        "bad" => Err("no key".into()),
        name => Ok(ObjectKey::new("custom", name)),
    })
}

#[test]
fn an_object_without_a_key_ends_a_list_which_then_was_not_the_first_df_15() {
    let fifo = DeltaFifo::new(Config { key_function: custom_keys(), ..Config::default() });
    let listed = vec![object("good", 1), object("bad", 1), object("late", 1)];
    assert!(matches!(fifo.replace(listed), Err(Error::Key(_))));
    assert!(!fifo.has_synced());
    assert_eq!(pop_all(&fifo), ["custom/good: R1 (initial)"]);
    assert!(!fifo.has_synced(), "it waits for a whole list");
    fifo.replace(vec![object("good", 2)]).unwrap();
    assert_eq!(pop_all(&fifo), ["custom/good: R2 (initial)"]);
    assert!(fifo.has_synced());
}

#[test]
fn a_resync_looks_for_the_key_of_the_object_and_not_that_of_the_store_df_21() {
    let known = Known::default();
    known.0.write().extend(["a", "b", "bad"].map(|name| (key(name), object(name, 1))));
    let known_objects = Some(Arc::new(known) as Arc<dyn KnownObjects>);
    let fifo = DeltaFifo::new(Config { key_function: custom_keys(), known_objects, ..Config::default() });
    fifo.update(object("a", 2)).unwrap();
    fifo.delete_tombstone(tombstone("b", 1));
    fifo.resync();
    assert_eq!(pop_all(&fifo), ["custom/a: U2", "b: T1", "custom/b: S1"]);
}

#[test]
fn a_resync_queues_known_objects_that_are_not_queued_df_20() {
    let fifo = without_known_objects();
    fifo.resync();
    assert!(fifo.is_empty());

    let fifo = knowing(&[object("a", 1), object("b", 1), object("c", 1)]);
    fifo.update(object("b", 2)).unwrap();
    fifo.delete(object("c", 2)).unwrap();
    fifo.resync();
    assert_eq!(pop_all(&fifo), ["b: U2", "c: D2", "a: S1"]);
}

#[test]
fn a_change_before_any_list_makes_the_queue_synced_and_a_resync_does_not_df_30() {
    let fifo = knowing(&[object("a", 1)]);
    fifo.resync();
    assert!(!fifo.has_synced());
    fifo.add(object("b", 1)).unwrap();
    assert!(fifo.has_synced());

    let fifo = without_known_objects();
    fifo.delete(object("unknown", 1)).unwrap();
    assert!(fifo.has_synced());
}

#[test]
fn the_queue_has_synced_once_the_first_list_and_its_deletes_are_popped_df_31_df_32() {
    let fifo = knowing(&[object("gone", 1)]);
    fifo.replace(vec![object("a", 1), object("a", 2), object("b", 1)]).unwrap();
    for _ in 0..3 {
        assert!(!fifo.has_synced());
        fifo.try_pop(|_, _, _| Processed::Done).unwrap();
    }
    assert!(fifo.has_synced());
    fifo.replace(vec![object("c", 1)]).unwrap();
    assert!(fifo.has_synced(), "it stays synced");

    let fifo = without_known_objects();
    fifo.replace(vec![]).unwrap();
    assert!(fifo.has_synced(), "an empty list needs no pop");
}

// Conformance: G.11
#[test]
fn the_queue_has_not_synced_while_the_last_key_is_processed_df_33() {
    let fifo = without_known_objects();
    fifo.replace(vec![object("a", 1)]).unwrap();
    let watermark = fifo.watermark();
    fifo.try_pop(|_, _, _| {
        assert!(!watermark.borrow().has_synced());
        Processed::Done
    })
    .unwrap();
    assert!(watermark.borrow().has_synced());
}

#[test]
fn objects_and_deletes_of_the_first_list_are_initial_df_34() {
    let fifo = knowing(&[object("gone", 1)]);
    fifo.replace(vec![object("a", 1)]).unwrap();
    fifo.add(object("b", 1)).unwrap();
    assert_eq!(pop_all(&fifo), ["a: R1 (initial)", "gone: T1 (initial)", "b: A1"]);
}

// Conformance: 2.20
#[tokio::test]
async fn a_closed_queue_is_drained_before_pop_fails_df_40() {
    let fifo = without_known_objects();
    let mut waiting: Vec<_> = (0..10).map(|_| Box::pin(fifo.pop(|_, _, _| Processed::Done))).collect();
    for pop in &mut waiting {
        assert_eq!(poll!(pop), Poll::Pending);
    }
    fifo.close();
    for pop in waiting {
        assert_eq!(pop.await, Err(Closed));
    }
    fifo.add(object("a", 1)).unwrap();
    assert_eq!(fifo.pop(|_, _, _| Processed::Done).await, Ok(()));
    assert_eq!(fifo.pop(|_, _, _| Processed::Done).await, Err(Closed));
}

#[test]
fn requeued_deltas_return_to_the_end_unless_their_key_is_queued_again_df_42() {
    let fifo = without_known_objects();
    fifo.add(object("a", 1)).unwrap();
    fifo.add(object("b", 1)).unwrap();
    fifo.try_pop(|_, _, _| Processed::Requeue).unwrap();
    assert_eq!(pop_all(&fifo), ["b: A1", "a: A1"]);
}

#[test]
fn the_watermark_shows_a_version_once_all_changes_before_it_are_processed() {
    let fifo = without_known_objects();
    let version = || fifo.watermark().borrow().resource_version().map(|version| version.to_owned());
    fifo.replace(vec![object("a", 1), object("b", 2)]).unwrap();
    fifo.mark("5");
    fifo.update(object("a", 6)).unwrap();
    fifo.mark("6");
    fifo.try_pop(|_, _, _| {
        assert_eq!(version(), None);
        Processed::Done
    })
    .unwrap();
    assert_eq!(version(), None, "b was queued before both versions");
    assert_eq!(pop_all(&fifo).len(), 1);
    assert_eq!(version().as_deref(), Some("6"));
}

#[test]
fn memory_is_freed_after_a_burst() {
    // Names in no order, and names in the order of a list.
    for names in [|i: u32| i.to_string(), |i: u32| format!("{i:05}")] {
        let fifo = without_known_objects();
        fifo.replace((0..10_000).map(|i| object(&names(i), 1)).collect()).unwrap();
        for i in 0..10_000 {
            fifo.update(object(&names(i), 2)).unwrap();
        }
        assert_eq!(pop_all(&fifo).len(), 10_000);
        let capacity = fifo.state.lock().capacity();
        assert!(capacity <= 256, "{capacity}");
    }
}

/// Changes of an object in a queued list join it at its place.
#[test]
fn order_and_watermark_are_right_while_a_list_is_queued() {
    let fifo = without_known_objects();
    let version = || fifo.watermark().borrow().resource_version().map(|version| version.to_owned());
    fifo.add(object("z/z", 1)).unwrap();
    fifo.mark("1");
    fifo.replace(["a-b/x", "a/x", "a/y", "z/z"].map(|name| object(name, 2)).to_vec()).unwrap();
    fifo.mark("2");
    fifo.update(object("a/y", 3)).unwrap();
    fifo.add(object("new", 4)).unwrap();
    fifo.mark("4");
    let mut popped = Vec::new();
    while fifo
        .try_pop(|key, deltas, _| {
            popped.push(format!("{key}:{} after {:?}", deltas.as_slice().len(), version()));
            Processed::Done
        })
        .unwrap()
    {}
    insta::assert_snapshot!(popped.join("\n"), @r#"
    z/z:2 after None
    a-b/x:1 after Some("1")
    a/x:1 after Some("1")
    a/y:2 after Some("1")
    new:1 after Some("2")
    "#);
    assert_eq!(version().as_deref(), Some("4"));
}

#[test]
fn a_key_that_is_processed_in_part_stays_at_the_head() {
    let fifo = without_known_objects();
    let popped = std::cell::RefCell::new(Vec::new());
    let pop = |n_done: usize| {
        let process = |key: &ObjectKey, deltas: &Deltas, _: bool| {
            popped.borrow_mut().push(format!("{key} {}", text(deltas)));
            n_done
        };
        fifo.try_pop_some(process).unwrap()
    };
    fifo.replace(vec![object("a", 1), object("b", 1)]).unwrap();
    assert!(pop(0));
    // Later changes and lists follow.
    fifo.update(object("a", 2)).unwrap();
    fifo.update(object("c", 2)).unwrap();
    assert!(pop(1));
    fifo.replace(vec![object("a", 2), object("b", 1), object("c", 2)]).unwrap();
    assert!(pop(1) && pop(9) && !fifo.has_synced(), "b of the first list has not been popped");
    assert!(pop(9) && fifo.has_synced());
    assert!(pop(9) && !pop(9));
    let expected = ["a R1", "a R1 U2", "a U2 R2", "a R2", "b R1 R1", "c U2 R2"];
    assert_eq!(popped.take(), expected);
}
