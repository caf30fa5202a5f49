//! Tests of resources that are not served, or no longer.

use oarlock_informer::testing::errors;

use super::*;

/// Deletes the CustomResourceDefinition: lists answer 404, discovery does not have it.
fn remove_resource(rig: &Rig) {
    rig.source.hide(&pods());
    for _ in 0..100 {
        rig.api().fail_list(errors::not_found().into());
        rig.api().fail_watch(errors::not_found().into());
    }
    rig.api().close_watches();
}

/// Creates the CustomResourceDefinition again.
fn restore_resource(rig: &Rig) {
    rig.api().clear_faults();
    rig.source.show(&pods());
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_not_served_is_probed_until_it_is() {
    let mut rig = Rig::new(Limits::default());
    rig.source.hide(&pods());
    let handle = rig.handle(Content::Full);
    let absent = rig.event().await;
    assert!(matches!(absent, HostEvent::ResourceAbsent { wanted_by, .. } if wanted_by == ["p"]));
    assert_eq!(handle.waits_for().unwrap(), "v1/pods: the API server does not serve it");
    assert_eq!(rig.informers.views()[0].phase, "absent");
    pass(3600.0).await;
    restore_resource(&rig);
    let appeared = tokio::time::Instant::now();
    handle.synced().await;
    assert!(appeared.elapsed() <= Duration::from_secs(5), "the next probe is at most seconds away");
    // The hour before was reported with one line.
    assert!(matches!(rig.event().await, HostEvent::ResourceServed { .. }));
    assert_eq!(handle.waits_for(), None);
}

#[tokio::test(start_paused = true)]
async fn an_absent_resource_is_reported_with_the_closest_one_that_is_served() {
    let mut rig = Rig::new(Limits::default());
    rig.source.hide(&pods());
    rig.source.0.lock().similar = Some(GroupVersionResource::new("apps", "v1", "deployments"));
    let _handle = rig.handle(Content::Full);
    let HostEvent::ResourceAbsent { message, .. } = rig.event().await else { panic!("absent") };
    assert_eq!(message, "the API server does not serve it (did you mean apps/v1/deployments?)");
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_deleted_is_reported_once_and_probed_slowly() {
    let mut rig = Rig::new(Limits::default());
    rig.api().put(pod("n/a"));
    let handle = rig.handle(Content::Full);
    let mut listener = listen(&handle.synced().await);
    settle(&rig).await;
    // As the finalizer of a CustomResourceDefinition does it: the objects are deleted first.
    rig.api().delete("n/a");
    remove_resource(&rig);
    assert!(matches!(rig.event().await, HostEvent::ResourceAbsent { .. }));
    assert_eq!(received(&mut listener), ["add n/a@2", "delete n/a"]);
    let (n_requests, n_probes) = (rig.api().requests().len(), rig.source.0.lock().n_probes);
    pass(3600.0).await;
    assert_eq!(rig.api().requests().len(), n_requests, "an absent resource is neither listed nor watched");
    assert!(rig.source.0.lock().n_probes - n_probes < 800, "discovery is asked every few seconds");
    assert!(rig.has_no_event());
    let view = &rig.informers.views()[0];
    assert_eq!((view.phase, view.synced, view.objects), ("absent", true, 0));

    restore_resource(&rig);
    rig.api().put(pod("n/b"));
    pass(6.0).await;
    assert!(matches!(rig.event().await, HostEvent::ResourceServed { .. }));
    assert_eq!(received(&mut listener), ["add n/b@4"]);
    rig.api().put(pod("n/b"));
    pass(1.0).await;
    assert_eq!(received(&mut listener), ["update n/b@4→5"]);
    assert_eq!(rig.informers.views()[0].phase, "watching");
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_resource_that_is_gone_for_long_are_delivered_as_deleted() {
    let rig = Rig::new(Limits::default());
    rig.api().put(pod("n/a"));
    let handle = rig.handle(Content::Full);
    let mut listener = listen(&handle.synced().await);
    settle(&rig).await;
    rig.api().delete_unseen("n/a");
    remove_resource(&rig);
    pass(200.0).await;
    assert_eq!(received(&mut listener), ["add n/a@2", "delete n/a (unknown)"]);
    assert!(handle.synced().now_or_never().is_some());
    restore_resource(&rig);
    rig.api().put(pod("n/a"));
    pass(6.0).await;
    assert_eq!(received(&mut listener), ["add n/a@4"]);
}

#[tokio::test(start_paused = true)]
async fn objects_stay_cached_while_another_version_serves_the_resource() {
    let mut rig = Rig::new(Limits::default());
    rig.api().put(pod("n/a"));
    let handle = rig.handle(Content::Full);
    let mut listener = listen(&handle.synced().await);
    settle(&rig).await;
    rig.source.0.lock().other_versions = vec!["example.com/v2".to_owned()];
    remove_resource(&rig);
    let HostEvent::ResourceAbsent { message, hint, .. } = rig.event().await else { panic!("absent") };
    insta::assert_snapshot!(message, @"the API server does not serve this version, but example.com/v2");
    assert_eq!(hint, "declare one of these versions in the plugin");
    pass(600.0).await;
    assert_eq!(received(&mut listener), ["add n/a@2"], "another version still serves the objects");
    // Then the other version is removed too.
    rig.source.0.lock().other_versions.clear();
    assert!(matches!(rig.event().await, HostEvent::ResourceAbsent { .. }), "the new message is reported");
    pass(60.0).await;
    assert_eq!(received(&mut listener), ["delete n/a (unknown)"]);
}

#[tokio::test(start_paused = true)]
async fn discovery_that_is_ahead_of_the_lists_causes_no_busy_loop() {
    let rig = Rig::new(Limits::default());
    rig.api().put(pod("n/a"));
    let handle = rig.handle(Content::Full);
    let mut listener = listen(&handle.synced().await);
    settle(&rig).await;
    remove_resource(&rig);
    rig.source.show(&pods());
    let n_lists = rig.api().lists().len();
    pass(60.0).await;
    let n_lists = rig.api().lists().len() - n_lists;
    assert!((5..40).contains(&n_lists), "{n_lists} lists in a minute");
    restore_resource(&rig);
    pass(7.0).await;
    rig.api().put(pod("n/a"));
    pass(1.0).await;
    assert_eq!(
        received(&mut listener),
        ["add n/a@2", "update n/a@2→3"],
        "the object was cached all the time"
    );
}
