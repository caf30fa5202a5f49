//! The clauses LM-…, and the upstream cases 31.

use super::*;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn delays<L: RateLimiter<&'static str>>(
    limiter: &mut L,
    key: &'static str,
    n_delays: usize,
) -> Vec<Duration> {
    (0..n_delays).map(|_| limiter.when(&key)).collect()
}

// Conformance: 31.1
#[test]
fn the_exponential_limiter_doubles_per_key_up_to_a_cap_lm_01() {
    let mut limiter = Exponential::new(ms(1), ms(1000));
    assert_eq!(delays(&mut limiter, "one", 5), [1, 2, 4, 8, 16].map(ms));
    assert_eq!(limiter.n_requeues(&"one"), 5);
    assert_eq!(delays(&mut limiter, "two", 2), [1, 2].map(ms));
    limiter.forget(&"one");
    assert_eq!(limiter.n_requeues(&"one"), 0);
    assert_eq!(delays(&mut limiter, "one", 1), [ms(1)]);
    assert_eq!(delays(&mut limiter, "one", 200).pop(), Some(ms(1000)), "also where the power overflows");
}

// Conformance: 31.3
#[test]
fn the_fast_slow_limiter_changes_after_n_failures_lm_03() {
    let mut limiter = FastSlow::new(ms(5), ms(10_000), 3);
    assert_eq!(delays(&mut limiter, "one", 5), [5, 5, 5, 10_000, 10_000].map(ms));
    assert_eq!(limiter.n_requeues(&"one"), 5);
    limiter.forget(&"one");
    assert_eq!(delays(&mut limiter, "one", 1), [ms(5)]);
}

#[tokio::test(start_paused = true)]
async fn the_bucket_does_not_reserve_beyond_its_cap_lm_02() {
    let mut limiter = Bucket::new(ms(100), 2, ms(300));
    assert_eq!(delays(&mut limiter, "one", 2), [0, 0].map(ms));
    assert_eq!(delays(&mut limiter, "two", 5), [100, 200, 300, 300, 300].map(ms));
    tokio::time::advance(ms(300)).await;
    assert_eq!(delays(&mut limiter, "one", 1), [100].map(ms));
    tokio::time::advance(ms(100_000)).await;
    assert_eq!(delays(&mut limiter, "one", 3), [0, 0, 100].map(ms), "it holds no more than the burst");
    let limiter: &dyn RateLimiter<&str> = &limiter;
    assert_eq!(limiter.n_requeues(&"one"), 0);
}

#[test]
fn max_of_calls_every_limiter_lm_04() {
    let limiters: Vec<Box<dyn RateLimiter<&str>>> =
        vec![Box::new(FastSlow::new(ms(5), ms(3000), 3)), Box::new(Exponential::new(ms(1), ms(1000)))];
    let mut limiter = MaxOf::new(limiters);
    assert_eq!(delays(&mut limiter, "one", 5), [5, 5, 5, 3000, 3000].map(ms));
    assert_eq!(limiter.n_requeues(&"one"), 5);
    limiter.forget(&"one");
    assert_eq!(limiter.n_requeues(&"one"), 0);
}

// Conformance: 31.5
#[test]
fn max_wait_caps_the_delays_of_a_limiter_lm_05() {
    let mut limiter = MaxWait::new(FastSlow::new(ms(5), ms(1_000_000), 100), ms(500_000));
    assert_eq!(delays(&mut limiter, "one", 100), [ms(5); 100]);
    assert_eq!(delays(&mut limiter, "one", 2), [500_000, 500_000].map(ms));
    assert_eq!(limiter.n_requeues(&"one"), 102);
    limiter.forget(&"one");
    assert_eq!(delays(&mut limiter, "one", 1), [ms(5)]);
}

// Conformance: G.42
#[tokio::test(start_paused = true)]
async fn a_thousand_reservations_count_up_to_the_cap_lm_02() {
    let last_of_1000 = |max_delay: u64| {
        let mut limiter = Bucket::new(ms(100), 100, ms(max_delay));
        let last = delays(&mut limiter, "one", 1000)[999];
        // Forgetting a key gives no tokens back.
        RateLimiter::<&str>::forget(&mut limiter, &"one");
        (last, delays(&mut limiter, "one", 1)[0])
    };
    assert_eq!(last_of_1000(1_000_000), (ms(90_000), ms(90_100)));
    assert_eq!(last_of_1000(60_000), (ms(60_000), ms(60_000)));

    // As the usual limiter has it: the bucket never keeps a key longer than a minute.
    let mut usual = super::default::<u32>();
    let longest = (0..1000).map(|key| usual.when(&key)).max();
    assert_eq!(longest, Some(ms(60_000)));
}
