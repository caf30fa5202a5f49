use super::*;

fn policy() -> RetryPolicy {
    RetryPolicy { loss_tries: 3, ..RetryPolicy::default() }
}

fn take(suspects: &mut Suspects<&'static str>, healthy_is_ready: bool) -> Option<&'static str> {
    suspects.take(Instant::now(), healthy_is_ready, |_| true)
}

#[tokio::test(start_paused = true)]
async fn a_breaker_is_tried_last_and_parked_and_its_next_version_gets_a_try() {
    let policy = policy();
    let mut suspects = Suspects::new();
    assert_eq!(suspects.judge(&"a", "1", &policy), Verdict::Call);
    let loss = suspects.lost(&"a", "1", &policy);
    assert_eq!(loss, Loss { was_suspect: false, losses: 1, again_after: Some(policy.base) });
    assert_eq!(suspects.judge(&"b", "1", &policy), Verdict::Call);
    assert_eq!(suspects.judge(&"a", "1", &policy), Verdict::Defer);
    assert_eq!(take(&mut suspects, false), None, "its back-off has not passed");
    tokio::time::advance(policy.base).await;
    assert_eq!(take(&mut suspects, true), None, "something healthy is ready");
    assert_eq!(take(&mut suspects, false), Some("a"));
    assert_eq!(take(&mut suspects, false), None, "it is being tried");
    assert_eq!(suspects.lost(&"a", "1", &policy).again_after, Some(policy.base * 2));
    tokio::time::advance(policy.base * 2).await;
    assert_eq!(take(&mut suspects, false), Some("a"));
    let loss = suspects.lost(&"a", "1", &policy);
    assert_eq!(loss, Loss { was_suspect: true, losses: 3, again_after: None });
    assert_eq!(suspects.judge(&"a", "1", &policy), Verdict::Park);
    assert_eq!(suspects.judge(&"a", "2", &policy), Verdict::Defer);
    tokio::time::advance(policy.base * 4).await;
    assert_eq!(take(&mut suspects, false), Some("a"), "its next event, after its back-off");
    assert_eq!(suspects.lost(&"a", "2", &policy).again_after, None);
    suspects.release_parked(&policy);
    assert_eq!(suspects.judge(&"a", "2", &policy), Verdict::Defer, "the slow timer");
    suspects.clear(&"a");
    assert!(suspects.is_empty());
    assert_eq!(suspects.judge(&"a", "2", &policy), Verdict::Call);
}

#[tokio::test(start_paused = true)]
async fn a_suspect_is_not_starved_for_ever() {
    let policy = policy();
    let mut suspects = Suspects::new();
    suspects.lost(&"a", "1", &policy);
    tokio::time::advance(policy.base + PATIENCE - Duration::from_millis(1)).await;
    assert_eq!(take(&mut suspects, true), None);
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(take(&mut suspects, true), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn many_suspects_cost_no_more_instances_than_one() {
    let policy = RetryPolicy { loss_tries: u32::MAX, ..RetryPolicy::default() };
    let mut suspects = Suspects::new();
    for key in ["a", "b", "c", "d"] {
        suspects.lost(&key, "1", &policy);
    }
    let began = Instant::now();
    let mut tries = 0;
    while began.elapsed() < Duration::from_secs(600) {
        if let Some(key) = take(&mut suspects, false) {
            tries += 1;
            suspects.lost(&key, "1", &policy);
        }
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    assert!((20..40).contains(&tries), "{tries}");
    // The first that is answered ends it.
    suspects.clear(&"a");
    tokio::time::advance(policy.cap).await;
    assert!(take(&mut suspects, false).is_some() && take(&mut suspects, false).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_crowd_of_suspects_is_parked_at_once() {
    let policy = policy();
    let mut suspects = Suspects::new();
    let losses: Vec<_> =
        (0..100).map(|key| suspects.lost(&key, "1", &policy).again_after.is_some()).collect();
    assert_eq!(losses.iter().filter(|is_tried_again| **is_tried_again).count(), MAX_WAITING);
    assert!(losses[..MAX_WAITING].iter().all(|it| *it));
}

#[tokio::test(start_paused = true)]
async fn a_suspect_that_may_not_be_tried_holds_up_no_other() {
    let policy = policy();
    let mut suspects = Suspects::new();
    suspects.lost(&"shut", "1", &policy);
    suspects.lost(&"open", "1", &policy);
    tokio::time::advance(policy.base).await;
    let is_open = |key: &&str| *key == "open";
    assert_eq!(suspects.next_due(is_open), Some(Instant::now()));
    assert_eq!(suspects.take(Instant::now(), false, is_open), Some("open"));
    assert_eq!(suspects.next_due(is_open), None);
    suspects.forget_waiting(|_| true);
    assert!(!suspects.is_waiting(&"shut"));
    assert_eq!(suspects.judge(&"shut", "1", &policy), Verdict::Defer);
}
