use std::future::pending;

use futures::{poll, task::noop_waker_ref};

use super::*;
use crate::engine::EngineConfig;

const LIMIT: Duration = Duration::from_millis(100);

fn paused_clock() -> Instant {
    tokio::time::Instant::now().into_std()
}

fn runner(engine: &Engine) -> Runner {
    let turn = Arc::new(Turn::made_at(paused_clock()));
    let runner = Runner::new(engine.clone(), engine.share(100), Usage::default(), turn);
    Runner { clock: paused_clock, ..runner }
}

fn engine() -> Engine {
    Engine::new(EngineConfig { concurrent_guests: 1, ..EngineConfig::default() }).unwrap()
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_call_that_waits_ends_a_grace_after_its_deadline() {
    let engine = engine();
    let mut runner = runner(&engine);
    let began = tokio::time::Instant::now();
    let error = runner.run(LIMIT, pending::<Result<(), _>>()).await.unwrap_err();
    assert!(error.is::<DeadlinePassed>(), "{error:?}");
    assert_eq!(began.elapsed().as_millis(), (LIMIT + GRACE).as_millis());
}

/// Each turn for which the call waits moves its deadline, but none of them begins the grace again.
#[tokio::test(start_paused = true)]
async fn promise_4_a_call_that_waits_ends_a_grace_after_its_deadline_also_under_contention() {
    const TURN_OF_OTHERS: Duration = Duration::from_millis(4);
    const WAIT_FOR_THE_HOST: Duration = Duration::from_millis(2);
    let engine = engine();
    let mut runner = runner(&engine);
    let (other, turn_of_other) = (engine.share(100), Arc::new(Turn::new()));
    let turn_of_same = Arc::new(Turn::new());
    let share = runner.share.clone();
    let mut call = pin!(runner.run(LIMIT, pending::<Result<(), _>>()));
    assert!(poll!(&mut call).is_pending());
    let mut waited = Duration::ZERO;
    let error = loop {
        // The call was woken while another guest has the only permit.
        tokio::time::advance(WAIT_FOR_THE_HOST).await;
        waited += WAIT_FOR_THE_HOST;
        // Another instance of the plugin computes for a while, so its guests are not brief.
        assert!(engine.scheduler().acquire(&share, &turn_of_same, noop_waker_ref()));
        engine.scheduler().release(&share, &turn_of_same, TURN_OF_OTHERS);
        assert!(engine.scheduler().acquire(&other, &turn_of_other, noop_waker_ref()));
        assert!(poll!(&mut call).is_pending(), "it waits for its turn");
        tokio::time::advance(TURN_OF_OTHERS).await;
        engine.scheduler().release(&other, &turn_of_other, TURN_OF_OTHERS);
        match poll!(&mut call) {
            Poll::Ready(answer) => break answer.unwrap_err(),
            Poll::Pending => assert!(waited < 2 * LIMIT, "it does not end"),
        }
    };
    assert!(error.is::<DeadlinePassed>(), "{error:?}");
    assert!(waited >= LIMIT + GRACE && waited < LIMIT + GRACE + 2 * WAIT_FOR_THE_HOST, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn promise_4_each_poll_of_a_call_begins_a_time_slice() {
    const LONG: Duration = Duration::from_millis(10);
    let engine = engine();
    let mut runner = runner(&engine);
    let turn = Arc::clone(&runner.turn);
    for _ in 0..2 {
        tokio::time::advance(LONG).await;
        let call = async {
            for _ in 0..2 {
                let later = paused_clock() + LONG;
                assert!(!turn.tick(later), "a poll begins");
                assert!(turn.tick(later));
                tokio::time::sleep(LONG).await;
            }
            Ok(())
        };
        runner.run(LIMIT, call).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[expect(clippy::disallowed_methods, reason = "the only thread of the background is busy")]
async fn promise_4_a_call_does_not_pay_for_the_time_in_which_it_is_ready_and_others_run() {
    const OTHERS: Duration = Duration::from_millis(50);
    // The call is not to be late on a slow machine.
    const LONG_LIMIT: Duration = Duration::from_secs(60);
    let engine = engine();
    let share = engine.share(100);
    let turn = Arc::new(Turn::new());
    let mut runner = Runner::new(engine.clone(), share.clone(), Usage::default(), Arc::clone(&turn));
    let (answers, answer) = tokio::sync::oneshot::channel();
    let (waits, is_waiting) = tokio::sync::oneshot::channel();
    let call = share.run_in_background(async move {
        let call = async {
            let polled = Instant::now();
            waits.send(()).unwrap();
            answer.await.unwrap();
            Ok(polled)
        };
        runner.run(LONG_LIMIT, call).await.unwrap()
    });
    let other = share.run_in_background(async move {
        is_waiting.await.unwrap();
        answers.send(()).unwrap();
        std::thread::sleep(OTHERS);
    });
    other.await;
    let polled = call.await;
    // The time from the first poll to the deadline.
    let limit = turn.time_left(Duration::ZERO, polled);
    assert!(limit >= LONG_LIMIT + OTHERS / 2, "{limit:?}");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_newest_call_is_noted() {
    let engine = engine();
    let mut runner = runner(&engine);
    assert_eq!(runner.ended(), None);
    for _ in 0..2 {
        let call = async {
            tokio::time::sleep(LIMIT / 2).await;
            Ok(())
        };
        runner.run(LIMIT, call).await.unwrap();
        assert_eq!(runner.ended(), Some(paused_clock()));
    }
}
