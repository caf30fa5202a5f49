//! Tests of the budget.

use super::*;
use crate::informers::Refused;

fn limits(informers: usize, objects: usize) -> Limits {
    Limits { informers, objects, ..Limits::default() }
}

fn fill(api: &FakeListWatch, n_objects: usize) {
    for i in 0..n_objects {
        api.put(pod(&format!("n/{i}")));
    }
}

fn refusal(result: Result<InformerHandle, Refused>) -> String {
    result.map(|_| "a handle").unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn an_informer_beyond_the_limit_is_refused_except_for_the_host() {
    let rig = Rig::new(limits(2, 1000));
    let pods = rig.handle(Content::Full);
    let other = rig.informers.acquire(&resource("secrets"), plugin("p"), Content::Full).unwrap();
    let third = || rig.informers.acquire(&resource("events"), plugin("q"), Content::Metadata);
    insta::assert_snapshot!(refusal(third()), @"the budget has no room for v1/events: it would be informer 3 of at most 2");
    assert!(
        rig.informers.acquire(&super::pods(), plugin("q"), Content::Full).is_ok(),
        "the informer exists already"
    );
    pods.synced().await;
    // The host is never refused.
    let host = rig.informers.acquire(&resource("namespaces"), Purpose::Host, Content::Metadata).unwrap();
    assert_eq!(rig.informers.budget().refusals, 1);
    drop(host);
    drop(other);
    assert!(third().is_ok());
}

#[tokio::test(start_paused = true)]
async fn no_informer_starts_while_the_caches_exceed_the_budget() {
    let mut rig = Rig::new(limits(10, 100));
    let budget = rig.informers.clone();
    rig.tasks.spawn("budget", crate::tasks::Criticality::Essential, |token| async move {
        budget.watch_budget(token).await;
    });
    fill(&rig.api(), 90);
    let small = rig.handle(Content::Metadata);
    let mut listener = listen(&small.synced().await);
    rig.api().until_watches(1).await;
    for i in 90..120 {
        rig.api().put(pod(&format!("n/{i}")));
    }
    let HostEvent::OverBudget { message, hint } = rig.event().await else { panic!("not over budget") };
    insta::assert_snapshot!(message, @"120 objects are cached, the limit is 100");
    insta::assert_snapshot!(hint, @"raise --max-objects if the host has the memory, declare metadata only, or remove other plugins");
    assert_eq!(received(&mut listener).len(), 120, "the existing informer continues");
    assert!(rig.informers.budget().over);
    let events = rig.informers.acquire(&resource("events"), plugin("q"), Content::Metadata);
    insta::assert_snapshot!(refusal(events), @"the budget has no room for v1/events: 120 objects are cached, the limit is 100");
    let full = rig.informers.acquire(&pods(), plugin("q"), Content::Full);
    insta::assert_snapshot!(refusal(full), @"the budget has no room for full objects of v1/pods: 120 objects are cached, the limit is 100");
    assert!(rig.informers.acquire(&pods(), plugin("q"), Content::Metadata).is_ok());
    for i in 0..50 {
        rig.api().delete(&format!("n/{i}"));
    }
    assert!(matches!(rig.event().await, HostEvent::WithinBudget));
    assert!(rig.informers.acquire(&resource("events"), plugin("q"), Content::Metadata).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_first_list_that_does_not_fit_is_aborted_and_tried_again_later() {
    let mut rig = Rig::new(limits(10, 1000));
    let secrets = resource("secrets");
    fill(&rig.source.api(&secrets), 500);
    let other = rig.informers.acquire(&secrets, plugin("q"), Content::Full).unwrap();
    other.synced().await;
    fill(&rig.api(), 900);
    let handle = rig.handle(Content::Full);
    let HostEvent::ResourceOverBudget { message, wanted_by, .. } = rig.event().await else {
        panic!("not over budget")
    };
    insta::assert_snapshot!(message, @"1012 objects are cached, the limit is 1000");
    assert_eq!(wanted_by, ["p"]);
    insta::assert_snapshot!(handle.waits_for().unwrap(), @"room in the budget for v1/pods: 1012 objects are cached, the limit is 1000. Fix: raise --max-objects if the host has the memory, declare metadata only, or remove other plugins");
    let usage = rig.informers.budget();
    assert_eq!((usage.objects, usage.refusals), (500, 1), "no object of the list is cached");
    let n_requests = rig.api().requests().len();
    pass(590.0).await;
    assert_eq!(rig.api().requests().len(), n_requests, "it is not tried again without room");
    let view = rig.informers.views().into_iter().find(|view| view.resource == "v1/pods").unwrap();
    assert_eq!((view.phase, view.synced), ("over-budget", false));
    assert!(rig.has_no_event());

    drop(other);
    handle.synced().await;
    assert!(matches!(rig.event().await, HostEvent::ResourceWithinBudget { .. }));
    assert_eq!(rig.informers.budget().objects, 900);
}

#[tokio::test(start_paused = true)]
async fn full_objects_that_do_not_fit_leave_the_metadata_cached() {
    let bytes = 90_000;
    let mut rig = Rig::new(Limits { bytes, ..Limits::default() });
    for i in 0..200 {
        rig.api().put(Draft::new(&format!("n/{i}")).field("spec", json!({ "padding": "x".repeat(400) })));
    }
    let small = rig.handle(Content::Metadata);
    let mut listener = listen(&small.synced().await);
    assert_eq!(received(&mut listener).len(), 200);
    settle(&rig).await;
    let full = rig.handle(Content::Full);
    assert!(matches!(rig.event().await, HostEvent::ResourceOverBudget { .. }));
    pass(100.0).await;
    assert!(
        full.synced().now_or_never().is_none() && full.waits_for().unwrap().starts_with("room in the budget")
    );
    assert!(rig.informers.budget().bytes < bytes);
    assert!(small.waits_for().is_none());
    rig.api().put(pod("n/0"));
    pass(1.0).await;
    assert_eq!(received(&mut listener).len(), 1, "the watch of metadata continues");
    assert_eq!(rig.api().n_open_watches(), 1);
    let view = &rig.informers.views()[0];
    assert_eq!((view.phase, view.content), ("watching", "metadata"));

    for i in 100..200 {
        rig.api().delete(&format!("n/{i}"));
    }
    full.synced().await;
    assert!(matches!(rig.event().await, HostEvent::ResourceWithinBudget { .. }));
}

#[tokio::test(start_paused = true)]
async fn metadata_is_listed_when_the_last_user_of_oversized_full_objects_left() {
    let mut rig = Rig::new(Limits { bytes: 60_000, ..Limits::default() });
    for i in 0..200 {
        rig.api().put(Draft::new(&format!("n/{i}")).field("spec", json!({ "padding": "x".repeat(400) })));
    }
    let full = rig.handle(Content::Full);
    assert!(matches!(rig.event().await, HostEvent::ResourceOverBudget { .. }));
    let small = rig.handle(Content::Metadata);
    drop(full);
    small.synced().await;
    assert_eq!(rig.informers.budget().objects, 200);
}

#[tokio::test(start_paused = true)]
async fn a_streamed_initial_list_that_does_not_fit_is_aborted() {
    let mut rig = Rig::streaming(limits(10, 1000));
    fill(&rig.api(), 1100);
    let handle = rig.handle(Content::Full);
    let HostEvent::ResourceOverBudget { message, .. } = rig.event().await else { panic!("not over budget") };
    insta::assert_snapshot!(message, @"1024 objects are cached, the limit is 1000");
    assert_eq!(rig.informers.budget().objects, 0);
    assert_eq!(rig.api().n_open_watches(), 0);
    for i in 0..500 {
        rig.api().delete(&format!("n/{i}"));
    }
    handle.synced().await;
    assert_eq!(rig.informers.budget().objects, 600);
    assert!(rig.api().lists().is_empty(), "no list was needed");
}

#[tokio::test(start_paused = true)]
async fn promise_4_one_plugin_alone_cannot_use_the_whole_budget() {
    let rig = Rig::new(limits(8, 1000));
    let handle = |name: &str, n: usize| {
        rig.informers.acquire(&resource(&format!("things-{n}")), plugin(name), Content::Metadata)
    };
    let mut greedy: Vec<_> = (0..6).map(|n| handle("greedy", n).unwrap()).collect();
    let refused = handle("greedy", 6);
    insta::assert_snapshot!(refusal(refused), @"the budget has no room for v1/things-6: the limit of one plugin is reached: it would be informer 7 of at most 6");
    let _good = [handle("good", 6).unwrap(), handle("good", 7).unwrap()];
    // Informers that exist cost nothing more, and shared ones do not count.
    greedy.push(handle("greedy", 3).unwrap());
    greedy.push(handle("greedy", 7).unwrap());
}
