//! Promise 2 against whatever may happen: a chain per object, without a gap, that ends in what there is.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::indexer::Indexer;
use crate::testing::Draft;

const KEYS: [&str; 4] = ["a/x", "a/y", "b/x", "b/y"];

#[derive(Clone, Debug)]
enum Step {
    Put { key: usize, matches: bool, field: u8 },
    Delete { key: usize },
    Relist { keys: BTreeSet<usize> },
    Resync,
    Take,
    Finish { which: usize, end: End },
    Advance,
    Replay,
    Narrow { to: Option<&'static str> },
    RetryParked,
    Abandon,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Done,
    RetryAtOnce,
    RetryLater,
    Park,
}

#[derive(Clone, Debug)]
struct Setup {
    backlog_limit: usize,
    selects: bool,
    declares: bool,
}

/// What the consumer knows, and what it must therefore be told.
struct Consumer {
    listener: Listener,
    setup: Setup,
    /// The state of each object after the last delivery that was done.
    told: BTreeMap<ObjectKey, Object>,
    /// Objects of which a delete may come although no add was done: the add was tried, or was part of a snapshot, or
    /// was told to the consumer before the replay.
    may_be_deleted: BTreeSet<ObjectKey>,
    in_flight: Vec<(Delivery, bool)>,
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..KEYS.len();
    let end = prop_oneof![4 => Just(End::Done), 1 => Just(End::RetryAtOnce), 1 => Just(End::RetryLater), 1 => Just(End::Park)];
    prop_oneof![
        12 => (key.clone(), prop::bool::weighted(0.8), 0_u8..2)
            .prop_map(|(key, matches, field)| Step::Put { key, matches, field }),
        5 => key.clone().prop_map(|key| Step::Delete { key }),
        1 => proptest::collection::btree_set(key, 0..4).prop_map(|keys| Step::Relist { keys }),
        1 => Just(Step::Resync),
        12 => Just(Step::Take),
        12 => (0_usize..3, end).prop_map(|(which, end)| Step::Finish { which, end }),
        3 => Just(Step::Advance),
        1 => Just(Step::Replay),
        1 => prop_oneof![Just(None), Just(Some("a")), Just(Some("b"))].prop_map(|to| Step::Narrow { to }),
        1 => Just(Step::RetryParked),
        1 => Just(Step::Abandon),
    ]
}

fn setup() -> impl Strategy<Value = Setup> {
    (prop_oneof![Just(0), Just(2), Just(1000)], any::<bool>(), any::<bool>())
        .prop_map(|(backlog_limit, selects, declares)| Setup { backlog_limit, selects, declares })
}

fn draft(key: usize, matches: bool, field: u8) -> Draft {
    let draft = Draft::new(KEYS[key]).field("spec", json!({ "field": field }));
    if matches { draft.label("app", "web") } else { draft }
}

impl Consumer {
    /// Whether the two are the same as far as this consumer was promised.
    fn same(&self, left: &Object, right: &Object) -> bool {
        let field = [pointer()];
        if self.setup.declares {
            left.pointers(&field) == right.pointers(&field)
        } else {
            left.resource_version() == right.resource_version()
        }
    }

    fn take(&mut self) {
        let Some(delivery) = take(&mut self.listener) else { return };
        let key = &delivery.key;
        let doing = format!("{} (attempt {})", outline(&delivery.notification), delivery.attempts);
        assert!(self.in_flight.iter().all(|(other, _)| other.key != *key), "{doing}: already in flight");
        let told = self.told.get(key);
        match &delivery.notification {
            Notification::Added { .. } => {
                assert!(told.is_none(), "{doing}, but {told:?} was told");
                self.may_be_deleted.insert(key.clone());
            }
            Notification::Updated { old, .. } => {
                assert!(told.is_some_and(|told| self.same(told, old)), "{doing}, but {told:?} was told");
            }
            Notification::Deleted { .. } => {
                assert!(told.is_some() || self.may_be_deleted.contains(key), "{doing} out of the blue");
            }
        }
        self.in_flight.push((delivery, false));
    }

    fn finish(&mut self, which: usize, end: End) {
        if self.in_flight.is_empty() {
            return;
        }
        let (delivery, is_stale) = self.in_flight.remove(which % self.in_flight.len());
        let outcome = match end {
            End::Done => Outcome::Done,
            End::RetryAtOnce => Outcome::Retry { after: Duration::ZERO },
            End::RetryLater => Outcome::Retry { after: second() },
            End::Park => Outcome::Park,
        };
        self.listener.finish(&delivery.key, outcome);
        if outcome == Outcome::Done && !is_stale {
            match delivery.notification {
                Notification::Added { object, .. } | Notification::Updated { new: object, .. } => {
                    self.told.insert(delivery.key.clone(), object);
                }
                Notification::Deleted { .. } => {
                    self.told.remove(&delivery.key);
                }
            }
            self.may_be_deleted.remove(&delivery.key);
        }
    }

    /// A fresh consumer knows nothing, and may be told of the end of whatever its predecessor knew.
    fn forget_all(&mut self, indexer: &Indexer) {
        self.may_be_deleted.extend(std::mem::take(&mut self.told).into_keys());
        self.may_be_deleted.extend(indexer.keys());
        self.in_flight.iter_mut().for_each(|(_, is_stale)| *is_stale = true);
    }

    fn narrow(&mut self, to: Option<&str>, indexer: &Indexer) {
        let namespaces = to.map_or(Namespaces::All, Namespaces::one);
        self.listener.set_namespaces(namespaces.clone());
        let is_visible = |key: &ObjectKey| namespaces.contains(key.namespace());
        self.told.retain(|key, _| is_visible(key));
        self.may_be_deleted.retain(is_visible);
        self.may_be_deleted.extend(indexer.keys());
        for (delivery, is_stale) in &mut self.in_flight {
            *is_stale |= !is_visible(&delivery.key);
        }
    }

    /// Finishes everything there is, and compares what was told with what there is.
    async fn settle(mut self, bench: &Bench, indexer: &Indexer) {
        while !self.in_flight.is_empty() {
            self.finish(0, End::Done);
        }
        for _ in 0..2 {
            tokio::time::advance(second()).await;
            self.listener.retry_parked();
            loop {
                self.take();
                if self.in_flight.is_empty() {
                    break;
                }
                self.finish(0, End::Done);
            }
        }
        bench.process();
        let namespaces = self.listener.namespaces();
        let there_is: Vec<_> = indexer
            .snapshot(&namespaces)
            .into_iter()
            .filter(|object| !self.setup.selects || object.labels().contains_key("app"))
            .collect();
        let told: Vec<_> = self.told.values().collect();
        assert_eq!(told.len(), there_is.len(), "told {told:?}, but there is {there_is:?}");
        assert!(told.iter().zip(&there_is).all(|(told, is)| self.same(told, is)), "{told:?} {there_is:?}");
        assert!(self.listener.has_synced());
        let stats = self.listener.stats();
        assert_eq!((stats.pending, stats.in_flight, stats.backing_off, stats.parked), (0, 0, 0, 0));
        let state = self.listener.shared.state.lock();
        assert_eq!(state.backlog.n_initial(), 0);
        assert!(state.backlog.is_empty());
    }
}

fn pointer() -> JsonPointer {
    "/spec/field".parse().unwrap()
}

async fn play(setup: Setup, steps: Vec<Step>) {
    let mut bench = Bench::with_resync(second());
    let indexer = bench.processor.block_deltas(Indexer::clone);
    let listener = bench.listen(ListenerConfig {
        backlog_limit: setup.backlog_limit,
        label_selector: if setup.selects { "app".parse().unwrap() } else { LabelSelector::everything() },
        fields: if setup.declares { vec![pointer()] } else { vec![] },
        ..ListenerConfig::default()
    });
    bench.relist(vec![at(&draft(0, true, 0), 0)]);
    let may_be_deleted = indexer.keys().into_iter().collect();
    let mut consumer = Consumer { listener, setup, told: BTreeMap::new(), may_be_deleted, in_flight: vec![] };
    for step in steps {
        match step {
            Step::Put { key, matches, field } => {
                bench.put(draft(key, matches, field));
            }
            Step::Delete { key } => bench.delete(KEYS[key]),
            Step::Relist { keys } => {
                bench.version += 1;
                let version = bench.version;
                bench.relist(keys.into_iter().map(|key| at(&draft(key, true, 0), version)).collect());
            }
            Step::Resync => bench.resync(),
            Step::Take => consumer.take(),
            Step::Finish { which, end } => consumer.finish(which, end),
            Step::Advance => tokio::time::advance(second()).await,
            Step::Replay => {
                consumer.listener.replay();
                consumer.forget_all(&indexer);
            }
            Step::Narrow { to } => consumer.narrow(to, &indexer),
            Step::RetryParked => {
                consumer.listener.retry_parked();
            }
            Step::Abandon => {
                consumer.listener.abandon_in_flight();
                consumer.in_flight.clear();
            }
        }
        let stats = consumer.listener.stats();
        assert!(stats.pending + stats.parked <= consumer.setup.backlog_limit + 2 * KEYS.len(), "{stats:?}");
        assert_eq!(stats.in_flight, consumer.in_flight.len());
    }
    consumer.settle(&bench, &indexer).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn promise_2_an_unbroken_chain(setup in setup(), steps in proptest::collection::vec(step(), 1..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(play(setup, steps));
    }
}
