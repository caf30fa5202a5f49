//! Delays of any length do not panic the work queue, its rate limiters or an informer.

use std::sync::Arc;

use oarlock_flow_control::Backoff;
use oarlock_flow_control::clock::FAR;
use proptest::prelude::*;

use super::super::rate_limiter::{Bucket, Exponential, FastSlow, MaxOf, MaxWait};
use super::*;
use crate::listener::{ListenerConfig, Outcome};
use crate::testing::FakeListWatch;
use crate::{SharedInformer, names::GroupVersionResource, shared_informer};

/// Usual and extreme durations.
fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::from_nanos(1)),
        Just(Duration::from_secs(1)),
        Just(FAR),
        Just(FAR + Duration::from_nanos(1)),
        Just(Duration::from_secs(i64::MAX as u64)),
        Just(Duration::from_secs(u64::MAX)),
        Just(Duration::MAX - Duration::from_nanos(1)),
        Just(Duration::MAX),
        any::<u64>().prop_map(Duration::from_nanos),
        any::<u64>().prop_map(Duration::from_secs),
    ]
}

fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

fn limiters(base: Duration, cap: Duration, burst: u32) -> Vec<Box<dyn RateLimiter<u8>>> {
    let one = || Box::new(Exponential::new(base, cap));
    vec![
        one(),
        Box::new(FastSlow::new(base, cap, burst)),
        Box::new(Bucket::new(base, burst, cap)),
        Box::new(MaxWait::new(Exponential::new(base, Duration::MAX), cap)),
        Box::new(MaxOf::new(vec![one(), Box::new(Bucket::new(cap, burst, base))])),
    ]
}

/// A base of zero stays zero; other delays double up to the cap.
#[test]
fn a_delay_doubles_up_to_its_cap_from_any_base() {
    let mut none = Exponential::new(Duration::ZERO, Duration::from_secs(1000));
    assert!((0..100).all(|_| none.when(&'a').is_zero()));
    for base in [Duration::from_nanos(1), Duration::from_millis(5), Duration::from_secs(1)] {
        let mut limiter = Exponential::new(base, Duration::MAX);
        let delays: Vec<_> = (0..200).map(|_| limiter.when(&'a')).collect();
        assert!(delays.is_sorted(), "{delays:?}");
        assert_eq!(delays[199], Duration::MAX);
    }
}

proptest! {
    #[test]
    fn a_delay_of_any_length_never_panics_a_work_queue(
        delays in prop::collection::vec(durations(), 1..6),
        burst in any::<u32>(),
    ) {
        for which in 0..5 {
            paused().block_on(async {
                let rate_limiter = limiters(delays[0], delays[delays.len() - 1], burst).swap_remove(which);
                let queue = WorkQueue::new(Config { rate_limiter, ..Config::default() });
                for (key, delay) in delays.iter().enumerate() {
                    queue.add_after(key as u8, *delay);
                    queue.add_rate_limited(key as u8);
                    queue.add_rate_limited(key as u8);
                }
                // A wait of any length must not panic.
                while let Some(Some(key)) = queue.get().now_or_never() {
                    queue.done(&key);
                }
                tokio::time::advance(Duration::from_secs(3600)).await;
                while let Some(Some(key)) = queue.get().now_or_never() {
                    queue.done(&key);
                }
                queue.add(200);
                assert_eq!(queue.get().await, Some(200), "and it goes on");
            });
        }
    }

    #[test]
    fn a_retry_and_a_resync_of_any_length_never_panic_an_informer(
        retry in durations(),
        [resync, check, min_watch_timeout, silence_limit] in
            [durations(), durations(), durations(), durations()],
        [initial, cap] in [durations(), durations()],
    ) {
        paused().block_on(async {
            let fake = FakeListWatch::pods();
            fake.put("ns/a");
            let mut config = shared_informer::Config::new(GroupVersionResource::new("", "v1", "pods"));
            config.resync_period = check;
            config.reflector.min_watch_timeout = min_watch_timeout;
            // A watch that is silent at once is begun again at once.
            config.reflector.silence_limit = silence_limit.max(Duration::from_secs(1));
            config.reflector.backoff = Backoff { initial, cap, ..Backoff::default() };
            let informer = SharedInformer::new(Arc::new(fake), config);
            let listener = ListenerConfig { resync: Some(resync), ..ListenerConfig::default() };
            let mut listener = informer.add_listener(listener).unwrap();
            let token = tokio_util::sync::CancellationToken::new();
            let work = async {
                let delivery = listener.next().await.unwrap();
                listener.finish(&delivery.key, Outcome::Retry { after: retry });
                let _ = tokio::time::timeout(Duration::from_secs(10), listener.next()).await;
                token.cancel();
            };
            tokio::join!(informer.run(token.clone()), work);
        });
    }
}
