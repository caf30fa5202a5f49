//! A model of the queue: per key what a consumer would be handed, with the known objects as the consumer leaves them.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Add(u8),
    Update(u8),
    Delete(u8),
    Tombstone(u8),
    Replace(Vec<u8>),
    Resync,
    Pop,
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0_u8..4;
    prop_oneof![
        3 => name.clone().prop_map(Step::Add),
        3 => name.clone().prop_map(Step::Update),
        3 => name.clone().prop_map(Step::Delete),
        1 => name.clone().prop_map(Step::Tombstone),
        1 => proptest::collection::vec(name, 0..5).prop_map(Step::Replace),
        1 => Just(Step::Resync),
        6 => Just(Step::Pop),
    ]
}

/// The consumer: stores what it is handed, and follows each object's story.
fn consume(known: &Known, key: &ObjectKey, deltas: &Deltas) {
    for delta in deltas.as_slice() {
        match delta {
            Delta::Added(object) | Delta::Updated(object) | Delta::Replaced(object) | Delta::Sync(object) => {
                known.0.write().insert(key.clone(), object.clone());
            }
            Delta::Deleted(_) => {
                known.0.write().remove(key);
            }
        }
    }
}

proptest! {
    /// Whatever happens, once all is popped the consumer has what the source has, no list is empty, and no list has two
    /// deletions in a row.
    #[test]
    fn a_consumer_ends_with_what_the_source_has(steps in proptest::collection::vec(step(), 1..60)) {
        let known = Arc::new(Known::default());
        let fifo = DeltaFifo::new(Config { known_objects: Some(known.clone()), ..Config::default() });
        let mut source: BTreeMap<ObjectKey, Object> = BTreeMap::new();
        let mut version = 0;
        let pop = || fifo.try_pop(|key, deltas, _| {
            assert!(!deltas.as_slice().is_empty());
            for pair in deltas.as_slice().windows(2) {
                assert!(!matches!(pair, [Delta::Deleted(_), Delta::Deleted(_)]), "{deltas:?}");
            }
            consume(&known, key, deltas);
            Processed::Done
        });
        for step in steps {
            version += 1;
            let new = |name: u8| object(&name.to_string(), version);
            match step {
                Step::Add(name) | Step::Update(name) => {
                    let object = new(name);
                    source.insert(object.key().clone(), object.clone());
                    if matches!(step, Step::Add(_)) { fifo.add(object).unwrap() } else { fifo.update(object).unwrap() }
                }
                Step::Delete(name) => {
                    let object = new(name);
                    source.remove(object.key());
                    fifo.delete(object).unwrap();
                }
                Step::Tombstone(name) => {
                    source.remove(&key(&name.to_string()));
                    fifo.delete_tombstone(tombstone(&name.to_string(), version));
                }
                Step::Replace(names) => {
                    let objects: Vec<_> = names.into_iter().map(new).collect();
                    source = objects.iter().map(|object| (object.key().clone(), object.clone())).collect();
                    fifo.replace(objects).unwrap();
                }
                Step::Resync => fifo.resync(),
                Step::Pop => { pop().unwrap(); }
            }
            let state = fifo.state.lock();
            prop_assert_eq!(state.queue.len(), state.lists.len());
            prop_assert!(state.queue.iter().all(|key| state.lists.contains_key(key)));
        }
        while pop() == Ok(true) {}
        prop_assert_eq!(&*known.0.read(), &source);
    }
}
