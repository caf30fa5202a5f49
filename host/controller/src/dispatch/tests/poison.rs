//! Poison: objects and keys that cost the instance, whatever the plugin. What is healthy is served beside them.

use std::time::Duration;

use oarlock_plugin::CallError;
use oarlock_plugin::contract::Enqueue;

use super::rig::{Answering, Rig, Told, done, trap};

const SECOND: Duration = Duration::from_secs(1);
/// The deadline of a call that loops.
const DEADLINE: Duration = Duration::from_secs(5);
/// What instantiation and the calls before may take.
const SLACK: Duration = Duration::from_millis(100);

/// How a guest breaks, and for how long it keeps the plugin busy with that.
#[derive(Clone, Copy, Debug)]
enum Breaks {
    Panics,
    Loops,
}

// === impl Breaks ===

impl Breaks {
    fn answer(self) -> Answering {
        match self {
            Self::Panics => trap(),
            Self::Loops => Err(CallError::DeadlineExceeded {
                limit: DEADLINE,
                waiting_for: None,
                output: String::new(),
                backtrace: String::new(),
            }),
        }
    }

    fn takes(self) -> Duration {
        match self {
            Self::Panics => Duration::ZERO,
            Self::Loops => DEADLINE,
        }
    }
}

fn is_poison(told: &Told) -> bool {
    told.what.contains("poison")
}

/// The ways a plugin may break, with and without state.
fn all() -> impl Iterator<Item = (Breaks, bool)> {
    [Breaks::Panics, Breaks::Loops].into_iter().flat_map(|breaks| [(breaks, false), (breaks, true)])
}

async fn rig(pods: &[&str], breaks: Breaks, stateless: bool) -> Rig {
    let mut rig = Rig::new(pods).await;
    rig.stateless = stateless;
    rig.serve(move |told| if is_poison(told) { breaks.answer() } else { done() }).await;
    rig
}

/// Creates a healthy Pod every second, and says how long the one that waited longest did so.
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
        rig.until_all(|told| told.iter().any(|it| it.what.starts_with(&begins))).await;
        let told = rig.calls().into_iter().find(|it| it.what.starts_with(&begins)).unwrap();
        waits.push(told.after.saturating_sub(at));
    }
    waits.into_iter().max().unwrap()
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_poison_object_delays_the_others_by_one_call_at_most() {
    for (breaks, stateless) in all() {
        let rig = rig(&["n/a", "n/poison", "n/z"], breaks, stateless).await;
        let longest = longest_wait(&rig, 60, |_| {}).await;
        assert!(longest <= breaks.takes() + SLACK, "{breaks:?}, stateless {stateless}: {longest:?}");
        assert_eq!(rig.calls().iter().filter(|it| is_poison(it)).count(), 3, "{breaks:?}: its tries");
        assert_eq!(rig.status().subscriptions[0].backlog.parked, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn promise_4_nor_does_one_that_changes_every_second() {
    for (breaks, stateless) in all() {
        let rig = rig(&["n/a", "n/poison"], breaks, stateless).await;
        let longest = longest_wait(&rig, 300, |_| {
            rig.api.put("n/poison");
        })
        .await;
        assert!(longest <= breaks.takes() + SLACK, "{breaks:?}, stateless {stateless}: {longest:?}");
        // Each version gets a try, but no more than its back-off allows.
        let n_tries = rig.calls().iter().filter(|it| is_poison(it)).count();
        assert!((10..25).contains(&n_tries), "{breaks:?}, stateless {stateless}: {n_tries} tries");
    }
}

#[tokio::test(start_paused = true)]
async fn promise_4_nor_do_several_once_they_are_known() {
    for (breaks, stateless) in all() {
        let pods = ["n/a", "n/poison-1", "n/poison-2", "n/poison-3", "n/poison-4", "n/poison-5"];
        let rig = rig(&pods, breaks, stateless).await;
        // Nobody knows before each was met once.
        let known = |told: &Vec<Told>| {
            (1..=5).all(|n| told.iter().any(|it| it.what.contains(&format!("poison-{n}"))))
        };
        rig.until_all(known).await;
        rig.pass(breaks.takes() + SECOND * 4).await;
        let longest = longest_wait(&rig, 60, |_| {}).await;
        assert!(longest <= breaks.takes() + SLACK, "{breaks:?}, stateless {stateless}: {longest:?}");
        rig.pass(SECOND * 120).await;
        assert_eq!(rig.status().subscriptions[0].backlog.parked, 5);
        assert!(rig.told().contains(&"synced 0".to_owned()), "what is parked holds up no sync");
    }
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_burst_of_poison_delays_a_plugin_no_longer_than_its_members() {
    for stateless in [false, true] {
        let rig = rig(&["n/a"], Breaks::Panics, stateless).await;
        rig.until("synced 0").await;
        for n in 0..10 {
            rig.api.put(format!("n/poison-{n}").as_str());
        }
        let longest = longest_wait(&rig, 60, |_| {}).await;
        // Ten losses in a row are few: no wait between them is longer than four seconds.
        assert!(longest <= SECOND * 28, "stateless {stateless}: {longest:?}");
        let late = rig.now();
        rig.api.put("n/late");
        rig.until_all(|told| told.iter().any(|it| it.what.starts_with("add late"))).await;
        assert!(rig.now() - late <= SLACK);
    }
}

#[tokio::test(start_paused = true)]
async fn promise_4_the_end_of_the_initial_adds_may_be_poison_too() {
    for (breaks, stateless) in all() {
        let mut rig = Rig::new(&["n/a"]).await;
        rig.stateless = stateless;
        rig.serve(move |told| if told.what.starts_with("synced") { breaks.answer() } else { done() }).await;
        let longest = longest_wait(&rig, 60, |_| {}).await;
        assert!(longest <= breaks.takes() + SLACK, "{breaks:?}, stateless {stateless}: {longest:?}");
        assert_eq!(rig.calls().iter().filter(|it| it.what == "synced 0").count(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn promise_4_and_so_may_keys() {
    for (breaks, stateless) in all() {
        let mut rig = Rig::new(&["n/a", "n/poison"]).await;
        rig.stateless = stateless;
        rig.enqueue = Enqueue::Itself;
        rig.serve(move |told| if is_poison(told) { breaks.answer() } else { done() }).await;
        for n in 0..120 {
            let key = format!("healthy-{n}");
            let created = rig.now();
            rig.api.put(format!("n/{key}").as_str());
            rig.api.put("n/poison");
            rig.until(&format!("reconcile pods {key}")).await;
            let waited = rig.now() - created;
            assert!(waited <= breaks.takes() + SLACK, "{breaks:?}, stateless {stateless}: {key} {waited:?}");
            rig.pass(SECOND.saturating_sub(waited)).await;
        }
        let n_tries = rig.calls().iter().filter(|it| is_poison(it)).count();
        assert!((5..15).contains(&n_tries), "{breaks:?}, stateless {stateless}: {n_tries} tries");
    }
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_suspect_is_tried_beside_a_load_that_never_ends() {
    let rig = rig(&["n/poison"], Breaks::Panics, true).await;
    *rig.guests.takes.lock() = Duration::from_millis(200);
    rig.until_all(|told| told.iter().any(is_poison)).await;
    // Three minutes of work, all there at once.
    for n in 0..900 {
        rig.api.put(format!("n/{n}").as_str());
    }
    rig.until_all(|told| told.iter().filter(|it| is_poison(it)).count() == 3).await;
    let n_served = rig.calls().iter().filter(|it| !is_poison(it)).count();
    assert!((250..500).contains(&n_served), "{n_served} were served before its tries were used up");
}

#[tokio::test(start_paused = true)]
async fn a_parked_object_is_tried_at_its_next_event_at_a_swap_and_by_the_slow_timer() {
    for stateless in [false, true] {
        let rig = rig(&["n/a", "n/poison"], Breaks::Panics, stateless).await;
        let n_tries = || rig.calls().iter().filter(|it| is_poison(it)).count();
        rig.pass(SECOND * 60).await;
        assert_eq!(n_tries(), 3);
        rig.api.put("n/poison");
        rig.pass(SECOND).await;
        assert_eq!(n_tries(), 4, "its next event");
        rig.pass(SECOND * 250).await;
        assert_eq!(n_tries(), 5, "the slow timer");
        rig.serve(move |told| if is_poison(told) { trap() } else { done() }).await;
        rig.pass(SECOND).await;
        assert!(n_tries() > 5, "the swap");
        rig.pass(SECOND * 60).await;
        rig.api.delete("n/poison");
        rig.pass(SECOND).await;
        assert!(rig.told().last().is_some_and(|it| it.starts_with("delete poison") || it == "synced 0"));
        assert!(rig.told().iter().any(|it| it.starts_with("delete poison")), "its delete is an event");
    }
}

#[tokio::test(start_paused = true)]
async fn a_mended_object_is_no_suspect_any_more() {
    let rig = Rig::new(&["n/a", "n/poison"]).await;
    rig.serve(|told| if told.what == "add poison@3" { trap() } else { done() }).await;
    rig.pass(SECOND * 60).await;
    assert_eq!(rig.status().subscriptions[0].backlog.parked, 1);
    rig.api.put("n/poison");
    rig.until("add poison@4").await;
    rig.pass(SECOND).await;
    rig.api.put("n/poison");
    rig.until("update poison@4-5").await;
    let status = rig.status();
    assert_eq!((status.subscriptions[0].backlog.parked, status.instances_lost), (0, 3));
}

#[tokio::test(start_paused = true)]
async fn promise_5_a_suspect_is_not_told_of_once_the_right_is_gone() {
    use crate::subscriptions::Access;
    let rig = rig(&["n/a", "n/poison"], Breaks::Panics, true).await;
    rig.until_all(|told| told.iter().any(is_poison)).await;
    rig.access.send_replace(Access::Forbidden("no more".to_owned()));
    rig.pass(SECOND * 60).await;
    assert_eq!(rig.calls().iter().filter(|it| is_poison(it)).count(), 1);
}
