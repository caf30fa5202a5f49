//! Renewing and losing a lease.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_leader_renews_every_retry_period_without_reading_le_04_le_07() {
    let lease = MemoryLease::new();
    let mut one = Running::start(elector(&lease, "one", USUAL));
    pass(secs(1)).await;
    // One update acquires the lease, one is the first renewal.
    assert_eq!(lease.calls(), ["get", "create", "update"]);
    let before = lease.record();
    pass(secs(20)).await;
    assert_eq!(lease.calls(), ["update"; 10]);
    let after = lease.record();
    assert_eq!((&after.acquire_time, after.leader_transitions), (&before.acquire_time, 0), "LE-10");
    assert_ne!(after.renew_time, before.renew_time);
    assert_eq!(one.log.lines(), ["leader \"one\"", "started"]);
    one.token.cancel();
    assert_eq!(one.ended().await, Ended::Stopped);
    assert_eq!(one.log.lines(), ["stopped", "cancelled", "ended"]);
    assert!(lease.calls().is_empty(), "it is not given back unless wanted");
}

#[tokio::test(start_paused = true)]
async fn after_a_conflict_the_same_try_reads_le_07() {
    let lease = MemoryLease::new();
    let one = elector(&lease, "one", USUAL);
    assert_eq!(one.attempt(false).await, Attempt::Holding);
    lease.calls();
    // Another client changes the labels: a new version of the same record.
    lease.set(Some(lease.record()));
    assert_eq!(one.attempt(true).await, Attempt::Holding);
    assert_eq!(lease.calls(), ["update", "get", "update"]);
}

// Conformance: G.43
#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_until_the_deadline_stops_le_04() {
    let lease = MemoryLease::new();
    let mut one = Running::start(elector(&lease, "one", USUAL));
    pass(secs(5)).await;
    assert_eq!(one.log.lines(), ["leader \"one\"", "started"]);
    lease.on_call(|_, _| Fault { refused: true, ..Fault::default() });
    // The last renewal is at 4 s. The next round starts at 6 s, tries at 6, 8, …, and ends at 16 s.
    pass(secs(11) - Duration::from_millis(50)).await;
    assert!(one.log.lines().is_empty());
    pass(Duration::from_millis(100)).await;
    assert_eq!(one.log.lines(), ["stopped", "cancelled", "ended"]);
    assert_eq!(one.ended().await, Ended::Lost);
    let n_tries = lease.calls().iter().filter(|&&call| call == "get").count() - 1;
    assert!((5..=6).contains(&n_tries), "at 6, 8, 10, 12, 14 and perhaps just so at 16 s: {n_tries}");

    // The callback also comes to a candidate that never led.
    let mut two = Running::start(elector(&lease, "two", USUAL));
    pass(secs(30)).await;
    two.token.cancel();
    assert_eq!(two.ended().await, Ended::NeverLed);
    assert_eq!(two.log.lines(), ["stopped"]);
}

#[tokio::test(start_paused = true)]
async fn one_success_within_the_deadline_keeps_leadership_le_04() {
    let lease = MemoryLease::new();
    let mut one = Running::start(elector(&lease, "one", USUAL));
    pass(secs(1)).await;
    let bad_until = Instant::now() + secs(9);
    lease.on_call(move |_, _| Fault { refused: Instant::now() < bad_until, ..Fault::default() });
    pass(secs(120)).await;
    assert!(!one.has_ended());
    assert_eq!(one.log.lines(), ["leader \"one\"", "started"]);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_reads_another_holder_loses_at_once() {
    let lease = MemoryLease::new();
    let mut one = Running::start(elector(&lease, "one", RELEASING));
    pass(secs(1)).await;
    lease.set(Some(Record { leader_transitions: 1, ..held_by("two") }));
    pass(secs(2)).await;
    assert_eq!(one.ended().await, Ended::Lost);
    let lines = one.log.lines();
    assert_eq!(lines[2..], ["leader \"two\"", "stopped", "cancelled", "ended"]);
    assert_eq!(lease.record().holder_identity, "two", "and leaves it alone");
}

#[tokio::test(start_paused = true)]
async fn a_leader_notices_a_past_term_of_another_holder() {
    let lease = MemoryLease::new();
    let mut one = Running::start(elector(&lease, "one", USUAL));
    pass(secs(1)).await;
    lease.set(Some(Record::released(1, Timestamp::now())));
    pass(secs(2)).await;
    assert_eq!(one.ended().await, Ended::Lost);
}

#[tokio::test(start_paused = true)]
async fn an_emptied_or_deleted_lease_is_acquired_again() {
    let lease = MemoryLease::new();
    let mut one = Running::start(elector(&lease, "one", USUAL));
    pass(secs(1)).await;
    lease.set(Some(Record::default()));
    pass(secs(2)).await;
    assert_eq!(lease.record().holder_identity, "one");
    lease.set(None);
    pass(secs(2)).await;
    assert_eq!(lease.record().holder_identity, "one");
    assert!(!one.has_ended());
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_takes_an_emptied_lease_begins_a_new_term_le_10() {
    let lease = MemoryLease::new();
    let one = elector(&lease, "one", USUAL);
    assert_eq!(one.attempt(false).await, Attempt::Holding);
    let before = lease.record();
    lease.set(Some(Record::default()));
    assert_eq!(one.attempt(true).await, Attempt::Holding);
    let after = lease.record();
    assert_eq!((&after.acquire_time, after.leader_transitions), (&after.renew_time, 1));
    assert_ne!(after.acquire_time, before.acquire_time);
}

#[tokio::test(start_paused = true)]
async fn late_answers_do_not_prolong_leadership_beyond_the_lease() {
    let lease = MemoryLease::new();
    let config = Config { renew_deadline: secs(14), ..USUAL };
    let mut one = Running::start(elector(&lease, "one", config));
    pass(secs(1)).await;
    // The renewal at 2 s is executed at once and answered at 8.9 s. All later answers are lost.
    let mut n_calls = 0;
    lease.on_call(move |_, _| {
        n_calls += 1;
        match n_calls {
            1 => Fault { late: Duration::from_millis(6_900), ..Fault::default() },
            _ => Fault { refused: true, ..Fault::default() },
        }
    });
    // Other candidates observed the change at 2 s and may take the lease at 17 s; the deadline alone ends at
    // 8.9 + 2 + 14. A twentieth of the lease is reserved for clocks that differ.
    pass(Duration::from_millis(15_100)).await;
    assert!(!one.has_ended());
    pass(Duration::from_millis(300)).await;
    assert_eq!(one.ended().await, Ended::Lost);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_has_to_read_the_lease_first_is_reported() {
    let lease = MemoryLease::new();
    let one = Running::start(elector(&lease, "one", USUAL));
    pass(secs(1)).await;
    let mut n_calls = 0;
    lease.on_call(move |_, _| {
        n_calls += 1;
        Fault { refused: n_calls == 1, ..Fault::default() }
    });
    pass(secs(20)).await;
    assert_eq!(one.log.lines(), ["leader \"one\"", "started"]);
    assert_eq!(one.log.n_slow_paths.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_candidate_may_act_for_the_renew_deadline_after_its_last_renewal_was_sent() {
    let lease = MemoryLease::new();
    let one = elector(&lease, "one", USUAL);
    assert_eq!(one.leads_until(), None);
    let sent = Instant::now();
    assert_eq!(one.attempt(false).await, Attempt::Holding);
    assert_eq!(one.leads_until(), Some(sent + secs(10)));
    advance(secs(60)).await;
    assert_eq!(one.leads_until(), Some(sent + secs(10)), "no task has to notice");
    lease.set(Some(held_by("other")));
    assert_eq!(one.attempt(true).await, Attempt::HeldByAnother);
    assert_eq!(one.leads_until(), None);
}
