use std::time::Duration;

use oarlock_plugin::CallError;

use super::rig::{Rig, done, trap};
use crate::report::HostEvent;
use crate::status::Phase;

#[tokio::test(start_paused = true)]
async fn promise_3_a_fresh_instance_receives_everything_after_a_trap() {
    let rig = Rig::new(&["n/a", "n/b", "n/c"]).await;
    rig.serve(|call| if call.text == "add b@3" && call.n_before == 0 { trap() } else { done() }).await;
    let received = rig.until("synced 0").await;
    // The fresh instance knows nothing, and receives everything.
    assert_eq!(received[..2], ["add a@2", "add b@3"]);
    let second: Vec<_> = rig.calls().into_iter().filter(|it| it.instance == 2).map(|it| it.text).collect();
    assert_eq!(second, ["add a@2", "add c@4", "add b@3", "synced 0"]);
    let status = rig.status();
    assert_eq!((status.phase, status.instances_lost), (Phase::Serving, 1));
}

#[tokio::test(start_paused = true)]
async fn promise_3_a_stateless_plugin_continues_where_it_was_after_a_trap() {
    let mut rig = Rig::new(&["n/a", "n/b", "n/c"]).await;
    rig.stateless = true;
    rig.serve(|call| if call.text == "add b@3" && call.n_before == 0 { trap() } else { done() }).await;
    assert_eq!(rig.until("synced 0").await, ["add a@2", "add b@3", "add c@4", "add b@3", "synced 0"]);
    assert_eq!(rig.instances(), 2);
}

#[tokio::test(start_paused = true)]
async fn promise_3_a_delete_that_trapped_is_delivered_again() {
    let rig = Rig::new(&["n/a", "n/b"]).await;
    rig.serve(|call| if call.text.starts_with("delete") && call.n_before == 0 { trap() } else { done() })
        .await;
    rig.until("synced 0").await;
    rig.api.delete("n/a");
    let received = rig.until_times("delete a@4", 2).await;
    assert!(received.contains(&"add b@3".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn promise_4_an_object_that_always_traps_is_parked_and_the_others_are_served() {
    let rig = Rig::new(&["n/a", "n/b", "n/c"]).await;
    rig.serve(|call| if call.text.starts_with("add a") { trap() } else { done() }).await;
    rig.until("synced 0").await;
    let status = rig.status();
    assert_eq!(status.subscriptions[0].backlog.parked, 1);
    assert_eq!(status.instances_lost, 3);
    // The plugin is called as before from now on.
    rig.api.put("n/b");
    rig.api.put("n/d");
    rig.until("add d@6").await;
    let calls = rig.calls();
    assert_eq!(calls.iter().filter(|it| it.text.starts_with("add a")).count(), 3);
    assert!(calls.iter().any(|it| it.text == "update b@3-5" && it.instance == 4));
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_plugin_that_always_traps_gets_few_instances() {
    let pods: Vec<_> = (0..50).map(|n| format!("n/p{n}")).collect();
    let rig = Rig::new(&pods.iter().map(String::as_str).collect::<Vec<_>>()).await;
    rig.serve(|_| trap()).await;
    rig.pass(Duration::from_secs(3600)).await;
    // The first at once, then after 0.5 s, 1 s and so on up to 4 s; after the tenth in a row up to five
    // minutes.
    assert!((10..30).contains(&rig.instances()), "{} instances in an hour", rig.instances());
    assert_eq!(rig.status().phase, Phase::Restarting);
}

#[tokio::test(start_paused = true)]
async fn promise_4_an_on_synced_that_always_traps_is_parked() {
    let rig = Rig::new(&["n/a"]).await;
    rig.serve(|call| if call.text.starts_with("synced") { trap() } else { done() }).await;
    rig.pass(Duration::from_secs(120)).await;
    assert_eq!(rig.calls().iter().filter(|it| it.text == "synced 0").count(), 3);
    rig.api.put("n/a");
    rig.until("update a@2-3").await;
}

/// The status is on pages for every user of the machine, and in objects. The output may quote secrets.
#[tokio::test(start_paused = true)]
async fn the_output_of_a_guest_before_a_trap_is_in_its_log_and_not_in_its_status() {
    let mut rig = Rig::new(&["n/a"]).await;
    rig.serve(|call| match (call.text.as_str(), call.n_before) {
        ("add a@2", 0) => Err(CallError::Trap {
            message: "unreachable".to_owned(),
            output: "cannot log in token=canary-88e1".to_owned(),
            backtrace: String::new(),
        }),
        _ => done(),
    })
    .await;
    rig.until("synced 0").await;
    insta::assert_snapshot!(rig.status().last_error.unwrap().message, @"on-add of pods n/a: the guest trapped: unreachable. `oarlock logs p` shows the last output of the guest");
    let lost = rig.lines().find_map(|line| match line.event {
        HostEvent::InstanceLost { output, .. } => Some(output),
        _ => None,
    });
    assert_eq!(lost.as_deref(), Some("cannot log in token=canary-88e1"));
}
