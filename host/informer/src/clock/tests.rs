use std::sync::Arc;

use futures::FutureExt;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::*;
use crate::backoff::{self, Backoff};
use crate::flow_control::{KeyedBackoff, KeyedBackoffConfig, TokenBucket};
use crate::listener::{ListenerConfig, Outcome};
use crate::testing::FakeListWatch;
use crate::work_queue::rate_limiter::{Bucket, Exponential, FastSlow, MaxOf, MaxWait};
use crate::work_queue::{Config, RateLimiter, WorkQueue};
use crate::{SharedInformer, names::GroupVersionResource, shared_informer};

/// Durations as they should never come, and as they come.
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

fn factors() -> impl Strategy<Value = f64> {
    prop_oneof![
        prop::num::f64::ANY,
        Just(0.0),
        Just(-0.0),
        Just(1.0),
        Just(2.0),
        Just(-1.0),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(f64::NAN),
        Just(f64::MAX),
        Just(f64::MIN_POSITIVE),
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

#[test]
fn never_is_far_away_and_the_order_of_delays_is_kept() {
    let now = Instant::now();
    assert_eq!(after(now, Duration::MAX), now + FAR);
    assert_eq!(after(after(now, Duration::MAX), Duration::MAX), now + 2 * FAR);
    assert_eq!(scaled(Duration::from_secs(3), 1.5), Duration::from_millis(4500));
    for (factor, expected) in [
        (f64::INFINITY, Duration::MAX),
        (1e300, Duration::MAX),
        (f64::NAN, Duration::ZERO),
        (-2.0, Duration::ZERO),
    ] {
        assert_eq!(scaled(Duration::from_secs(3), factor), expected, "{factor}");
    }
    assert_eq!(scaled(Duration::ZERO, f64::INFINITY), Duration::ZERO);
}

/// With a base of nothing nothing is waited for, however often it fails; and what doubles goes on to its cap.
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
    fn sums_and_products_keep_their_order(one in durations(), other in durations(), factor in factors()) {
        let now = Instant::now();
        let (short, long) = (one.min(other), one.max(other));
        prop_assert!(after(now, short) <= after(now, long));
        prop_assert!(after(after(now, short), long) >= now);
        prop_assert!(scaled(short, factor) <= scaled(long, factor));
    }

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
                // A wait for what is far away is a wait.
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
    fn a_backoff_of_any_shape_never_panics(
        [initial, cap, reset_after] in [durations(), durations(), durations()],
        factor in factors(),
        jitter in factors(),
    ) {
        paused().block_on(async {
            let config = backoff::Config { initial, factor, jitter, cap, reset_after };
            let mut backoff = Backoff::new(config);
            let keyed = KeyedBackoffConfig { initial, max: cap, jitter, expire_after: Some(reset_after) };
            let keyed = KeyedBackoff::new(keyed, SmallRng::seed_from_u64(1));
            let mut random = SmallRng::seed_from_u64(1);
            for _ in 0..8 {
                backoff.step(&mut random);
                keyed.next("a", Instant::now());
                keyed.is_in_backoff_since_update(&"a", Instant::now());
            }
        });
    }

    #[test]
    fn a_bucket_of_any_rate_never_panics(
        rate in factors(), per_token in durations(), patience in durations(), burst in any::<u32>(),
    ) {
        paused().block_on(async {
            for bucket in [TokenBucket::per_second(rate, burst), TokenBucket::new(per_token, burst)] {
                for n in 0..4 {
                    let taken = bucket.reserve(patience);
                    assert!(n >= burst || taken == Ok(Duration::ZERO), "the burst is there: {taken:?}");
                }
            }
        });
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
            config.reflector.backoff = backoff::Config { initial, cap, ..backoff::Config::default() };
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
