//! The time slices of dispatchers, after which other tasks of their workers run.

#[cfg(test)]
use std::future::poll_fn;
use std::mem;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::FutureExt as _;
use futures::channel::oneshot;
use tokio::time::Instant;

pub(crate) use self::busy_limit::BusyLimit;
#[cfg(test)]
pub(super) use self::busy_limit::PER_WORKER;
use self::busy_limit::{BusyPermit, VirtualTime};

mod busy_limit;

/// How long a dispatcher with work runs at a time, after the end of its first call.
const LENGTH: Duration = Duration::from_micros(500);

/// The same in turns, for those that make no call.
const TURNS: u32 = 256;

/// The time since a dispatcher last waited, or let other tasks run.
///
/// tokio's own budget is not used for this. A task that has used it up, or calls `yield_now`, runs again when
/// its worker next polls its sockets and timers. While an informer and its connection wake each other, that
/// is up to [`event_interval`](tokio::runtime::Builder::event_interval) polls later, and the backlog fills
/// meanwhile.
#[derive(Debug)]
pub(super) struct Slice {
    limit: BusyLimit,
    used: VirtualTime,
    progress: Progress,
    is_over: bool,
    n_turns: u32,
    /// When a slice that is not the first one began.
    resumed: Option<Instant>,
    began: Option<Instant>,
    /// The time of the recent past.
    recent: Option<Instant>,
}

/// A first slice has no permit, and neither has one after a slice that ended during a call.
#[derive(Debug)]
enum Progress {
    Begun(Option<BusyPermit>),
    AwaitsPermit(oneshot::Receiver<BusyPermit>),
    NeedsNoPermit,
    /// The next slice begins when the task's turn in the worker's queue comes.
    BehindTheQueue(Option<BusyPermit>),
}

/// What the end of a slice depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct SliceOwner {
    /// A call is in progress within the task: its guest may have a permit of the scheduler, so the task does
    /// not wait for other dispatchers.
    pub(super) has_call: bool,
    /// The weight of the plugin.
    pub(super) weight: u32,
}

// === impl Slice ===

impl Slice {
    pub(super) fn new(limit: BusyLimit) -> Self {
        Self {
            limit,
            used: VirtualTime::default(),
            progress: Progress::Begun(None),
            is_over: false,
            n_turns: 0,
            resumed: None,
            began: None,
            recent: None,
        }
    }

    /// Notes a turn of the dispatcher.
    pub(super) fn turned(&mut self) {
        self.n_turns += 1;
        self.is_over |= self.n_turns >= TURNS;
    }

    /// Notes that the dispatcher waits for work. A new slice begins after that.
    pub(super) fn dispatcher_waits(&mut self, owner: SliceOwner) {
        if let (Progress::Begun(Some(_)), Some(began)) = (&self.progress, self.resumed) {
            self.used.charge(Instant::now().saturating_duration_since(began), owner.weight);
        }
        self.reset(Progress::Begun(None));
    }

    /// Notes the time. The end of a call has read it, which may have been before the slice.
    pub(super) fn reached(&mut self, now: Instant) {
        let at = self.resumed.map_or(now, |resumed| now.max(resumed));
        let began = *self.began.get_or_insert(at);
        self.recent = (at == now).then_some(now);
        self.is_over |= at.saturating_duration_since(began) >= LENGTH;
    }

    /// Notes that as much work was done as one slice has room for.
    pub(super) fn used_up(&mut self) {
        self.is_over = true;
    }

    /// Returns whether the slice is to end.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns whether this is within a slice, and not between two.
    pub(super) fn has_begun(&self) -> bool {
        matches!(self.progress, Progress::Begun(_))
    }

    /// Takes the time that was noted last, if the dispatcher has neither waited nor done anything else since.
    pub(super) fn take_recent(&mut self) -> Option<Instant> {
        self.recent.take()
    }

    /// Ends the slice. The next one begins when [`Slice::poll_begun`] is ready.
    pub(super) fn end(&mut self, owner: SliceOwner) {
        let began = self.resumed.or(self.began);
        let ran = began.map_or(LENGTH, |began| Instant::now().saturating_duration_since(began));
        self.end_after(ran, owner);
    }

    fn end_after(&mut self, ran: Duration, owner: SliceOwner) {
        if !self.has_begun() {
            return;
        }
        let before = self.reset(Progress::NeedsNoPermit);
        if owner.has_call {
            self.used.charge(ran, owner.weight);
        } else if let Progress::Begun(held) = before {
            let permit = self.limit.next(held, &mut self.used, ran, owner.weight);
            self.progress = Progress::AwaitsPermit(permit);
        }
    }

    /// Polls for the begin of the next slice. Until then the other tasks run that are in the worker's queue.
    /// Ready in a slice.
    pub(super) fn poll_begun(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let permit = match &mut self.progress {
            Progress::Begun(_) => return Poll::Ready(()),
            Progress::AwaitsPermit(permit) => ready!(permit.poll_unpin(cx)).ok(),
            Progress::NeedsNoPermit => None,
            Progress::BehindTheQueue(permit) => {
                self.progress = Progress::Begun(permit.take());
                self.resumed = Some(Instant::now());
                return Poll::Ready(());
            }
        };
        self.progress = Progress::BehindTheQueue(permit);
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn reset(&mut self, progress: Progress) -> Progress {
        (self.n_turns, self.is_over) = (0, false);
        (self.resumed, self.began, self.recent) = (None, None, None);
        mem::replace(&mut self.progress, progress)
    }

    /// Ends the slice, and waits for the next one.
    #[cfg(test)]
    pub(super) async fn end_early(&mut self, owner: SliceOwner) {
        self.end(owner);
        poll_fn(|cx| self.poll_begun(cx)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

    use futures::poll;
    use tokio::sync::Notify;

    use super::*;

    const OWNER: SliceOwner = SliceOwner { has_call: false, weight: 100 };

    impl Slice {
        /// Ends the slice as if it had run for its length, and waits for the next one.
        async fn end_after_length(&mut self, owner: SliceOwner) {
            self.end_after(LENGTH, owner);
            poll_fn(|cx| self.poll_begun(cx)).await;
        }
    }

    async fn go_behind_the_queue() {
        Slice::new(BusyLimit::new(1)).end_early(SliceOwner { has_call: true, weight: 100 }).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_slice_ends_by_time_or_turns_and_begins_again_after_a_wait() {
        let mut slice = Slice::new(BusyLimit::new(1));
        let began = Instant::now();
        slice.reached(began);
        slice.reached(began + LENGTH - Duration::from_nanos(1));
        assert!(!slice.is_over);
        slice.reached(began + LENGTH);
        assert!(slice.is_over);
        slice.end_early(OWNER).await;
        assert!(!slice.is_over);
        slice.reached(began + 2 * LENGTH);
        assert!(!slice.is_over, "the new slice begins here");
        (0..TURNS - 1).for_each(|_| slice.turned());
        assert!(!slice.is_over);
        slice.turned();
        assert!(slice.is_over);
        slice.dispatcher_waits(OWNER);
        slice.reached(began + 9 * LENGTH);
        assert!(!slice.is_over, "the time of a wait does not count");
    }

    /// Four polls of these two per slice; with `yield_now` of tokio it would be some 240.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    #[expect(clippy::disallowed_methods, reason = "the tasks end with the test")]
    async fn promise_4_a_busy_dispatcher_runs_as_often_as_an_informer_and_its_connection() {
        const SLICES: u32 = 100;
        let (there, back) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (is_over, n_passes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let player = |wait: &Arc<Notify>, wake: &Arc<Notify>| {
            let (wait, wake) = (wait.clone(), wake.clone());
            let (is_over, n_passes) = (is_over.clone(), n_passes.clone());
            tokio::spawn(async move {
                while !is_over.load(Relaxed) {
                    wait.notified().await;
                    n_passes.fetch_add(1, Relaxed);
                    wake.notify_one();
                }
            })
        };
        let players = [player(&there, &back), player(&back, &there)];
        there.notify_one();
        let n_seen = tokio::spawn({
            let n_passes = n_passes.clone();
            async move {
                while n_passes.load(Relaxed) == 0 {
                    tokio::task::yield_now().await;
                }
                let before = n_passes.load(Relaxed);
                for _ in 0..SLICES {
                    let mut slice = Slice::new(BusyLimit::new(1));
                    slice.end_early(OWNER).await;
                }
                n_passes.load(Relaxed) - before
            }
        })
        .await
        .unwrap();
        is_over.store(true, Relaxed);
        there.notify_one();
        back.notify_one();
        for player in players {
            player.await.unwrap();
        }
        assert!(n_seen <= 16 * SLICES, "{n_seen} polls of the others in {SLICES} slices");
    }

    #[tokio::test(start_paused = true)]
    async fn promise_4_a_slice_that_ends_early_passes_its_permit_on() {
        let limit = BusyLimit::new(1);
        let mut holders: Vec<_> = (0..PER_WORKER).map(|_| Slice::new(limit.clone())).collect();
        for holder in &mut holders {
            holder.end_after_length(OWNER).await;
        }
        let mut third = Slice::new(limit);
        let mut next = pin!(third.end_after_length(OWNER));
        assert!(poll!(&mut next).is_pending());
        assert!(poll!(&mut next).is_pending(), "all permits are in use");
        let mut again = pin!(holders[0].end_after_length(OWNER));
        assert!(poll!(&mut again).is_pending());
        assert!(poll!(&mut next).is_pending(), "it has the permit now and goes behind the queue");
        assert!(poll!(&mut next).is_ready());
        assert!(poll!(&mut again).is_pending(), "it waits for a permit in turn");
    }

    #[tokio::test(start_paused = true)]
    async fn a_dispatcher_that_ends_between_two_slices_keeps_no_permit() {
        let limit = BusyLimit::new(1);
        let mut holders: Vec<_> = (0..PER_WORKER).map(|_| Slice::new(limit.clone())).collect();
        for holder in &mut holders {
            holder.end_after_length(OWNER).await;
        }
        let [mut waits, mut granted, mut last] = [(); 3].map(|()| Slice::new(limit.clone()));
        waits.end(OWNER);
        granted.end(OWNER);
        let mut next = pin!(last.end_after_length(OWNER));
        assert!(poll!(&mut next).is_pending());
        drop(waits);
        // The second one gets the only permit, and ends before it sees that.
        drop(holders.pop());
        drop(granted);
        let an_hour = Duration::from_secs(3_600);
        assert!(tokio::time::timeout(an_hour, next).await.is_ok(), "the permit is lost");
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_the_end_of_a_call_is_used_once_and_not_after_a_wait() {
        let mut slice = Slice::new(BusyLimit::new(1));
        let now = Instant::now();
        slice.reached(now);
        assert_eq!(slice.take_recent(), Some(now));
        assert_eq!(slice.take_recent(), None);
        slice.reached(now);
        slice.dispatcher_waits(OWNER);
        assert_eq!(slice.take_recent(), None);
        slice.reached(now);
        slice.end_early(OWNER).await;
        assert_eq!(slice.take_recent(), None);
    }

    /// Without the limit, all busy dispatchers would run between two polls of another task.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    #[expect(clippy::disallowed_methods, reason = "the tasks end with the test")]
    async fn promise_4_a_task_of_the_host_waits_behind_a_few_of_many_busy_dispatchers() {
        const DISPATCHERS: u32 = 1_000;
        let (limit, is_over) = (BusyLimit::new(1), Arc::new(AtomicBool::new(false)));
        let counts: Arc<Vec<AtomicU32>> = Arc::new((0..DISPATCHERS).map(|_| AtomicU32::new(0)).collect());
        let read = |counts: &[AtomicU32]| counts.iter().map(|count| count.load(Relaxed)).collect::<Vec<_>>();
        let busy: Vec<_> = (0..DISPATCHERS)
            .map(|number| {
                let (limit, is_over, counts) = (limit.clone(), is_over.clone(), counts.clone());
                tokio::spawn(async move {
                    let mut slice = Slice::new(limit);
                    while !is_over.load(Relaxed) {
                        counts[number as usize].fetch_add(1, Relaxed);
                        slice.end_after_length(OWNER).await;
                    }
                })
            })
            .collect();
        let host = tokio::spawn({
            let counts = counts.clone();
            async move {
                // Each dispatcher has run its first slice.
                while read(&counts).contains(&0) {
                    go_behind_the_queue().await;
                }
                let (first, mut longest) = (read(&counts), 0);
                let mut last = first.clone();
                while last.iter().sum::<u32>() < first.iter().sum::<u32>() + 4 * DISPATCHERS {
                    go_behind_the_queue().await;
                    let now = read(&counts);
                    longest = longest.max(now.iter().sum::<u32>() - last.iter().sum::<u32>());
                    last = now;
                }
                let slices: Vec<_> = last.iter().zip(first).map(|(last, first)| last - first).collect();
                (longest, slices)
            }
        });
        let (longest, slices) = host.await.unwrap();
        is_over.store(true, Relaxed);
        for task in busy {
            task.await.unwrap();
        }
        assert!(longest <= 8 * PER_WORKER as u32, "{longest} slices between two polls of a task of the host");
        let (least, most) = (slices.iter().min().unwrap(), slices.iter().max().unwrap());
        // One may be two slices ahead of another that has a permit.
        assert!(most - least <= 3, "the dispatchers take turns: {least} to {most} slices");
    }

    /// Runs dispatchers with these weights that are always busy. Returns how many slices each had.
    #[expect(clippy::disallowed_methods, reason = "the tasks end with the test")]
    async fn slices_of(weights: &'static [u32], n_slices: u32) -> Vec<u32> {
        let limit = BusyLimit::new(1);
        let counts: Arc<Vec<AtomicU32>> = Arc::new(weights.iter().map(|_| AtomicU32::new(0)).collect());
        let total = Arc::new(AtomicU32::new(0));
        let busy: Vec<_> = weights
            .iter()
            .enumerate()
            .map(|(number, weight)| {
                let (limit, counts, total) = (limit.clone(), counts.clone(), total.clone());
                tokio::spawn(async move {
                    let mut slice = Slice::new(limit);
                    while total.fetch_add(1, Relaxed) < n_slices {
                        counts[number].fetch_add(1, Relaxed);
                        slice.end_after_length(SliceOwner { has_call: false, weight: *weight }).await;
                    }
                })
            })
            .collect();
        for task in busy {
            task.await.unwrap();
        }
        counts.iter().map(|count| count.load(Relaxed)).collect()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    #[expect(clippy::disallowed_methods, reason = "the tasks end with the test")]
    async fn busy_dispatchers_run_in_proportion_to_the_weight_of_their_plugins() {
        let slices = tokio::spawn(slices_of(&[100, 1_000, 100, 300, 50], 15_500)).await.unwrap();
        for (slices, expected) in slices.iter().zip([1_000, 10_000, 1_000, 3_000, 500_u32]) {
            assert!(slices.abs_diff(expected) <= expected / 20 + 20, "{slices} for {expected}");
        }
    }

    /// The end of a call may be older than the slice in which the dispatcher hears of it.
    #[tokio::test(start_paused = true)]
    async fn the_time_before_a_slice_does_not_count() {
        let mut slice = Slice::new(BusyLimit::new(1));
        let began = Instant::now();
        slice.end_early(OWNER).await;
        tokio::time::advance(9 * LENGTH).await;
        slice.end_early(OWNER).await;
        slice.reached(began + LENGTH);
        slice.reached(began + 8 * LENGTH);
        assert!(!slice.is_over);
        assert_eq!(slice.take_recent(), None);
        slice.reached(began + 10 * LENGTH);
        assert!(slice.is_over);
    }
}
