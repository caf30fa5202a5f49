//! What many listeners want to know of one change: found out once, in slices, and without anyone waiting for it.

use serde_json::Value;

use super::*;
use crate::processor::Tally;
use crate::selector::FieldTest;

/// What a plugin may declare at most.
const N_SUBSCRIPTIONS: usize = 32;
const N_FIELDS: usize = 64;

/// A large object; `n` stands in the last of its many entries.
fn large(name: &str, n: usize) -> Draft {
    let entries = (0..4_000).map(|i| (format!("key-{i}"), Value::from("x".repeat(200))));
    let last = ("last".to_owned(), Value::from(n.to_string()));
    Draft::new(name).field("data", entries.chain([last]).collect::<serde_json::Map<_, _>>().into())
}

fn fields(from: usize) -> Vec<JsonPointer> {
    (from..from + N_FIELDS).map(|n| format!("/data/key-{n}").parse().unwrap()).collect()
}

/// The listeners of a plugin that declares as much as it may.
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
    fn tally(&self) -> Tally {
        self.processor.tally()
    }

    /// What matching has cost since.
    fn cost_since(&self, before: Tally) -> Tally {
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

    /// Processes so much of what is queued as a slice of this much work allows; answers whether all is done.
    fn process_slice(&self, work: usize) -> bool {
        if self.processor.is_matching() {
            self.processor.match_some(work);
            return false;
        }
        let popped = self.fifo.try_pop_some(|_, deltas, is_in_initial_list| {
            self.processor.process_some(deltas, is_in_initial_list, work)
        });
        popped != Ok(true)
    }
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_change_costs_one_walk_over_each_text_however_many_listeners_ask() {
    let mut bench = Bench::new();
    let wide = wide_listeners(&bench);
    let mut narrow = bench
        .listen(ListenerConfig { fields: vec!["/data/last".parse().unwrap()], ..ListenerConfig::default() });
    let before = bench.tally();
    bench.put(large("a", 0));
    assert_eq!(bench.cost_since(before).walks, 1, "for the conditions");
    let before = bench.tally();
    bench.put(large("a", 1));
    assert_eq!(bench.cost_since(before).walks, 2, "the old text and the new one");
    let before = bench.tally();
    bench.put(Draft::new("a"));
    assert_eq!(bench.cost_since(before).walks, 2, "also when all have news");
    let before = bench.tally();
    bench.delete("a");
    assert_eq!(bench.cost_since(before).walks, 1);
    assert_eq!(drain(&mut narrow), ["add a@1", "update a@1→2", "update a@2→3", "delete a@4"]);
    drop(wide);
    let before = bench.tally();
    bench.put(large("a", 0));
    assert_eq!(bench.cost_since(before).walks, 0, "nobody has conditions any more");
}

/// A listener that cannot see an object has nothing found out for it.
#[tokio::test(start_paused = true)]
async fn what_stands_in_other_namespaces_is_not_looked_at() {
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
async fn a_registration_does_not_wait_for_what_is_being_matched() {
    let mut bench = Bench::new();
    let mut wide = wide_listeners(&bench);
    bench.put(large("a", 0));
    bench.queue(&large("a", 1));
    while !bench.processor.is_matching() {
        assert!(!bench.process_slice(1_000), "it was to take more than one slice");
    }
    // The change is in neither the snapshot nor told yet; then it is told once, to those who came before and to the new one.
    let mut late = bench.listener();
    assert_eq!(drain(&mut late), ["add a@1 (initial)"]);
    drop(wide.pop());
    let mut n_slices = 0;
    while !bench.process_slice(1_000) {
        n_slices += 1;
    }
    assert!(n_slices > 100, "{n_slices} slices");
    assert_eq!(drain(&mut late), ["update a@1→2"]);
    assert_eq!(bench.tally().alone, 0, "nobody was asked while deltas were blocked");
    assert_eq!(drain(&mut wide[0]), ["add a@1"], "no declared field of it changed");
}

/// However often others come and go meanwhile, a change is told.
#[tokio::test(start_paused = true)]
async fn a_change_is_told_though_listeners_come_all_the_time() {
    let mut bench = Bench::new();
    let mut first = bench.listen(ListenerConfig { fields: fields(0), ..ListenerConfig::default() });
    bench.put(large("a", 0));
    bench.queue(&Draft::new("a"));
    let mut late = Vec::new();
    while !bench.process_slice(100_000) {
        late.push(bench.listen(ListenerConfig { fields: fields(late.len()), ..ListenerConfig::default() }));
        assert!(late.len() < 1_000, "the change is never told");
    }
    assert_eq!(drain(&mut first), ["add a@1", "update a@1→2"]);
    for mut late in late {
        let told = drain(&mut late);
        let (before, after) = (["add a@1 (initial)", "update a@1→2"], ["add a@2 (initial)"]);
        assert!(told == before || told == after, "{told:?}");
    }
}

/// What comes for an object while it is matched follows.
#[tokio::test(start_paused = true)]
async fn what_comes_while_a_change_is_matched_follows_it() {
    let mut bench = Bench::new();
    let mut listener = bench
        .listen(ListenerConfig { fields: vec!["/data/last".parse().unwrap()], ..ListenerConfig::default() });
    bench.put(large("a", 0));
    bench.queue(&large("a", 1));
    assert!(!bench.process_slice(1_000) && bench.processor.is_matching());
    bench.queue(&large("a", 2));
    bench.queue(&Draft::new("b"));
    bench.version += 1;
    bench.fifo.delete(object("a", bench.version)).unwrap();
    while !bench.process_slice(1_000) {}
    let told = drain(&mut listener);
    assert_eq!(told, ["add a@1", "update a@1→2", "update a@2→3", "delete a@5", "add b@4"]);
}

#[tokio::test(start_paused = true)]
async fn namespaces_that_change_while_a_change_is_matched_count() {
    let mut bench = Bench::new();
    let none = || Namespaces::Only(Default::default());
    let config = |namespaces| ListenerConfig { fields: fields(0), namespaces, ..ListenerConfig::default() };
    let (mut widened, mut narrowed) = (bench.listen(config(none())), bench.listen(config(Namespaces::All)));
    bench.put(large("ns/a", 0));
    bench.queue(&Draft::new("ns/a"));
    assert!(!bench.process_slice(1_000) && bench.processor.is_matching());
    widened.set_namespaces(Namespaces::one("ns"));
    narrowed.set_namespaces(none());
    while !bench.process_slice(1_000) {}
    assert_eq!(drain(&mut widened), ["add ns/a@1 (initial)", "update ns/a@1→2"]);
    assert_eq!(drain(&mut narrowed), Vec::<String>::new());
}

// What backlogs hold.

fn with_account(account: &BacklogAccount) -> ListenerConfig {
    ListenerConfig { account: account.clone(), backlog_limit: 1_000_000, ..ListenerConfig::default() }
}

#[tokio::test(start_paused = true)]
async fn promise_4_old_states_that_wait_are_billed_and_merge_beyond_the_bound() {
    let mut bench = Bench::new();
    let length = at(&large("a", 0), 1).json_length();
    let account = BacklogAccount::new(3 * length);
    let mut listeners = [bench.listen(with_account(&account)), bench.listen(with_account(&account))];
    for n in 0..100 {
        bench.put(large("a", n));
        // Beyond the bound each listener adds one state of each object.
        assert!(account.held() <= (3 + 2) * length + 1_000, "{n}: {} of {length}", account.held());
    }
    let stats = listeners[0].stats();
    assert!(stats.merged > 90, "{stats:?}");
    for listener in &mut listeners {
        assert_eq!(drain(listener).last().map(String::as_str).map(|last| last.ends_with("100")), Some(true));
    }
    assert_eq!(account.held(), 0, "all was delivered");
    bench.put(large("a", 0));
    bench.delete("a");
    assert!(account.held() > 0);
    drop(listeners);
    assert_eq!(account.held(), 0, "what is dropped is not held");
}

/// An update that is skipped leaves what waits with a state that nothing else holds.
#[tokio::test(start_paused = true)]
async fn states_that_skipped_updates_supersede_are_billed_too() {
    let mut bench = Bench::new();
    let spec = |n: u32, other: u32| Draft::new("a").field("spec", json!(n)).field("other", json!(other));
    let length = at(&spec(1, 0), 1).json_length();
    let account = BacklogAccount::new(2 * length);
    let fields = vec!["/spec".parse().unwrap()];
    let mut listener = bench.listen(ListenerConfig { fields, ..with_account(&account) });
    bench.put(spec(1, 0));
    assert_eq!(account.held(), 0);
    for other in 1..9 {
        bench.put(spec(1, other));
        assert_eq!(account.held(), length, "the first state, which waits");
    }
    bench.put(spec(2, 0));
    assert_eq!((account.held(), account.is_full()), (2 * length, true), "and the one before this");
    bench.put(spec(2, 1));
    assert_eq!(drain(&mut listener), ["add a@1", "update a@9→11"], "beyond the bound with the newest state");
    assert_eq!(account.held(), 0);
}
