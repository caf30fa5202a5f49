//! The bytes that backlogs hold, and their account.

use super::matching::large;
use super::*;

fn with_account(account: &BacklogAccount) -> ListenerConfig {
    ListenerConfig { account: account.clone(), backlog_limit: 1_000_000, ..ListenerConfig::default() }
}

#[tokio::test(start_paused = true)]
async fn promise_4_old_states_are_charged_and_merge_while_the_account_is_full() {
    let mut bench = Bench::new();
    let length = at(&large("a", 0), 1).json_length();
    let account = BacklogAccount::new(3 * length);
    let mut listeners = [bench.listen(with_account(&account)), bench.listen(with_account(&account))];
    for n in 0..100 {
        bench.put(large("a", n));
        // While the account is full, each listener adds one state of each object.
        assert!(account.held() <= (3 + 2) * length + 1_000, "{n}: {} of {length}", account.held());
    }
    let stats = listeners[0].stats();
    assert!(stats.merged > 90, "{stats:?}");
    for listener in &mut listeners {
        assert_eq!(drain(listener).last().map(String::as_str).map(|last| last.ends_with("100")), Some(true));
    }
    assert_eq!(account.held(), 0, "all notifications were delivered");
    bench.put(large("a", 0));
    bench.delete("a");
    assert!(account.held() > 0);
    drop(listeners);
    assert_eq!(account.held(), 0, "a dropped backlog is not charged");
}

/// After a skipped update, the waiting notification has a state that the cache no longer holds.
#[tokio::test(start_paused = true)]
async fn states_superseded_by_skipped_updates_are_charged() {
    let mut bench = Bench::new();
    let spec = |n: u32, other: u32| Draft::new("a").field("spec", json!(n)).field("other", json!(other));
    let length = at(&spec(1, 0), 1).json_length();
    let account = BacklogAccount::new(2 * length);
    let fields = vec!["/spec".parse().unwrap()];
    let mut listener = bench.listen(ListenerConfig { fields, ..with_account(&account) });
    bench.put(spec(1, 0));
    let values = account.held();
    assert!((1..60).contains(&values), "the value of the declared field: {values}");
    for other in 1..9 {
        bench.put(spec(1, other));
        assert_eq!(account.held(), length + values, "the first state, which a notification holds");
    }
    bench.put(spec(2, 0));
    let held = 2 * length + 3 * values;
    assert_eq!((account.held(), account.is_full()), (held, true), "and the state before the update");
    bench.put(spec(2, 1));
    assert_eq!(
        drain(&mut listener),
        ["add a@1", "update a@9→11"],
        "while the account is full, with the newest state"
    );
    assert_eq!(account.held(), 0);
}

/// Two writers may have made the two changes that it spans.
#[tokio::test(start_paused = true)]
async fn a_notification_that_took_over_a_skipped_update_is_merged() {
    let mut bench = Bench::new();
    let spec = |name: &str, n: u32, other: u32| {
        Draft::new(name).field("spec", json!(n)).field("other", json!(other))
    };
    for (limit, is_full) in [(0, true), (1 << 20, false)] {
        let fields = vec!["/spec".parse().unwrap()];
        let mut listener =
            bench.listen(ListenerConfig { fields, ..with_account(&BacklogAccount::new(limit)) });
        bench.put(spec("a", 1, 0));
        drain(&mut listener);
        bench.put(spec("a", 2, 0));
        bench.put(spec("b", 1, 0));
        let [a, b] = [("a", 2), ("b", 1)].map(|(name, n)| bench.put(spec(name, n, 1)));
        for (name, last) in [("a", a), ("b", b)] {
            let delivery = take(&mut listener).unwrap();
            let has_last = delivery.notification.object().resource_version() == last.to_string();
            let seen = (delivery.key.to_string(), has_last, delivery.is_merged);
            assert_eq!(seen, (name.to_owned(), is_full, is_full), "{}", outline(&delivery.notification));
            listener.finish(&delivery.key, Outcome::Done);
        }
        bench.delete("a");
        bench.delete("b");
    }
}

#[tokio::test(start_paused = true)]
async fn a_superseded_state_in_flight_is_charged_until_its_delivery_ends() {
    let spec = |n: u32, other: u32| Draft::new("a").field("spec", json!(n)).field("other", json!(other));
    let ends: [fn(&mut Bench, &mut Listener); 10] = [
        |_, listener| listener.finish(&key("a"), Outcome::Done),
        |_, listener| listener.finish(&key("a"), Outcome::Retry { after: Duration::ZERO }),
        |_, listener| listener.finish(&key("a"), Outcome::Retry { after: second() }),
        |_, listener| listener.finish(&key("a"), Outcome::Defer),
        |_, listener| listener.finish(&key("a"), Outcome::Park),
        |_, listener| {
            listener.abandon_in_flight();
        },
        |_, listener| {
            listener.replay();
        },
        |_, listener| listener.set_namespaces(Namespaces::one("x")),
        |bench, _| {
            bench.put(Draft::new("a").field("spec", json!(2)));
        },
        |bench, _| bench.delete("a"),
    ];
    for end in ends {
        let mut bench = Bench::new();
        let account = BacklogAccount::default();
        let fields = vec!["/spec".parse().unwrap()];
        let mut listener = bench.listen(ListenerConfig { fields, ..with_account(&account) });
        bench.put(spec(1, 0));
        assert_eq!(peek(&mut listener), "add a@1");
        let values = account.held();
        for other in 1..4 {
            bench.put(spec(1, other));
            let length = at(&spec(1, 0), 1).json_length();
            assert_eq!(account.held(), length + values, "the state in flight, once");
        }
        end(&mut bench, &mut listener);
        listener.finish(&key("a"), Outcome::Done);
        tokio::time::advance(second()).await;
        listener.release_deferred();
        listener.retry_parked();
        drain(&mut listener);
        assert_eq!(account.held(), 0);
    }
}
