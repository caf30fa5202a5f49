//! A thousand busy plugins, and the tasks and plugins beside them.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use oarlock_plugin::{CallError, Component, Engine, EngineConfig};
use serde_json::json;
use tokio::task::JoinSet;

use super::support::{Add as _, Host, deadline, engine_with, guest};

/// Plugins that compute without end, each in a task of its own.
struct Busy {
    hosts: Vec<Host>,
    tasks: JoinSet<()>,
    /// The polls of all tasks: one for each time slice.
    n_polls: Arc<AtomicU64>,
    /// The longest poll of each plugin so far, in nanoseconds.
    longest: Vec<Arc<AtomicU64>>,
}

// === impl Busy ===

impl Busy {
    /// Starts one plugin for each weight.
    async fn start(engine: &Engine, weights: impl IntoIterator<Item = u32>) -> Self {
        let component = Component::compile(engine, guest("loops")).await.unwrap();
        let mut this =
            Self { hosts: Vec::new(), tasks: JoinSet::new(), n_polls: Arc::default(), longest: Vec::new() };
        let limits = deadline(Duration::from_secs(600));
        for weight in weights {
            let host = Host::in_engine(engine, component.clone(), limits.clone(), json!({}));
            host.share.set_weight(weight);
            let mut instance = host.instance().await.unwrap();
            // The start is one poll.
            let longest = Arc::new(AtomicU64::new(host.usage.view().guest_cpu_ns));
            this.hosts.push(host);
            this.longest.push(Arc::clone(&longest));
            let n_polls = Arc::clone(&this.n_polls);
            this.tasks.spawn(async move {
                let mut call = pin!(instance.add("default", "any"));
                let ended = poll_fn(|context| {
                    n_polls.fetch_add(1, Relaxed);
                    let began = Instant::now();
                    let polled = call.as_mut().poll(context);
                    longest.fetch_max(began.elapsed().as_nanos() as u64, Relaxed);
                    polled
                });
                panic!("a loop does not end: {:?}", ended.await);
            });
        }
        this
    }

    fn n_polls(&self) -> u64 {
        self.n_polls.load(Relaxed)
    }

    /// Waits until the plugins had this many further time slices.
    async fn run_for(&self, n: u64) {
        let end = self.n_polls() + n;
        while self.n_polls() < end {
            tokio::task::yield_now().await;
        }
    }
}

fn engine() -> Engine {
    engine_with(EngineConfig { concurrent_guests: 1, ..EngineConfig::default() })
}

#[tokio::test]
async fn promise_4_a_thousand_busy_plugins_delay_a_call_of_another_by_one_slice() {
    let engine = engine();
    let component = Component::compile(&engine, guest("traps")).await.unwrap();
    let rare = Host::in_engine(&engine, component, deadline(Duration::from_secs(600)), json!({}));
    // On a busy machine a call may be interrupted, and so take long. With this weight that counts little.
    rare.share.set_weight(1_000);
    let mut instance = rare.instance().await.unwrap();
    let busy = Busy::start(&engine, [1; 1_000]).await;
    // The first poll of each only queues it.
    busy.run_for(1_200).await;
    let mut waited = Vec::new();
    for _ in 0..7 {
        busy.run_for(20).await;
        let before = busy.n_polls();
        instance.add("default", "any").await.unwrap().unwrap();
        waited.push(busy.n_polls() - before);
    }
    // A call that the kernel stops waits again. Without the promise each waits for a thousand.
    assert!(waited.iter().all(|n| *n <= 100), "slices of others that each call waited for: {waited:?}");
    assert!(waited.iter().any(|n| *n <= 2), "slices of others that each call waited for: {waited:?}");
}

#[tokio::test]
async fn promise_4_a_thousand_busy_plugins_delay_a_task_of_the_host_by_one_slice() {
    let busy = Busy::start(&engine(), [100; 1_000]).await;
    // Each is polled once until it is queued.
    busy.run_for(1_000).await;
    let before = busy.n_polls();
    for _ in 0..300 {
        tokio::task::yield_now().await;
    }
    let slices = busy.n_polls() - before;
    // Two slices in a row are shorter than a quarter of a millisecond together.
    assert!(slices < 600, "{slices} slices between 300 polls of the task");
    // The driver of timers is polled between slices as well.
    let before = busy.n_polls();
    tokio::time::sleep(Duration::ZERO).await;
    assert!(busy.n_polls() - before <= 20, "{} slices", busy.n_polls() - before);
}

#[tokio::test]
async fn busy_plugins_get_cpu_time_by_their_weight() {
    const WEIGHTS: [u32; 3] = [100, 300, 100];
    let busy = Busy::start(&engine(), WEIGHTS).await;
    busy.run_for(50).await;
    let cpu = || [0, 1, 2].map(|n| busy.hosts[n].usage.view().guest_cpu_ns as f64);
    let before = cpu();
    busy.run_for(450).await;
    let after = cpu();
    // For each unit of weight. A poll counts in full, also if the kernel has stopped it for a while; so the
    // longest ones bound the difference. The tests of the scheduler have exact ratios.
    let of_weight = |n: usize, cpu: f64| cpu / f64::from(WEIGHTS[n]);
    let got = [0, 1, 2].map(|n| of_weight(n, after[n] - before[n]));
    let longest = [0, 1, 2].map(|n| of_weight(n, busy.longest[n].load(Relaxed) as f64));
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        let differ = (got[a] - got[b]).abs();
        assert!(differ <= 2.0 * (longest[a] + longest[b]), "{a} {b}: {got:?} {longest:?}");
    }
}

#[tokio::test]
async fn the_time_of_others_does_not_count_towards_the_deadline() {
    let engine = engine();
    let component = Component::compile(&engine, guest("loops")).await.unwrap();
    let limits = deadline(Duration::from_millis(100));
    let host = Host::in_engine(&engine, component, limits, json!({}));
    let busy = Busy::start(&engine, [100; 4]).await;
    busy.run_for(10).await;
    // A call that the kernel stops for a while leaves few slices to the others before its deadline.
    for _ in 0..20 {
        let mut instance = host.instance().await.unwrap();
        let (cpu_before, polls_before) = (host.usage.view().guest_cpu_ns, busy.n_polls());
        let error = instance.add("default", "any").await.unwrap_err();
        assert!(matches!(error, CallError::DeadlineExceeded { .. }), "{error}");
        let view = host.usage.view();
        assert!(view.guest_cpu_ns - cpu_before >= 90_000_000, "it had its time: {view:?}");
        if busy.n_polls() - polls_before >= 100 {
            return;
        }
    }
    panic!("the others never ran meanwhile");
}
