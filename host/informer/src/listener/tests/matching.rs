//! Matching of one change for many listeners: once, in slices, and without delaying registrations.

use std::collections::{BTreeMap, BTreeSet};

use oarlock_json::JsonPointer;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::object::{Content, Pruning};
use crate::processor::Tally;
use crate::selector::{FieldCondition, FieldTest};

/// The limits of one plugin.
const N_SUBSCRIPTIONS: usize = 32;
const N_FIELDS: usize = 64;

/// Returns a large object with `n` in the last of its many entries.
pub(super) fn large(name: &str, n: usize) -> Draft {
    let entries = (0..4_000).map(|i| (format!("key-{i}"), Value::from("x".repeat(200))));
    let last = ("last".to_owned(), Value::from(n.to_string()));
    Draft::new(name).field("data", entries.chain([last]).collect::<serde_json::Map<_, _>>().into())
}

pub(super) fn fields(from: usize) -> Vec<JsonPointer> {
    (from..from + N_FIELDS).map(|n| format!("/data/key-{n}").parse().unwrap()).collect()
}

/// Returns the listeners of a plugin that declares as many subscriptions and fields as the limits permit.
fn wide_listeners(bench: &Bench) -> Vec<Listener> {
    let condition = |n: usize| {
        let pointer = format!("/data/key-{n}").parse().unwrap();
        FieldCondition::new(pointer, FieldTest::Differs(format!("\"{n}\""))).unwrap()
    };
    let config = |n: usize| ListenerConfig {
        name: format!("wide-{n}"),
        fields: fields(n * N_FIELDS),
        conditions: (0..16).map(|m| condition(16 * n + m)).collect(),
        backlog_limit: 0,
        ..ListenerConfig::default()
    };
    (0..N_SUBSCRIPTIONS).map(|n| bench.listen(config(n))).collect()
}

impl Bench {
    pub(super) fn tally(&self) -> Tally {
        self.handler.lock().tally()
    }

    /// Returns the work of matching since `before`.
    pub(super) fn cost_since(&self, before: Tally) -> Tally {
        let now = self.tally();
        Tally {
            walks: now.walks - before.walks,
            slices: now.slices - before.slices,
            alone: now.alone - before.alone,
        }
    }

    /// Queues an object at the next version without processing it.
    fn queue(&mut self, draft: &Draft) {
        self.version += 1;
        self.fifo.update(at(draft, self.version)).unwrap();
    }

    /// Processes one slice of the queued changes; returns whether all are processed.
    fn process_slice(&self, work: usize) -> bool {
        if self.handler.lock().is_matching() {
            self.handler.lock().match_some(work);
            return false;
        }
        let popped = self.fifo.try_pop_some(|_, deltas, is_in_initial_list| {
            self.handler.lock().handle_some(deltas, is_in_initial_list, work)
        });
        popped != Ok(true)
    }

    /// Processes all queued changes in slices; returns how many slices that took.
    fn process_in_slices(&self, work: usize) -> usize {
        (0..1_000_000).find(|_| self.process_slice(work)).expect("a million slices are enough")
    }
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_change_costs_one_walk_per_text_for_any_number_of_listeners() {
    let mut bench = Bench::new();
    let wide = wide_listeners(&bench);
    let mut narrow = bench
        .listen(ListenerConfig { fields: vec!["/data/last".parse().unwrap()], ..ListenerConfig::default() });
    let before = bench.tally();
    bench.put(large("a", 0));
    assert_eq!(bench.cost_since(before).walks, 1, "one walk for the conditions");
    let before = bench.tally();
    bench.put(large("a", 1));
    assert_eq!(bench.cost_since(before).walks, 2, "one walk over the old text and one over the new");
    let before = bench.tally();
    bench.put(Draft::new("a"));
    assert_eq!(bench.cost_since(before).walks, 2, "the same when all listeners receive the change");
    let before = bench.tally();
    bench.delete("a");
    assert_eq!(bench.cost_since(before).walks, 1);
    assert_eq!(drain(&mut narrow), ["add a@1", "update a@1→2", "update a@2→3", "delete a@4"]);
    drop(wide);
    let before = bench.tally();
    bench.put(large("a", 0));
    assert_eq!(bench.cost_since(before).walks, 1, "for the declared field, which the notification carries");
}

/// Returns a Pod with two short fields, and something else that changes.
pub(super) fn pod(phase: &str, node: &str, other: usize) -> Draft {
    pod_named("a", phase, node, other)
}

pub(super) fn pod_named(name: &str, phase: &str, node: &str, other: usize) -> Draft {
    Draft::new(name)
        .field("spec", json!({"nodeName": node}))
        .field("status", json!({"phase": phase, "other": other}))
}

pub(super) fn two_fields() -> Vec<JsonPointer> {
    ["/status/phase", "/spec/nodeName"].map(|pointer| pointer.parse().unwrap()).into()
}

/// Takes all notifications, and returns the values that they carry.
pub(super) fn carried(listener: &mut Listener) -> Vec<String> {
    let mut carried = Vec::new();
    let text = |fields: &Option<FieldValues>| match fields {
        None => "-".to_owned(),
        Some(fields) => fields.iter().map(|value| value.unwrap_or("?")).collect::<Vec<_>>().join(" "),
    };
    while let Some(Delivery { key, notification, fields, .. }) = take(listener) {
        carried.push(format!("{}: {} → {}", outline(&notification), text(&fields.old), text(&fields.new)));
        listener.finish(&key, Outcome::Done);
    }
    carried
}

#[tokio::test(start_paused = true)]
async fn an_update_walks_the_new_text_only_and_carries_the_values_for_all_listeners() {
    let mut bench = Bench::new();
    let running = FieldCondition::new("/status/phase".parse().unwrap(), FieldTest::Exists).unwrap();
    let config =
        |fields| ListenerConfig { fields, conditions: vec![running.clone()], ..ListenerConfig::default() };
    let mut listeners: Vec<_> = (0..10).map(|_| bench.listen(config(two_fields()))).collect();
    let mut one = bench.listen(config(vec!["/spec/nodeName".parse().unwrap()]));
    let walks = |bench: &mut Bench, draft: Option<Draft>| {
        let before = bench.tally();
        match draft {
            Some(draft) => drop(bench.put(draft)),
            None => bench.delete("a"),
        }
        bench.cost_since(before).walks
    };
    assert_eq!(walks(&mut bench, Some(pod("Pending", "", 0))), 1, "an add");
    assert_eq!(walks(&mut bench, Some(pod("Pending", "n", 0))), 1, "an update");
    assert_eq!(walks(&mut bench, Some(pod("Pending", "n", 1))), 1, "a skipped update");
    assert_eq!(walks(&mut bench, Some(pod("Running", "n", 1))), 1, "an update");
    assert_eq!(walks(&mut bench, None), 0, "a delete: the condition is checked on the kept value");
    for listener in &mut listeners {
        assert_eq!(
            carried(listener),
            [
                r#"add a@1: - → "Pending" """#,
                r#"update a@1→2: "Pending" "" → "Pending" "n""#,
                r#"update a@3→4: "Pending" "n" → "Running" "n""#,
                "delete a@5: - → -",
            ]
        );
    }
    assert_eq!(carried(&mut one), [r#"add a@1: - → """#, r#"update a@1→2: "" → "n""#, "delete a@5: - → -"]);
}

/// A watch copies the values while it decodes an event.
#[tokio::test(start_paused = true)]
async fn an_update_whose_values_the_decoder_copied_walks_no_text() {
    let mut bench = Bench::new();
    let config = |fields| ListenerConfig { fields, ..ListenerConfig::default() };
    let mut first = bench.listen(config(two_fields()));
    bench.put(pod("Pending", "", 0));
    let decoded = |bench: &Bench, draft: Draft, version: u32| {
        let (text, pruning) = (at(&draft, version).json(), Pruning::none());
        let pointers = bench.processor.copied.get();
        Object::parse_copying(text.as_bytes(), None, &pruning, Content::Full, pointers.as_deref()).unwrap()
    };
    let walks = |bench: &Bench, object: Object| {
        let before = bench.tally();
        bench.update(object);
        bench.cost_since(before).walks
    };
    let running = decoded(&bench, pod("Running", "n", 1), 2);
    assert_eq!(walks(&bench, running), 0);
    let unchanged = decoded(&bench, pod("Running", "n", 2), 3);
    assert_eq!(walks(&bench, unchanged), 0, "a skipped update");
    let last = decoded(&bench, pod("Running", "m", 3), 4);
    let mut other = bench.listen(config(vec!["/status/other".parse().unwrap()]));
    assert_eq!(walks(&bench, last), 2, "the values that were copied and kept lack the new field");
    assert_eq!(
        carried(&mut first),
        [
            r#"add a@1: - → "Pending" """#,
            r#"update a@1→2: "Pending" "" → "Running" "n""#,
            r#"update a@3→4: "Running" "n" → "Running" "m""#,
        ]
    );
    assert_eq!(carried(&mut other), ["add a@3 (initial): - → 2", "update a@3→4: 2 → 3"]);
}

#[tokio::test(start_paused = true)]
async fn values_are_not_kept_over_a_change_of_the_declared_fields() {
    let mut bench = Bench::new();
    let config = |fields| ListenerConfig { fields, ..ListenerConfig::default() };
    let mut first = bench.listen(config(two_fields()));
    bench.put(pod("Pending", "n", 0));
    let walks = |bench: &mut Bench, other| {
        let before = bench.tally();
        bench.put(pod("Pending", "n", other));
        bench.cost_since(before).walks
    };
    assert_eq!(walks(&mut bench, 1), 1);
    let same = bench.listen(config(two_fields()));
    assert_eq!(walks(&mut bench, 2), 1, "a listener with equal fields");
    let mut other = bench.listen(config(vec!["/status/other".parse().unwrap()]));
    assert_eq!(walks(&mut bench, 3), 2, "the kept values lack the new field");
    assert_eq!(walks(&mut bench, 4), 1);
    drop(same);
    assert_eq!(walks(&mut bench, 5), 1);
    assert_eq!(carried(&mut first), [r#"add a@1: - → "Pending" "n""#]);
    assert_eq!(
        carried(&mut other),
        ["add a@3 (initial): - → 2", "update a@3→4: 2 → 3", "update a@4→5: 3 → 4", "update a@5→6: 4 → 5"]
    );
}

/// A relist may replace a full object by its metadata. For the listeners that is no change.
#[tokio::test(start_paused = true)]
async fn values_are_not_kept_when_an_object_changes_its_content() {
    let mut bench = Bench::new();
    let mut listener = bench.listen(ListenerConfig { fields: two_fields(), ..ListenerConfig::default() });
    bench.put(pod("Pending", "n", 0));
    let version = bench.put(pod("Running", "n", 0));
    let text = at(&pod("Running", "n", 0), version).json();
    let metadata = Object::parse_content(text.as_bytes(), None, &Pruning::none(), Content::Metadata).unwrap();
    bench.relist(vec![metadata]);
    bench.put(pod("Running", "n", 1));
    assert_eq!(
        carried(&mut listener)[2..],
        [r#"update a@2→3: ? ? → "Running" "n""#],
        "the metadata alone has no such fields"
    );
}

#[tokio::test(start_paused = true)]
async fn promise_4_long_values_are_neither_kept_nor_carried() {
    let mut bench = Bench::new();
    let config = |fields| ListenerConfig { fields, ..ListenerConfig::default() };
    let mut listener = bench.listen(config(vec!["/data".parse().unwrap()]));
    for n in 0..2 {
        bench.put(large("a", n));
    }
    let before = bench.tally();
    bench.put(large("a", 2));
    assert_eq!(bench.cost_since(before).walks, 2);
    let rest = ["add a@1: - → -", "update a@1→2: - → -", "update a@2→3: - → -"];
    assert_eq!(carried(&mut listener), rest);
    // Values of some kilobytes are carried, but not kept.
    let kilobytes = |n: usize| Draft::new("b").field("data", json!([n, "x".repeat(2_000)]));
    bench.put(kilobytes(0));
    let before = bench.tally();
    bench.put(kilobytes(1));
    assert_eq!(bench.cost_since(before).walks, 2);
    let updated = carried(&mut listener).pop().unwrap();
    assert!(updated.starts_with("update b@4→5: [0,") && updated.contains("→ [1,"), "{updated}");
    assert!(bench.processor.block_deltas(|indexer| indexer.memory().indices) < 10_000);
}

#[tokio::test(start_paused = true)]
async fn kept_values_count_to_the_memory_of_the_cache_until_they_are_freed() {
    let mut bench = Bench::new();
    let fields = || ListenerConfig { fields: two_fields(), ..ListenerConfig::default() };
    let size = |bench: &mut Bench| {
        // The size is recorded with the next change.
        bench.put("another");
        bench.processor.block_deltas(|indexer| indexer.memory().indices)
    };
    let round = |bench: &mut Bench, node: &str| {
        for n in 0..1_000 {
            bench.put(pod_named(&format!("pod-{n}"), "Running", node, n));
        }
    };
    round(&mut bench, "node");
    let without = size(&mut bench);
    let listener = bench.listen(fields());
    assert!(size(&mut bench) - without < 3_000, "a list costs nothing");
    round(&mut bench, "node");
    let with = size(&mut bench);
    assert!((30_000..70_000).contains(&(with - without)), "{with} - {without}");
    round(&mut bench, "node");
    assert!(size(&mut bench).abs_diff(with) < 3_000, "values are replaced");
    drop(listener);
    assert!(size(&mut bench) - without < 3_000, "no listener declares fields");
    let listener = bench.listen(fields());
    round(&mut bench, "node");
    for n in 0..1_000 {
        bench.delete(&format!("pod-{n}"));
    }
    assert!(size(&mut bench) < without, "the objects are deleted");
    drop(listener);
}

#[tokio::test(start_paused = true)]
async fn objects_in_namespaces_that_no_listener_sees_are_not_matched() {
    let mut bench = Bench::new();
    let config = |namespace: &str| ListenerConfig {
        namespaces: Namespaces::one(namespace),
        fields: fields(0),
        ..ListenerConfig::default()
    };
    let mut listener = bench.listen(config("seen"));
    let before = bench.tally();
    for name in ["unseen/a", "unseen/a"] {
        bench.put(large(name, 0));
    }
    assert_eq!(bench.cost_since(before).walks, 0);
    bench.put("seen/a");
    assert_eq!(drain(&mut listener), ["add seen/a@3"]);
}

#[tokio::test(start_paused = true)]
async fn a_registration_does_not_wait_for_matching() {
    let mut bench = Bench::new();
    let mut wide = wide_listeners(&bench);
    bench.put(large("a", 0));
    bench.queue(&large("a", 1));
    while !bench.handler.lock().is_matching() {
        assert!(!bench.process_slice(1_000), "matching was to take more than one slice");
    }
    // The snapshot does not contain the change. Afterwards each listener, the late one included, receives it
    // once.
    let mut late = bench.listener();
    assert_eq!(drain(&mut late), ["add a@1 (initial)"]);
    drop(wide.pop());
    let n_slices = bench.process_in_slices(1_000);
    assert!(n_slices > 100, "{n_slices} slices");
    assert_eq!(drain(&mut late), ["update a@1→2"]);
    assert_eq!(bench.tally().alone, 0, "no listener was checked while deltas were blocked");
    assert_eq!(drain(&mut wide[0]), ["add a@1"], "no declared field changed");
}

#[tokio::test(start_paused = true)]
async fn a_change_is_delivered_though_listeners_are_added_all_the_time() {
    let mut bench = Bench::new();
    let mut first = bench.listen(ListenerConfig { fields: fields(0), ..ListenerConfig::default() });
    bench.put(large("a", 0));
    bench.queue(&Draft::new("a"));
    let mut late = Vec::new();
    while !bench.process_slice(100_000) {
        late.push(bench.listen(ListenerConfig { fields: fields(late.len()), ..ListenerConfig::default() }));
        assert!(late.len() < 1_000, "the change is never delivered");
    }
    assert_eq!(drain(&mut first), ["add a@1", "update a@1→2"]);
    for mut late in late {
        let received = drain(&mut late);
        let (before, after) = (["add a@1 (initial)", "update a@1→2"], ["add a@2 (initial)"]);
        assert!(received == before || received == after, "{received:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn changes_that_arrive_while_a_change_is_matched_follow_it() {
    let mut bench = Bench::new();
    let mut listener = bench
        .listen(ListenerConfig { fields: vec!["/data/last".parse().unwrap()], ..ListenerConfig::default() });
    bench.put(large("a", 0));
    bench.queue(&large("a", 1));
    assert!(!bench.process_slice(1_000) && bench.handler.lock().is_matching());
    bench.queue(&large("a", 2));
    bench.queue(&Draft::new("b"));
    bench.version += 1;
    bench.fifo.delete(object("a", bench.version)).unwrap();
    bench.process_in_slices(1_000);
    let received = drain(&mut listener);
    assert_eq!(received, ["add a@1", "update a@1→2", "update a@2→3", "delete a@5", "add b@4"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_namespaces_during_matching_is_respected() {
    let mut bench = Bench::new();
    let none = || Namespaces::Only(Default::default());
    let config = |namespaces| ListenerConfig { fields: fields(0), namespaces, ..ListenerConfig::default() };
    let (mut widened, mut narrowed) = (bench.listen(config(none())), bench.listen(config(Namespaces::All)));
    bench.put(large("ns/a", 0));
    bench.queue(&Draft::new("ns/a"));
    assert!(!bench.process_slice(1_000) && bench.handler.lock().is_matching());
    widened.set_namespaces(Namespaces::one("ns"));
    narrowed.set_namespaces(none());
    bench.process_in_slices(1_000);
    assert_eq!(drain(&mut widened), ["add ns/a@1 (initial)", "update ns/a@1→2"]);
    assert_eq!(drain(&mut narrowed), Vec::<String>::new());
}

// Promise 2 for listeners that are added, change their namespaces or are replayed while changes are matched.

#[derive(Clone, Debug)]
enum Step {
    Put { key: usize, is_web: bool, field: u8 },
    Delete(usize),
    Slice,
    Listen { selects: bool, declares: bool },
    Remove(usize),
    Narrow { which: usize, to: Option<&'static str> },
    Replay(usize),
    Drain(usize),
}

const KEYS: [&str; 3] = ["a/x", "a/y", "b/x"];

/// A listener, and the last received field of each object.
struct Follower {
    listener: Listener,
    selects: bool,
    declares: bool,
    received: BTreeMap<ObjectKey, String>,
    /// Objects of which it may receive a delete: it knew them before a replay or a change of namespaces.
    knew: BTreeSet<ObjectKey>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let namespace = prop_oneof![Just(None), Just(Some("a")), Just(Some("b"))];
    let step = prop_oneof![
        6 => (0..KEYS.len(), any::<bool>(), 0_u8..2)
            .prop_map(|(key, is_web, field)| Step::Put { key, is_web, field }),
        2 => (0..KEYS.len()).prop_map(Step::Delete),
        12 => Just(Step::Slice),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(selects, declares)| Step::Listen { selects, declares }),
        1 => (0_usize..4).prop_map(Step::Remove),
        2 => (0_usize..4, namespace).prop_map(|(which, to)| Step::Narrow { which, to }),
        1 => (0_usize..4).prop_map(Step::Replay),
        3 => (0_usize..4).prop_map(Step::Drain),
    ];
    prop::collection::vec(step, 1..80)
}

impl Follower {
    fn new(bench: &Bench, selects: bool, declares: bool) -> Self {
        let condition =
            FieldCondition::new("/spec/web".parse().unwrap(), FieldTest::Equals("true".to_owned()));
        let listener = bench.listen(ListenerConfig {
            conditions: if selects { vec![condition.unwrap()] } else { vec![] },
            fields: match (declares, selects) {
                (true, true) => ["/none", "/spec/field", "/spec"].map(|it| it.parse().unwrap()).into(),
                (true, false) => vec!["/spec/field".parse().unwrap()],
                (false, _) => vec![],
            },
            backlog_limit: if selects { 0 } else { 1_024 },
            ..ListenerConfig::default()
        });
        Self { listener, selects, declares, received: BTreeMap::new(), knew: BTreeSet::new() }
    }

    /// The values that a notification carries are those of its states.
    fn check(&self, fields: &NotificationFields, notification: &Notification) {
        for (fields, object) in [(&fields.old, notification.old()), (&fields.new, notification.new())] {
            let Some(fields) = fields else { continue };
            let at = |pointer: &JsonPointer| object.unwrap().pointer(pointer);
            let expected: Vec<_> = self.listener.handle().shared().filter.fields.iter().map(at).collect();
            let carried: Vec<_> = fields.iter().map(|value| value.map(str::to_owned)).collect();
            assert_eq!(carried, expected, "{}", outline(notification));
        }
    }

    fn promised(&self, object: &Object) -> String {
        match self.declares {
            true => object.pointer(&"/spec/field".parse().unwrap()).unwrap(),
            false => object.resource_version().to_owned(),
        }
    }

    fn drain(&mut self) {
        while let Some(Delivery { key, notification, fields, .. }) = take(&mut self.listener) {
            let doing = outline(&notification);
            self.check(&fields, &notification);
            match &notification {
                Notification::Added { object, .. } => {
                    assert_eq!(self.received.insert(key.clone(), self.promised(object)), None, "{doing}");
                }
                Notification::Updated { old, new } => {
                    let before = self.received.insert(key.clone(), self.promised(new));
                    assert_eq!(before, Some(self.promised(old)), "{doing}");
                }
                Notification::Deleted { .. } => {
                    assert!(self.received.remove(&key).is_some() || self.knew.remove(&key), "{doing}");
                }
            }
            self.listener.finish(&key, Outcome::Done);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn promise_2_a_chain_is_unbroken_while_changes_are_matched_in_slices(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let _entered = runtime.enter();
        let mut bench = Bench::new();
        let mut followers = vec![Follower::new(&bench, true, true), Follower::new(&bench, false, true)];
        let indexer = bench.processor.block_deltas(crate::indexer::Indexer::clone);
        for step in steps {
            let which = |which: usize, followers: &Vec<Follower>| which % followers.len().max(1);
            match step {
                Step::Put { key, is_web, field } => {
                    bench.queue(&Draft::new(KEYS[key]).field("spec", json!({"field": field, "web": is_web})));
                }
                Step::Delete(key) => {
                    bench.version += 1;
                    bench.fifo.delete(object(KEYS[key], bench.version)).unwrap();
                }
                // So little work that a change takes several slices.
                Step::Slice => drop(bench.process_slice(100)),
                Step::Listen { selects, declares } => {
                    let mut follower = Follower::new(&bench, selects, declares);
                    // An initial add and a delete merge into the delete.
                    follower.knew.extend(indexer.keys());
                    followers.push(follower);
                }
                Step::Remove(n) if followers.len() > 1 => drop(followers.swap_remove(which(n, &followers))),
                Step::Remove(_) => {}
                Step::Narrow { which: n, to } => {
                    let n = which(n, &followers);
                    let follower = &mut followers[n];
                    let namespaces = to.map_or(Namespaces::All, Namespaces::one);
                    follower.listener.set_namespaces(namespaces.clone());
                    follower.received.retain(|key, _| namespaces.contains(key.namespace()));
                    follower.knew.extend(indexer.keys());
                }
                Step::Replay(n) => {
                    let n = which(n, &followers);
                    let follower = &mut followers[n];
                    follower.listener.replay();
                    follower.knew.extend(std::mem::take(&mut follower.received).into_keys());
                    follower.knew.extend(indexer.keys());
                }
                Step::Drain(n) => {
                    let n = which(n, &followers);
                    followers[n].drain();
                }
            }
        }
        bench.process_in_slices(100);
        for follower in &mut followers {
            follower.drain();
            let namespaces = follower.listener.namespaces();
            let is_seen = |object: &Object| {
                let is_web = object.pointer(&"/spec/web".parse().unwrap()).as_deref() == Some("true");
                namespaces.contains(object.key().namespace()) && (!follower.selects || is_web)
            };
            let there = indexer.snapshot(&Namespaces::All).into_iter().filter(is_seen);
            let there: BTreeMap<_, _> =
                there.map(|object| (object.key().clone(), follower.promised(&object))).collect();
            prop_assert_eq!(&follower.received, &there);
        }
    }
}
