//! Promise 2 in random scenarios: a chain without gaps per object, which ends in the object's current state.
//!
//! The model is the world: the existing objects, and the ones that the listener sees. Each notification is
//! checked against the notifications before, and in the end all of them against the world. Backlogs merge at
//! once, soon or never.

use std::collections::{BTreeMap, BTreeSet};

use oarlock_json::JsonPointer;
use oarlock_label_selector::LabelSelector;
use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use tokio::runtime::Runtime;

use super::*;
use crate::indexer::Indexer;
use crate::testing::Draft;

const KEYS: [&str; 4] = ["a/x", "a/y", "b/x", "b/y"];

/// A limit that no backlog reaches: only failed notifications merge.
const NEVER_MERGES: usize = 1000;

#[derive(Clone, Debug)]
enum Step {
    Put(usize, Thing),
    /// The object was deleted and created again, and the delete was missed.
    Recreate(usize, Thing),
    Delete(usize),
    /// The object was deleted, created again and deleted again, and only the last delete was seen.
    DeleteAnother(usize),
    /// The existing objects; true for an object that was created again.
    Relist(BTreeMap<usize, bool>),
    Resync,
    Take,
    TakeDeferred(usize),
    Finish {
        which: usize,
        end: End,
    },
    Advance,
    Replay,
    Narrow {
        to: Option<&'static str>,
    },
    RetryParked,
    Abandon,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Done,
    RetryAtOnce,
    RetryLater,
    Defer,
    Park,
}

/// The parts of an object that filters read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thing {
    matches: bool,
    field: u8,
}

#[derive(Clone, Debug)]
struct Setup {
    backlog_limit: usize,
    selects: bool,
    declares: bool,
}

/// The existing objects, and the namespace that the listener sees.
#[derive(Clone, Debug)]
struct World {
    setup: Setup,
    version: u32,
    /// With their versions, and with the versions of their creation, which are their uids.
    things: BTreeMap<usize, (Thing, u32, u32)>,
    namespace: Option<&'static str>,
}

/// The consumer, and the objects that it knows.
struct Consumer {
    bench: Bench,
    indexer: Indexer,
    listener: Listener,
    setup: Setup,
    /// The state of each object after the last delivery that was done.
    received: BTreeMap<ObjectKey, Object>,
    /// Objects of which a delete may come although no add was done: the add was tried, was part of a
    /// snapshot, or was delivered before the replay.
    may_be_deleted: BTreeSet<ObjectKey>,
    in_flight: Vec<(Delivery, bool)>,
    runtime: Runtime,
}

struct ModelOfTheWorld;

struct ConsumerInTheWorld;

// === impl World ===

impl World {
    /// Returns what a consumer must have received in the end, by key: the declared field, or else the
    /// version.
    fn visible(&self) -> BTreeMap<String, String> {
        let Setup { selects, declares, .. } = self.setup;
        let sees = |key: &str| self.namespace.is_none_or(|namespace| key.starts_with(namespace));
        let things =
            self.things.iter().filter(|(key, (thing, ..))| sees(KEYS[**key]) && (!selects || thing.matches));
        let received = |(thing, version, _): &(Thing, u32, u32)| match declares {
            true => thing.field.to_string(),
            false => version.to_string(),
        };
        things.map(|(key, thing)| (KEYS[*key].to_owned(), received(thing))).collect()
    }
}

// === impl ModelOfTheWorld ===

impl ReferenceStateMachine for ModelOfTheWorld {
    type State = World;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<World> {
        let limit = prop_oneof![Just(0), Just(2), Just(NEVER_MERGES)];
        (limit, any::<bool>(), any::<bool>())
            .prop_map(|(backlog_limit, selects, declares)| World {
                setup: Setup { backlog_limit, selects, declares },
                version: 0,
                things: BTreeMap::from([(0, (LISTED, 0, 0))]),
                namespace: None,
            })
            .boxed()
    }

    fn transitions(_: &World) -> BoxedStrategy<Step> {
        let key = 0..KEYS.len();
        let end = prop_oneof![4 => Just(End::Done), 1 => Just(End::RetryAtOnce), 1 => Just(End::RetryLater), 1 => Just(End::Defer), 1 => Just(End::Park)];
        let thing =
            (prop::bool::weighted(0.8), 0_u8..2).prop_map(|(matches, field)| Thing { matches, field });
        prop_oneof![
            12 => (key.clone(), thing.clone()).prop_map(|(key, thing)| Step::Put(key, thing)),
            3 => (key.clone(), thing).prop_map(|(key, thing)| Step::Recreate(key, thing)),
            5 => key.clone().prop_map(Step::Delete),
            1 => key.clone().prop_map(Step::DeleteAnother),
            1 => proptest::collection::btree_map(key.clone(), any::<bool>(), 0..4).prop_map(Step::Relist),
            1 => Just(Step::Resync),
            12 => Just(Step::Take),
            3 => key.clone().prop_map(Step::TakeDeferred),
            12 => (0_usize..3, end).prop_map(|(which, end)| Step::Finish { which, end }),
            3 => Just(Step::Advance),
            1 => Just(Step::Replay),
            1 => prop_oneof![Just(None), Just(Some("a")), Just(Some("b"))].prop_map(|to| Step::Narrow { to }),
            1 => Just(Step::RetryParked),
            1 => Just(Step::Abandon),
        ]
        .boxed()
    }

    fn apply(mut world: World, step: &Step) -> World {
        match step {
            Step::Put(key, thing) => {
                world.version += 1;
                let uid = world.things.get(key).map_or(world.version, |(_, _, uid)| *uid);
                world.things.insert(*key, (*thing, world.version, uid));
            }
            Step::Recreate(key, thing) => {
                world.version += 1;
                world.things.insert(*key, (*thing, world.version, world.version));
            }
            Step::Delete(key) | Step::DeleteAnother(key) => {
                world.version += 1;
                world.things.remove(key);
            }
            Step::Relist(keys) => {
                world.version += 1;
                let version = world.version;
                let uid = |key: &usize, is_another: bool| match world.things.get(key) {
                    Some((_, _, uid)) if !is_another => *uid,
                    _ => version,
                };
                let listed =
                    |(key, is_another): (&usize, &bool)| (*key, (LISTED, version, uid(key, *is_another)));
                world.things = keys.iter().map(listed).collect();
            }
            Step::Narrow { to } => world.namespace = *to,
            _ => {}
        }
        world
    }
}

/// The state of an object in a list.
const LISTED: Thing = Thing { matches: true, field: 0 };

fn draft(key: usize, thing: Thing) -> Draft {
    let draft = Draft::new(KEYS[key]).field("spec", json!({ "field": thing.field }));
    if thing.matches { draft.label("app", "web") } else { draft }
}

fn thing_at(key: usize, (thing, version, uid): (Thing, u32, u32)) -> Object {
    draft(key, thing).at(&TypeMeta::new("v1", "Pod"), &format!("uid-{uid}"), &version.to_string())
}

fn pointer() -> JsonPointer {
    "/spec/field".parse().unwrap()
}

// === impl Consumer ===

impl Consumer {
    /// Returns the part of an object that the listener must receive: the declared field, or else the version.
    fn promised(&self, object: &Object) -> String {
        match self.setup.declares {
            true => object.pointer(&pointer()).unwrap(),
            false => object.resource_version().to_owned(),
        }
    }

    fn take(&mut self) {
        let Some(delivery) = take(&mut self.listener) else { return };
        self.took(delivery);
    }

    fn take_deferred(&mut self, key: usize) {
        let Some(delivery) = self.listener.take_deferred(&KEYS[key].parse().unwrap()) else { return };
        self.took(delivery);
    }

    fn took(&mut self, delivery: Delivery) {
        let key = &delivery.key;
        let doing = format!("{} (attempt {})", outline(&delivery.notification), delivery.attempts);
        assert!(self.in_flight.iter().all(|(other, _)| other.key != *key), "{doing}: already in flight");
        let received = self.received.get(key);
        match &delivery.notification {
            Notification::Added { .. } => {
                assert!(received.is_none(), "{doing}, but {received:?} was received");
                self.may_be_deleted.insert(key.clone());
            }
            Notification::Updated { old, .. } => {
                let is_next = received.is_some_and(|received| self.promised(received) == self.promised(old));
                assert!(is_next, "{doing}, but {received:?} was received");
            }
            Notification::Deleted { object, .. } => {
                assert!(
                    received.is_some() || self.may_be_deleted.contains(key),
                    "{doing} of an unknown object"
                );
                let is_it = received.is_none_or(|received| received.has_uid_of(object));
                assert!(is_it, "{doing} of {}, but {} was received", object.uid(), received.unwrap().uid());
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
            End::Defer => Outcome::Defer,
            End::Park => Outcome::Park,
        };
        self.listener.finish(&delivery.key, outcome);
        if outcome == Outcome::Done && !is_stale {
            match delivery.notification {
                Notification::Added { object, .. } | Notification::Updated { new: object, .. } => {
                    self.received.insert(delivery.key.clone(), object);
                }
                Notification::Deleted { .. } => {
                    self.received.remove(&delivery.key);
                }
            }
            self.may_be_deleted.remove(&delivery.key);
        }
    }

    /// A new consumer knows no object, and may receive deletes of the objects that the one before knew.
    fn forget_all(&mut self) {
        self.may_be_deleted.extend(std::mem::take(&mut self.received).into_keys());
        self.may_be_deleted.extend(self.indexer.keys());
        self.in_flight.iter_mut().for_each(|(_, is_stale)| *is_stale = true);
    }

    fn narrow(&mut self, to: Option<&str>) {
        let namespaces = to.map_or(Namespaces::All, Namespaces::one);
        self.listener.set_namespaces(namespaces.clone());
        let is_visible = |key: &ObjectKey| namespaces.contains(key.namespace());
        self.received.retain(|key, _| is_visible(key));
        self.may_be_deleted.retain(is_visible);
        self.may_be_deleted.extend(self.indexer.keys());
        for (delivery, is_stale) in &mut self.in_flight {
            *is_stale |= !is_visible(&delivery.key);
        }
    }

    fn advance(&self) {
        self.runtime.block_on(tokio::time::advance(second()));
    }

    /// Finishes all notifications.
    fn settle(&mut self) {
        while !self.in_flight.is_empty() {
            self.finish(0, End::Done);
        }
        for _ in 0..2 {
            self.advance();
            self.listener.retry_parked();
            loop {
                self.take();
                (0..KEYS.len()).for_each(|key| self.take_deferred(key));
                if self.in_flight.is_empty() {
                    break;
                }
                while !self.in_flight.is_empty() {
                    self.finish(0, End::Done);
                }
            }
        }
        self.bench.process();
    }
}

// === impl ConsumerInTheWorld ===

impl StateMachineTest for ConsumerInTheWorld {
    type SystemUnderTest = Consumer;
    type Reference = ModelOfTheWorld;

    fn init_test(world: &World) -> Consumer {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.unwrap();
        let entered = runtime.enter();
        let setup = world.setup.clone();
        let mut bench = Bench::with_resync(second());
        let indexer = bench.processor.block_deltas(Indexer::clone);
        let listener = bench.listen(ListenerConfig {
            backlog_limit: setup.backlog_limit,
            label_selector: if setup.selects { "app".parse().unwrap() } else { LabelSelector::everything() },
            fields: if setup.declares { vec![pointer()] } else { vec![] },
            ..ListenerConfig::default()
        });
        bench.relist(vec![thing_at(0, (LISTED, 0, 0))]);
        let may_be_deleted = indexer.keys().into_iter().collect();
        let (received, in_flight) = (BTreeMap::new(), Vec::new());
        drop(entered);
        Consumer { bench, indexer, listener, setup, received, may_be_deleted, in_flight, runtime }
    }

    fn apply(mut consumer: Consumer, world: &World, step: Step) -> Consumer {
        let handle = consumer.runtime.handle().clone();
        if matches!(step, Step::Advance) {
            consumer.advance();
            return consumer;
        }
        let _entered = handle.enter();
        match step {
            Step::Put(key, _) | Step::Recreate(key, _) => {
                consumer.bench.update(thing_at(key, world.things[&key]));
            }
            Step::Delete(key) => {
                let cached = consumer.indexer.get(&KEYS[key].parse().unwrap());
                let uid = cached.map_or_else(String::new, |cached| cached.uid().to_string());
                let last = Draft::new(KEYS[key]).label("app", "web");
                let last = last.field("spec", json!({ "field": 0 }));
                consumer.bench.deleted(last.at(
                    &TypeMeta::new("v1", "Pod"),
                    &uid,
                    &world.version.to_string(),
                ));
            }
            Step::DeleteAnother(key) => {
                consumer.bench.deleted(thing_at(key, (LISTED, world.version, world.version)));
            }
            Step::Relist(_) => {
                consumer
                    .bench
                    .relist(world.things.iter().map(|(key, thing)| thing_at(*key, *thing)).collect());
            }
            Step::Resync => consumer.bench.resync(),
            Step::Take => consumer.take(),
            Step::TakeDeferred(key) => consumer.take_deferred(key),
            Step::Finish { which, end } => consumer.finish(which, end),
            Step::Advance => {}
            Step::Replay => {
                consumer.listener.replay();
                consumer.forget_all();
            }
            Step::Narrow { to } => consumer.narrow(to),
            Step::RetryParked => {
                consumer.listener.retry_parked();
            }
            Step::Abandon => {
                consumer.listener.abandon_in_flight();
                consumer.in_flight.clear();
            }
        }
        consumer
    }

    fn check_invariants(consumer: &Consumer, _: &World) {
        let stats = consumer.listener.stats();
        // At most three per object: a tried update to another uid, its delete, and an add.
        assert!(stats.pending + stats.parked <= consumer.setup.backlog_limit + 3 * KEYS.len(), "{stats:?}");
        assert_eq!(stats.in_flight, consumer.in_flight.len());
    }

    fn teardown(mut consumer: Consumer, world: World) {
        let handle = consumer.runtime.handle().clone();
        let _entered = handle.enter();
        consumer.settle();
        let received =
            consumer.received.iter().map(|(key, received)| (key.to_string(), consumer.promised(received)));
        assert_eq!(received.collect::<BTreeMap<_, _>>(), world.visible());
        assert!(consumer.listener.has_synced());
        let stats = consumer.listener.stats();
        let ListenerStats { pending, in_flight, backing_off, deferred, parked, .. } = stats;
        assert_eq!((pending, in_flight, backing_off, deferred, parked), (0, 0, 0, 0, 0));
        let state = consumer.listener.shared.state.lock();
        assert_eq!(state.backlog.n_initial(), 0);
        assert!(state.backlog.is_empty());
    }
}

prop_state_machine! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn promise_2_each_object_has_a_chain_without_gaps(sequential 1..80 => ConsumerInTheWorld);
}
