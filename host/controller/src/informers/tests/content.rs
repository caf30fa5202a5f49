//! Widening and narrowing.

use super::*;
use crate::informers::source_controller::NARROW_AFTER;

fn cached(handle: &InformerHandle) -> Vec<Object> {
    let indexer = handle.informer().unwrap().indexer().clone();
    indexer.keys().iter().filter_map(|key| indexer.get(key)).collect()
}

#[tokio::test(start_paused = true)]
async fn metadata_is_enough_until_somebody_wants_more() {
    let rig = Rig::new(Limits::default());
    rig.api().put(pod("n/a"));
    let small = rig.handle(Content::Metadata);
    let mut early = listen(&small.synced().await);
    assert_eq!(told(&mut early), ["add n/a@2"]);
    assert!(!cached(&small).iter().any(is_full));
    assert_eq!(rig.informers.views()[0].content, "metadata");

    let full = rig.handle(Content::Full);
    assert_eq!(full.waits_for().unwrap(), "the full objects of v1/pods");
    assert_eq!(small.waits_for(), None);
    let mut late = listen(&full.synced().await);
    assert!(cached(&small).iter().all(is_full));
    assert_eq!(told(&mut late), ["add n/a@2"]);
    assert_eq!(told(&mut early), [""; 0], "it has not changed");
    pass(1.0).await;
    assert_eq!(rig.informers.views()[0].content, "full");
    rig.api().put(pod("n/a"));
    pass(1.0).await;
    assert_eq!(
        (told(&mut early), told(&mut late)),
        (vec!["update n/a@2→3".into()], vec!["update n/a@2→3".into()])
    );
    assert_eq!((rig.api().n_open_watches(), rig.api().watches().len()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_full_lease_is_synced_only_with_full_objects() {
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
    // The list that hangs is given up in time.
    full.synced().await;
    assert!(cached(&full).iter().all(is_full));
}

#[tokio::test(start_paused = true)]
async fn narrows_when_nobody_has_wanted_more_for_a_while() {
    let rig = Rig::new(Limits::default());
    rig.api().put(pod("n/a"));
    let small = rig.handle(Content::Metadata);
    let full = rig.handle(Content::Full);
    let mut listener = listen(&small.synced().await);
    full.synced().await;
    told(&mut listener);
    let n_lists = rig.api().lists().len();

    // A swap: the one goes before the next one comes, or a moment after.
    drop(full);
    pass(NARROW_AFTER.as_secs_f64() - 1.0).await;
    let full = rig.handle(Content::Full);
    assert!(full.synced().now_or_never().is_some(), "they are still there");
    pass(NARROW_AFTER.as_secs_f64() * 2.0).await;
    assert_eq!(rig.api().lists().len(), n_lists);

    drop(full);
    pass(NARROW_AFTER.as_secs_f64() - 1.0).await;
    assert!(cached(&small).iter().all(is_full));
    pass(2.0).await;
    assert!(!cached(&small).iter().any(is_full));
    assert_eq!(rig.informers.views()[0].content, "metadata");
    assert_eq!(told(&mut listener), [""; 0]);
    rig.api().delete("n/a");
    pass(1.0).await;
    assert_eq!(told(&mut listener), ["delete n/a"]);

    // And wide again.
    rig.api().put(pod("n/b"));
    let full = rig.handle(Content::Full);
    full.synced().await;
    assert!(cached(&full).iter().all(is_full));
    assert_eq!(told(&mut listener), ["add n/b@4"]);
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_while_it_narrows_gets_full_objects() {
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
async fn promise_2_the_late_get_a_snapshot_and_then_the_stream_while_it_widens() {
    for rig in [Rig::new(Limits::default()), Rig::streaming(Limits::default())] {
        late_while_it_widens(rig).await;
    }
}

async fn late_while_it_widens(rig: Rig) {
    for i in 0..50 {
        rig.api().put(pod(&format!("n/{i}")));
    }
    let small = rig.handle(Content::Metadata);
    let mut early = listen(&small.synced().await);
    assert_eq!(told(&mut early).len(), 50);
    let mut late = Vec::new();
    for round in 0..20 {
        // Changes seen and unseen, before, during and after the list.
        rig.api().put(pod("n/1"));
        let full = rig.handle(Content::Full);
        rig.api().put_unseen(pod("n/2"));
        if round % 2 == 0 {
            rig.api().close_watches();
        }
        let mut listener = listen(&full.synced().await);
        rig.api().put(pod("n/3"));
        pass(5.0).await;
        let first = told(&mut listener);
        assert_eq!(first.iter().filter(|line| line.starts_with("add")).count(), 50);
        late.push((listener, full));
        if round % 5 == 4 {
            late.clear();
            pass(NARROW_AFTER.as_secs_f64() + 5.0).await;
        }
    }
    // Each object's story has no gap and says nothing twice.
    let mut last: HashMap<String, String> = HashMap::new();
    for line in told(&mut early) {
        let (what, versions) = line.split_once('@').unwrap();
        let (old, new) = versions.split_once('→').unwrap();
        assert!(old != new, "{line}");
        if let Some(before) = last.insert(what.to_owned(), new.to_owned()) {
            assert_eq!(before, old, "{line}");
        }
    }
    assert_eq!(last.len(), 3);
}
