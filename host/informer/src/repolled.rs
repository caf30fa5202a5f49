//! Polls a future again when it wakes itself, without the scheduler.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;
use tokio::task::coop;

/// The number of polls in a row, after which other tasks run.
const MAX_POLLS: usize = 4;

/// No thread polls the future. No thread has this [mark](mark_of_thread).
const NO_THREAD: usize = 0;

/// The waker of the future.
struct OwnWaker {
    /// The mark of the thread that polls the future.
    polled_by: AtomicUsize,
    /// That thread has woken the future during the poll.
    is_woken: AtomicBool,
    task: AtomicWaker,
}

/// Polls a future, and polls it again at once when it has woken itself.
///
/// This is for futures that run several others, which wake each other: the reflector queues a change for the
/// part that handles it. tokio would queue the running task again for such a wake-up, and wake another worker
/// for it, which costs more than to handle the change. Wake-ups by other threads, and those that come while
/// the future is not being polled, wake the task as usual. So `yield_now` yields to other tasks, unless the
/// future wakes itself after it.
pub(crate) async fn repolled<F: Future>(mut future: Pin<&mut F>) -> F::Output {
    let own = Arc::new(OwnWaker {
        polled_by: AtomicUsize::new(NO_THREAD),
        is_woken: AtomicBool::new(false),
        task: AtomicWaker::new(),
    });
    let waker = Waker::from(own.clone());
    poll_fn(move |context| {
        own.task.register(context.waker());
        for _ in 0..MAX_POLLS {
            own.polled_by.store(mark_of_thread(), Ordering::Relaxed);
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            own.polled_by.store(NO_THREAD, Ordering::Relaxed);
            if polled.is_ready() || !own.is_woken.swap(false, Ordering::Relaxed) {
                return polled;
            }
            // Without a budget the next poll could do nothing, and would wait until the worker parks.
            if !coop::has_budget_remaining() {
                break;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// Returns a number that no other running thread has.
fn mark_of_thread() -> usize {
    thread_local! {
        static MARK: u8 = const { 0 };
    }
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}

// === impl OwnWaker ===

impl Wake for OwnWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Only the polling thread finds its own mark, and only it uses `is_woken`. So relaxed accesses are
        // enough.
        if self.polled_by.load(Ordering::Relaxed) == mark_of_thread() {
            self.is_woken.store(true, Ordering::Relaxed);
        } else {
            self.task.wake();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts the wake-ups of a task.
    #[derive(Default)]
    pub(crate) struct Wakeups(AtomicUsize);

    impl Wake for Wakeups {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Wakeups {
        pub(crate) fn count(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_wake_up_during_a_poll_polls_again_without_the_task() {
        let wakeups = Arc::new(Wakeups::default());
        let n_polls = Cell::new(0);
        let inner = pin!(poll_fn(|context| {
            n_polls.set(n_polls.get() + 1);
            if n_polls.get() == 1 {
                context.waker().wake_by_ref();
                context.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        }));
        let mut future = pin!(repolled(inner));
        let waker = Waker::from(wakeups.clone());
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!((n_polls.get(), wakeups.count()), (2, 0));
    }

    #[test]
    fn a_later_wake_up_wakes_the_task() {
        let wakeups = Arc::new(Wakeups::default());
        let kept = Cell::new(None);
        let inner = pin!(poll_fn(|context| {
            kept.set(Some(context.waker().clone()));
            Poll::<()>::Pending
        }));
        let mut future = pin!(repolled(inner));
        let waker = Waker::from(wakeups.clone());
        for n in 1..3 {
            assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            kept.take().unwrap().wake();
            assert_eq!(wakeups.count(), n);
        }
    }

    /// A future that has yielded to other tasks is not polled again before they have run.
    #[test]
    fn a_wake_up_by_another_thread_during_a_poll_wakes_the_task() {
        let wakeups = Arc::new(Wakeups::default());
        let n_polls = Cell::new(0);
        let inner = pin!(poll_fn(|context| {
            n_polls.set(n_polls.get() + 1);
            let waker = context.waker().clone();
            std::thread::spawn(move || waker.wake()).join().unwrap();
            Poll::<()>::Pending
        }));
        let mut future = pin!(repolled(inner));
        let waker = Waker::from(wakeups.clone());
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!((n_polls.get(), wakeups.count()), (1, 1));
    }

    #[tokio::test]
    async fn a_future_without_budget_is_not_polled_again() {
        let wakeups = Arc::new(Wakeups::default());
        let n_polls = Cell::new(0);
        let inner = pin!(poll_fn(|context| {
            n_polls.set(n_polls.get() + 1);
            while coop::has_budget_remaining() {
                assert!(pin!(coop::consume_budget()).poll(context).is_ready());
            }
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        }));
        let mut future = pin!(repolled(inner));
        let waker = Waker::from(wakeups.clone());
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!((n_polls.get(), wakeups.count()), (1, 1));
    }

    #[test]
    fn a_future_that_always_wakes_itself_lets_other_tasks_run() {
        let wakeups = Arc::new(Wakeups::default());
        let n_polls = Cell::new(0);
        let inner = pin!(poll_fn(|context| {
            n_polls.set(n_polls.get() + 1);
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        }));
        let mut future = pin!(repolled(inner));
        let waker = Waker::from(wakeups.clone());
        for n in 1..3 {
            assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            assert_eq!((n_polls.get(), wakeups.count()), (n * MAX_POLLS, n));
        }
    }

    #[tokio::test]
    async fn no_wake_up_from_another_thread_is_lost() {
        const N: usize = 20_000;
        let counter = Arc::new(AtomicUsize::new(0));
        let signal = Arc::new(AtomicWaker::new());
        let thread = std::thread::spawn({
            let (counter, signal) = (counter.clone(), signal.clone());
            move || {
                for _ in 0..N {
                    counter.fetch_add(1, Ordering::Release);
                    signal.wake();
                }
            }
        });
        // Ends only if the last wake-up arrives.
        repolled(pin!(poll_fn(|context| {
            signal.register(context.waker());
            if counter.load(Ordering::Acquire) == N { Poll::Ready(()) } else { Poll::Pending }
        })))
        .await;
        thread.join().unwrap();
    }
}
