//! Acquiring a lease.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_missing_lease_is_created_le_08() {
    let lease = MemoryLease::new();
    let one = elector(&lease, "one", USUAL);
    assert_eq!(one.attempt(false).await, Attempt::Holding);
    assert_eq!(lease.calls(), ["get", "create"]);
    let record = lease.record();
    assert_eq!((record.holder_identity.as_str(), record.lease_duration_seconds), ("one", 15));
    assert_eq!(record.leader_transitions, 0);
    assert!(one.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_loses_the_race_to_create_does_not_lead_le_08() {
    let lease = MemoryLease::new();
    let one = elector(&lease, "one", USUAL);
    let other = lease.clone();
    lease.on_call(move |_, call| {
        let delay = if call == "create" { secs(1) } else { Duration::ZERO };
        Fault { delay, ..Fault::default() }
    });
    let (attempt, ()) = tokio::join!(one.attempt(false), async {
        sleep(Duration::from_millis(500)).await;
        other.set(Some(held_by("two")));
    });
    assert_eq!(attempt, Attempt::Failed);
    assert!(!one.is_leader());
    assert_eq!(lease.record().holder_identity, "two");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_not_taken_while_its_last_holder_may_lead() {
    let lease = MemoryLease::new();
    lease.set(Some(held_by("two")));
    let one = elector(&lease, "one", USUAL);
    assert_eq!(one.attempt(false).await, Attempt::HeldByAnother);
    lease.set(None);
    assert_eq!(one.attempt(false).await, Attempt::HeldByAnother);
    advance(secs(15)).await;
    assert_eq!(one.attempt(false).await, Attempt::Holding);
    // After a release no candidate may lead.
    lease.set(Some(Record::released(1, Timestamp::now())));
    let three = elector(&lease, "three", USUAL);
    lease.on_call(|_, call| Fault { refused: call == "update", ..Fault::default() });
    assert_eq!(three.attempt(false).await, Attempt::Failed);
    lease.set(None);
    assert_eq!(three.attempt(false).await, Attempt::Holding);
}

/// Asks the elector who leads, from a callback.
struct Asks(Mutex<Vec<String>>, Mutex<std::sync::Weak<Elector>>);

#[async_trait]
impl Callbacks for Asks {
    async fn on_started_leading(&self, leading: CancellationToken) {
        leading.cancelled().await;
    }

    fn on_stopped_leading(&self) {}

    fn on_new_leader(&self, _: &str) {
        let elector = self.1.lock().upgrade().unwrap();
        self.0.lock().push(format!("{} {}", elector.leader(), elector.leads_until().is_some()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_callback_may_ask_who_leads_le_12() {
    let lease = MemoryLease::new();
    let one = Arc::new(elector(&lease, "one", USUAL));
    let asks = Asks(Mutex::default(), Mutex::new(Arc::downgrade(&one)));
    let token = CancellationToken::new();
    let (_, ()) = tokio::join!(one.run(&asks, token.clone()), async {
        sleep(secs(1)).await;
        token.cancel();
    });
    assert_eq!(*asks.0.lock(), ["one true"]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_holder_is_replaced_at_once_le_09() {
    let lease = MemoryLease::new();
    lease.set(Some(Record { leader_transitions: 3, ..Record::released(3, Timestamp::now()) }));
    let one = elector(&lease, "one", USUAL);
    assert_eq!(one.attempt(false).await, Attempt::Holding);
    assert_eq!(lease.calls(), ["get", "update"]);
    assert_eq!(lease.record().leader_transitions, 4, "LE-10");
}

#[tokio::test(start_paused = true)]
async fn a_new_candidate_waits_a_whole_lease_duration_whatever_the_timestamps_say_le_05() {
    let lease = MemoryLease::new();
    // By its timestamps the record was renewed decades ago.
    lease.set(Some(held_by("dead")));
    let one = elector(&lease, "one", USUAL);
    assert_eq!(one.attempt(false).await, Attempt::HeldByAnother);
    advance(secs(15) - Duration::from_nanos(1)).await;
    assert_eq!(one.attempt(false).await, Attempt::HeldByAnother);
    advance(Duration::from_nanos(1)).await;
    assert_eq!(one.attempt(false).await, Attempt::Holding);
    assert_eq!(lease.record().leader_transitions, 1);
}

#[tokio::test(start_paused = true)]
async fn the_duration_in_the_record_counts_le_05() {
    let lease = MemoryLease::new();
    lease.set(Some(Record { lease_duration_seconds: 60, ..held_by("slow") }));
    let one = elector(&lease, "one", USUAL);
    assert_eq!(one.attempt(false).await, Attempt::HeldByAnother);
    advance(secs(59)).await;
    assert_eq!(one.attempt(false).await, Attempt::HeldByAnother);
    advance(secs(1)).await;
    assert_eq!(one.attempt(false).await, Attempt::Holding);
}

// Conformance: G.58
#[tokio::test(start_paused = true)]
async fn an_unchanged_record_is_no_renewal_and_a_lease_below_a_second_expires_at_once_le_06_le_11() {
    let lease = MemoryLease::new();
    lease.set(Some(held_by("other")));
    let one = elector(&lease, "one", USUAL);
    let began = Instant::now();
    for _ in 0..14 {
        assert_eq!(one.attempt(false).await, Attempt::HeldByAnother);
        assert_eq!(one.observed.lock().at, Some(began), "LE-06: the bytes are the same");
        // Written again with the same bytes: a new version of the same record.
        lease.set(Some(held_by("other")));
        advance(secs(1)).await;
    }
    lease.set(Some(Record { renew_time: None, ..held_by("other") }));
    assert_eq!(one.attempt(false).await, Attempt::HeldByAnother);
    assert_eq!(one.observed.lock().at, Some(began + secs(14)), "any change counts");

    let lease = MemoryLease::new();
    let short = |retry_period| Config {
        lease_duration: Duration::from_millis(900),
        renew_deadline: Duration::from_millis(600),
        retry_period: Duration::from_millis(retry_period),
        longest_wait: None,
        release_on_cancel: false,
    };
    let (one, two) = (elector(&lease, "one", short(100)), elector(&lease, "two", short(100)));
    assert_eq!(one.attempt(false).await, Attempt::Holding);
    assert_eq!(lease.record().lease_duration_seconds, 0, "LE-11");
    assert_eq!(two.attempt(false).await, Attempt::Holding, "it could be taken at once");
    assert_eq!(one.attempt(true).await, Attempt::HeldByAnother);
}

#[tokio::test(start_paused = true)]
async fn a_candidate_tries_at_once_and_then_after_1_to_2_2_retry_periods_le_03() {
    let lease = MemoryLease::new();
    lease.set(Some(Record { lease_duration_seconds: i32::MAX, ..held_by("other") }));
    let times: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let noted = times.clone();
    lease.on_call(move |_, _| {
        noted.lock().push(Instant::now());
        Fault::default()
    });
    let began = Instant::now();
    let one = Running::start(elector(&lease, "one", USUAL));
    sleep(secs(1000)).await;
    one.token.cancel();
    let times = times.lock().clone();
    assert_eq!(times[0], began, "at once");
    let waits: Vec<Duration> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // Timers have a resolution of milliseconds.
    let millisecond = Duration::from_millis(1);
    assert!(
        waits.iter().all(|&it| secs(2) <= it && it < Duration::from_millis(4400) + millisecond),
        "{waits:?}"
    );
    let spread = *waits.iter().max().unwrap() - *waits.iter().min().unwrap();
    assert!(spread > secs(2), "they differ: {waits:?}");
}

#[tokio::test(start_paused = true)]
async fn a_candidate_reports_each_new_leader_once_le_12() {
    let lease = MemoryLease::new();
    lease.set(Some(held_by("a")));
    let mut one = Running::start(elector(&lease, "one", USUAL));
    pass(secs(10)).await;
    lease.set(Some(Record { leader_transitions: 1, ..held_by("b") }));
    pass(secs(10)).await;
    assert_eq!(one.log.lines(), ["leader \"a\"", "leader \"b\""]);
    assert_eq!(one.elector.leader(), "b");
    one.token.cancel();
    assert_eq!(one.ended().await, Ended::NeverLed);
    assert_eq!(one.log.lines(), ["stopped"], "also of one that never led");
}

#[tokio::test(start_paused = true)]
async fn errors_and_lost_answers_do_not_end_a_run() {
    let lease = MemoryLease::new();
    let mut n_calls = 0;
    lease.on_call(move |_, _| {
        n_calls += 1;
        match n_calls {
            1..=3 => Fault { refused: true, ..Fault::default() },
            // The timeout of a lost answer is max(1 s, renewDeadline / 2), LL-03.
            4..=5 => Fault { delay: secs(86_400), ..Fault::default() },
            _ => Fault::default(),
        }
    });
    let one = Running::start(elector(&lease, "one", USUAL));
    pass(secs(3 * 5)).await;
    assert!(!one.elector.is_leader());
    pass(secs(2 * 5 + 10)).await;
    assert!(one.elector.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_write_with_a_lost_answer_counts_as_own_when_read() {
    let lease = MemoryLease::new();
    let mut creates = 0;
    lease.on_call(move |_, call| {
        creates += usize::from(call == "create");
        Fault { lost: call == "create" && creates == 1, ..Fault::default() }
    });
    let one = elector(&lease, "one", USUAL);
    assert_eq!(one.attempt(false).await, Attempt::Failed);
    assert!(!one.is_leader());
    assert_eq!(one.attempt(false).await, Attempt::Holding, "without waiting for our own lease to run out");
    assert_eq!(lease.calls(), ["get", "create", "get", "update"]);
    assert_eq!(lease.record().leader_transitions, 0, "the holder is the same");
}

#[tokio::test(start_paused = true)]
async fn a_candidate_with_a_longest_wait_tries_within_it() {
    let lease = MemoryLease::new();
    lease.set(Some(Record { lease_duration_seconds: i32::MAX, ..held_by("other") }));
    let times: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let noted = times.clone();
    lease.on_call(move |_, _| {
        noted.lock().push(Instant::now());
        Fault::default()
    });
    let one = Running::start(elector(&lease, "one", Config { longest_wait: Some(secs(1)), ..USUAL }));
    sleep(secs(100)).await;
    one.token.cancel();
    let times = times.lock().clone();
    let waits: Vec<Duration> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let is_within = |wait: &Duration| (500..=1_001).contains(&wait.as_millis());
    assert!(waits.len() >= 99 && waits.iter().all(is_within), "{waits:?}");
}
