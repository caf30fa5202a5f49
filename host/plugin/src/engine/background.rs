//! The threads for guests that compute for long, or use more than others.
//!
//! A worker of the runtime polls guests between the host's tasks, sockets and timers. While a guest has its
//! time slice, what the worker does next waits. The threads here have a lower priority than the workers: the
//! kernel stops a guest as soon as a worker has something to do. There are as many threads as guests may run
//! at the same time, and the [scheduler](super::scheduler) decides which guests these are. The threads start
//! with the first guest that needs one.

use std::{
    cell::Cell,
    future::Future,
    pin::Pin,
    sync::OnceLock,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use futures::{FutureExt as _, future::RemoteHandle};
use futures_executor::ThreadPool;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio_util::context::TokioContext;

use super::Share;

/// By how much the priority of the threads is lower, as `nice` counts. It is the lowest one: beside a worker
/// that is always busy, a thread gets a hundredth of the core. Guests on workers then wait for a permit that a
/// guest in the background has, so the worker is not always busy with them.
const NICE: i32 = 19;

thread_local! {
    static IS_BACKGROUND: Cell<bool> = const { Cell::new(false) };
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
    threads: OnceLock<Option<ThreadPool>>,
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
    InBackground(RemoteHandle<T>),
}

/// Work of a guest that is moved between threads.
type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

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
        Self { n_threads, threads: OnceLock::new() }
    }

    /// Returns the threads. None on a runtime of one thread: its clock may be paused, and would go on while
    /// that thread waits.
    fn threads(&self) -> Option<&ThreadPool> {
        match Handle::current().runtime_flavor() {
            RuntimeFlavor::CurrentThread => None,
            _ => self.threads.get_or_init(|| self.start()).as_ref(),
        }
    }

    fn start(&self) -> Option<ThreadPool> {
        let mut threads = ThreadPool::builder();
        threads.pool_size(self.n_threads).name_prefix("oarlock-guest-").after_start(|_| {
            IS_BACKGROUND.set(true);
            // Of this thread only. The kernel refuses no lower priority.
            let _ = rustix::process::nice(NICE);
        });
        threads
            .create()
            .inspect_err(
                |error| tracing::warn!(%error, "guests that compute for long run on the runtime's workers"),
            )
            .ok()
    }
}

// === impl Run ===

impl<T: Send + 'static> Run<T> {
    pub(super) fn new(share: &Share, work: Work<T>) -> Self {
        let mut run = Self { share: share.clone(), work: Place::Here(work) };
        run.move_if_due();
        run
    }

    /// Returns whether the caller's task does not poll the work any more.
    #[must_use]
    pub fn is_in_background(&self) -> bool {
        matches!(self.work, Place::InBackground(_))
    }

    fn move_if_due(&mut self) {
        if let Place::Here(work) = &mut self.work
            && self.share.belongs_in_background()
            && let Some(threads) = self.share.background().threads()
        {
            let work = std::mem::replace(work, Box::pin(std::future::pending()));
            // In the context of the caller's runtime.
            let (work, result) = TokioContext::new(work, Handle::current()).remote_handle();
            threads.spawn_ok(work);
            self.work = Place::InBackground(result);
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
            Place::InBackground(result) => result.poll_unpin(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        panic::AssertUnwindSafe,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering::Relaxed},
        },
        thread,
    };

    use futures::poll;
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
        name.starts_with("oarlock-guest-")
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
