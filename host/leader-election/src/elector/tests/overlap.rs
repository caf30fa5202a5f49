//! At most one leader at a time, with every fault of the API server.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Counts the working leaders.
struct Worker {
    working: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    terms: Arc<AtomicUsize>,
    ending: Duration,
}

#[async_trait]
impl Callbacks for Worker {
    async fn on_started_leading(&self, leading: CancellationToken) {
        struct Working(Arc<AtomicUsize>);
        impl Drop for Working {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        let now = self.working.fetch_add(1, Ordering::SeqCst) + 1;
        let working = Working(self.working.clone());
        self.most.fetch_max(now, Ordering::SeqCst);
        self.terms.fetch_add(1, Ordering::SeqCst);
        leading.cancelled().await;
        sleep(self.ending).await;
        drop(working);
    }

    fn on_stopped_leading(&self) {}
}

#[tokio::test(start_paused = true)]
async fn at_most_one_leader_works_with_late_and_lost_answers() {
    let mut all_terms = 0;
    for seed in 0..40 {
        let lease = MemoryLease::versioned();
        let mut random = SmallRng::seed_from_u64(seed);
        lease.on_call(move |_, _| {
            let mut up_to = |percent: u32, millis: u64| {
                let hit = random.random_range(0..100) < percent;
                if hit { Duration::from_millis(random.random_range(0..millis)) } else { Duration::ZERO }
            };
            let (delay, late) = (up_to(30, 12_000), up_to(30, 12_000));
            let refused = random.random_range(0..100) < 20;
            let lost = random.random_range(0..100) < 15;
            Fault { delay, refused, late, lost }
        });
        let [working, most, terms] = [(); 3].map(|()| Arc::new(AtomicUsize::new(0)));
        let token = CancellationToken::new();
        let mut candidates = JoinSet::new();
        for n in 0..4_u64 {
            let config = Config { release_on_cancel: n % 2 == 0, ..USUAL };
            let elector = elector(&lease, &format!("candidate {n}"), config);
            let worker = Worker {
                working: working.clone(),
                most: most.clone(),
                terms: terms.clone(),
                ending: Duration::from_millis(n * 1500),
            };
            let token = token.clone();
            candidates.spawn(async move {
                let mut random = SmallRng::seed_from_u64(seed ^ n);
                while !token.is_cancelled() {
                    // Restarts one candidate at random.
                    let life = token.child_token();
                    let lasts = Duration::from_millis(random.random_range(1_000..120_000));
                    let mut run = pin!(elector.run(&worker, life.clone()));
                    if timeout(lasts, &mut run).await.is_err() {
                        life.cancel();
                        run.await;
                    }
                }
            });
        }
        sleep(secs(1800)).await;
        token.cancel();
        candidates.join_all().await;
        assert_eq!(most.load(Ordering::SeqCst), 1, "seed {seed}");
        assert_eq!(working.load(Ordering::SeqCst), 0, "seed {seed}");
        all_terms += terms.load(Ordering::SeqCst);
    }
    assert!(all_terms > 400, "{all_terms}: a candidate always leads after a while");
}
