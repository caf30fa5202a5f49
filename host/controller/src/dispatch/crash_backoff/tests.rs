use super::*;

type Backoff = CrashBackoff<&'static str, &'static str>;

fn policy() -> RetryPolicy {
    RetryPolicy { loss_tries: 3, ..RetryPolicy::default() }
}

fn take(backoff: &mut Backoff, others_are_ready: bool) -> Option<&'static str> {
    backoff.take(Instant::now(), others_are_ready, |_| true)
}

#[tokio::test(start_paused = true)]
async fn a_call_that_costs_the_instance_is_made_last_and_parked_and_its_next_version_gets_a_try() {
    let policy = policy();
    let mut backoff = Backoff::new();
    let check = |backoff: &mut Backoff, key, version| backoff.check(&key, || version, &policy);
    assert_eq!(check(&mut backoff, "a", "1"), Decision::Call);
    let loss = backoff.lost("a", "1", &policy);
    assert_eq!(loss, Loss { was_in_backoff: false, losses: 1, again_after: Some(policy.base) });
    assert_eq!(check(&mut backoff, "b", "1"), Decision::Call);
    assert_eq!(check(&mut backoff, "a", "1"), Decision::Defer);
    assert_eq!(take(&mut backoff, false), None, "its back-off has not passed");
    tokio::time::advance(policy.base).await;
    assert_eq!(take(&mut backoff, true), None, "other calls are ready");
    assert_eq!(take(&mut backoff, false), Some("a"));
    assert_eq!(take(&mut backoff, false), None, "it is being made");
    assert_eq!(backoff.lost("a", "1", &policy).again_after, Some(policy.base * 2));
    tokio::time::advance(policy.base * 2).await;
    assert_eq!(take(&mut backoff, false), Some("a"));
    let loss = backoff.lost("a", "1", &policy);
    assert_eq!(loss, Loss { was_in_backoff: true, losses: 3, again_after: None });
    assert_eq!(check(&mut backoff, "a", "1"), Decision::Park);
    assert_eq!(check(&mut backoff, "a", "2"), Decision::Defer);
    tokio::time::advance(policy.base * 4).await;
    assert_eq!(take(&mut backoff, false), Some("a"), "its next event, after its back-off");
    assert_eq!(backoff.lost("a", "2", &policy).again_after, None);
    backoff.release_parked(&policy);
    assert_eq!(check(&mut backoff, "a", "2"), Decision::Defer, "the slow timer");
    backoff.clear(&"a");
    assert!(backoff.is_empty());
    assert_eq!(check(&mut backoff, "a", "2"), Decision::Call);
}

#[tokio::test(start_paused = true)]
async fn a_call_in_backoff_is_made_after_thirty_seconds_although_others_are_ready() {
    let policy = policy();
    let mut backoff = Backoff::new();
    backoff.lost("a", "1", &policy);
    tokio::time::advance(policy.base + PATIENCE - Duration::from_millis(1)).await;
    assert_eq!(take(&mut backoff, true), None);
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(take(&mut backoff, true), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn many_calls_in_backoff_cost_no_more_instances_than_one() {
    let policy = RetryPolicy { loss_tries: u32::MAX, ..RetryPolicy::default() };
    let mut backoff = Backoff::new();
    for key in ["a", "b", "c", "d"] {
        backoff.lost(key, "1", &policy);
    }
    let began = Instant::now();
    let mut tries = 0;
    while began.elapsed() < Duration::from_secs(600) {
        if let Some(key) = take(&mut backoff, false) {
            tries += 1;
            backoff.lost(key, "1", &policy);
        }
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    assert!((20..40).contains(&tries), "{tries}");
    // The first call that is answered ends the shared pause.
    backoff.clear(&"a");
    tokio::time::advance(policy.cap).await;
    assert!(take(&mut backoff, false).is_some() && take(&mut backoff, false).is_some());
}

#[tokio::test(start_paused = true)]
async fn beyond_sixteen_waiting_calls_a_new_one_is_parked_at_its_first_loss() {
    let policy = policy();
    let mut backoff = CrashBackoff::new();
    let losses: Vec<_> = (0..100).map(|key| backoff.lost(key, "1", &policy).again_after.is_some()).collect();
    assert_eq!(losses.iter().filter(|is_tried_again| **is_tried_again).count(), MAX_WAITING);
    assert!(losses[..MAX_WAITING].iter().all(|it| *it));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_not_be_made_blocks_no_other() {
    let policy = policy();
    let mut backoff = Backoff::new();
    backoff.lost("closed", "1", &policy);
    backoff.lost("delivering", "1", &policy);
    tokio::time::advance(policy.base).await;
    let may_call = |key: &&str| *key == "delivering";
    assert_eq!(backoff.next_due(may_call), Some(Instant::now()));
    assert_eq!(backoff.take(Instant::now(), false, may_call), Some("delivering"));
    assert_eq!(backoff.next_due(may_call), None);
    backoff.forget_waiting(|_| true);
    assert!(!backoff.is_waiting(&"closed"));
    assert_eq!(backoff.check(&"closed", || "1", &policy), Decision::Defer);
}

#[tokio::test(start_paused = true)]
async fn a_parked_call_gets_one_more_try_if_it_is_selected() {
    let policy = policy();
    let mut backoff = Backoff::new();
    for key in ["a", "b", "a", "b", "a", "b"] {
        backoff.lost(key, "1", &policy);
    }
    backoff.release_those(|key| *key == "a");
    assert_eq!(backoff.check(&"a", || "1", &policy), Decision::Defer);
    assert_eq!(backoff.check(&"b", || "1", &policy), Decision::Park);
}
