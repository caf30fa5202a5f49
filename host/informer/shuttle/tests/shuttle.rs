//! The parts with locks in many interleavings: no wake-up is lost, no key is processed twice at a time, no
//! reader sees a partial state.
//!
//! The scheduler reports a deadlock when no task can continue; so a test that ends has no task that waits for
//! ever.

use std::collections::{BTreeMap, BTreeSet};

use oarlock_informer::delta_fifo::{Config, DeltaFifo, Processed, Watermark};
use oarlock_informer::listener::{Listener, ListenerConfig, ListenerHandle, Notification, Outcome};
use oarlock_informer::object::TypeMeta;
use oarlock_informer::testing::Draft;
use oarlock_informer::testing::hidden::{Compression, Distribution};
use oarlock_informer::{Object, indexer::IndexSource, object::Namespaces, toolkit::workqueue::WorkQueue};
use shuttle::future::block_on;
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;

/// The number of interleavings of each strategy: random, and few context switches at chosen places.
const N_TRIED: usize = 500;

/// One test at a time: all tests share the interned values, whose locks belong to the scheduler too.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn check(test: fn()) {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    shuttle::check_random(test, N_TRIED);
    shuttle::check_pct(test, N_TRIED, 3);
}

fn object(name: &str, version: u32) -> Object {
    Draft::new(name).label("app", "web").at(&TypeMeta::new("v1", "Pod"), "uid", &version.to_string())
}

#[test]
fn the_fifo_wakes_its_consumer_for_every_change_and_for_the_end() {
    check(|| {
        let fifo = Arc::new(DeltaFifo::new(Config::default()));
        let producers: Vec<_> = ["a", "b"]
            .map(|producer| {
                let fifo = fifo.clone();
                thread::spawn(move || {
                    for version in 1..=2 {
                        fifo.add(object(producer, version)).unwrap();
                    }
                })
            })
            .into();
        let consumer = {
            let fifo = fifo.clone();
            thread::spawn(move || {
                let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
                let mut pop = || {
                    block_on(fifo.pop(|key, deltas, _| {
                        let versions = deltas.as_slice().iter().filter_map(|delta| delta.last_known());
                        let versions = versions.map(|object| object.resource_version().to_owned());
                        seen.entry(key.to_string()).or_default().extend(versions);
                        Processed::Done
                    }))
                };
                while pop().is_ok() {}
                seen
            })
        };
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        fifo.close();
        let seen = consumer.join().unwrap();
        let both = vec!["1".to_owned(), "2".to_owned()];
        assert_eq!(seen, [("a".to_owned(), both.clone()), ("b".to_owned(), both)].into());
    });
}

#[test]
fn the_whole_list_is_processed_before_the_sync_is_reported() {
    check(|| {
        let fifo = Arc::new(DeltaFifo::new(Config::default()));
        let processed = Arc::new(Mutex::new(0));
        let waiter = {
            let (mut watermark, processed) = (fifo.watermark(), processed.clone());
            thread::spawn(move || {
                block_on(async { watermark.wait_for(Watermark::has_synced).await.map(drop) }).unwrap();
                assert_eq!(*processed.lock().unwrap(), 2);
            })
        };
        let producer = {
            let fifo = fifo.clone();
            thread::spawn(move || fifo.replace(vec![object("a", 1), object("b", 1)]).unwrap())
        };
        for _ in 0..2 {
            block_on(fifo.pop(|_, _, _| {
                *processed.lock().unwrap() += 1;
                Processed::Done
            }))
            .unwrap();
        }
        producer.join().unwrap();
        waiter.join().unwrap();
    });
}

#[test]
fn the_work_queue_delivers_no_key_twice_at_a_time_and_loses_none() {
    check(|| {
        let queue = WorkQueue::<u8>::default();
        let in_work = Arc::new(Mutex::new(BTreeSet::new()));
        let worked = Arc::new(Mutex::new(BTreeSet::new()));
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let (queue, in_work, worked) = (queue.clone(), in_work.clone(), worked.clone());
                thread::spawn(move || {
                    while let Some(key) = block_on(queue.get()) {
                        assert!(in_work.lock().unwrap().insert(key));
                        thread::yield_now();
                        in_work.lock().unwrap().remove(&key);
                        worked.lock().unwrap().insert(key);
                        queue.done(&key);
                    }
                })
            })
            .collect();
        let producer = {
            let queue = queue.clone();
            thread::spawn(move || [1, 2, 1].into_iter().for_each(|key| queue.add(key)))
        };
        queue.add(3);
        producer.join().unwrap();
        queue.shut_down();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert_eq!(*worked.lock().unwrap(), BTreeSet::from([1, 2, 3]));
        assert!(queue.is_empty());
    });
}

#[test]
fn a_drain_ends_without_keys_in_process_or_at_a_plain_shutdown() {
    check(|| {
        let queue = WorkQueue::<u8>::default();
        queue.add(1);
        queue.add(2);
        let held = [block_on(queue.get()), block_on(queue.get())];
        let drains: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || block_on(queue.shut_down_with_drain()))
            })
            .collect();
        let done = {
            let queue = queue.clone();
            thread::spawn(move || held.iter().flatten().for_each(|key| queue.done(key)))
        };
        done.join().unwrap();
        drains.into_iter().for_each(|drain| drain.join().unwrap());

        let queue = WorkQueue::<u8>::default();
        queue.add(1);
        block_on(queue.get());
        let drain = {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.shut_down_with_drain()))
        };
        while !queue.is_shutting_down() {
            thread::yield_now();
        }
        queue.shut_down();
        drain.join().unwrap();
    });
}

/// Consumes a listener to its end, and returns the state that its notifications describe.
fn follow(mut listener: Listener) -> BTreeMap<String, String> {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    while let Some(delivery) = block_on(listener.next()) {
        let key = delivery.key.to_string();
        match &delivery.notification {
            Notification::Added { object, .. } => {
                let before = known.insert(key, object.resource_version().to_owned());
                assert_eq!(before, None);
            }
            Notification::Updated { old, new } => {
                let before = known.insert(key, new.resource_version().to_owned());
                assert_eq!(before.as_deref(), Some(&*old.resource_version()));
            }
            Notification::Deleted { .. } => assert!(known.remove(&key).is_some()),
        }
        listener.finish(&delivery.key, Outcome::Done);
    }
    known
}

/// Waits until a listener has delivered its backlog, which is dropped with the listener.
fn until_idle(handle: &ListenerHandle) {
    while handle.stats().pending + handle.stats().in_flight > 0 {
        thread::yield_now();
    }
}

/// Promise 2 for a listener that is added while objects change.
#[test]
fn a_listener_is_woken_and_gets_an_unbroken_chain() {
    check(|| {
        let distribution = Distribution::new();
        let writer = {
            let distribution = distribution.clone();
            thread::spawn(move || {
                distribution.put(object("a", 1)).unwrap();
                distribution.put(object("a", 2)).unwrap();
                distribution.put(object("b", 3)).unwrap();
                distribution.delete(object("a", 4)).unwrap();
            })
        };
        let listener = distribution.listen(ListenerConfig::default()).unwrap();
        let handle = listener.handle();
        let consumer = thread::spawn(move || follow(listener));
        writer.join().unwrap();
        until_idle(&handle);
        distribution.stop();
        assert_eq!(consumer.join().unwrap(), [("b".to_owned(), "3".to_owned())].into());
    });
}

/// Promise 2 while changes are matched before they are applied, for a listener that exists, one that is
/// removed, one that is added, and one that gets more namespaces meanwhile.
#[test]
fn listeners_added_removed_and_widened_during_matching_miss_nothing() {
    check(|| {
        let distribution = Distribution::new();
        let config = |namespaces| ListenerConfig {
            label_selector: "app=web".parse().unwrap(),
            fields: vec!["/metadata/resourceVersion".parse().unwrap()],
            namespaces,
            ..ListenerConfig::default()
        };
        let nothing = || Namespaces::Only(BTreeSet::new());
        let listeners = [Namespaces::All, nothing()].map(|it| distribution.listen(config(it)).unwrap());
        let gone = distribution.listen(config(Namespaces::All)).unwrap();
        let mut handles: Vec<_> = listeners.iter().map(Listener::handle).collect();
        let mut consumers: Vec<_> =
            listeners.into_iter().map(|it| thread::spawn(move || follow(it))).collect();
        let writer = {
            let distribution = distribution.clone();
            thread::spawn(move || {
                distribution.put(object("ns/a", 1)).unwrap();
                distribution.put(object("ns/a", 2)).unwrap();
                distribution.put(object("ns/b", 3)).unwrap();
                distribution.delete(object("ns/a", 4)).unwrap();
            })
        };
        handles[1].set_namespaces(Namespaces::one("ns"));
        drop(gone);
        let late = distribution.listen(config(Namespaces::All)).unwrap();
        handles.push(late.handle());
        consumers.push(thread::spawn(move || follow(late)));
        writer.join().unwrap();
        handles.iter().for_each(until_idle);
        distribution.stop();
        for consumer in consumers {
            assert_eq!(consumer.join().unwrap(), [("ns/b".to_owned(), "3".to_owned())].into());
        }
    });
}

#[test]
fn a_late_index_has_all_objects_and_readers_see_whole_states() {
    check(|| {
        let distribution = Distribution::new();
        distribution.put(object("ns/a", 1)).unwrap();
        let indexer = distribution.indexer();
        let writer = {
            let distribution = distribution.clone();
            thread::spawn(move || {
                distribution.put(object("ns/b", 2)).unwrap();
                distribution.delete(object("ns/a", 3)).unwrap();
            })
        };
        let reader = {
            let indexer = indexer.clone();
            thread::spawn(move || {
                let names: Vec<_> = indexer.keys().iter().map(ToString::to_string).collect();
                assert!(
                    [&["ns/a"][..], &["ns/a", "ns/b"], &["ns/b"]]
                        .contains(&&names.iter().map(|name| &**name).collect::<Vec<_>>()[..]),
                    "{names:?}"
                );
            })
        };
        indexer.add_index("app", IndexSource::Label("app".into())).unwrap();
        writer.join().unwrap();
        reader.join().unwrap();
        let found = indexer.by_index("app", "web").unwrap();
        assert_eq!(found.iter().map(|object| object.key().to_string()).collect::<Vec<_>>(), ["ns/b"]);
    });
}

/// A reader gets the same text while the body changes its form.
#[test]
fn an_object_has_the_same_text_during_its_compression() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let text = |object: &Object| object.json().to_string();
    let test = move || {
        let objects: Vec<_> = (0..80).map(|i| padded(i)).collect();
        let compression = Compression::learn(&objects).unwrap();
        let object = objects[7].clone();
        let expected = text(&object);
        let compressors: Vec<_> = (0..2)
            .map(|_| {
                let (object, compression) = (object.clone(), compression.clone());
                thread::spawn(move || assert!(compression.compress(&object)))
            })
            .collect();
        for _ in 0..3 {
            assert_eq!(text(&object), expected);
            thread::yield_now();
        }
        compressors.into_iter().for_each(|compressor| compressor.join().unwrap());
        assert_eq!(text(&object), expected);
    };
    shuttle::check_random(test, 30);
}

/// Returns an object with a compressible body.
fn padded(i: u32) -> Object {
    let draft = (0..40).fold(Draft::new(&format!("ns/{i}")), |draft, line| {
        draft.annotation(
            &format!("line-{line}"),
            &format!("what all of them have in common, and {}", i * line),
        )
    });
    draft.at(&TypeMeta::new("v1", "Pod"), "uid", "1")
}
