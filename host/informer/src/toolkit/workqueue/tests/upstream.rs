//! Upstream's cases of the work queue that are more than one clause, each under its name.

use std::collections::HashSet;

use tokio_util::sync::CancellationToken;

use super::*;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// The two ways to shut down.
const WAYS: [Shutdown; 2] = [Shutdown::Now, Shutdown::Draining];

async fn shut_down<K: Clone + Eq + Hash>(queue: &WorkQueue<K>, way: Shutdown) {
    match way {
        Shutdown::Draining => queue.shut_down_with_drain().await,
        _ => queue.shut_down(),
    }
}

/// Many producers and consumers lose nothing and never work on one key twice at a time.
// Conformance: 35.1
#[tokio::test(start_paused = true)]
async fn basic_fifty_producers_and_ten_consumers() {
    for way in WAYS {
        let queue = WorkQueue::<u32>::default();
        let produce = |producer: u32| {
            let queue = queue.clone();
            async move {
                for i in 0..50 {
                    queue.add(producer * 50 + i % 25);
                    tokio::time::sleep(ms(1)).await;
                }
            }
        };
        let in_work = Mutex::new(HashSet::new());
        let worked = Mutex::new(HashSet::new());
        let consume = || async {
            while let Some(key) = queue.get().await {
                assert!(in_work.lock().insert(key));
                tokio::time::sleep(ms(3)).await;
                in_work.lock().remove(&key);
                worked.lock().insert(key);
                queue.done(&key);
            }
        };
        let producers = async {
            futures::future::join_all((0..50).map(produce)).await;
            shut_down(&queue, way).await;
            queue.add(u32::MAX);
        };
        tokio::join!(producers, futures::future::join_all((0..10).map(|_| consume())));
        assert!(queue.is_empty());
        assert_eq!(worked.lock().len(), 50 * 25, "nothing is lost, and nothing added after the shutdown");
    }
}

// Conformance: 35.2
#[tokio::test(start_paused = true)]
async fn add_while_processing_runs_each_key_twice() {
    for way in WAYS {
        let queue = WorkQueue::<u32>::default();
        let again = Mutex::new(HashSet::new());
        let n_worked = AtomicUsize::new(0);
        let all_worked = CancellationToken::new();
        let consume = || async {
            while let Some(key) = queue.get().await {
                if again.lock().insert(key) {
                    queue.add(key);
                }
                tokio::task::yield_now().await;
                if n_worked.fetch_add(1, Ordering::Relaxed) + 1 == 100 {
                    all_worked.cancel();
                }
                queue.done(&key);
            }
        };
        let produce = async {
            for key in 0..50 {
                queue.add(key);
            }
            all_worked.cancelled().await;
            shut_down(&queue, way).await;
        };
        tokio::join!(produce, futures::future::join_all((0..10).map(|_| consume())));
        assert!(queue.is_empty());
        assert_eq!(n_worked.load(Ordering::Relaxed), 100);
    }
}

/// Hands out what was touched last first.
#[derive(Default)]
struct LastTouched {
    keys: Vec<&'static str>,
    n_touched: Arc<AtomicUsize>,
}

impl Order<&'static str> for LastTouched {
    fn push(&mut self, key: &'static str) {
        self.keys.push(key);
    }

    fn pop(&mut self) -> Option<&'static str> {
        self.keys.pop()
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn touch(&mut self, key: &&'static str) {
        self.n_touched.fetch_add(1, Ordering::Relaxed);
        self.keys.retain(|other| other != key);
        self.keys.push(key);
    }
}

// Conformance: 35.5
#[tokio::test(start_paused = true)]
async fn collapse_two_adds_into_one_delivery_and_a_touch() {
    let order = LastTouched::default();
    let n_touched = order.n_touched.clone();
    let queue = WorkQueue::new(Config { order: Box::new(order), ..Config::default() });
    queue.add("bar");
    queue.add("foo");
    queue.add("bar");
    assert_eq!((queue.len(), n_touched.load(Ordering::Relaxed)), (2, 1));
    assert_eq!(get(&queue), Some("bar"), "the order has moved it");
    queue.add("bar");
    assert_eq!(n_touched.load(Ordering::Relaxed), 1, "what is worked on does not wait");
    assert_eq!(get(&queue), Some("foo"));
    queue.done(&"foo");
    queue.done(&"bar");
    assert_eq!([get(&queue), get(&queue)], [Some("bar"), None]);
}

// Conformance: 35.7
#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_both_keys_in_process() {
    let queue = queue();
    queue.add("foo");
    queue.add("bar");
    assert_eq!([get(&queue), get(&queue)], [Some("foo"), Some("bar")]);
    let mut drain = Box::pin(queue.shut_down_with_drain());
    assert!(drain.as_mut().now_or_never().is_none());
    assert!(queue.is_shutting_down());
    assert_eq!(queue.get().await, None);
    queue.done(&"foo");
    assert!(drain.as_mut().now_or_never().is_none());
    queue.done(&"bar");
    drain.await;
}

// Conformance: 35.8
#[tokio::test(start_paused = true)]
async fn a_plain_shutdown_does_not_drain() {
    let queue = queue();
    queue.add("foo");
    queue.add("bar");
    assert_eq!([get(&queue), get(&queue)], [Some("foo"), Some("bar")]);
    queue.shut_down();
    assert_eq!(queue.get().await, None);
    assert_eq!(queue.shared.state.lock().processing.len(), 2, "no worker called done");
}

// Conformance: 32.3
#[tokio::test(start_paused = true)]
async fn add_two_fire_early_each_at_its_own_time() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after("first", ms(1000));
    queue.add_after("second", ms(50));
    assert_eq!((queue.get().await, start.elapsed()), (Some("second"), ms(50)));
    queue.add_after("third", ms(2000));
    assert_eq!((queue.get().await, start.elapsed()), (Some("first"), ms(1000)));
    assert_eq!((queue.get().await, start.elapsed()), (Some("third"), ms(2050)));
}

// Conformance: 32.4
#[tokio::test(start_paused = true)]
async fn copy_shifting_keeps_the_order() {
    let queue = queue();
    for (key, delay) in [("first", 1000), ("second", 500), ("third", 250)] {
        queue.add_after(key, ms(delay));
    }
    tokio::time::advance(ms(2000)).await;
    assert_eq!(queue.len(), 3);
    assert_eq!([get(&queue), get(&queue), get(&queue)], [Some("third"), Some("second"), Some("first")]);
}

/// Remembers the names that it was asked for.
#[derive(Default)]
struct Provider {
    names: Mutex<Vec<String>>,
    counts: Arc<Counts>,
}

impl MetricsProvider for Provider {
    fn metrics(&self, queue: &str) -> Arc<dyn WorkQueueMetrics> {
        self.names.lock().push(queue.to_owned());
        self.counts.clone()
    }
}

// Conformance: 33.1
#[tokio::test(start_paused = true)]
async fn metric_shutdown_ends_the_periodic_update() {
    let provider = Provider::default();
    let queue = WorkQueue::new(Config::named("test", &provider));
    assert_eq!(*provider.names.lock(), ["test"]);
    let n_updates = || provider.counts.unfinished.lock().len();
    queue.add("foo");
    queue.add("bar");
    get(&queue);
    let use_it = async {
        tokio::time::sleep(ms(250)).await;
        get(&queue);
        tokio::time::sleep(ms(1000)).await;
        assert_eq!(n_updates(), 3);
        queue.shut_down();
    };
    tokio::join!(queue.report_unfinished(), use_it);
    let expected =
        [(0, 0), (500 + 250, 500), (1000 + 750, 1000)].map(|(all, longest)| (ms(all), ms(longest)));
    assert_eq!(*provider.counts.unfinished.lock(), expected);
    tokio::time::advance(seconds(10)).await;
    assert_eq!(n_updates(), 3, "no update after the shutdown");
    queue.report_unfinished().await;
    assert_eq!(n_updates(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_queue_without_a_name_has_no_metrics_wm_01() {
    let provider = Provider::default();
    let queue = WorkQueue::new(Config::named("", &provider));
    queue.add("foo");
    assert!(provider.names.lock().is_empty());
    assert_eq!(provider.counts.added.load(Ordering::Relaxed), 0);
}

// Conformance: 36.1
#[tokio::test(start_paused = true)]
async fn rate_limiting_queue_delays_each_key_on_its_own() {
    let limiter = rate_limiter::Exponential::new(ms(1), ms(1000));
    let queue = WorkQueue::new(Config { rate_limiter: Box::new(limiter), ..Config::default() });
    let delay = async |key: &'static str| {
        let start = Instant::now();
        queue.add_rate_limited(key);
        assert_eq!(queue.get().await, Some(key));
        queue.done(&key);
        start.elapsed()
    };
    assert_eq!([delay("one").await, delay("one").await], [ms(1), ms(2)]);
    assert_eq!([delay("two").await, delay("two").await], [ms(1), ms(2)]);
    assert_eq!((queue.n_requeues(&"one"), queue.n_requeues(&"two")), (2, 2));
    queue.forget(&"one");
    assert_eq!((queue.n_requeues(&"one"), queue.n_requeues(&"two")), (0, 2));
    assert_eq!([delay("one").await, delay("two").await], [ms(1), ms(4)]);
}
