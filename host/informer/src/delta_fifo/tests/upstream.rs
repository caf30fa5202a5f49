//! client-go's tests of the queue that cover more than one clause, each under its name.

use std::thread;

use super::*;

/// Returns a transformer that rejects objects of one name.
fn rejecting(name: &'static str) -> Transformer {
    Arc::new(move |object: Object| match object.key().name() == name {
        true => Err(TransformError("no".into())),
        false => Ok(object),
    })
}

// Conformance: 2.1
#[test]
fn basic_two_producers_each_in_its_own_order() {
    let fifo = without_known_objects();
    let produce = |producer: &'static str| {
        let fifo = &fifo;
        move || {
            for i in 0..500 {
                fifo.add(object(&format!("{producer}{i}"), i)).unwrap();
            }
        }
    };
    let mut popped = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    thread::scope(|scope| {
        scope.spawn(produce("a"));
        scope.spawn(produce("b"));
        while popped.len() < 1000 {
            let pop = fifo.pop(|key, _, _| {
                popped.push(key.name().to_owned());
                Processed::Done
            });
            runtime.block_on(pop).unwrap();
        }
    });
    for producer in ["a", "b"] {
        let its: Vec<_> = popped.iter().filter(|name| name.starts_with(producer)).collect();
        let expected: Vec<_> = (0..500).map(|i| format!("{producer}{i}")).collect();
        assert_eq!(its, expected.iter().collect::<Vec<_>>());
    }
}

// Conformance: 2.4
#[test]
fn add_update_delete_is_one_pop_that_ends_in_the_delete() {
    let fifo = without_known_objects();
    fifo.add(object("foo", 10)).unwrap();
    fifo.update(object("foo", 12)).unwrap();
    fifo.delete(object("foo", 15)).unwrap();
    assert_eq!(fifo.len(), 1);
    assert_eq!(pop_all(&fifo), ["foo: A10 U12 D15"]);
    assert!(fifo.is_empty());
    assert!(fifo.queued(&key("foo")).is_none());
}

// Conformance: 2.7
#[test]
fn enqueueing_with_lister_pops_changes_of_known_objects() {
    let fifo = knowing(&[object("foo", 5), object("bar", 6), object("baz", 7)]);
    fifo.add(object("foo", 10)).unwrap();
    fifo.update(object("bar", 15)).unwrap();
    fifo.delete(object("baz", 20)).unwrap();
    assert_eq!(pop_all(&fifo), ["foo: A10", "bar: U15", "baz: D20"]);
}

// Conformance: 2.8
#[test]
fn add_replace_is_one_pop_that_ends_in_the_list() {
    let fifo = without_known_objects();
    fifo.add(object("foo", 10)).unwrap();
    fifo.replace(vec![object("foo", 15)]).unwrap();
    assert_eq!(pop_all(&fifo), ["foo: A10 R15"]);
    assert!(fifo.queued(&key("foo")).is_none());
}

// Conformance: 2.9
#[test]
fn resync_non_existing_leaves_a_queued_delete_alone() {
    let fifo = knowing(&[object("foo", 5)]);
    fifo.delete(object("foo", 10)).unwrap();
    fifo.resync();
    assert_eq!(pop_all(&fifo), ["foo: D10"]);
}

// Conformance: 2.10
#[test]
fn resync_queues_a_known_object_once() {
    let fifo = knowing(&[object("foo", 5)]);
    fifo.resync();
    assert_eq!(pop_all(&fifo), ["foo: S5 (initial)"], "a resync alone does not populate (DF-30)");
}

// Conformance: 2.11
#[test]
fn delete_existing_non_propagated_keeps_both_changes() {
    let fifo = knowing(&[]);
    fifo.add(object("foo", 5)).unwrap();
    fifo.delete(object("foo", 6)).unwrap();
    assert_eq!(pop_all(&fifo), ["foo: A5 D6"]);
}

// Conformance: 2.14
#[test]
fn replace_delta_type_is_replaced_also_for_known_objects() {
    let fifo = knowing(&[object("foo", 5)]);
    fifo.replace(vec![object("foo", 5)]).unwrap();
    assert_eq!(pop_all(&fifo), ["foo: R5 (initial)"]);
}

// Conformance: 2.15
#[test]
fn update_resync_race_has_no_stale_sync() {
    let fifo = knowing(&[object("foo", 5)]);
    fifo.update(object("foo", 6)).unwrap();
    fifo.resync();
    assert_eq!(pop_all(&fifo), ["foo: U6"]);
}

/// An object that the transformer rejects is neither queued nor stored.
// Conformance: G.60
#[test]
fn each_call_with_a_failing_transformer_returns_an_error_df_07() {
    let known = Arc::new(Known::default());
    known.0.write().insert(key("bad"), object("bad", 1));
    let config = || Config {
        known_objects: Some(known.clone()),
        transformer: Some(rejecting("bad")),
        ..Config::default()
    };
    let is_refused = |result: Result<(), Error>| {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Transform(_)));
        assert_eq!(error.to_string(), "transforming: no");
    };

    let fifo = DeltaFifo::new(config());
    is_refused(fifo.delete(object("bad", 2)));
    assert!(fifo.is_empty() && !fifo.has_synced(), "a delete that fails does not populate");
    is_refused(fifo.add(object("bad", 2)));
    is_refused(fifo.update(object("bad", 2)));
    assert!(fifo.is_empty() && fifo.has_synced(), "an add that fails does (DF-30)");

    let fifo = DeltaFifo::new(config());
    is_refused(fifo.replace(vec![object("good", 1), object("bad", 2), object("late", 1)]));
    assert!(!fifo.has_synced(), "a list that fails is none");
    assert_eq!(fifo.len(), 1);
    assert_eq!(pop_all(&fifo), ["good: R1 (initial)"]);
    assert_eq!(known.0.read()[&key("bad")].resource_version(), "1", "what is known stays as it was");

    // The transformer does not run on tombstones and resynced objects.
    fifo.resync();
    assert_eq!(pop_all(&fifo), ["bad: S1 (initial)"]);
    fifo.delete_tombstone(tombstone("bad", 1));
    assert_eq!(pop_all(&fifo), ["bad: T1"]);
}
