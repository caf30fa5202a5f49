use std::time::Duration;

use super::rig::{Rig, done, retry};

#[tokio::test(start_paused = true)]
async fn promise_6_another_version_receives_everything_again() {
    let rig = Rig::new(&["n/a", "n/b"]).await;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    rig.serve(|_| done()).await;
    assert_eq!(
        rig.until_times("synced 0", 2).await,
        ["add a@2", "add b@3", "synced 0", "add a@2", "add b@3", "synced 0"]
    );
    assert_eq!(rig.status().generation, 2);
}

#[tokio::test(start_paused = true)]
async fn promise_6_a_stateless_version_takes_over_the_backlog() {
    let mut rig = Rig::new(&["n/a", "n/b"]).await;
    rig.stateless = true;
    rig.serve(|call| if call.text == "add b@3" { retry() } else { done() }).await;
    rig.until("add b@3").await;
    rig.serve(|_| done()).await;
    assert_eq!(rig.until("synced 0").await, ["add a@2", "add b@3", "add b@3", "synced 0"]);
}

#[tokio::test(start_paused = true)]
async fn promise_6_a_delete_that_the_old_version_did_not_handle_reaches_the_new_one() {
    let rig = Rig::new(&["n/a", "n/b"]).await;
    rig.serve(|call| if call.text.starts_with("delete") { retry() } else { done() }).await;
    rig.until("synced 0").await;
    rig.api.delete("n/a");
    rig.until("delete a@4").await;
    rig.serve(|_| done()).await;
    let received = rig.until_times("synced 0", 2).await;
    assert_eq!(received[4..], ["delete a@4", "add b@3", "synced 0"]);
}

#[tokio::test(start_paused = true)]
async fn promise_6_a_delete_reaches_the_new_version_when_the_subscription_changed() {
    let mut rig = Rig::new(&["n/a", "n/b"]).await;
    rig.serve(|call| if call.text.starts_with("delete") { retry() } else { done() }).await;
    rig.until("synced 0").await;
    rig.api.delete("n/a");
    rig.until("delete a@4").await;
    rig.selector = "!nothing";
    rig.serve(|_| done()).await;
    let received = rig.until_times("synced 0", 2).await;
    assert_eq!(received[4..], ["delete a@4", "add b@3", "synced 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_version_swap_ends_a_crash_loop() {
    let rig = Rig::new(&["n/a"]).await;
    rig.serve(|_| super::rig::trap()).await;
    rig.pass(Duration::from_secs(600)).await;
    let before = rig.received().iter().filter(|it| *it == "synced 0").count();
    rig.serve(|_| done()).await;
    let received = rig.until_times("synced 0", before + 1).await;
    assert_eq!(received[received.len() - 2..], ["add a@2", "synced 0"]);
}
