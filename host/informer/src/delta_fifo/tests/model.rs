//! Compares the queue with a model of letters and versions, as `text` formats them.

use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Add(u8),
    Update(u8),
    Delete(u8),
    Tombstone(u8),
    Replace(Vec<u8>),
    Resync,
    Pop(Processed),
    Close,
}

/// One delta: its letter, and the version of the last known state of its object.
type Entry = (char, u32);

/// The model: the queue, the consumer's cache, and the objects at the source.
#[derive(Clone, Debug)]
struct Model {
    /// Whether the queue has `known_objects`.
    is_knowing: bool,
    version: u32,
    source: BTreeMap<u8, u32>,
    known: BTreeMap<u8, u32>,
    queue: VecDeque<(u8, Vec<Entry>)>,
    is_populated: bool,
    initial_population: usize,
    is_closed: bool,
    /// The result of the last pop.
    popped: Option<String>,
}

struct ModelOfTheQueue;

struct QueueAndItsModel;

/// The queue, and the consumer's cache.
struct Queue {
    fifo: DeltaFifo,
    known: Arc<Known>,
}

// === impl Model ===

impl Model {
    fn has_synced(&self) -> bool {
        self.is_populated && self.initial_population == 0
    }

    fn list(&mut self, name: u8) -> Option<&mut Vec<Entry>> {
        self.queue.iter_mut().find(|(queued, _)| *queued == name).map(|(_, list)| list)
    }

    fn push(&mut self, name: u8, entry: Entry) {
        let is_deletion = |entry: Entry| matches!(entry.0, 'D' | 'T');
        match self.list(name) {
            None => self.queue.push_back((name, vec![entry])),
            Some(list) => match list.last_mut() {
                Some(last) if is_deletion(*last) && is_deletion(entry) => {
                    if last.0 == 'T' {
                        *last = entry;
                    }
                }
                _ => list.push(entry),
            },
        }
    }

    fn delete(&mut self, name: u8, entry: Entry) {
        self.source.remove(&name);
        self.is_populated = true;
        let is_known = self.is_knowing && self.known.contains_key(&name);
        if is_known || self.list(name).is_some() {
            self.push(name, entry);
        }
    }

    fn replace(&mut self, names: &[u8]) {
        self.source = names.iter().map(|name| (*name, self.version)).collect();
        for name in names {
            self.push(*name, ('R', self.version));
        }
        let mut n_initial = names.iter().collect::<BTreeSet<_>>().len();
        let queued: Vec<_> = self.queue.iter().map(|(name, list)| (*name, list[list.len() - 1].1)).collect();
        for (name, last_known) in queued {
            if !names.contains(&name) {
                self.push(name, ('T', last_known));
                n_initial += 1;
            }
        }
        if self.is_knowing {
            for (name, last_known) in self.known.clone() {
                if !names.contains(&name) && self.list(name).is_none() {
                    self.push(name, ('T', last_known));
                    n_initial += 1;
                }
            }
        }
        if !self.is_populated {
            self.is_populated = true;
            self.initial_population = n_initial;
        }
    }

    fn resync(&mut self) {
        if !self.is_knowing {
            return;
        }
        for (name, version) in self.known.clone() {
            if self.list(name).is_none() {
                self.push(name, ('S', version));
            }
        }
    }

    fn pop(&mut self, processed: Processed) {
        let is_initial = !self.has_synced();
        let Some((name, list)) = self.queue.pop_front() else {
            self.popped = self.is_closed.then(|| "closed".to_owned());
            return;
        };
        let shown: Vec<_> = list.iter().map(|(letter, version)| format!("{letter}{version}")).collect();
        self.popped =
            Some(format!("{name}: {}{}", shown.join(" "), if is_initial { " (initial)" } else { "" }));
        self.initial_population = self.initial_population.saturating_sub(1);
        match processed {
            Processed::Requeue => self.queue.push_back((name, list)),
            Processed::Done => match list[list.len() - 1] {
                ('D' | 'T', _) => drop(self.known.remove(&name)),
                (_, version) => drop(self.known.insert(name, version)),
            },
        }
    }
}

// === impl ModelOfTheQueue ===

impl ReferenceStateMachine for ModelOfTheQueue {
    type State = Model;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Model> {
        let empty = |is_knowing| Model {
            is_knowing,
            version: 0,
            source: BTreeMap::new(),
            known: BTreeMap::new(),
            queue: VecDeque::new(),
            is_populated: false,
            initial_population: 0,
            is_closed: false,
            popped: None,
        };
        prop::bool::weighted(0.8).prop_map(empty).boxed()
    }

    fn transitions(_: &Model) -> BoxedStrategy<Step> {
        let name = 0_u8..4;
        prop_oneof![
            6 => name.clone().prop_map(Step::Add),
            6 => name.clone().prop_map(Step::Update),
            6 => name.clone().prop_map(Step::Delete),
            2 => name.clone().prop_map(Step::Tombstone),
            1 => proptest::collection::vec(name.clone(), 0..5).prop_map(Step::Replace),
            // In the order of the API server.
            2 => proptest::collection::btree_set(name, 0..5).prop_map(|names| Step::Replace(names.into_iter().collect())),
            2 => Just(Step::Resync),
            12 => Just(Step::Pop(Processed::Done)),
            1 => Just(Step::Pop(Processed::Requeue)),
            1 => Just(Step::Close),
        ]
        .boxed()
    }

    fn apply(mut model: Model, step: &Step) -> Model {
        model.version += 1;
        let version = model.version;
        match step {
            Step::Add(name) | Step::Update(name) => {
                model.source.insert(*name, version);
                model.is_populated = true;
                model.push(*name, (if matches!(step, Step::Add(_)) { 'A' } else { 'U' }, version));
            }
            Step::Delete(name) => model.delete(*name, ('D', version)),
            Step::Tombstone(name) => model.delete(*name, ('T', version)),
            Step::Replace(names) => model.replace(names),
            Step::Resync => model.resync(),
            Step::Pop(processed) => model.pop(*processed),
            Step::Close => model.is_closed = true,
        }
        model
    }
}

// === impl Queue ===

impl Queue {
    /// Pops one key and stores its newest state in the consumer's cache; returns the popped deltas.
    fn pop(&self, processed: Processed) -> Option<String> {
        let mut shown = None;
        let popped = self.fifo.try_pop(|key, deltas, is_initial| {
            let initial = if is_initial { " (initial)" } else { "" };
            shown = Some(format!("{key}: {}{initial}", text(deltas)));
            if processed == Processed::Done {
                match deltas.newest() {
                    Delta::Deleted(_) => drop(self.known.0.write().remove(key)),
                    other => {
                        let object = other.last_known().unwrap().clone();
                        self.known.0.write().insert(key.clone(), object);
                    }
                }
            }
            processed
        });
        match popped {
            Err(Closed) => Some("closed".to_owned()),
            Ok(is_popped) => {
                assert_eq!(is_popped, shown.is_some());
                shown
            }
        }
    }
}

// === impl QueueAndItsModel ===

impl StateMachineTest for QueueAndItsModel {
    type SystemUnderTest = Queue;
    type Reference = ModelOfTheQueue;

    fn init_test(model: &Model) -> Queue {
        let known = Arc::new(Known::default());
        let known_objects = model.is_knowing.then(|| known.clone() as Arc<dyn KnownObjects>);
        Queue { fifo: DeltaFifo::new(Config { known_objects, ..Config::default() }), known }
    }

    fn apply(queue: Queue, model: &Model, step: Step) -> Queue {
        let new = |name: u8| object(&name.to_string(), model.version);
        let fifo = &queue.fifo;
        match step {
            Step::Add(name) => fifo.add(new(name)).unwrap(),
            Step::Update(name) => fifo.update(new(name)).unwrap(),
            Step::Delete(name) => fifo.delete(new(name)).unwrap(),
            Step::Tombstone(name) => fifo.delete_tombstone(tombstone(&name.to_string(), model.version)),
            Step::Replace(names) => fifo.replace(names.into_iter().map(new).collect()).unwrap(),
            Step::Resync => fifo.resync(),
            Step::Pop(processed) => assert_eq!(queue.pop(processed), model.popped),
            Step::Close => fifo.close(),
        }
        queue
    }

    fn check_invariants(queue: &Queue, model: &Model) {
        let state = queue.fifo.state.lock();
        let order: Vec<_> = state.order().iter().map(ToString::to_string).collect();
        assert_eq!(order, model.queue.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>());
        assert_eq!(state.len(), order.len());
        drop(state);
        for (name, list) in &model.queue {
            let list: Vec<_> = list.iter().map(|(letter, version)| format!("{letter}{version}")).collect();
            assert_eq!(queued(&queue.fifo, &name.to_string()), list.join(" "));
        }
        assert_eq!(queue.fifo.has_synced(), model.has_synced());
        assert_eq!(queue.fifo.watermark().borrow().has_synced(), model.has_synced());
    }

    /// Once all keys are popped, the consumer has the objects of the source.
    fn teardown(queue: Queue, model: Model) {
        while queue.pop(Processed::Done).is_some_and(|popped| popped != "closed") {}
        if model.is_knowing {
            let known: BTreeMap<u8, u32> = queue
                .known
                .0
                .read()
                .iter()
                .map(|(key, object)| {
                    (key.name().parse().unwrap(), object.resource_version().parse().unwrap())
                })
                .collect();
            assert_eq!(known, model.source);
        }
    }
}

prop_state_machine! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn the_queue_behaves_as_its_model(sequential 1..60 => QueueAndItsModel);
}
