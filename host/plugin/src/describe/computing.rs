//! Limits the time that a future computes, as opposed to waits.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use crate::engine::Stopwatch;

/// Runs a future until it has computed for `limit`. Returns its result, or `None` at the limit, and how long
/// it computed.
///
/// A guest yields at every time slice, so it computes little beyond the limit.
pub(super) async fn at_most<T>(limit: Duration, work: impl Future<Output = T>) -> (Option<T>, Duration) {
    let mut work = pin!(work);
    let mut computed = Duration::ZERO;
    let answer = poll_fn(|context| {
        let began = Stopwatch::start();
        let polled = work.as_mut().poll(context);
        computed += began.elapsed();
        match polled {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if computed >= limit => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    let answer = answer.await;
    (answer, computed)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[tokio::test]
    async fn time_spent_computing_counts_and_time_spent_waiting_does_not() {
        let spin = async |limit: Duration| {
            let began = Instant::now();
            while began.elapsed() < limit {
                tokio::task::yield_now().await;
                let slice = Instant::now();
                while slice.elapsed() < Duration::from_millis(1) {}
            }
        };
        let (answer, computed) = at_most(Duration::from_millis(20), spin(Duration::from_secs(60))).await;
        assert!(answer.is_none() && computed >= Duration::from_millis(20), "{computed:?}");
        tokio::time::pause();
        let long = tokio::time::sleep(Duration::from_secs(3600));
        let (answer, computed) = at_most(Duration::from_secs(10), long).await;
        assert!(answer.is_some() && computed < Duration::from_secs(10), "{computed:?}");
    }
}
