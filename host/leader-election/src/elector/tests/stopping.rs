//! How a lease is given back.

use super::*;

// Conformance: 38.4, 38.5
#[tokio::test(start_paused = true)]
async fn release_gives_back_what_was_acquired() {
    let lease = MemoryLease::new();
    // Ours already, from before a restart under the same name.
    lease.set(Some(held_by("one")));
    let one = elector(&lease, "one", RELEASING);
    let told = Told::default();
    assert_eq!(one.attempt(false).await, Attempt::Holding);
    one.tell(&told);
    assert!(one.release().await);
    one.tell(&told);
    assert_eq!(lease.calls(), ["get", "update", "get", "update"], "it looks before it releases");
    let record = lease.record();
    assert_eq!((record.holder_identity.as_str(), record.lease_duration_seconds), ("", 1));
    assert_eq!(record.leader_transitions, 0);
    assert!(record.renew_time.is_some() && record.acquire_time.is_some());
    assert_eq!(one.leader(), "");
    assert_eq!(told.lines(), ["leader \"one\"", "leader \"\""]);
}

#[tokio::test(start_paused = true)]
async fn who_stops_gives_back_and_the_next_one_begins_le_13() {
    let lease = MemoryLease::new();
    let mut one = Running::start(elector(&lease, "one", RELEASING));
    pass(secs(1)).await;
    let mut two = Running::start(elector(&lease, "two", RELEASING));
    pass(secs(10)).await;
    lease.calls();
    one.token.cancel();
    assert_eq!(one.ended().await, Ended::Stopped);
    assert_eq!(
        one.told.lines(),
        ["leader \"one\"", "started", "stopped", "cancelled", "ended", "leader \"\""]
    );
    pass(Duration::from_millis(4_500)).await;
    assert_eq!(
        two.told.lines(),
        ["leader \"one\"", "leader \"two\"", "started"],
        "one retry period later at most"
    );
    assert_eq!(lease.record().leader_transitions, 1, "LE-10");
    two.token.cancel();
    two.ended().await;
    // The same again: its own lease, given back, counts as another term (LE-10).
    let mut two = Running::start(elector(&lease, "two", RELEASING));
    pass(secs(1)).await;
    assert_eq!(lease.record().leader_transitions, 2);
    two.token.cancel();
    two.ended().await;
}

#[tokio::test(start_paused = true)]
async fn the_work_is_cancelled_and_over_before_the_lease_is_given_back_le_14() {
    let lease = MemoryLease::new();
    let told = Told { ending: secs(4), ..Told::default() };
    let mut one = Running::start_with(elector(&lease, "one", RELEASING), told);
    pass(secs(1)).await;
    one.token.cancel();
    pass(Duration::from_millis(3_900)).await;
    assert_eq!(one.told.lines()[2..], ["stopped", "cancelled"], "told without waiting for the work");
    assert_eq!(lease.record().holder_identity, "one", "the work goes on, so the lease is kept");
    pass(Duration::from_millis(200)).await;
    assert_eq!(one.ended().await, Ended::Stopped);
    assert_eq!(lease.record().holder_identity, "");
}

#[tokio::test(start_paused = true)]
async fn also_when_leadership_was_lost_le_14() {
    let lease = MemoryLease::new();
    let told = Told { ending: Duration::from_millis(1500), ..Told::default() };
    let mut one = Running::start_with(elector(&lease, "one", RELEASING), told);
    pass(secs(1)).await;
    lease.on_call(|_, call| Fault { refused: call == "update", ..Fault::default() });
    pass(secs(11)).await;
    assert_eq!(one.told.lines()[2..], ["stopped", "cancelled"]);
    assert_eq!(lease.record().holder_identity, "one");
    lease.on_call(|_, _| Fault::default());
    pass(secs(2)).await;
    assert_eq!(one.ended().await, Ended::Lost);
    assert_eq!(lease.record().holder_identity, "");
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_end_is_dropped_when_the_lease_runs_out() {
    let lease = MemoryLease::new();
    let told = Told { ending: secs(86_400), ..Told::default() };
    let mut one = Running::start_with(elector(&lease, "one", RELEASING), told);
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
async fn the_holder_in_the_api_server_decides_not_our_belief_le_14() {
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
async fn a_conflict_on_release_is_retried_and_silence_is_not_waited_for_le_13() {
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
async fn one_who_is_asked_to_end_before_it_begins_asks_nobody_le_04() {
    let lease = MemoryLease::new();
    let one = elector(&lease, "one", RELEASING);
    let (told, token) = (Told::default(), CancellationToken::new());
    token.cancel();
    assert_eq!(one.run(&told, token).await, Ended::NeverLed);
    assert!(lease.calls().is_empty());
    assert_eq!(told.lines(), ["stopped"]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_election_cancels_the_work_le_12() {
    let lease = MemoryLease::new();
    let one = elector(&lease, "one", RELEASING);
    let told = Told::default();
    let leads = Mutex::new(None);
    struct Catch<'a>(&'a Told, &'a Mutex<Option<CancellationToken>>);
    #[async_trait]
    impl Callbacks for Catch<'_> {
        async fn on_started_leading(&self, leading: CancellationToken) {
            *self.1.lock() = Some(leading);
        }
        fn on_stopped_leading(&self) {
            self.0.on_stopped_leading();
        }
    }
    let catch = Catch(&told, &leads);
    let token = CancellationToken::new();
    let mut run = Box::pin(one.run(&catch, token.clone()));
    assert!((&mut run).now_or_never().is_none());
    assert!(timeout(secs(60), &mut run).await.is_err(), "work that returns does not end leadership");
    let leading = leads.lock().clone().unwrap();
    assert!(!leading.is_cancelled());
    drop(run);
    assert!(leading.is_cancelled());
    assert_eq!(told.lines(), ["stopped"]);
}
