//! The clauses WQ-…, DQ-…, RQ-… and WM-…, and the upstream cases 32, 33, 35 and 36.

mod durations;
mod model;
mod upstream;

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;

use super::*;

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::default()
}

fn get<K: Clone + Eq + Hash>(queue: &WorkQueue<K>) -> Option<K> {
    queue.get().now_or_never().flatten()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[derive(Default)]
struct Counts {
    added: AtomicUsize,
    unfinished: Mutex<Vec<(Duration, Duration)>>,
    depth: AtomicUsize,
    waited_ms: AtomicUsize,
    worked_ms: AtomicUsize,
    retried: AtomicUsize,
}

impl WorkQueueMetrics for Counts {
    fn added(&self) {
        self.added.fetch_add(1, Ordering::Relaxed);
    }

    fn depth(&self, depth: usize) {
        self.depth.store(depth, Ordering::Relaxed);
    }

    fn waited(&self, duration: Duration) {
        self.waited_ms.fetch_add(duration.as_millis() as usize, Ordering::Relaxed);
    }

    fn worked(&self, duration: Duration) {
        self.worked_ms.fetch_add(duration.as_millis() as usize, Ordering::Relaxed);
    }

    fn retried(&self) {
        self.retried.fetch_add(1, Ordering::Relaxed);
    }

    fn unfinished(&self, together: Duration, longest: Duration) {
        self.unfinished.lock().push((together, longest));
    }
}

// Conformance: 35.3
#[tokio::test(start_paused = true)]
async fn a_waiting_key_is_not_added_twice_wq_02() {
    let counts = Arc::new(Counts::default());
    let queue = WorkQueue::new(Config { metrics: counts.clone(), ..Config::default() });
    for (key, length) in [("foo", 1), ("bar", 2), ("foo", 2)] {
        queue.add(key);
        assert_eq!(queue.len(), length);
    }
    assert_eq!(counts.added.load(Ordering::Relaxed), 2);
    assert_eq!([get(&queue), get(&queue), get(&queue)], [Some("foo"), Some("bar"), None]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_ends_when_a_worker_gets_its_key_before() {
    let queue = queue();
    queue.retry_after("foo", seconds(1));
    tokio::time::advance(seconds(1)).await;
    assert_eq!(get(&queue), Some("foo"));
    queue.done(&"foo");
    for begins in [true, false] {
        queue.retry_after("foo", seconds(1));
        if begins {
            assert!(queue.begin("foo"));
        } else {
            queue.add("foo");
            assert_eq!(get(&queue), Some("foo"));
        }
        assert_eq!(queue.n_delayed(), 0);
        queue.done(&"foo");
        assert!(!queue.holds(&"foo"));
    }
    // A retry that is due.
    queue.add_after("foo", seconds(9));
    queue.retry_after("foo", seconds(1));
    tokio::time::advance(seconds(1)).await;
    assert_eq!(get(&queue), Some("foo"));
    queue.done(&"foo");
    assert_eq!((queue.n_delayed(), get(&queue)), (1, None), "the delay with which it was added goes on");
    tokio::time::advance(seconds(8)).await;
    assert_eq!((get(&queue), queue.n_delayed()), (Some("foo"), 0));
    queue.done(&"foo");
    // That delay goes on, whether it ends before the retry or after it.
    for (added, retry) in [(1, 2), (2, 1), (1, 1)] {
        queue.add_after("foo", seconds(added));
        queue.retry_after("foo", seconds(retry));
        queue.add("foo");
        assert_eq!(get(&queue), Some("foo"));
        queue.done(&"foo");
        assert_eq!((queue.n_delayed(), get(&queue)), (1, None));
        tokio::time::advance(seconds(added)).await;
        assert_eq!((get(&queue), queue.n_delayed()), (Some("foo"), 0));
        queue.done(&"foo");
    }
}

// Conformance: 35.4
#[tokio::test(start_paused = true)]
async fn a_key_added_during_its_processing_runs_again_wq_04_wq_05() {
    let queue = queue();
    queue.add("foo");
    assert_eq!(get(&queue), Some("foo"));
    queue.add("foo");
    queue.add("foo");
    assert_eq!((queue.len(), get(&queue)), (0, None));
    queue.done(&"foo");
    assert_eq!(get(&queue), Some("foo"));
    queue.done(&"foo");
    assert_eq!(get(&queue), None);
}

// Conformance: G.41
#[tokio::test(start_paused = true)]
async fn done_without_get_changes_nothing_wq_06() {
    let queue = queue();
    queue.add("foo");
    queue.done(&"foo");
    queue.done(&"bar");
    assert_eq!([get(&queue), get(&queue)], [Some("foo"), None]);
}

#[tokio::test(start_paused = true)]
async fn each_key_wakes_one_waiter_wq_03() {
    let queue = queue();
    let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(queue.get())).collect();
    for get in &mut waiting {
        assert!(get.now_or_never().is_none());
    }
    queue.add("a");
    queue.add("b");
    let first = waiting.remove(0);
    // One that was woken and goes away passes the wake-up on.
    drop(first);
    let got = futures::future::join_all(waiting).await;
    assert_eq!(got, [Some("a"), Some("b")].map(|key| key));
}

#[tokio::test(start_paused = true)]
async fn after_the_shutdown_waiting_keys_are_delivered_and_none_is_added_wq_07() {
    let queue = queue();
    queue.add("waiting");
    queue.add("worked on");
    queue.add_after("later", seconds(1));
    assert_eq!(get(&queue), Some("waiting"));
    queue.done(&"waiting");
    assert_eq!(get(&queue), Some("worked on"));
    queue.add("worked on");
    queue.shut_down();
    queue.add("late");
    queue.add_after("late", seconds(1));
    assert!(queue.is_shutting_down());
    assert_eq!(queue.n_delayed(), 0);
    queue.done(&"worked on");
    assert_eq!(queue.get().await, Some("worked on"));
    assert_eq!(queue.get().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_wakes_all_waiters_wq_07() {
    let queue = queue();
    let waiting: Vec<_> = (0..3).map(|_| queue.get()).collect();
    let all = futures::future::join_all(waiting);
    let (got, ()) = tokio::join!(all, async { queue.shut_down() });
    assert_eq!(got, [None; 3]);
}

// Conformance: G.41
#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_the_keys_in_process_wq_08() {
    let queue = queue();
    queue.add("foo");
    queue.add("bar");
    queue.add("waits");
    get(&queue);
    get(&queue);
    let mut drain = Box::pin(queue.shut_down_with_drain());
    assert!(drain.as_mut().now_or_never().is_none());
    queue.done(&"foo");
    assert!(drain.as_mut().now_or_never().is_none());
    queue.done(&"bar");
    drain.await;
    assert_eq!(queue.get().await, Some("waits"));
    assert_eq!(queue.get().await, None);

    // Without keys in process the drain does not wait for queued keys.
    let idle = self::queue();
    idle.add("waits");
    assert!(idle.shut_down_with_drain().now_or_never().is_some());
}

// Conformance: 35.9
#[tokio::test(start_paused = true)]
async fn a_plain_shutdown_ends_a_drain_wq_08() {
    let queue = queue();
    queue.add("foo");
    get(&queue);
    let mut drain = Box::pin(queue.shut_down_with_drain());
    assert!(drain.as_mut().now_or_never().is_none());
    queue.shut_down();
    drain.await;
}

// Conformance: 35.11
#[tokio::test(start_paused = true)]
async fn a_finished_key_leaves_no_memory_wq_10() {
    let queue = WorkQueue::<Arc<str>>::default();
    let key: Arc<str> = Arc::from("key");
    queue.add(key.clone());
    queue.add_after(key.clone(), seconds(1));
    queue.add_rate_limited(key.clone());
    queue.done(&queue.get().await.unwrap());
    tokio::time::advance(seconds(1)).await;
    queue.done(&queue.get().await.unwrap());
    queue.forget(&key);
    assert_eq!((Arc::strong_count(&key), queue.len()), (1, 0));
}

// Conformance: 32.1
#[tokio::test(start_paused = true)]
async fn a_delayed_key_is_added_after_its_delay_dq_01() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after("foo", seconds(50));
    assert_eq!(queue.len(), 0);
    assert_eq!(queue.get().await, Some("foo"));
    assert_eq!(start.elapsed(), seconds(50));
    queue.done(&"foo");
    tokio::time::advance(seconds(100)).await;
    assert_eq!(get(&queue), None);
    queue.add_after("now", Duration::ZERO);
    assert_eq!(get(&queue), Some("now"));
}

#[tokio::test(start_paused = true)]
async fn the_earlier_of_two_delays_counts_dq_02() {
    let queue = queue();
    for (first, second) in [(10, 5), (5, 10)] {
        let start = Instant::now();
        queue.add_after("foo", seconds(first));
        queue.add_after("foo", seconds(second));
        assert_eq!(queue.n_delayed(), 1);
        assert_eq!(queue.get().await, Some("foo"));
        assert_eq!(start.elapsed(), seconds(5));
        queue.done(&"foo");
    }
}

#[tokio::test(start_paused = true)]
async fn delayed_keys_are_added_in_the_order_of_their_due_times_dq_03() {
    let queue = queue();
    for (key, delay) in [("one", 3), ("two", 2), ("three", 1)] {
        queue.add_after(key, seconds(delay));
    }
    tokio::time::advance(seconds(10)).await;
    assert_eq!(queue.len(), 3);
    assert_eq!([get(&queue), get(&queue), get(&queue)], [Some("three"), Some("two"), Some("one")]);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_computes_its_timeout_again_for_an_earlier_key_dq_03() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after("late", seconds(10));
    let add = async {
        tokio::time::sleep(seconds(1)).await;
        queue.add_after("soon", seconds(1));
    };
    let (got, ()) = tokio::join!(queue.get(), add);
    assert_eq!((got, start.elapsed()), (Some("soon"), seconds(2)));
}

#[tokio::test(start_paused = true)]
async fn a_plain_add_does_not_cancel_a_delay_dq_04() {
    let queue = queue();
    queue.add_after("foo", seconds(1));
    queue.add("foo");
    assert_eq!(get(&queue), Some("foo"));
    queue.done(&"foo");
    assert_eq!(queue.get().await, Some("foo"));
}

#[tokio::test(start_paused = true)]
async fn the_delay_of_a_failing_key_grows_rq_01() {
    let limiter = rate_limiter::Exponential::new(seconds(1), seconds(100));
    let queue = WorkQueue::new(Config { rate_limiter: Box::new(limiter), ..Config::default() });
    for expected in [1, 2, 4] {
        let start = Instant::now();
        queue.add_rate_limited("foo");
        assert_eq!(queue.get().await, Some("foo"));
        queue.done(&"foo");
        assert_eq!(start.elapsed(), seconds(expected));
    }
    assert_eq!((queue.n_requeues(&"foo"), queue.n_requeues(&"bar")), (3, 0));
    queue.forget(&"foo");
    assert_eq!(queue.n_requeues(&"foo"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_queue_publishes_its_metrics_wm_01() {
    let counts = Arc::new(Counts::default());
    let queue = WorkQueue::new(Config { metrics: counts.clone(), ..Config::default() });
    let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    queue.add("foo");
    tokio::time::advance(seconds(1)).await;
    get(&queue);
    assert_eq!((count(&counts.waited_ms), count(&counts.depth)), (1000, 0));
    queue.add("foo");
    assert_eq!(count(&counts.depth), 1, "it will run again");
    tokio::time::advance(seconds(2)).await;
    assert_eq!(queue.unfinished(), (seconds(2), seconds(2)));
    queue.done(&"foo");
    assert_eq!(count(&counts.worked_ms), 2000);
    tokio::time::advance(seconds(1)).await;
    get(&queue);
    assert_eq!(count(&counts.waited_ms), 1000 + 3000, "from the second add, not from done");
    queue.add_after("bar", Duration::ZERO);
    queue.add_after("bar", seconds(1));
    assert_eq!(count(&counts.retried), 2);
}
