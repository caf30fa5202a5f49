//! Large objects and many who want to know much of them: nobody else waits for that.

use std::cell::Cell;

use serde_json::json;

use super::*;

/// A large ConfigMap; `n` stands in the last of its many entries.
fn large(name: &str, n: usize) -> Draft {
    let entries = (0..4_500).map(|i| (format!("key-{i}"), json!("x".repeat(190))));
    let last = ("last".to_owned(), json!(n.to_string()));
    Draft::new(name).field("data", entries.chain([last]).collect::<serde_json::Map<_, _>>().into())
}

/// As much as a plugin may declare: 32 subscriptions, 64 fields each.
fn wide(n: usize) -> ListenerConfig {
    let fields = (0..64).map(|m| format!("/data/key-{}", 64 * n + m).parse().unwrap()).collect();
    ListenerConfig { fields, backlog_limit: 0, ..ListenerConfig::default() }
}

/// While a change of a large object is looked at for a plugin that declares all it may, other tasks of the same thread get their turn,
/// again and again, and other listeners what they wait for in the same order as ever.
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
        told(&mut other, 1).await;
        for wide in &mut wide {
            told(wide, 1).await;
        }
        fake.until_watches(1).await;
        settle().await;
        let before = n_turns.get();
        let text = fake.put(large("ns/large", 1)).json_length();
        fake.put("ns/small");
        let told = told(&mut other, 2).await;
        assert_eq!(told, ["update ns/large@2→3", "add ns/small@4"]);
        // Two texts are walked over, a MiB of work at a time.
        let n_turns = n_turns.get() - before;
        let at_least = 2 * text / (1 << 20) + 2;
        assert!(n_turns >= at_least, "{n_turns} turns, {at_least} at least");
        assert!(n_turns < 100, "{n_turns} turns: what is done is not bounded by the texts");
    });
    tokio::select! {
        biased;
        () = test => {}
        () = others => {}
    }
}
