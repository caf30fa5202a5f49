//! Tests of the switch between full objects and metadata.

use super::*;
use crate::informers::source_controller::NARROW_AFTER;

fn cached(handle: &InformerHandle) -> Vec<Object> {
    let indexer = handle.informer().unwrap().indexer().clone();
    indexer.keys().iter().filter_map(|key| indexer.get(key)).collect()
}

#[tokio::test(start_paused = true)]
async fn the_cache_has_metadata_until_a_user_wants_full_objects() {
    let rig = Rig::new(Limits::default());
    rig.api().put(pod("n/a"));
    let small = rig.handle(Content::Metadata);
    let mut early = listen(&small.synced().await);
    assert_eq!(received(&mut early), ["add n/a@2"]);
    assert!(!cached(&small).iter().any(is_full));
    assert_eq!(rig.informers.views()[0].content, "metadata");

    let full = rig.handle(Content::Full);
    assert_eq!(full.waits_for().unwrap(), "the full objects of v1/pods");
    assert_eq!(small.waits_for(), None);
    let mut late = listen(&full.synced().await);
    assert!(cached(&small).iter().all(is_full));
    assert_eq!(received(&mut late), ["add n/a@2"]);
    assert_eq!(received(&mut early), [""; 0], "the object did not change");
    pass(1.0).await;
    assert_eq!(rig.informers.views()[0].content, "full");
    rig.api().put(pod("n/a"));
    pass(1.0).await;
    assert_eq!(
        (received(&mut early), received(&mut late)),
        (vec!["update n/a@2→3".into()], vec!["update n/a@2→3".into()])
    );
    assert_eq!((rig.api().n_open_watches(), rig.api().watches().len()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_handle_for_full_objects_syncs_only_with_full_objects() {
    let rig = Rig::new(Limits::default());
    rig.api().put(pod("n/a"));
    let small = rig.handle(Content::Metadata);
    small.synced().await;
    rig.api().hang_list();
    let full = rig.handle(Content::Full);
    pass(200.0).await;
    assert!(full.synced().now_or_never().is_none());
    assert!(small.synced().now_or_never().is_some());
    assert!(full.waits_for().is_some());
    // The list that hangs times out.
    full.synced().await;
    assert!(cached(&full).iter().all(is_full));
}

#[tokio::test(start_paused = true)]
async fn full_objects_are_dropped_a_while_after_their_last_user_left() {
    let rig = Rig::new(Limits::default());
    rig.api().put(pod("n/a"));
    let small = rig.handle(Content::Metadata);
    let full = rig.handle(Content::Full);
    let mut listener = listen(&small.synced().await);
    full.synced().await;
    received(&mut listener);
    let n_lists = rig.api().lists().len();

    // As at a swap: one handle is dropped before the next one is acquired.
    drop(full);
    pass(NARROW_AFTER.as_secs_f64() - 1.0).await;
    let full = rig.handle(Content::Full);
    assert!(full.synced().now_or_never().is_some(), "the full objects are still cached");
    pass(NARROW_AFTER.as_secs_f64() * 2.0).await;
    assert_eq!(rig.api().lists().len(), n_lists);

    drop(full);
    pass(NARROW_AFTER.as_secs_f64() - 1.0).await;
    assert!(cached(&small).iter().all(is_full));
    pass(2.0).await;
    assert!(!cached(&small).iter().any(is_full));
    assert_eq!(rig.informers.views()[0].content, "metadata");
    assert_eq!(received(&mut listener), [""; 0]);
    rig.api().delete("n/a");
    pass(1.0).await;
    assert_eq!(received(&mut listener), ["delete n/a"]);

    // A new user gets full objects again.
    rig.api().put(pod("n/b"));
    let full = rig.handle(Content::Full);
    full.synced().await;
    assert!(cached(&full).iter().all(is_full));
    assert_eq!(received(&mut listener), ["add n/b@4"]);
}

#[tokio::test(start_paused = true)]
async fn a_user_that_comes_during_the_switch_to_metadata_gets_full_objects() {
    let rig = Rig::new(Limits::default());
    rig.api().put(pod("n/a"));
    let small = rig.handle(Content::Metadata);
    let full = rig.handle(Content::Full);
    full.synced().await;
    drop(full);
    rig.api().hang_list();
    pass(NARROW_AFTER.as_secs_f64() + 1.0).await;
    let full = rig.handle(Content::Full);
    assert!(full.synced().now_or_never().is_none());
    full.synced().await;
    assert!(cached(&small).iter().all(is_full));
}

#[tokio::test(start_paused = true)]
async fn promise_2_late_listeners_get_a_snapshot_then_changes_during_a_switch() {
    for rig in [Rig::new(Limits::default()), Rig::streaming(Limits::default())] {
        late_listeners_during_a_switch(rig).await;
    }
}

async fn late_listeners_during_a_switch(rig: Rig) {
    for i in 0..50 {
        rig.api().put(pod(&format!("n/{i}")));
    }
    let small = rig.handle(Content::Metadata);
    let mut early = listen(&small.synced().await);
    assert_eq!(received(&mut early).len(), 50);
    let mut late = Vec::new();
    for round in 0..20 {
        // Changes with and without a watch event, before, during and after the list.
        rig.api().put(pod("n/1"));
        let full = rig.handle(Content::Full);
        rig.api().put_unseen(pod("n/2"));
        if round % 2 == 0 {
            rig.api().close_watches();
        }
        let mut listener = listen(&full.synced().await);
        rig.api().put(pod("n/3"));
        pass(5.0).await;
        let first = received(&mut listener);
        assert_eq!(first.iter().filter(|line| line.starts_with("add")).count(), 50);
        late.push((listener, full));
        if round % 5 == 4 {
            late.clear();
            pass(NARROW_AFTER.as_secs_f64() + 5.0).await;
        }
    }
    // The updates of each object form a chain without gaps or repetitions.
    let mut last: HashMap<String, String> = HashMap::new();
    for line in received(&mut early) {
        let (what, versions) = line.split_once('@').unwrap();
        let (old, new) = versions.split_once('→').unwrap();
        assert!(old != new, "{line}");
        if let Some(before) = last.insert(what.to_owned(), new.to_owned()) {
            assert_eq!(before, old, "{line}");
        }
    }
    assert_eq!(last.len(), 3);
}
