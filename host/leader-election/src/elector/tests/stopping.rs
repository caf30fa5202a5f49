//! Releasing a lease.

use super::*;

// Conformance: 38.4, 38.5
#[tokio::test(start_paused = true)]
async fn release_clears_the_holder_le_13() {
    let lease = MemoryLease::new();
    // The candidate holds the lease already, from before a restart with the same identity.
    lease.set(Some(held_by("one")));
    let one = elector(&lease, "one", RELEASING);
    let log = CallbackLog::default();
    assert_eq!(one.attempt(false).await, Attempt::Holding);
    one.report_holder(&log);
    assert!(one.release().await);
    one.report_holder(&log);
    assert_eq!(lease.calls(), ["get", "update", "get", "update"], "it looks before it releases");
    let record = lease.record();
    assert_eq!((record.holder_identity.as_str(), record.lease_duration_seconds), ("", 1));
    assert_eq!(record.leader_transitions, 0);
    assert!(record.renew_time.is_some() && record.acquire_time.is_some());
    assert_eq!(one.leader(), "");
    assert_eq!(log.lines(), ["leader \"one\"", "leader \"\""]);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_leader_releases_and_the_next_candidate_leads_le_13() {
    let lease = MemoryLease::new();
    let mut one = Running::start(elector(&lease, "one", RELEASING));
    pass(secs(1)).await;
    let mut two = Running::start(elector(&lease, "two", RELEASING));
    pass(secs(10)).await;
    lease.calls();
    one.token.cancel();
    assert_eq!(one.ended().await, Ended::Stopped);
    assert_eq!(
        one.log.lines(),
        ["leader \"one\"", "started", "stopped", "cancelled", "ended", "leader \"\""]
    );
    pass(Duration::from_millis(4_500)).await;
    assert_eq!(
        two.log.lines(),
        ["leader \"one\"", "leader \"two\"", "started"],
        "one retry period later at most"
    );
    assert_eq!(lease.record().leader_transitions, 1, "LE-10");
    two.token.cancel();
    two.ended().await;
    // Acquiring its own released lease counts as a new term (LE-10).
    let mut two = Running::start(elector(&lease, "two", RELEASING));
    pass(secs(1)).await;
    assert_eq!(lease.record().leader_transitions, 2);
    two.token.cancel();
    two.ended().await;
}

#[tokio::test(start_paused = true)]
async fn the_work_ends_before_the_lease_is_released_le_14() {
    let lease = MemoryLease::new();
    let log = CallbackLog { ending: secs(4), ..CallbackLog::default() };
    let mut one = Running::start_with(elector(&lease, "one", RELEASING), log);
    pass(secs(1)).await;
    one.token.cancel();
    pass(Duration::from_millis(3_900)).await;
    assert_eq!(one.log.lines()[2..], ["stopped", "cancelled"], "log without waiting for the work");
    assert_eq!(lease.record().holder_identity, "one", "the work goes on, so the lease is kept");
    pass(Duration::from_millis(200)).await;
    assert_eq!(one.ended().await, Ended::Stopped);
    assert_eq!(lease.record().holder_identity, "");
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_not_released_le_13() {
    let lease = MemoryLease::new();
    let log = CallbackLog { ending: Duration::from_millis(1500), ..CallbackLog::default() };
    let mut one = Running::start_with(elector(&lease, "one", RELEASING), log);
    pass(secs(1)).await;
    lease.on_call(|_, call| Fault { refused: call == "update", ..Fault::default() });
    pass(secs(11)).await;
    assert_eq!(one.log.lines()[2..], ["stopped", "cancelled"]);
    lease.on_call(|_, _| Fault::default());
    lease.calls();
    pass(secs(2)).await;
    assert_eq!(one.ended().await, Ended::Lost);
    assert_eq!(lease.record().holder_identity, "one", "others wait until it expires");
    assert!(lease.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_end_is_dropped_when_the_lease_expires() {
    let lease = MemoryLease::new();
    let log = CallbackLog { ending: secs(86_400), ..CallbackLog::default() };
    let mut one = Running::start_with(elector(&lease, "one", RELEASING), log);
    pass(secs(1)).await;
    one.token.cancel();
    lease.calls();
    pass(secs(13)).await;
    assert!(!one.has_ended());
    pass(secs(2)).await;
    assert_eq!(one.ended().await, Ended::Stopped);
    assert!(lease.calls().is_empty(), "the lease is no longer ours to give back");
}

#[tokio::test(start_paused = true)]
async fn release_uses_the_holder_in_the_api_server_le_14() {
    let lease = MemoryLease::new();
    let one = elector(&lease, "one", RELEASING);
    assert_eq!(one.attempt(false).await, Attempt::Holding);
    lease.set(Some(held_by("two")));
    assert!(one.is_leader(), "as far as it knows");
    lease.calls();
    assert!(one.release().await);
    assert_eq!(lease.calls(), ["get"]);
    assert_eq!(lease.record().holder_identity, "two");
    lease.set(None);
    assert!(one.release().await, "there is nothing to give back");
}

#[tokio::test(start_paused = true)]
async fn a_release_retries_conflicts_and_has_a_timeout_le_13() {
    let lease = MemoryLease::new();
    let one = elector(&lease, "one", RELEASING);
    assert_eq!(one.attempt(false).await, Attempt::Holding);
    let other = lease.clone();
    let (released, ()) = {
        lease.on_call(|_, call| {
            let delay = if call == "update" { Duration::from_millis(100) } else { Duration::ZERO };
            Fault { delay, ..Fault::default() }
        });
        tokio::join!(one.release(), async {
            sleep(Duration::from_millis(50)).await;
            other.set(Some(other.record()));
        })
    };
    assert!(released);
    assert_eq!(lease.record().holder_identity, "");

    assert_eq!(one.attempt(false).await, Attempt::Holding);
    lease.on_call(|_, _| Fault { delay: secs(86_400), ..Fault::default() });
    let began = Instant::now();
    assert!(!one.release().await);
    assert!(began.elapsed() <= USUAL.renew_deadline + secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_candidate_sends_no_request_le_04() {
    let lease = MemoryLease::new();
    let one = elector(&lease, "one", RELEASING);
    let (log, token) = (CallbackLog::default(), CancellationToken::new());
    token.cancel();
    assert_eq!(one.run(&log, token).await, Ended::NeverLed);
    assert!(lease.calls().is_empty());
    assert_eq!(log.lines(), ["stopped"]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_election_cancels_the_work_le_12() {
    let lease = MemoryLease::new();
    let one = elector(&lease, "one", RELEASING);
    let log = CallbackLog::default();
    let leads = Mutex::new(None);
    struct Catch<'a>(&'a CallbackLog, &'a Mutex<Option<CancellationToken>>);
    #[async_trait]
    impl Callbacks for Catch<'_> {
        async fn on_started_leading(&self, leading: CancellationToken) {
            *self.1.lock() = Some(leading);
        }
        fn on_stopped_leading(&self) {
            self.0.on_stopped_leading();
        }
    }
    let catch = Catch(&log, &leads);
    let token = CancellationToken::new();
    let mut run = Box::pin(one.run(&catch, token.clone()));
    assert!((&mut run).now_or_never().is_none());
    assert!(timeout(secs(60), &mut run).await.is_err(), "work that returns does not end leadership");
    let leading = leads.lock().clone().unwrap();
    assert!(!leading.is_cancelled());
    drop(run);
    assert!(leading.is_cancelled());
    assert_eq!(log.lines(), ["stopped"]);
}
