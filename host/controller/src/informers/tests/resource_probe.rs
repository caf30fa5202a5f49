//! Resources that come and go.

use oarlock_informer::testing::errors;

use super::*;

/// The CustomResourceDefinition is deleted: lists answer 404, discovery does not know it.
fn take_away(rig: &Rig) {
    rig.source.hide(&pods());
    for _ in 0..100 {
        rig.api().fail_list(errors::not_found().into());
        rig.api().fail_watch(errors::not_found().into());
    }
    rig.api().close_watches();
}

fn bring_back(rig: &Rig) {
    rig.api().clear_faults();
    rig.source.show(&pods());
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_not_served_is_looked_for_until_it_is() {
    let mut rig = Rig::new(Limits::default());
    rig.source.hide(&pods());
    let handle = rig.handle(Content::Full);
    let absent = rig.event().await;
    assert!(matches!(absent, HostEvent::ResourceAbsent { wanted_by, .. } if wanted_by == ["p"]));
    assert_eq!(handle.waits_for().unwrap(), "v1/pods: the API server does not serve it (yet)");
    assert_eq!(rig.informers.views()[0].phase, "absent");
    pass(3600.0).await;
    bring_back(&rig);
    let appeared = tokio::time::Instant::now();
    handle.synced().await;
    assert!(appeared.elapsed() <= Duration::from_secs(5), "picked up within seconds");
    // An hour without it was worth one line.
    assert!(matches!(rig.event().await, HostEvent::ResourceServed { .. }));
    assert_eq!(handle.waits_for(), None);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_goes_is_a_state_and_no_loop() {
    let mut rig = Rig::new(Limits::default());
    rig.api().put(pod("n/a"));
    let handle = rig.handle(Content::Full);
    let mut listener = listen(&handle.synced().await);
    settle(&rig).await;
    // As its finalizer does it: the objects first.
    rig.api().delete("n/a");
    take_away(&rig);
    assert!(matches!(rig.event().await, HostEvent::ResourceAbsent { .. }));
    assert_eq!(told(&mut listener), ["add n/a@2", "delete n/a"]);
    let (n_requests, looks) = (rig.api().requests().len(), rig.source.0.lock().looks);
    pass(3600.0).await;
    assert_eq!(rig.api().requests().len(), n_requests, "nobody is asked for what is not there");
    assert!(rig.source.0.lock().looks - looks < 800, "and discovery every few seconds");
    assert!(rig.silence());
    let view = &rig.informers.views()[0];
    assert_eq!((view.phase, view.synced, view.objects), ("absent", true, 0));

    bring_back(&rig);
    rig.api().put(pod("n/b"));
    pass(6.0).await;
    assert!(matches!(rig.event().await, HostEvent::ResourceServed { .. }));
    assert_eq!(told(&mut listener), ["add n/b@4"]);
    rig.api().put(pod("n/b"));
    pass(1.0).await;
    assert_eq!(told(&mut listener), ["update n/b@4→5"]);
    assert_eq!(rig.informers.views()[0].phase, "watching");
}

#[tokio::test(start_paused = true)]
async fn objects_whose_resource_went_unseen_are_told_as_deleted() {
    let rig = Rig::new(Limits::default());
    rig.api().put(pod("n/a"));
    let handle = rig.handle(Content::Full);
    let mut listener = listen(&handle.synced().await);
    settle(&rig).await;
    rig.api().delete_unseen("n/a");
    take_away(&rig);
    pass(200.0).await;
    assert_eq!(told(&mut listener), ["add n/a@2", "delete n/a (unknown)"]);
    assert!(handle.synced().now_or_never().is_some());
    bring_back(&rig);
    rig.api().put(pod("n/a"));
    pass(6.0).await;
    assert_eq!(told(&mut listener), ["add n/a@4"]);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_no_longer_served_takes_no_object_away() {
    let mut rig = Rig::new(Limits::default());
    rig.api().put(pod("n/a"));
    let handle = rig.handle(Content::Full);
    let mut listener = listen(&handle.synced().await);
    settle(&rig).await;
    rig.source.0.lock().other_versions = vec!["example.com/v2".to_owned()];
    take_away(&rig);
    let HostEvent::ResourceAbsent { message, .. } = rig.event().await else { panic!("absent") };
    insta::assert_snapshot!(message, @"the API server does not serve it in this version, but as example.com/v2: the plugin has to ask for one of these");
    pass(600.0).await;
    assert_eq!(told(&mut listener), ["add n/a@2"], "the objects are there, under another name");
    // Then the other version goes too.
    rig.source.0.lock().other_versions.clear();
    assert!(matches!(rig.event().await, HostEvent::ResourceAbsent { .. }), "which is news");
    pass(60.0).await;
    assert_eq!(told(&mut listener), ["delete n/a (unknown)"]);
}

#[tokio::test(start_paused = true)]
async fn discovery_that_is_ahead_of_the_lists_makes_no_loop() {
    let rig = Rig::new(Limits::default());
    rig.api().put(pod("n/a"));
    let handle = rig.handle(Content::Full);
    let mut listener = listen(&handle.synced().await);
    settle(&rig).await;
    take_away(&rig);
    rig.source.show(&pods());
    let n_lists = rig.api().lists().len();
    pass(60.0).await;
    let n_lists = rig.api().lists().len() - n_lists;
    assert!((5..40).contains(&n_lists), "{n_lists} lists in a minute");
    bring_back(&rig);
    pass(7.0).await;
    rig.api().put(pod("n/a"));
    pass(1.0).await;
    assert_eq!(told(&mut listener), ["add n/a@2", "update n/a@2→3"], "it was there all the time");
}
