//! The values of initial adds: found once, and kept for the next change.

use super::matching::{carried, fields, large, pod_named, two_fields};
use super::*;

use std::sync::atomic::Ordering;

impl Bench {
    /// Makes the plan, as the informer does after a registration.
    fn plan(&self) {
        self.handler.lock().plan_if_due();
    }

    /// Puts an object; returns how many texts were walked for that.
    fn walks(&mut self, draft: Draft) -> u64 {
        let before = self.tally();
        self.put(draft);
        self.cost_since(before).walks
    }
}

/// Returns how many texts were searched for the initial adds of the listener, and of those with equal fields.
fn n_searched(listener: &Listener) -> usize {
    listener.shared().fields.as_ref().unwrap().n_searched.load(Ordering::Relaxed)
}

fn declaring(pointers: &[&str]) -> ListenerConfig {
    let fields = pointers.iter().map(|pointer| pointer.parse().unwrap()).collect();
    ListenerConfig { fields, ..ListenerConfig::default() }
}

#[tokio::test(start_paused = true)]
async fn the_values_of_initial_adds_are_found_once_for_listeners_with_equal_fields() {
    let mut bench = Bench::new();
    let config = || ListenerConfig { fields: two_fields(), ..ListenerConfig::default() };
    for n in 0..3 {
        bench.put(pod_named(&format!("pod-{n}"), "Running", &format!("node-{n}"), 0));
    }
    bench.put(large("z-large", 0));
    let n_recent = |listener: &Listener| listener.shared().fields.as_ref().unwrap().n_recent();
    let mut first = bench.listen(config());
    let mut other = bench.listen(ListenerConfig { fields: fields(0), ..ListenerConfig::default() });
    let take_one = |listener: &mut Listener| take(listener).unwrap();
    let Delivery { key, fields, .. } = take_one(&mut first);
    assert_eq!(fields.new.unwrap().iter().count(), 2);
    assert_eq!(n_recent(&first), 0, "nothing is remembered for one listener");
    let mut second = bench.listen(config());
    assert!(Arc::ptr_eq(first.shared().fields.as_ref().unwrap(), second.shared().fields.as_ref().unwrap()));
    let text = |fields: NotificationFields| {
        fields.new.map(|fields| fields.iter().map(|it| it.unwrap_or("?").to_owned()).collect::<Vec<_>>())
    };
    let before = take_one(&mut second);
    second.finish(&before.key, Outcome::Done);
    assert_eq!((&before.key, n_recent(&first)), (&key, 1));
    first.finish(&key, Outcome::Retry { after: Duration::ZERO });
    let again = take_one(&mut first);
    assert_eq!(text(again.fields), text(before.fields));
    // The remembered state is not that of a newer object.
    bench.put(pod_named("pod-1", "Pending", "node-1", 0));
    let mut third = bench.listen(config());
    first.finish(&key, Outcome::Done);
    for listener in [&mut first, &mut second, &mut third] {
        let received = carried(listener);
        assert!(received.iter().any(|it| it.ends_with(r#"→ "Pending" "node-1""#)), "{received:?}");
        assert!(
            received.iter().any(|it| it.starts_with("add z-large") && it.ends_with("→ -")),
            "{received:?}"
        );
        assert_eq!(n_recent(listener), 0, "forgotten when a listener has synced");
    }
    assert!(carried(&mut other).len() >= 4);
}

#[tokio::test(start_paused = true)]
async fn the_values_of_initial_adds_are_kept_for_the_next_change_and_for_later_listeners() {
    let mut bench = Bench::new();
    for name in ["read", "unread"] {
        bench.put(pod_named(name, "Running", "n", 0));
    }
    let mut first = bench.listen(declaring(&["/status/phase", "/spec/nodeName"]));
    bench.plan();
    let delivery = take(&mut first).unwrap();
    assert_eq!(delivery.key.name(), "read");
    first.finish(&delivery.key, Outcome::Done);
    assert_eq!(bench.walks(pod_named("unread", "Pending", "n", 0)), 2, "one over each text");
    assert_eq!(bench.walks(pod_named("read", "Pending", "n", 0)), 1, "one over the new text");
    // Its pointers are among those of the plan, in another order.
    let mut later = bench.listen(declaring(&["/spec/nodeName", "/status/phase"]));
    bench.plan();
    assert_eq!(n_searched(&first), 1);
    assert_eq!(
        carried(&mut later),
        [r#"add read@4 (initial): - → "n" "Pending""#, r#"add unread@3 (initial): - → "n" "Pending""#]
    );
    assert_eq!(n_searched(&later), 0);
    assert_eq!(
        carried(&mut first)[..2],
        [
            r#"add unread@2 (initial): - → "Running" "n""#,
            r#"update unread@2→3: "Running" "n" → "Pending" "n""#
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn listeners_with_different_fields_share_the_kept_values() {
    let mut bench = Bench::new();
    bench.put(pod_named("a", "Running", "n", 7));
    let mut phase = bench.listen(declaring(&["/status/phase"]));
    let mut node = bench.listen(declaring(&["/spec/nodeName", "/missing"]));
    bench.plan();
    assert_eq!(carried(&mut phase), [r#"add a@1 (initial): - → "Running""#]);
    assert_eq!(carried(&mut node), [r#"add a@1 (initial): - → "n" ?"#]);
    assert_eq!((n_searched(&phase), n_searched(&node)), (1, 0), "the informer has them");
    assert_eq!(bench.walks(pod_named("a", "Pending", "n", 7)), 1);
    assert_eq!(carried(&mut phase), [r#"update a@1→2: "Running" → "Pending""#]);
    // The values that were kept before lack the new field.
    let mut third = bench.listen(declaring(&["/metadata/resourceVersion"]));
    bench.plan();
    assert_eq!(carried(&mut third), [r#"add a@2 (initial): - → "2""#]);
    bench.put(pod_named("a", "Pending", "n", 8));
    assert_eq!(carried(&mut third), [r#"update a@2→3: "2" → "3""#]);
}

/// An initial add may be of a state that the cache has no longer. The newer state has long values, which are
/// not kept, so its slot is empty.
#[tokio::test(start_paused = true)]
async fn promise_2_values_of_an_older_state_are_neither_kept_nor_taken() {
    let mut bench = Bench::new();
    let long = "x".repeat(2_000);
    bench.put(pod_named("a", "Running", "n", 0));
    let mut listener = bench.listen(declaring(&["/status/phase"]));
    bench.plan();
    bench.put(pod_named("a", &long, "n", 0));
    let add = take(&mut listener).unwrap();
    assert_eq!(add.fields.new.unwrap().iter().collect::<Vec<_>>(), [Some("\"Running\"")]);
    listener.finish(&add.key, Outcome::Done);
    bench.put(pod_named("a", "Failed", "n", 0));
    let received = carried(&mut listener);
    assert_eq!(received[1], format!(r#"update a@2→3: "{long}" → "Failed""#));
    // Now the slot has values. They are not those of an older state either.
    let mut late = bench.listen(declaring(&["/status/phase"]));
    bench.put(pod_named("a", "Succeeded", "n", 0));
    assert_eq!(
        carried(&mut late),
        [r#"add a@3 (initial): - → "Failed""#, r#"update a@3→4: "Failed" → "Succeeded""#]
    );
}

/// Another object gets the slot of a deleted one.
#[tokio::test(start_paused = true)]
async fn promise_2_kept_values_end_with_their_object() {
    let mut bench = Bench::new();
    let long = "x".repeat(2_000);
    for name in ["a", "stays"] {
        bench.put(pod_named(name, "Running", "n", 0));
    }
    let mut listener = bench.listen(declaring(&["/status/phase"]));
    bench.plan();
    assert_eq!(carried(&mut listener).len(), 2);
    bench.delete("a");
    bench.put(pod_named("b", &long, "n", 0));
    bench.put(pod_named("b", "Pending", "n", 0));
    let received = carried(&mut listener);
    assert_eq!(received[2], format!(r#"update b@4→5: "{long}" → "Pending""#));
}

#[tokio::test(start_paused = true)]
async fn promise_7_long_values_of_initial_adds_are_not_kept() {
    let mut bench = Bench::new();
    let long = |n: usize| Draft::new("a").field("data", json!([n, "x".repeat(200)]));
    bench.put(long(0));
    let mut listener = bench.listen(declaring(&["/data"]));
    bench.plan();
    assert!(carried(&mut listener)[0].starts_with("add a@1 (initial): - → [0,"));
    assert_eq!(bench.walks(long(1)), 2);
    assert_eq!(bench.walks(long(2)), 1, "those of an object that has changed are kept");
}

#[tokio::test(start_paused = true)]
async fn kept_values_of_initial_adds_count_to_the_memory_of_the_cache() {
    let mut bench = Bench::new();
    for n in 0..1_000 {
        bench.put(pod_named(&format!("pod-{n}"), "Running", "node", n));
    }
    let size = |bench: &Bench| bench.processor.block_deltas(|indexer| indexer.memory().indices);
    let without = size(&bench);
    let mut listener = bench.listen(declaring(&["/status/phase", "/spec/nodeName"]));
    bench.plan();
    assert_eq!(carried(&mut listener).len(), 1_000);
    let with = size(&bench) - without;
    assert!((30_000..70_000).contains(&with), "{with}");
    drop(listener);
    bench.put("another");
    bench.put("another");
    assert!(size(&bench) - without < 3_000, "no listener declares fields");
}
