use std::collections::BTreeSet;
use std::time::Duration;

use oarlock_informer::object::Namespaces;
use oarlock_informer::testing::Draft;
use oarlock_plugin::contract::{self, WorkKey};

use super::rig::{Answering, ReceivedCall, Rig, done, retry, trap};
use crate::access::{Access, Denial};
use crate::dispatch::{Read, ReadSets};

fn key() -> WorkKey {
    named("k")
}

fn named(name: &str) -> WorkKey {
    let object = contract::ObjectKey { namespace: String::new(), name: name.to_owned() };
    WorkKey { kind: "it".to_owned(), object }
}

const RECONCILE: &str = "reconcile it k";

/// A plugin with the key `k`, which lists the Pods with `app=web` when it is reconciled. `answer` decides how
/// each run ends.
fn lists_web(
    sets: ReadSets,
    generation: u64,
    answer: impl Fn(&ReceivedCall) -> Answering + Send + Sync + 'static,
) -> impl Fn(&ReceivedCall) -> Answering + Send + Sync + 'static {
    move |call| {
        if call.text != RECONCILE {
            return done();
        }
        let run = sets.begin(key().into(), generation);
        let selector = "app=web".parse().unwrap();
        run.reads("pods", Read::Selector { namespace: None, selector, n_bytes: 7 }).unwrap();
        let answer = answer(call);
        if matches!(answer, Ok(Ok(_))) {
            run.succeeded();
        }
        answer
    }
}

async fn rig() -> Rig {
    let mut rig = Rig::new(&["n/a", "n/b"]).await;
    rig.wakes = true;
    rig.selector = "never=true";
    rig
}

/// Serves the plugin and waits for the first run of its key.
async fn served() -> Rig {
    let rig = rig().await;
    rig.serve(lists_web(rig.queue.read_sets().clone(), 1, |_| done())).await;
    rig.queue.add(key(), None).unwrap();
    rig.until(RECONCILE).await;
    rig.pass(Duration::from_secs(1)).await;
    rig
}

fn n_runs(rig: &Rig) -> usize {
    rig.received().iter().filter(|it| *it == RECONCILE).count()
}

#[tokio::test(start_paused = true)]
async fn a_key_is_queued_again_when_what_it_listed_changes() {
    let rig = served().await;
    assert_eq!(n_runs(&rig), 1, "initial adds wake no key");
    rig.api.put(Draft::new("n/a").label("app", "web"));
    rig.until_times(RECONCILE, 2).await;
    rig.api.put("n/a");
    rig.until_times(RECONCILE, 3).await;
    rig.api.put(Draft::new("n/c").label("app", "web"));
    rig.until_times(RECONCILE, 4).await;
    rig.api.delete("n/c");
    rig.until_times(RECONCILE, 5).await;
    rig.api.put(Draft::new("n/b").label("app", "db"));
    rig.api.delete("n/b");
    rig.pass(Duration::from_secs(60)).await;
    let received = rig.received();
    assert_eq!(n_runs(&rig), 5);
    let others: BTreeSet<_> = received.into_iter().filter(|it| it != RECONCILE).collect();
    assert_eq!(others, ["synced 0".to_owned()].into(), "the lister is no subscription of the plugin");
}

#[tokio::test(start_paused = true)]
async fn a_change_during_a_run_queues_the_key_again() {
    let rig = rig().await;
    rig.serve(lists_web(rig.queue.read_sets().clone(), 1, |_| done())).await;
    rig.queue.add(key(), None).unwrap();
    rig.until(RECONCILE).await;
    *rig.guests.takes.lock() = Duration::from_secs(10);
    rig.queue.add(key(), None).unwrap();
    rig.until_times(RECONCILE, 2).await;
    rig.api.put(Draft::new("n/a").label("app", "web"));
    rig.until_times(RECONCILE, 3).await;
}

#[tokio::test(start_paused = true)]
async fn all_keys_are_woken_that_read_what_changes_slice_by_slice() {
    const KEYS: usize = 1_000;
    let rig = rig().await;
    let sets = rig.queue.read_sets().clone();
    let reads_all = move |call: &ReceivedCall| {
        if let Some(name) = call.text.strip_prefix("reconcile it ") {
            let run = sets.begin(named(name).into(), 1);
            let selector = "app=web".parse().unwrap();
            run.reads("pods", Read::Selector { namespace: None, selector, n_bytes: 7 }).unwrap();
            run.succeeded();
        }
        done()
    };
    rig.serve(reads_all).await;
    (0..KEYS).for_each(|n| rig.queue.add(named(&n.to_string()), None).unwrap());
    let n_runs = |calls: &[ReceivedCall]| calls.iter().filter(|it| it.text.starts_with("reconcile")).count();
    rig.until_all("a run of each key", |calls| n_runs(calls) == KEYS).await;
    rig.api.put(Draft::new("n/a").label("app", "web"));
    rig.until_all("another run of each key", |calls| n_runs(calls) == 2 * KEYS).await;
    rig.pass(Duration::from_secs(60)).await;
    assert_eq!(n_runs(&rig.calls()), 2 * KEYS);
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_keeps_what_the_runs_before_read() {
    let rig = rig().await;
    let sets = rig.queue.read_sets().clone();
    rig.serve(lists_web(sets, 1, |call| if call.n_before == 0 { done() } else { retry() })).await;
    rig.queue.add(key(), None).unwrap();
    rig.until(RECONCILE).await;
    rig.api.put(Draft::new("n/a").label("app", "web"));
    // It fails until it is parked. A change is another event.
    rig.until_times(RECONCILE, 7).await;
    rig.pass(Duration::from_secs(60)).await;
    assert_eq!((n_runs(&rig), rig.status().work_queue.unwrap().parked), (7, 1));
    rig.api.put("n/a");
    rig.until_times(RECONCILE, 8).await;
}

#[tokio::test(start_paused = true)]
async fn a_lister_that_wakes_stays_synced_when_an_instance_is_lost() {
    let rig = rig().await;
    let sets = rig.queue.read_sets().clone();
    rig.serve(lists_web(sets, 1, |call| if call.n_before == 0 { trap() } else { done() })).await;
    rig.until("synced 0").await;
    rig.queue.add(key(), None).unwrap();
    rig.until_times("synced 0", 2).await;
    rig.pass(Duration::from_secs(60)).await;
    let status = rig.status();
    let synced: Vec<_> = status.subscriptions.iter().map(|it| (it.name.as_str(), it.synced)).collect();
    assert_eq!((status.instances_lost, synced), (1, vec![("pods", true), ("wakes:pods", true)]));
}

#[tokio::test(start_paused = true)]
async fn a_swap_to_an_equal_lister_keeps_the_reads_and_another_reconciles_the_keys_once() {
    let mut rig = served().await;
    rig.serve(lists_web(rig.queue.read_sets().clone(), 2, |_| done())).await;
    rig.pass(Duration::from_secs(60)).await;
    assert_eq!(n_runs(&rig), 1, "nothing changed");
    rig.api.put(Draft::new("n/a").label("app", "web"));
    rig.until_times(RECONCILE, 2).await;
    // Without the lister.
    rig.wakes = false;
    rig.serve(lists_web(rig.queue.read_sets().clone(), 3, |_| done())).await;
    rig.until_times(RECONCILE, 3).await;
    rig.api.put("n/a");
    rig.pass(Duration::from_secs(60)).await;
    assert_eq!(n_runs(&rig), 3);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_reads_after_a_swap_is_repeated_by_a_version_without_the_lister() {
    for wakes in [true, false] {
        let mut rig = rig().await;
        *rig.guests.takes.lock() = Duration::from_secs(10);
        rig.serve(lists_web(rig.queue.read_sets().clone(), 1, |_| done())).await;
        rig.queue.add(key(), None).unwrap();
        rig.until(RECONCILE).await;
        *rig.guests.takes.lock() = Duration::ZERO;
        rig.wakes = wakes;
        // The run has not read yet.
        rig.serve(lists_web(rig.queue.read_sets().clone(), 2, |_| done())).await;
        rig.pass(Duration::from_secs(60)).await;
        let calls = rig.calls();
        let instances: Vec<_> =
            calls.iter().filter(|it| it.text == RECONCILE).map(|it| it.instance).collect();
        assert_eq!(instances, if wakes { vec![1] } else { vec![1, 2] });
    }
}

#[tokio::test(start_paused = true)]
async fn promise_5_a_lister_without_access_wakes_no_key_and_all_its_readers_when_it_is_back() {
    let rig = served().await;
    rig.access.send(Access::Forbidden(Denial::NoAccount("ns/p".parse().unwrap()))).unwrap();
    rig.pass(Duration::from_secs(1)).await;
    rig.api.put(Draft::new("n/a").label("app", "web"));
    rig.pass(Duration::from_secs(60)).await;
    assert_eq!(n_runs(&rig), 1);
    rig.access.send(Access::Allowed(Namespaces::All)).unwrap();
    rig.until_times(RECONCILE, 2).await;
}
