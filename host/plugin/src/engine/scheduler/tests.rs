use std::{collections::BTreeMap, sync::atomic::AtomicBool};

use futures::task::noop_waker_ref;

use super::*;

const SLICE: Duration = Duration::from_millis(1);

/// Guests that always want to run, and how many slices each had.
struct Busy {
    scheduler: Arc<Scheduler>,
    guests: Vec<(Share, Arc<Turn>)>,
    /// The guests with a permit.
    running: VecDeque<usize>,
    slices: Vec<u64>,
}

impl Busy {
    fn new(n_permits: usize, weights: &[u32]) -> Self {
        let scheduler = Scheduler::new(n_permits);
        let guests = weights.iter().map(|weight| (scheduler.share(*weight), Arc::new(Turn::new()))).collect();
        let mut this = Self { scheduler, guests, running: VecDeque::new(), slices: vec![0; weights.len()] };
        for n in 0..weights.len() {
            this.arrives(n);
        }
        this
    }

    /// Lets a guest ask for a permit. Returns whether it has one at once.
    fn arrives(&mut self, n: usize) -> bool {
        let (share, turn) = &self.guests[n];
        let has = self.scheduler.acquire(share, turn, noop_waker_ref());
        if has {
            self.running.push_back(n);
        }
        has
    }

    /// Ends the slice of one guest with a permit, and lets those that were granted one begin.
    fn step(&mut self, ran: Duration) -> usize {
        let n = self.running.pop_front().unwrap();
        let (share, turn) = &self.guests[n];
        self.slices[n] += 1;
        self.scheduler.end_slice(share, turn, noop_waker_ref(), ran);
        self.begin_granted();
        n
    }

    /// Adds a plugin whose guest computed for short times until now.
    fn add_brief(&mut self) -> usize {
        let share = self.scheduler.share(100);
        (0..20).for_each(|_| share.charge(SLICE / 50));
        self.guests.push((share, Arc::new(Turn::new())));
        self.slices.push(0);
        self.guests.len() - 1
    }

    /// Ends a poll of a guest that waits for the host then.
    fn releases(&mut self, n: usize, ran: Duration) {
        let (share, turn) = &self.guests[n];
        self.scheduler.release(share, turn, ran);
    }

    fn begin_granted(&mut self) {
        for (n, (_, turn)) in self.guests.iter().enumerate() {
            if turn.state() == TurnState::Granted {
                turn.set_state(TurnState::Idle);
                self.running.push_back(n);
            }
        }
        let n_beyond = self.scheduler.n_beyond.load(SeqCst);
        assert!(n_beyond <= self.scheduler.n_permits);
        let first_key = self.scheduler.queue.lock().order.first().map_or(NO_KEY, |(key, _)| *key);
        assert_eq!(self.scheduler.first_key.load(Relaxed), first_key);
        assert!(self.running.len() <= self.scheduler.n_permits + n_beyond);
    }
}

#[test]
fn cpu_time_is_shared_by_weight() {
    for n_permits in [1, 2, 3] {
        let mut busy = Busy::new(n_permits, &[100, 300, 100, 100, 300, 100]);
        for _ in 0..10_000 {
            busy.step(SLICE);
        }
        for (n, slices) in busy.slices.iter().enumerate() {
            let expected = if [1, 4].contains(&n) { 3_000 } else { 1_000 };
            assert!(slices.abs_diff(expected) <= 10, "{n_permits} permits: {:?}", busy.slices);
        }
    }
}

#[test]
fn a_plugin_that_uses_short_slices_gets_more_of_them() {
    let mut busy = Busy::new(1, &[100, 100]);
    let mut ran = [Duration::ZERO; 2];
    for _ in 0..10_000 {
        let length = if busy.running[0] == 0 { SLICE } else { SLICE / 10 };
        let n = busy.step(length);
        ran[n] += length;
    }
    let [long, short] = ran.map(|it| it.as_secs_f64());
    assert!((long / short - 1.0).abs() < 0.05, "{ran:?}");
}

#[test]
fn promise_4_a_plugin_that_is_called_rarely_runs_after_one_slice_of_a_thousand_busy_ones() {
    let mut busy = Busy::new(2, &[100; 1_001]);
    for _ in 0..50_000 {
        busy.step(SLICE);
    }
    let rare = 1_000;
    // It waits for the host: it is not in the queue any more.
    while !busy.running.contains(&rare) {
        busy.step(SLICE);
    }
    busy.running.retain(|n| *n != rare);
    busy.releases(rare, SLICE);
    busy.begin_granted();
    for _ in 0..100 {
        for _ in 0..5_000 {
            busy.step(SLICE);
        }
        assert!(!busy.arrives(rare), "all permits are in use");
        let mut n = 0;
        while !busy.running.contains(&rare) {
            busy.step(SLICE);
            n += 1;
        }
        assert!(n <= 2, "{n} slices of others");
        busy.running.retain(|n| *n != rare);
        busy.releases(rare, SLICE);
        busy.begin_granted();
    }
}

#[test]
fn promise_4_a_brief_guest_runs_at_once_beside_a_thousand_busy_ones() {
    let mut busy = Busy::new(2, &[100; 1_000]);
    // It waits for the host most of the time, and computes for 20 µs at a time.
    let brief = busy.add_brief();
    for _ in 0..100 {
        for _ in 0..1_100 {
            busy.step(SLICE);
        }
        assert!(busy.arrives(brief), "all permits are in use");
        busy.running.retain(|n| *n != brief);
        busy.releases(brief, SLICE / 50);
    }
    assert_eq!(busy.scheduler.n_beyond.load(SeqCst), 0);
}

/// A guest that is brief each time, but always wants to run, gets no more than its share.
#[test]
fn promise_4_many_brief_polls_give_no_more_than_the_share() {
    let mut busy = Busy::new(1, &[100]);
    let brief = busy.add_brief();
    let mut ran = [Duration::ZERO; 2];
    for _ in 0..2_000 {
        // It comes again and again, until it has to wait.
        while busy.arrives(brief) {
            busy.running.retain(|n| *n != brief);
            busy.releases(brief, SLICE / 10);
            ran[1] += SLICE / 10;
        }
        while !busy.running.contains(&brief) {
            busy.step(SLICE);
            ran[0] += SLICE;
        }
        busy.running.retain(|n| *n != brief);
        busy.releases(brief, SLICE / 10);
        busy.begin_granted();
        ran[1] += SLICE / 10;
    }
    assert!(ran[1] <= ran[0] + 3 * SLICE, "{ran:?}");
}

/// A guest without a permit that computes for a whole slice waits for its turn then.
#[test]
fn promise_4_a_guest_beyond_the_permits_is_queued_when_its_slice_ends() {
    let mut busy = Busy::new(1, &[100; 3]);
    let [one, two] = [(); 2].map(|()| busy.add_brief());
    assert!(busy.arrives(one) && !busy.arrives(two), "one may run beyond the permit");
    let (share, turn) = busy.guests[one].clone();
    busy.scheduler.end_slice(&share, &turn, noop_waker_ref(), SLICE);
    assert_eq!((turn.state(), busy.scheduler.n_beyond.load(SeqCst)), (TurnState::Waits, 0));
}

#[test]
fn idleness_is_no_credit() {
    let mut busy = Busy::new(1, &[100, 100]);
    // The second one ends at once, and is idle for ten seconds of the first one's time.
    while busy.running[0] != 1 {
        busy.step(SLICE);
    }
    busy.running.clear();
    busy.releases(1, Duration::ZERO);
    busy.begin_granted();
    for _ in 0..10_000 {
        busy.step(SLICE);
    }
    busy.slices = vec![0, 0];
    busy.arrives(1);
    for _ in 0..1_000 {
        busy.step(SLICE);
    }
    assert!(busy.slices[0].abs_diff(busy.slices[1]) <= 2, "{:?}", busy.slices);
}

#[test]
fn many_instances_of_one_plugin_share_its_share() {
    let scheduler = Scheduler::new(2);
    let shares: Vec<_> = (0..11).map(|_| scheduler.share(100)).collect();
    // The first plugin has thirty guests, the others have one each.
    let guests: Vec<_> =
        (0..40_usize).map(|n| (shares[n.saturating_sub(29)].clone(), Arc::new(Turn::new()))).collect();
    let mut busy = Busy { scheduler, guests, running: VecDeque::new(), slices: vec![0; 40] };
    for n in 0..40 {
        busy.arrives(n);
    }
    for _ in 0..11_000 {
        busy.step(SLICE);
    }
    let of_many: u64 = busy.slices[..30].iter().sum();
    assert!(of_many.abs_diff(1_000) <= 40, "{:?}", busy.slices);
    assert!(busy.slices[30..].iter().all(|slices| slices.abs_diff(1_000) <= 20), "{:?}", busy.slices);
}

#[test]
fn a_dropped_guest_leaves_the_queue_or_returns_its_permit() {
    let mut busy = Busy::new(1, &[100; 3]);
    let [_, second, third] = [0, 1, 2].map(|n| busy.guests[n].clone());
    busy.scheduler.forget(&second.0, &second.1);
    assert_eq!(busy.scheduler.n_waiting.load(SeqCst), 1);
    // The third one is granted the permit, and is dropped before it is polled.
    let (share, turn) = busy.guests[0].clone();
    busy.scheduler.release(&share, &turn, SLICE);
    assert_eq!(third.1.state(), TurnState::Granted);
    busy.scheduler.forget(&third.0, &third.1);
    assert!(!busy.scheduler.is_busy());
    busy.running.clear();
    assert!(busy.scheduler.acquire(&share, &turn, noop_waker_ref()));
    assert!(busy.scheduler.queue.lock().plugins.is_empty() && busy.scheduler.queue.lock().order.is_empty());
    assert_eq!(busy.scheduler.first_key.load(Relaxed), NO_KEY);
}

/// Many threads take and return permits; none is lost, and no guest waits while a permit is free.
#[test]
fn no_permit_and_no_guest_is_lost() {
    let scheduler = Scheduler::new(2);
    let threads: Vec<_> = (0..8)
        .map(|n| {
            let scheduler = Arc::clone(&scheduler);
            std::thread::spawn(move || {
                let (share, turn) = (scheduler.share(100 * (n + 1)), Arc::new(Turn::new()));
                share.keep_permits();
                let mut polls = BTreeMap::<bool, u32>::new();
                for round in 0..20_000_u32 {
                    let at_once = scheduler.acquire(&share, &turn, &thread_waker());
                    *polls.entry(at_once).or_default() += 1;
                    if !at_once {
                        if round % 64 == n {
                            scheduler.forget(&share, &turn);
                            continue;
                        }
                        wait(&turn);
                    }
                    if round % 3 == 0 {
                        scheduler.end_slice(&share, &turn, &thread_waker(), Duration::from_nanos(100));
                        wait(&turn);
                    }
                    scheduler.end_call(&share, &turn, Duration::from_nanos(100));
                    if round % 16 == n {
                        share.pass_permit_on();
                    }
                }
                share.pass_permit_on();
                polls
            })
        })
        .collect();
    let is_over = Arc::new(AtomicBool::new(false));
    let ticker = std::thread::spawn({
        let (scheduler, is_over) = (Arc::clone(&scheduler), Arc::clone(&is_over));
        move || {
            while !is_over.load(Relaxed) {
                scheduler.tick();
                std::thread::yield_now();
            }
        }
    });
    let all: u32 = threads.into_iter().flat_map(|it| it.join().unwrap().into_values()).sum();
    is_over.store(true, Relaxed);
    ticker.join().unwrap();
    assert_eq!(all, 160_000);
    assert_eq!(scheduler.n_free.load(SeqCst), 2);
    assert_eq!(scheduler.n_waiting.load(SeqCst), 0);
}

/// Waits until the turn has a permit, and takes it.
fn wait(turn: &Turn) {
    while turn.state() != TurnState::Granted {
        std::thread::park();
    }
    turn.set_state(TurnState::Idle);
}

fn thread_waker() -> Waker {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    Arc::new(Unpark(std::thread::current())).into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn promise_4_a_plugin_that_has_used_more_than_others_belongs_in_the_background_while_it_waits() {
    let mut busy = Busy::new(1, &[100]);
    let often = busy.add_brief();
    let share = busy.guests[often].0.clone();
    (0..1_000).for_each(|_| share.charge(SLICE / 50));
    assert!(!share.belongs_in_background(), "its guests are brief");
    assert!(!busy.arrives(often));
    assert!(share.belongs_in_background());
    while !busy.running.contains(&often) {
        busy.step(SLICE);
    }
    assert!(!share.belongs_in_background(), "it has its permit");
    busy.running.retain(|n| *n != often);
    busy.releases(often, SLICE / 50);
    busy.begin_granted();
    (0..1_000).for_each(|_| share.charge(SLICE / 50));
    assert!(!busy.arrives(often));
    busy.scheduler.forget(&share, &busy.guests[often].1);
    assert!(!share.belongs_in_background(), "its call was dropped");
}

/// Lets a plugin with one lane, whose calls are shorter than a slice, run beside others that always want to
/// run. Returns the CPU time of the first one, and of all others together.
fn one_call_after_the_other(n_permits: usize, weight: u32, n_others: usize, call: Duration) -> [Duration; 2] {
    let mut busy = Busy::new(n_permits, &vec![100; n_others]);
    let share = busy.scheduler.share(weight);
    share.keep_permits();
    // Long enough that its guests are not brief.
    (0..20).for_each(|_| share.charge(SLICE));
    busy.guests.push((share, Arc::new(Turn::new())));
    busy.slices.push(0);
    let mut ran = [Duration::ZERO; 2];
    let mut wants_to_run = true;
    for _ in 0..20_000 {
        if std::mem::take(&mut wants_to_run) {
            busy.arrives(n_others);
        }
        if busy.running.front() == Some(&n_others) {
            busy.running.pop_front();
            let (share, turn) = &busy.guests[n_others];
            busy.scheduler.end_call(share, turn, call);
            ran[0] += call;
            busy.begin_granted();
            wants_to_run = true;
        } else {
            busy.step(SLICE);
            ran[1] += SLICE;
        }
    }
    ran
}

#[test]
fn one_short_call_after_the_other_gets_cpu_time_by_its_weight() {
    for (weight, expected) in [(100, 1.0 / 4.0), (300, 3.0 / 4.0), (1_000, 10.0 / 4.0)] {
        let [one, others] = one_call_after_the_other(1, weight, 4, SLICE / 2).map(|ran| ran.as_secs_f64());
        let ratio = one / others;
        assert!((ratio / expected - 1.0).abs() < 0.1, "weight {weight}: {ratio} for {expected}");
    }
}

#[test]
fn a_kept_permit_is_given_back_when_no_call_follows_and_at_the_second_tick() {
    for says_so in [true, false] {
        let mut busy = Busy::new(1, &[1_000, 100]);
        let (share, turn) = busy.guests[0].clone();
        busy.scheduler.end_call(&share, &turn, SLICE);
        assert_eq!(
            busy.guests[1].1.state(),
            TurnState::Granted,
            "only a plugin that asks for it keeps permits"
        );
        busy.scheduler.release(&busy.guests[1].0, &busy.guests[1].1, SLICE);
        busy.guests[1].1.set_state(TurnState::Idle);

        share.keep_permits();
        assert!(busy.arrives(0) && !busy.arrives(1));
        let (share, turn) = busy.guests[0].clone();
        busy.scheduler.end_call(&share, &turn, SLICE / 10);
        assert_eq!(busy.guests[1].1.state(), TurnState::Waits);
        assert!(busy.scheduler.is_busy(), "the ticks go on");
        if says_so {
            share.pass_permit_on();
        } else {
            busy.scheduler.tick();
            assert_eq!(busy.guests[1].1.state(), TurnState::Waits);
            busy.scheduler.tick();
        }
        assert_eq!(busy.guests[1].1.state(), TurnState::Granted);
        busy.scheduler.release(&busy.guests[1].0, &busy.guests[1].1, SLICE);
        share.pass_permit_on();
        busy.scheduler.tick();
        assert_eq!(busy.scheduler.n_free.load(SeqCst), 1, "it is given back once");
    }
}

/// The others are between two calls when the permit becomes free, and ask for it before the plugin that has
/// used less.
#[test]
fn a_permit_is_kept_also_while_the_others_are_between_two_calls() {
    let mut busy = Busy::new(1, &[300, 100]);
    busy.guests.iter().for_each(|(share, _)| share.keep_permits());
    let mut n_calls = [0_u32; 2];
    let mut ended = 1;
    for _ in 0..4_000 {
        let n = busy.running.pop_front().unwrap();
        n_calls[n] += 1;
        let (share, turn) = busy.guests[n].clone();
        busy.scheduler.end_call(&share, &turn, SLICE / 2);
        busy.begin_granted();
        // The one that ended its call before comes first, if it does not wait.
        for n in [ended, n] {
            if busy.guests[n].1.state() == TurnState::Idle && !busy.running.contains(&n) {
                busy.arrives(n);
            }
        }
        ended = n;
    }
    let ratio = f64::from(n_calls[0]) / f64::from(n_calls[1]);
    assert!((ratio / 3.0 - 1.0).abs() < 0.1, "{n_calls:?}");
}

/// A plugin that cannot use its share, since it has one lane, has no more credit than one slice.
#[test]
fn a_kept_permit_is_no_unbounded_credit() {
    let mut busy = Busy::new(2, &[100, 100]);
    busy.guests[0].0.keep_permits();
    for _ in 0..1_000 {
        let (share, turn) = busy.guests[0].clone();
        busy.running.retain(|n| *n != 0);
        busy.scheduler.end_call(&share, &turn, SLICE / 10);
        busy.step(SLICE);
        assert!(busy.arrives(0));
    }
    let [steady, other] = [0, 1].map(|n| busy.guests[n].0.virtual_time());
    assert!(other - steady <= CREDIT + nanos(SLICE) * 2, "{steady} {other}");
}
