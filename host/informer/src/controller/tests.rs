//! The clauses CT-…, and client-go's tests of the low-level controller, each under its name.

use std::collections::{BTreeMap, BTreeSet};

use oarlock_wait_until::LIMIT;
use parking_lot::Mutex;

use super::*;
use crate::delta_fifo::{Config, Delta};
use crate::indexer::IndexerWriter;
use crate::testing::{Draft, FakeListWatch};

/// A controller, and a cache that the callback writes.
struct ByHand {
    fake: FakeListWatch,
    controller: Controller,
    writer: Mutex<IndexerWriter>,
    fifo: Arc<DeltaFifo>,
}

impl ByHand {
    fn new() -> Self {
        let fake = FakeListWatch::pods();
        let writer = IndexerWriter::new();
        let known_objects = Some(Arc::new(writer.indexer().clone()) as _);
        let fifo = Arc::new(DeltaFifo::new(Config { known_objects, ..Config::default() }));
        let controller = Controller::new(Arc::new(fake.clone()), fifo.clone(), reflector::Config::default());
        Self { fake, controller, writer: Mutex::new(writer), fifo }
    }

    /// Applies a delta to the cache; returns whether the object was there.
    fn store(&self, key: &ObjectKey, delta: &Delta) -> bool {
        let mut writer = self.writer.lock();
        match delta {
            Delta::Deleted(_) => writer.delete(key, None),
            other => writer.put(other.last_known().unwrap().clone()),
        }
        .is_some()
    }
}

// Conformance: 1.1
#[tokio::test(start_paused = true)]
async fn example_a_controller_with_a_cache_of_its_own() {
    let it = ByHand::new();
    for name in ["a-hello", "b-controller", "c-framework"] {
        it.fake.put(name);
    }
    let token = CancellationToken::new();
    let mut deleted = Vec::new();
    it.controller
        .run(&token, |key, deltas, _| {
            it.store(key, deltas.newest());
            if matches!(deltas.newest(), Delta::Deleted(_)) {
                deleted.push(key.to_string());
                if deleted.len() == 3 {
                    token.cancel();
                }
            } else {
                it.fake.delete(key.name());
            }
            Ok(Processed::Done)
        })
        .await;
    deleted.sort();
    assert_eq!(deleted, ["a-hello", "b-controller", "c-framework"]);
    assert!(it.writer.lock().indexer().is_empty());
}

// Conformance: 1.3
#[test]
fn hammer_controller_by_three_threads() {
    let it = ByHand::new();
    assert!(!it.controller.has_synced());
    assert_eq!(it.controller.last_resource_version(), "");
    let is_done = Mutex::new(0);
    let token = CancellationToken::new();
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (fake, is_done) = (it.fake.clone(), &is_done);
            scope.spawn(move || {
                let mut random = thread + 1;
                let mut there = BTreeSet::new();
                for _ in 0..100 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let name = format!("ns/{thread}-{}", (random >> 33) % 10);
                    if (random >> 60) % 3 == 0 && there.remove(&name) {
                        fake.delete(&name);
                    } else {
                        fake.put(&*name);
                        there.insert(name);
                    }
                }
                *is_done.lock() += 1;
            });
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let run = it.controller.run(&token, |key, deltas, _| {
            assert_eq!(it.fifo.key_of(deltas).unwrap(), *key, "no key errors");
            for delta in deltas.as_slice() {
                it.store(key, delta);
            }
            // Cancels while events arrive, once all threads are done.
            if *is_done.lock() == 3 && it.controller.has_synced() {
                token.cancel();
            }
            it.fake.put("ns/one-more");
            Ok(Processed::Done)
        });
        let run = async { tokio::time::timeout(LIMIT, run).await };
        runtime.block_on(run).unwrap_or_else(|_| panic!("{} threads are done", is_done.lock()));
    });
    assert!(it.controller.has_synced());
    assert_ne!(it.controller.last_resource_version(), "");
}

// Conformance: 1.4
#[tokio::test(start_paused = true)]
async fn updates_never_go_back_and_each_object_is_deleted_once() {
    let it = ByHand::new();
    let draft = |name: &str, state: &str| Draft::new(name).label("state", state);
    // Objects from before and after the start.
    let change = async {
        for (number, (from, to)) in [("a", "b"), ("c", "d"), ("e", "f")].into_iter().enumerate() {
            let name = format!("ns/{number}");
            it.fake.put(draft(&name, from));
            tokio::task::yield_now().await;
            it.fake.put(draft(&name, to));
            tokio::task::yield_now().await;
            it.fake.put(draft(&name, "final"));
            it.fake.delete(&name);
        }
    };
    let token = CancellationToken::new();
    let mut deletes: BTreeMap<String, usize> = BTreeMap::new();
    let run = it.controller.run(&token, |key, deltas, _| {
        for delta in deltas.as_slice() {
            let old = it.writer.lock().indexer().get(key);
            let is_known = it.store(key, delta);
            let state = |object: &crate::object::Object| object.labels()["state"].clone();
            match (delta, old) {
                (Delta::Deleted(gone), old) => {
                    assert!(is_known);
                    assert_eq!(state(gone.last_known().unwrap()), "final");
                    assert_eq!(old.map(|old| state(&old)).as_deref(), Some("final"));
                    *deletes.entry(key.to_string()).or_default() += 1;
                }
                (other, Some(old)) => {
                    let (old, new) = (state(&old), state(other.last_known().unwrap()));
                    assert!(old <= new || new == "final", "{old} → {new}: never backwards");
                }
                (_, None) => {}
            }
        }
        if deletes.len() == 3 {
            token.cancel();
        }
        Ok(Processed::Done)
    });
    tokio::join!(run, change);
    assert_eq!(deletes.into_values().collect::<Vec<_>>(), [1, 1, 1]);
}

// Conformance: G.37
#[tokio::test(start_paused = true)]
async fn keys_that_are_queued_at_the_stop_are_not_processed_ct_03() {
    let it = ByHand::new();
    for i in 0..10 {
        it.fake.put(&*format!("ns/{i}"));
    }
    let token = CancellationToken::new();
    let mut processed = 0;
    it.controller
        .run(&token, |_, _, _| {
            processed += 1;
            if processed == 3 {
                token.cancel();
            }
            Ok(Processed::Done)
        })
        .await;
    assert_eq!((processed, it.fifo.len()), (3, 7));
    assert!(!it.controller.has_synced());
    // The queue is closed, and the controller runs once.
    it.controller.run(&CancellationToken::new(), |_, _, _| panic!("a controller runs once")).await;
}

#[tokio::test(start_paused = true)]
async fn deltas_that_fail_are_dropped_and_later_ones_processed_ct_02() {
    let it = ByHand::new();
    for name in ["ns/a", "ns/bad", "ns/c"] {
        it.fake.put(name);
    }
    let token = CancellationToken::new();
    let mut seen = Vec::new();
    it.controller
        .run(&token, |key, _, _| {
            seen.push(key.name().to_owned());
            match key.name() {
                "bad" => Err("no".into()),
                "c" => {
                    token.cancel();
                    Ok(Processed::Done)
                }
                _ => Ok(Processed::Done),
            }
        })
        .await;
    assert_eq!(seen, ["a", "bad", "c"]);
    assert!(it.fifo.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_process_callback_may_requeue_deltas_df_42() {
    let it = ByHand::new();
    it.fake.put("ns/a");
    it.fake.put("ns/b");
    let token = CancellationToken::new();
    let mut seen = Vec::new();
    it.controller
        .run(&token, |key, _, _| {
            seen.push(key.name().to_owned());
            if seen.len() == 3 {
                token.cancel();
            }
            Ok(if seen.len() == 1 { Processed::Requeue } else { Processed::Done })
        })
        .await;
    assert_eq!(seen, ["a", "b", "a"]);
}
