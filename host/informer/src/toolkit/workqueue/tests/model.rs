//! A model of the queue: the dirty keys and since when, and the keys in process.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Add(u8),
    AddAfter(u8, u64),
    Get,
    Done(u8),
    Advance(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u8..4).prop_map(Step::Add),
        2 => (0_u8..4, 1_u64..5).prop_map(|(key, delay)| Step::AddAfter(key, delay)),
        4 => Just(Step::Get),
        4 => (0_u8..4).prop_map(Step::Done),
        2 => (1_u64..4).prop_map(Step::Advance),
    ]
}

async fn play(steps: Vec<Step>) {
    let queue = WorkQueue::<u8>::default();
    let mut dirty: BTreeMap<u8, Instant> = BTreeMap::new();
    let mut processing = BTreeSet::new();
    let mut delayed: BTreeMap<u8, Instant> = BTreeMap::new();
    for step in steps {
        match step {
            Step::Add(key) => {
                queue.add(key);
                dirty.entry(key).or_insert_with(Instant::now);
            }
            Step::AddAfter(key, delay) => {
                let due = Instant::now() + seconds(delay);
                queue.add_after(key, seconds(delay));
                delayed.entry(key).and_modify(|old| *old = due.min(*old)).or_insert(due);
            }
            Step::Get => match get(&queue) {
                Some(key) => {
                    assert!(dirty.remove(&key).is_some() && processing.insert(key));
                }
                None => assert!(dirty.keys().all(|key| processing.contains(key))),
            },
            Step::Done(key) => {
                queue.done(&key);
                processing.remove(&key);
            }
            Step::Advance(by) => tokio::time::advance(seconds(by)).await,
        }
        let now = Instant::now();
        for (key, due) in delayed.extract_if(.., |_, due| *due <= now) {
            dirty.entry(key).or_insert(due);
        }
        let waiting = || dirty.iter().filter(|(key, _)| !processing.contains(*key));
        assert_eq!(queue.len(), waiting().count());
        assert_eq!(queue.n_delayed(), delayed.len());
        let oldest = waiting().map(|(_, since)| now - *since).max();
        assert_eq!(queue.oldest_age(), oldest.unwrap_or_default());
    }
}

proptest! {
    #[test]
    fn the_queue_is_what_is_dirty_and_not_worked_on_wq_01(steps in proptest::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(play(steps));
    }
}
