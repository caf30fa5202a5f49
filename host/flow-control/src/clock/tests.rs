use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::*;
use crate::{Backoff, KeyedBackoff, ResettingBackoff, TokenBucket};

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

#[test]
fn delays_saturate_and_keep_their_order() {
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
    fn a_backoff_of_any_shape_never_panics(
        [initial, cap, reset_after] in [durations(), durations(), durations()],
        factor in factors(),
        jitter in factors(),
    ) {
        paused().block_on(async {
            let shape = Backoff { initial, factor, jitter, cap };
            let mut backoff = ResettingBackoff::new(shape.clone(), reset_after);
            let keyed = KeyedBackoff::new(shape, SmallRng::seed_from_u64(1)).with_expiry(reset_after);
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
}

#[tokio::test(start_paused = true)]
async fn tasks_of_one_period_share_few_moments() {
    let period = Duration::from_secs(3);
    let mut moments = std::collections::BTreeSet::new();
    let begun = Instant::now();
    for key in 0..100 {
        tokio::time::advance(Duration::from_millis(7)).await;
        let mut last = Instant::now();
        for _ in 0..4 {
            let next = next_tick(last, period, &key);
            assert!(next > last && next <= last + period);
            assert_eq!(next, next_tick(last, period, &key));
            last = next;
        }
        moments.insert((last - begun).as_nanos() % period.as_nanos());
    }
    assert_eq!(moments.len(), 8);
    assert!(next_tick(begun, Duration::MAX, &0) <= begun + FAR);
    assert!(next_tick(begun, Duration::ZERO, &0) > begun);
}
