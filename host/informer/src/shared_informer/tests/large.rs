//! Large objects with many listeners that declare many fields.

use std::cell::Cell;

use serde_json::json;

use super::*;

/// Returns a large ConfigMap with `n` in the last of its many entries.
fn large(name: &str, n: usize) -> Draft {
    let entries = (0..4_500).map(|i| (format!("key-{i}"), json!("x".repeat(190))));
    let last = ("last".to_owned(), json!(n.to_string()));
    Draft::new(name).field("data", entries.chain([last]).collect::<serde_json::Map<_, _>>().into())
}

/// Returns one of the 32 subscriptions with 64 fields each that a plugin may declare.
fn wide(n: usize) -> ListenerConfig {
    let fields = (0..64).map(|m| format!("/data/key-{}", 64 * n + m).parse().unwrap()).collect();
    ListenerConfig { fields, backlog_limit: 0, ..ListenerConfig::default() }
}

/// While a change of a large object is matched for these subscriptions, other futures of the same thread run
/// between the slices, and the order of other listeners' notifications does not change.
#[tokio::test(start_paused = true)]
async fn a_plugin_with_many_wide_subscriptions_does_not_delay_others() {
    let fake = FakeListWatch::pods();
    fake.put(large("ns/large", 0));
    let informer = informer(&fake);
    let mut wide: Vec<_> = (0..32).map(|n| informer.add_listener(wide(n)).unwrap()).collect();
    let mut other = informer
        .add_listener(ListenerConfig {
            fields: vec!["/data/last".parse().unwrap()],
            ..ListenerConfig::default()
        })
        .unwrap();
    let n_turns = Cell::new(0);
    let others = async {
        loop {
            n_turns.set(n_turns.get() + 1);
            tokio::task::yield_now().await;
        }
    };
    let test = run(&informer, async {
        receive(&mut other, 1).await;
        for wide in &mut wide {
            receive(wide, 1).await;
        }
        fake.until_watches(1).await;
        settle().await;
        let before = n_turns.get();
        let text = fake.put(large("ns/large", 1)).json_length();
        fake.put("ns/small");
        let received = receive(&mut other, 2).await;
        assert_eq!(received, ["update ns/large@2→3", "add ns/small@4"]);
        // The check walks over two texts, in slices of 1 MiB.
        let n_turns = n_turns.get() - before;
        let at_least = 2 * text / (1 << 20) + 2;
        assert!(n_turns >= at_least, "{n_turns} turns, {at_least} at least");
        assert!(n_turns < 100, "{n_turns} turns: the work is more than the two texts");
    });
    tokio::select! {
        biased;
        () = test => {}
        () = others => {}
    }
}
