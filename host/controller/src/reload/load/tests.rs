use std::task::Poll;

use super::*;
use futures::{StreamExt, poll};

#[tokio::test(start_paused = true)]
async fn a_cancellation_stops_a_preparation_and_nothing_is_switched() {
    let token = CancellationToken::new();
    let switch = |(), _| async { panic!("nothing was prepared") };
    let mut work = Box::pin(prepare_and_switch::<_, (), _>(&token, std::future::pending(), switch));
    assert!(poll!(&mut work).is_pending());
    token.cancel();
    assert_eq!(work.await, None);
    // Also at its very end.
    let token = CancellationToken::new();
    let prepare = async { token.cancel() };
    let switch = |(), _| async { panic!("it is cancelled") };
    assert_eq!(prepare_and_switch::<_, (), _>(&token, prepare, switch).await, None);
}

#[tokio::test(start_paused = true)]
async fn promise_6_a_switch_that_has_begun_is_not_stopped_by_a_cancellation() {
    let token = CancellationToken::new();
    let (quarantined, wait_for_quarantine) = oneshot::channel();
    let (switched, wait_for_switch) = oneshot::channel();
    // As in a roll-back: the version is put in quarantine, then the dispatcher switches.
    let switch = |prepared, token: CancellationToken| async move {
        wait_for_quarantine.await.unwrap();
        let is_sent = !token.is_cancelled();
        wait_for_switch.await.unwrap();
        (prepared, is_sent, token.is_cancelled())
    };
    let mut work = Box::pin(prepare_and_switch(&token, async { "the version before" }, switch));
    assert!(poll!(&mut work).is_pending());
    token.cancel();
    assert!(poll!(&mut work).is_pending(), "it waits until the quarantine is on disk");
    quarantined.send(()).unwrap();
    assert!(poll!(&mut work).is_pending(), "it waits for the dispatcher");
    switched.send(()).unwrap();
    assert_eq!(poll!(&mut work), Poll::Ready(Some(("the version before", true, false))));
}

#[tokio::test]
async fn promise_6_a_switch_that_the_dispatcher_has_not_taken_yet_is_not_stopped_by_a_cancellation() {
    let (sender, mut switches) = mpsc::channel(0);
    let token = CancellationToken::new();
    let (done, switched) = oneshot::channel();
    let mut passing = Box::pin(pass(&sender, "a switch", switched, &token));
    assert!(poll!(&mut passing).is_pending());
    token.cancel();
    assert!(poll!(&mut passing).is_pending(), "the dispatcher may make it");
    assert_eq!(switches.next().await, Some("a switch"));
    done.send(()).unwrap();
    assert!(passing.await);
    // Before the begin, and without a dispatcher that answers, nothing is switched.
    assert!(!pass(&sender, "too late", oneshot::channel().1, &token).await);
    assert!(switches.try_recv().is_err(), "it was not passed");
    let token = CancellationToken::new();
    let (done, switched) = oneshot::channel();
    let mut passing = Box::pin(pass(&sender, "a switch", switched, &token));
    assert!(poll!(&mut passing).is_pending());
    drop((done, switches));
    assert!(!passing.await, "the dispatcher has ended");
    assert!(!pass(&sender, "another", oneshot::channel().1, &token).await);
}
