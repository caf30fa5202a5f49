//! Objects and keys that cost the instance at each call, and the healthy ones beside them.

use std::time::Duration;

use oarlock_plugin::contract::Enqueue;

use super::rig::{Answering, ReceivedCall, Rig, done, loops, trap};

const SECOND: Duration = Duration::from_secs(1);
/// The deadline of a call.
const DEADLINE: Duration = Duration::from_secs(5);
/// How long instantiation and the calls before may take.
const SLACK: Duration = Duration::from_millis(100);

/// How a call costs the instance.
#[derive(Clone, Copy, Debug)]
enum Crash {
    Panic,
    Loop,
}

// === impl Crash ===

impl Crash {
    fn answer(self) -> Answering {
        match self {
            Self::Panic => trap(),
            Self::Loop => loops(DEADLINE),
        }
    }

    fn takes(self) -> Duration {
        match self {
            Self::Panic => Duration::ZERO,
            Self::Loop => DEADLINE,
        }
    }
}

fn is_crashing(call: &ReceivedCall) -> bool {
    call.text.contains("crashing")
}

/// All kinds of crashes, each for a stateful and a stateless plugin.
fn all() -> impl Iterator<Item = (Crash, bool)> {
    [Crash::Panic, Crash::Loop].into_iter().flat_map(|crash| [(crash, false), (crash, true)])
}

async fn rig(pods: &[&str], crash: Crash, stateless: bool) -> Rig {
    let mut rig = Rig::new(pods).await;
    rig.stateless = stateless;
    rig.serve(move |call| if is_crashing(call) { crash.answer() } else { done() }).await;
    rig
}

/// Creates a healthy Pod every second, and returns the longest time that one of them waited for its call.
async fn longest_wait(rig: &Rig, seconds: u32, each_second: impl Fn(u32)) -> Duration {
    let mut created = Vec::new();
    for n in 0..seconds {
        each_second(n);
        let name = format!("healthy-{n}");
        rig.api.put(format!("n/{name}").as_str());
        created.push((name, rig.now()));
        rig.pass(SECOND).await;
    }
    let mut waits = Vec::new();
    for (name, at) in created {
        let begins = format!("add {name}@");
        rig.until_all(begins.clone(), |received| received.iter().any(|it| it.text.starts_with(&begins)))
            .await;
        let call = rig.calls().into_iter().find(|it| it.text.starts_with(&begins)).unwrap();
        waits.push(call.after.saturating_sub(at));
    }
    waits.into_iter().max().unwrap()
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_crashing_object_delays_the_others_by_one_call_at_most() {
    for (crash, stateless) in all() {
        let rig = rig(&["n/a", "n/crashing", "n/z"], crash, stateless).await;
        let longest = longest_wait(&rig, 60, |_| {}).await;
        assert!(longest <= crash.takes() + SLACK, "{crash:?}, stateless {stateless}: {longest:?}");
        assert_eq!(rig.calls().iter().filter(|it| is_crashing(it)).count(), 3, "{crash:?}: its tries");
        assert_eq!(rig.status().subscriptions[0].backlog.parked, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_crashing_object_that_changes_every_second_delays_the_others_by_one_call_at_most() {
    for (crash, stateless) in all() {
        let rig = rig(&["n/a", "n/crashing"], crash, stateless).await;
        let longest = longest_wait(&rig, 300, |_| {
            rig.api.put("n/crashing");
        })
        .await;
        assert!(longest <= crash.takes() + SLACK, "{crash:?}, stateless {stateless}: {longest:?}");
        // Each version gets a try, but no sooner than its back-off allows.
        let n_tries = rig.calls().iter().filter(|it| is_crashing(it)).count();
        assert!((10..25).contains(&n_tries), "{crash:?}, stateless {stateless}: {n_tries} tries");
    }
}

#[tokio::test(start_paused = true)]
async fn promise_4_several_crashing_objects_delay_the_others_by_one_call_at_most_after_their_first_calls() {
    for (crash, stateless) in all() {
        let pods = ["n/a", "n/crashing-1", "n/crashing-2", "n/crashing-3", "n/crashing-4", "n/crashing-5"];
        let rig = rig(&pods, crash, stateless).await;
        let all_called = |received: &[ReceivedCall]| {
            (1..=5).all(|n| received.iter().any(|it| it.text.contains(&format!("crashing-{n}"))))
        };
        rig.until_all("a call for each crashing Pod", all_called).await;
        rig.pass(crash.takes() + SECOND * 4).await;
        let longest = longest_wait(&rig, 60, |_| {}).await;
        assert!(longest <= crash.takes() + SLACK, "{crash:?}, stateless {stateless}: {longest:?}");
        rig.pass(SECOND * 120).await;
        assert_eq!(rig.status().subscriptions[0].backlog.parked, 5);
        assert!(rig.received().contains(&"synced 0".to_owned()), "parked objects do not delay the sync");
    }
}

#[tokio::test(start_paused = true)]
async fn promise_4_ten_new_crashing_objects_delay_the_others_by_28_seconds_at_most() {
    for stateless in [false, true] {
        let rig = rig(&["n/a"], Crash::Panic, stateless).await;
        rig.until("synced 0").await;
        for n in 0..10 {
            rig.api.put(format!("n/crashing-{n}").as_str());
        }
        let longest = longest_wait(&rig, 60, |_| {}).await;
        // No wait between the first ten losses in a row is longer than four seconds.
        assert!(longest <= SECOND * 28, "stateless {stateless}: {longest:?}");
        let late = rig.now();
        rig.api.put("n/late");
        rig.until_all("add late", |received| received.iter().any(|it| it.text.starts_with("add late"))).await;
        assert!(rig.now() - late <= SLACK);
    }
}

#[tokio::test(start_paused = true)]
async fn promise_4_an_on_synced_that_always_crashes_delays_the_others_by_one_call_at_most() {
    for (crash, stateless) in all() {
        let mut rig = Rig::new(&["n/a"]).await;
        rig.stateless = stateless;
        rig.serve(move |call| if call.text.starts_with("synced") { crash.answer() } else { done() }).await;
        let longest = longest_wait(&rig, 60, |_| {}).await;
        assert!(longest <= crash.takes() + SLACK, "{crash:?}, stateless {stateless}: {longest:?}");
        assert_eq!(rig.calls().iter().filter(|it| it.text == "synced 0").count(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_crashing_key_delays_the_others_by_one_call_at_most() {
    for (crash, stateless) in all() {
        let mut rig = Rig::new(&["n/a", "n/crashing"]).await;
        rig.stateless = stateless;
        rig.enqueue = Enqueue::Itself;
        rig.serve(move |call| if is_crashing(call) { crash.answer() } else { done() }).await;
        for n in 0..120 {
            let key = format!("healthy-{n}");
            let created = rig.now();
            rig.api.put(format!("n/{key}").as_str());
            rig.api.put("n/crashing");
            rig.until(&format!("reconcile pods {key}")).await;
            let waited = rig.now() - created;
            assert!(waited <= crash.takes() + SLACK, "{crash:?}, stateless {stateless}: {key} {waited:?}");
            rig.pass(SECOND.saturating_sub(waited)).await;
        }
        let n_tries = rig.calls().iter().filter(|it| is_crashing(it)).count();
        assert!((5..15).contains(&n_tries), "{crash:?}, stateless {stateless}: {n_tries} tries");
    }
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_crashing_object_gets_its_tries_under_continuous_load() {
    let rig = rig(&["n/crashing"], Crash::Panic, true).await;
    *rig.guests.takes.lock() = Duration::from_millis(200);
    rig.until_all("a call that crashes", |received| received.iter().any(is_crashing)).await;
    // Three minutes of work, all of it ready at once.
    for n in 0..900 {
        rig.api.put(format!("n/{n}").as_str());
    }
    rig.until_all("three calls that crash", |received| {
        received.iter().filter(|it| is_crashing(it)).count() == 3
    })
    .await;
    let n_served = rig.calls().iter().filter(|it| !is_crashing(it)).count();
    assert!((250..500).contains(&n_served), "{n_served} were served before its tries were used up");
}

#[tokio::test(start_paused = true)]
async fn a_parked_object_is_tried_at_its_next_event_at_a_swap_and_by_the_slow_timer() {
    for stateless in [false, true] {
        let rig = rig(&["n/a", "n/crashing"], Crash::Panic, stateless).await;
        let n_tries = || rig.calls().iter().filter(|it| is_crashing(it)).count();
        rig.pass(SECOND * 60).await;
        assert_eq!(n_tries(), 3);
        rig.api.put("n/crashing");
        rig.pass(SECOND).await;
        assert_eq!(n_tries(), 4, "its next event");
        rig.pass(SECOND * 250).await;
        assert_eq!(n_tries(), 5, "the slow timer");
        rig.serve(move |call| if is_crashing(call) { trap() } else { done() }).await;
        rig.pass(SECOND).await;
        assert!(n_tries() > 5, "the swap");
        rig.pass(SECOND * 60).await;
        rig.api.delete("n/crashing");
        rig.pass(SECOND).await;
        assert!(
            rig.received().last().is_some_and(|it| it.starts_with("delete crashing") || it == "synced 0")
        );
        assert!(rig.received().iter().any(|it| it.starts_with("delete crashing")), "its delete is an event");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_call_succeeds_leaves_crash_backoff() {
    let rig = Rig::new(&["n/a", "n/crashing"]).await;
    rig.serve(|call| if call.text == "add crashing@3" { trap() } else { done() }).await;
    rig.pass(SECOND * 60).await;
    assert_eq!(rig.status().subscriptions[0].backlog.parked, 1);
    rig.api.put("n/crashing");
    rig.until("add crashing@4").await;
    rig.pass(SECOND).await;
    rig.api.put("n/crashing");
    rig.until("update crashing@4-5").await;
    let status = rig.status();
    assert_eq!((status.subscriptions[0].backlog.parked, status.instances_lost), (0, 3));
}

#[tokio::test(start_paused = true)]
async fn promise_5_an_object_in_crash_backoff_is_not_delivered_after_its_right_is_revoked() {
    use crate::access::{Access, Denial};
    let rig = rig(&["n/a", "n/crashing"], Crash::Panic, true).await;
    rig.until_all("a call that crashes", |received| received.iter().any(is_crashing)).await;
    rig.access.send_replace(Access::Forbidden(Denial::NoAccount("ns/p".parse().unwrap())));
    rig.pass(SECOND * 60).await;
    assert_eq!(rig.calls().iter().filter(|it| is_crashing(it)).count(), 1);
}
