//! The order between objects: new work goes before initial adds.

use super::*;

/// Returns a listener with the initial adds of this many objects.
fn late_listener(bench: &mut Bench, n_objects: u32) -> Listener {
    bench.relist((0..n_objects).map(|n| object(&format!("old-{n:02}"), 1)).collect());
    bench.version = 1;
    bench.listener()
}

#[tokio::test(start_paused = true)]
async fn new_work_goes_before_initial_adds_but_no_object_overtakes_itself() {
    let mut bench = Bench::new();
    let mut listener = late_listener(&mut bench, 4);
    bench.put("old-02");
    bench.put("new");
    bench.delete("old-03");
    assert_eq!(
        drain(&mut listener),
        [
            "add old-02@1 (initial)",
            "add old-03@1 (initial)",
            "update old-02@1→2",
            "add new@3",
            // The fifth is an initial add.
            "add old-00@1 (initial)",
            "delete old-03@4",
            "add old-01@1 (initial)",
        ]
    );
    assert!(listener.has_synced());
}

#[tokio::test(start_paused = true)]
async fn initial_adds_do_not_starve_while_new_work_never_ends() {
    let mut bench = Bench::new();
    let mut listener = late_listener(&mut bench, 10);
    let mut received = Vec::new();
    for n in 0..60 {
        // Two new ones for each delivery.
        bench.put(&*format!("new-{n}"));
        bench.put(&*format!("other-{n}"));
        let delivery = take(&mut listener).unwrap();
        received.push(outline(&delivery.notification));
        listener.finish(&delivery.key, Outcome::Done);
        let n_initial = received.iter().filter(|it| it.ends_with("(initial)")).count();
        assert_eq!(n_initial, (received.len() / 5).min(10), "{received:?}");
        assert_eq!(listener.has_synced(), n_initial == 10, "synced after all initial adds, and not before");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_initial_add_stays_behind_new_work_until_it_is_merged() {
    let mut bench = Bench::new();
    let mut listener = late_listener(&mut bench, 2);
    let delivery = take(&mut listener).unwrap();
    assert_eq!(outline(&delivery.notification), "add old-00@1 (initial)");
    listener.finish(&delivery.key, Outcome::Retry { after: Duration::ZERO });
    bench.put("new");
    assert_eq!(peek(&mut listener), "add new@2");
    bench.put("old-00");
    assert_eq!(peek(&mut listener), "add old-00@3 (initial)", "merged with the update");
    assert_eq!(peek(&mut listener), "add old-01@1 (initial)");
}

#[tokio::test(start_paused = true)]
async fn a_change_during_a_replay_goes_before_the_replayed_objects() {
    let mut bench = Bench::new();
    let mut listener = late_listener(&mut bench, 3);
    drain(&mut listener);
    listener.replay();
    bench.put("new");
    assert_eq!(peek(&mut listener), "add new@2");
    assert_eq!(peek(&mut listener), "add old-00@1 (initial)");
}

#[tokio::test(start_paused = true)]
async fn promise_7_an_initial_add_has_no_queue_until_it_is_taken_or_its_object_changes() {
    let mut bench = Bench::new();
    let mut listener = late_listener(&mut bench, 50);
    let capacity = |listener: &Listener| listener.shared.state.lock().backlog.capacity();
    assert_eq!((capacity(&listener), listener.stats().pending), (0, 50));
    bench.put("old-07");
    let delivery = take(&mut listener).unwrap();
    assert_eq!(outline(&delivery.notification), "add old-07@1 (initial)");
    assert!(capacity(&listener) < 10);
    listener.finish(&delivery.key, Outcome::Done);
    let received = drain(&mut listener);
    assert_eq!((received.len(), &*received[0]), (50, "update old-07@1→2"));
    assert!(capacity(&listener) < 10 && listener.has_synced());
}

#[tokio::test(start_paused = true)]
async fn a_replay_finds_objects_with_a_queue_and_others() {
    let mut bench = Bench::new();
    let mut listener = late_listener(&mut bench, 50);
    drain(&mut listener);
    bench.put("old-03");
    let before = take(&mut listener).unwrap();
    listener.replay();
    bench.put("old-05");
    bench.delete("old-04");
    assert_eq!(listener.stats().pending, 52);
    listener.finish(&before.key, Outcome::Done);
    let received = drain(&mut listener);
    assert_eq!(received[..2], ["add old-04@1 (initial)", "add old-05@1 (initial)"]);
    let position = |what: &str| received.iter().position(|it| it == what);
    assert_eq!(position("add old-03@2 (initial)"), position("add old-02@1 (initial)").map(|it| it + 1));
    assert_eq!(received.len(), 52);
    assert!(listener.has_synced());
}
