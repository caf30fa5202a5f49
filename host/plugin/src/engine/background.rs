//! The threads for guests that compute for long, or use more than others.
//!
//! A worker of the runtime polls guests between the host's tasks, sockets and timers. While a guest has its
//! time slice, what the worker does next waits. The threads here have a lower priority than the workers: the
//! kernel stops a guest as soon as a worker has something to do. There are as many threads as guests may run
//! at the same time, and the [scheduler](super::scheduler) decides which guests these are. They are the
//! workers of a runtime of their own, which starts with the first guest that needs it: a guest whose time
//! slice ended goes behind those that are ready.
//!
//! A thread that is started from here inherits the low priority, and cannot raise it again. So nothing that a
//! guest calls may start one, such as with `spawn_blocking`: such work is done in a task of the caller's
//! runtime.

use std::{
    cell::Cell,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, Wake, Waker, ready},
    time::{Duration, Instant},
};

use futures::task::AtomicWaker;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{self, Handle, Runtime, RuntimeFlavor};
use tokio_util::task::AbortOnDropHandle;

use super::{Share, nanos};

/// By how much the priority of the threads is lower, as `nice` counts: the most that there is.
const NICE: i32 = 19;

thread_local! {
    static IS_BACKGROUND: Cell<bool> = const { Cell::new(false) };
    /// How long the guest that is polled was ready before.
    static WAS_READY_FOR: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Measures how long a guest runs: the CPU time of a thread of [`Background`], the elapsed time elsewhere.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    began: Instant,
    cpu_began: Option<Duration>,
}

/// The threads of one engine.
#[derive(Debug)]
pub(super) struct Background {
    n_threads: usize,
    /// `None` if the threads cannot be started.
    runtime: OnceLock<Option<Runtime>>,
}

/// Work of a guest in the caller's task, until the guest belongs in the background. Then it goes on there.
///
/// Dropping it drops the work.
#[must_use = "it does nothing unless it is polled"]
pub struct Run<T> {
    share: Share,
    work: Place<T>,
}

enum Place<T> {
    Here(Work<T>),
    InBackground(AbortOnDropHandle<T>),
}

/// Work of a guest that is moved between threads.
type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Work in the background. It is polled and dropped in the context of the caller's runtime, whose timers and
/// sockets it uses.
struct Moved<T> {
    runtime: Handle,
    ready: Arc<Ready>,
    /// `None` once it is dropped.
    work: Option<Work<T>>,
}

/// Since when a guest in the background is ready to be polled.
struct Ready {
    made: Instant,
    /// In nanoseconds since `made`, and at least 1. 0 if it is not ready.
    since: AtomicU64,
    task: AtomicWaker,
}

/// Returns whether this is a thread of [`Background`].
pub(super) fn is_here() -> bool {
    IS_BACKGROUND.get()
}

/// Returns the CPU time that this thread has used; `None` on another thread than those of [`Background`].
///
/// A guest that runs there does not pay for the time in which the kernel has stopped it.
pub(super) fn cpu_time() -> Option<Duration> {
    is_here().then(|| clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default())
}

/// Returns how long the guest that is polled was ready before, while its thread had other guests or did not
/// run. Zero on a worker, and when it is called again in the same poll.
pub(crate) fn take_ready_time() -> Duration {
    WAS_READY_FOR.take()
}

// === impl Stopwatch ===

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self { began: Instant::now(), cpu_began: cpu_time() }
    }

    /// Returns how long the guest has run. Call it on the thread on which the watch was started.
    pub(crate) fn elapsed(&self) -> Duration {
        match (self.cpu_began, cpu_time()) {
            (Some(began), Some(now)) => now.saturating_sub(began),
            _ => self.began.elapsed(),
        }
    }
}

// === impl Background ===

impl Background {
    pub(super) fn new(n_threads: usize) -> Self {
        Self { n_threads, runtime: OnceLock::new() }
    }

    /// Returns whether there are threads: not for a runtime of one thread, whose clock may be paused, and
    /// would go on while that thread waits. Call it within a runtime.
    pub(super) fn is_available(&self) -> bool {
        self.runtime().is_some()
    }

    fn runtime(&self) -> Option<&Runtime> {
        match Handle::current().runtime_flavor() {
            RuntimeFlavor::CurrentThread => None,
            _ => self.runtime.get_or_init(|| self.start()).as_ref(),
        }
    }

    fn start(&self) -> Option<Runtime> {
        let mut threads = runtime::Builder::new_multi_thread();
        threads
            .worker_threads(self.n_threads)
            .thread_name("oarlock-guest")
            // What comes from the workers is before the guests that were polled already.
            .global_queue_interval(1)
            // A guest whose import yields is polled again after one turn, not after 61. There are no sockets
            // and timers to poll.
            .event_interval(1)
            .on_thread_start(|| {
                IS_BACKGROUND.set(true);
                // On Linux of this thread only. The kernel refuses no lower priority.
                #[cfg(target_os = "linux")]
                let _ = rustix::process::nice(NICE);
            });
        // tokio panics if the system starts no further thread.
        let started = catch_unwind(AssertUnwindSafe(|| threads.build().ok())).ok().flatten();
        if started.is_none() {
            tracing::warn!(
                "no threads can be started: guests that compute for long run on the runtime's workers"
            );
        }
        started
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(Some(runtime)) = self.runtime.take() {
            // Another runtime may be running this.
            runtime.shutdown_background();
        }
    }
}

// === impl Run ===

impl<T: Send + 'static> Run<T> {
    pub(super) fn new(share: &Share, work: Work<T>) -> Self {
        Self { share: share.clone(), work: Place::Here(work) }
    }

    /// Returns whether the caller's task does not poll the work any more.
    #[must_use]
    pub fn is_in_background(&self) -> bool {
        matches!(self.work, Place::InBackground(_))
    }

    /// Moves it to the background if its guest belongs there.
    pub(super) fn move_if_due(&mut self) {
        if !self.is_in_background() && self.share.belongs_in_background() {
            self.move_away();
        }
    }

    /// Moves it to the background, if there are threads.
    pub(super) fn move_away(&mut self) {
        if let Place::Here(work) = &mut self.work
            && let Some(runtime) = self.share.background().runtime()
        {
            let work = std::mem::replace(work, Box::pin(std::future::pending()));
            let moved = Moved { runtime: Handle::current(), ready: Ready::new(), work: Some(work) };
            self.work = Place::InBackground(AbortOnDropHandle::new(runtime.spawn(moved)));
        }
    }
}

impl<T: Send + 'static> Future for Run<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        if let Place::Here(work) = &mut self.work {
            let polled = work.as_mut().poll(context);
            if polled.is_ready() {
                return polled;
            }
            self.move_if_due();
        }
        match &mut self.work {
            Place::Here(_) => Poll::Pending,
            Place::InBackground(task) => match ready!(Pin::new(task).poll(context)) {
                Ok(result) => Poll::Ready(result),
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => resume_unwind(panic),
                    // The threads end with the last share, and this one is there.
                    Err(_) => Poll::Pending,
                },
            },
        }
    }
}

// === impl Moved ===

impl<T> Future for Moved<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Self { runtime, ready, work } = &mut *self;
        let Some(work) = work else { return Poll::Pending };
        let _context = runtime.enter();
        WAS_READY_FOR.set(ready.polled(context.waker()));
        let polled = work.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(ready))));
        ready.poll_ended();
        polled
    }
}

impl<T> Drop for Moved<T> {
    fn drop(&mut self) {
        let _context = self.runtime.enter();
        self.work = None;
    }
}

// === impl Ready ===

impl Ready {
    /// The task is ready from the begin.
    fn new() -> Arc<Self> {
        Arc::new(Self { made: Instant::now(), since: AtomicU64::new(1), task: AtomicWaker::new() })
    }

    /// Notes that the task is polled. Returns how long it was ready.
    fn polled(&self, waker: &Waker) -> Duration {
        self.task.register(waker);
        match self.since.swap(0, Relaxed) {
            0 => Duration::ZERO,
            since => self.made.elapsed().saturating_sub(Duration::from_nanos(since)),
        }
    }

    /// Notes the end of a poll: a task that was woken in it is ready from now on.
    fn poll_ended(&self) {
        if self.since.load(Relaxed) != 0 {
            self.since.store(self.elapsed(), Relaxed);
        }
    }

    fn elapsed(&self) -> u64 {
        nanos(self.made.elapsed()).max(1)
    }
}

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let _ = self.since.compare_exchange(0, self.elapsed(), Relaxed, Relaxed);
        self.task.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicBool, AtomicU32},
        thread,
    };

    use futures::{FutureExt as _, poll};
    use oarlock_wait_until::{LIMIT, wait_until};

    use super::*;
    use crate::engine::{Turn, scheduler::Scheduler};

    const SLICE: Duration = Duration::from_millis(1);

    /// Returns the share of a plugin that computes for long.
    fn long() -> Share {
        let share = Scheduler::new(1).share(100);
        (0..9).for_each(|_| share.charge(SLICE));
        share
    }

    /// Returns work that computes for so many slices, and then returns the names of the threads that polled
    /// it.
    fn computes(share: &Share, slices: usize) -> impl Future<Output = Vec<String>> + Send + use<> {
        let share = share.clone();
        let mut names = Vec::new();
        std::future::poll_fn(move |context| {
            names.push(thread::current().name().unwrap_or_default().to_owned());
            if names.len() == slices {
                return Poll::Ready(std::mem::take(&mut names));
            }
            share.charge(SLICE);
            context.waker().wake_by_ref();
            Poll::Pending
        })
    }

    fn is_background(name: &str) -> bool {
        name == "oarlock-guest"
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn promise_4_a_guest_that_computes_for_long_leaves_the_worker() {
        let share = Scheduler::new(1).share(100);
        let first = share.run(computes(&share, 4)).await;
        assert!(!is_background(&first[0]) && is_background(&first[3]), "{first:?}");
        let second = share.run(computes(&share, 2)).await;
        assert!(second.iter().all(|it| is_background(it)), "{second:?}");
        (0..100).for_each(|_| share.charge(SLICE / 1000));
        let brief = share.run(computes(&share, 1)).await;
        assert!(!brief.iter().any(|it| is_background(it)), "{brief:?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn promise_4_a_guest_that_computes_in_the_background_lets_others_run() {
        let scheduler = Scheduler::new(1);
        let (share, other) = (scheduler.share(100), scheduler.share(100));
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        // As the scheduler does it while no guest waits for a permit: the guest wakes itself.
        let endless = share.run_in_background(std::future::poll_fn(move |context| {
            context.waker().wake_by_ref();
            if ends.load(Relaxed) { Poll::Ready(()) } else { Poll::Pending }
        }));
        tokio::time::timeout(LIMIT, other.run_in_background(async {}))
            .await
            .expect("it gets the only thread");
        is_over.store(true, Relaxed);
        endless.await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn promise_4_an_import_that_yields_in_the_background_waits_for_one_turn_of_others() {
        const YIELDS: u32 = 100;
        let scheduler = Scheduler::new(1);
        let (share, other) = (scheduler.share(100), scheduler.share(100));
        let turns = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&turns);
        let endless = share.run_in_background(std::future::poll_fn(move |context| {
            counted.fetch_add(1, Relaxed);
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        }));
        let taken = other.run_in_background(async move {
            let before = turns.load(Relaxed);
            for _ in 0..YIELDS {
                tokio::task::yield_now().await;
            }
            turns.load(Relaxed) - before
        });
        let taken = taken.await;
        drop(endless);
        assert!(taken <= 4 * YIELDS, "{taken} turns of the other guest");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    #[expect(clippy::disallowed_methods, reason = "the only thread is busy")]
    async fn promise_4_a_guest_does_not_pay_for_the_time_in_which_it_is_ready_and_others_run() {
        const OTHERS: Duration = Duration::from_millis(50);
        let scheduler = Scheduler::new(1);
        let share = scheduler.share(100);
        let (answers, answer) = tokio::sync::oneshot::channel();
        let guest = share.run_in_background(async move {
            answer.await.unwrap();
            (take_ready_time(), take_ready_time())
        });
        // It waits for the answer when this one is polled, which is behind it in the queue.
        let other = share.run_in_background(async move {
            answers.send(()).unwrap();
            thread::sleep(OTHERS);
        });
        other.await;
        let (was_ready_for, again) = guest.await;
        assert!(was_ready_for >= OTHERS / 2, "{was_ready_for:?}");
        assert_eq!(again, Duration::ZERO);
        assert_eq!(take_ready_time(), Duration::ZERO, "on a worker");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn one_long_poll_does_not_move_a_brief_guest() {
        let share = Scheduler::new(1).share(100);
        (0..100).for_each(|_| share.charge(SLICE / 1000));
        // The kernel has stopped the worker meanwhile.
        share.charge(1000 * SLICE);
        assert!(!share.belongs_in_background());
        (0..9).for_each(|_| share.charge(SLICE));
        assert!(share.belongs_in_background());
    }

    #[tokio::test(start_paused = true)]
    async fn a_runtime_of_one_thread_keeps_its_guests_since_its_clock_may_be_paused() {
        let names = long().run(computes(&long(), 4)).await;
        assert!(!names.iter().any(|it| is_background(it)), "{names:?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn the_priority_of_the_thread_is_lower_and_the_runtime_is_that_of_the_caller() {
        let priority = || rustix::process::getpriority_process(None).unwrap();
        let there = long().run(async move {
            tokio::time::sleep(SLICE).await;
            priority()
        });
        let expected = (priority() + NICE).min(19);
        assert_eq!(there.await, expected);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    #[expect(clippy::disallowed_methods, reason = "the thread is to use no CPU time")]
    async fn promise_4_a_guest_does_not_pay_for_the_time_in_which_the_kernel_stops_it() {
        const OTHERS: Duration = Duration::from_millis(50);
        let stopped = || {
            let turn = Turn::new();
            turn.begin_poll(Instant::now());
            // As if threads of a higher priority ran.
            thread::sleep(OTHERS);
            turn.stopped(Instant::now())
        };
        assert_eq!(stopped(), Duration::ZERO, "a worker does not ask");
        let in_background = long().run(async move { stopped() }).await;
        assert!(in_background >= OTHERS / 2, "{in_background:?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn dropping_the_run_drops_the_work_in_the_background() {
        struct Notes(Arc<AtomicBool>);
        impl Drop for Notes {
            fn drop(&mut self) {
                self.0.store(true, Relaxed);
            }
        }
        let is_dropped = Arc::new(AtomicBool::new(false));
        let notes = Notes(Arc::clone(&is_dropped));
        let mut run = long().run(async move {
            let _notes = notes;
            std::future::pending::<()>().await;
        });
        assert!(poll!(&mut run).is_pending());
        assert!(run.is_in_background());
        drop(run);
        let probe = || if is_dropped.load(Relaxed) { Ok(()) } else { Err("the work is not dropped") };
        wait_until("the work is dropped", LIMIT, probe).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_panic_in_the_background_is_one_of_the_caller() {
        let run = long().run(async { panic!("as asked") });
        let panicked: Result<(), _> = AssertUnwindSafe(run).catch_unwind().await;
        assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"as asked"));
    }
}
