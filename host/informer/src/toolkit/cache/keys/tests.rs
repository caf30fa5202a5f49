//! The clauses KEY-…, and the upstream cases of key functions.

use super::*;
use crate::delta_fifo::{Config, DeltaFifo, Error, Processed, Tombstone};
use crate::indexer::{IndexError, IndexFunction};
use crate::names::TypeMeta;
use crate::testing::Draft;

fn object(name: &str) -> Object {
    Draft::new(name).at(&TypeMeta::new("v1", "Pod"), "uid", "1")
}

fn tombstone(key: ObjectKey, object: Option<Object>) -> DeltaObject {
    DeltaObject::Tombstone(Tombstone { key, object })
}

/// The key function of the articles.
fn with_dashes() -> KeyFunction {
    KeyFunction::new(|object| match object.key().namespace() {
        "" => Err("no namespace".into()),
        namespace => Ok(ObjectKey::new("", format!("{namespace}---{}", object.key().name()))),
    })
}

// Conformance: 2.18
#[test]
fn objects_deletions_and_keys_have_one_key_key_02_key_07() {
    let fifo = DeltaFifo::new(Config::default());
    let text = |key: Result<ObjectKey, KeyError>| key.unwrap().to_string();
    assert_eq!(text(fifo.key_of(&object("ns/a"))), "ns/a");
    let b = tombstone(ObjectKey::new("", "b"), None);
    assert_eq!(text(fifo.key_of(&b)), "b");

    let last_queued = |name: &str| {
        let mut key = None;
        while fifo.try_pop(|_, deltas, _| {
            key = Some(fifo_key(deltas));
            Processed::Done
        }) == Ok(true)
        {}
        assert_eq!(key.unwrap(), name);
    };
    fifo.add(object("ns/c")).unwrap();
    last_queued("ns/c");
    fifo.add(object("ns/d")).unwrap();
    fifo.delete_tombstone(Tombstone { key: ObjectKey::new("ns", "d"), object: None });
    last_queued("ns/d");

    let explicit = ObjectKey::new("", "any/thing/at all");
    assert_eq!(text(fifo.key_of(&explicit)), "any/thing/at all", "a key is not looked into");
}

/// As the queue itself does it, from within a pop.
fn fifo_key(deltas: &Deltas) -> String {
    KeyFunction::default().key_of(deltas).unwrap().to_string()
}

// Conformance: 22.6
#[test]
fn a_key_error_keeps_its_causes_key_03() {
    let fifo = DeltaFifo::new(Config { key_function: with_dashes(), ..Config::default() });
    let bad = object("cluster-wide");
    let error = fifo.key_of(&bad).unwrap_err();
    assert!(error.object.is_same(&bad));
    assert_eq!(error.source().unwrap().to_string(), "no namespace");

    let has_cause = |error: Error| {
        let Error::Key(key) = &error else { panic!("{error}") };
        assert!(key.object.is_same(&bad));
        assert_eq!(error.source().unwrap().to_string(), "no namespace");
    };
    has_cause(fifo.add(bad.clone()).unwrap_err());
    has_cause(fifo.update(bad.clone()).unwrap_err());
    has_cause(fifo.delete(bad.clone()).unwrap_err());
    has_cause(fifo.replace(vec![object("ns/good"), bad.clone(), object("ns/late")]).unwrap_err());
    assert_eq!(fifo.len(), 1, "what stood before it is queued");

    // A key function may itself fail with a key error.
    let nested = KeyError { object: bad.clone(), source: Arc::new(fifo.key_of(&bad).unwrap_err()) };
    assert_eq!(nested.source().unwrap().source().unwrap().to_string(), "no namespace");
}

// Conformance: 1.8
#[test]
fn a_tombstone_has_the_name_of_its_key_key_05_key_06() {
    let live = object("ns/name");
    let gone = tombstone(ObjectKey::new("ns", "name"), None);
    assert_eq!(gone.name(), *live.key());
    assert_eq!(gone.name().to_string(), DeltaObject::Object(live).name().to_string());
    // What was made with an own key function is not taken apart for its key, but for its name.
    let own = tombstone(ObjectKey::new("", "ns/name/more"), None);
    assert_eq!(KeyFunction::default().key_of(&own).unwrap(), ObjectKey::new("", "ns/name/more"));
    assert_eq!(own.name(), ObjectKey::new("ns", "name/more"));
}

// Conformance: 1.9, 1.10
#[test]
fn every_form_of_a_deletion_has_a_name_and_a_key_key_06() {
    let key = ObjectKey::new("ns", "name");
    for (deleted, expected) in [
        (DeltaObject::Object(object("ns/name")), "ns/name"),
        (tombstone(key.clone(), Some(object("ns/name"))), "ns/name"),
        (tombstone(key, None), "ns/name"),
        (tombstone(ObjectKey::new("", ""), None), ""),
    ] {
        assert_eq!(deleted.name().to_string(), expected);
        assert_eq!(KeyFunction::default().key_of(&deleted).unwrap().to_string(), expected);
    }
}

// Conformance: G.56
#[test]
fn an_index_of_one_value_is_a_key_function_ix_09() {
    let pod = |parts: &[&str]| {
        let labels = parts.iter().fold(Draft::new("ns/a"), |draft, part| draft.label(part, part));
        labels.at(&TypeMeta::new("v1", "Pod"), "uid", "1")
    };
    let labels = IndexFunction::new(|object| Ok(object.labels().into_values().collect()));
    let keys = KeyFunction::of_index(IndexSource::Function(labels));
    assert_eq!(keys.key_of(&pod(&["one/part"])).unwrap(), ObjectKey::new("", "one/part"));
    for bad in [&[][..], &["one", "two"]] {
        let error = keys.key_of(&pod(bad)).unwrap_err();
        assert_eq!(error.source.downcast_ref(), Some(&NotOneValue(bad.len())));
    }
    let failing = IndexFunction::new(|_| Err(IndexError("no".into())));
    let error = KeyFunction::of_index(IndexSource::Function(failing)).key_of(&pod(&[])).unwrap_err();
    assert_eq!(error.source.to_string(), "cannot be indexed: no");
}

#[test]
fn a_custom_key_function_computes_the_keys_in_the_queue() {
    let fifo = DeltaFifo::new(Config { key_function: with_dashes(), ..Config::default() });
    fifo.add(object("ns/a")).unwrap();
    assert!(fifo.queued(&ObjectKey::new("", "ns---a")).is_some());
}
