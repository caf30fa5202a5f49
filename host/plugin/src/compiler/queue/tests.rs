use std::{future::Future, pin::Pin};

use super::*;

type Waiting = Pin<Box<dyn Future<Output = Turn>>>;

fn wait(queue: &Arc<Queue>, plugin: &str, bytes: usize) -> Waiting {
    let queue = Arc::clone(queue);
    let (plugin, digest) = (Some(plugin.into()), Digest::of(format!("{plugin} {bytes}").as_bytes()));
    Box::pin(async move { queue.turn(plugin, bytes, digest).await })
}

/// Polls a future once, and returns its turn if it has one.
async fn poll(waiting: &mut Waiting) -> Option<Turn> {
    tokio::select! {
        biased;
        turn = waiting => Some(turn),
        () = std::future::ready(()) => None,
    }
}

#[tokio::test(start_paused = true)]
async fn small_components_are_compiled_first() {
    let queue = Queue::new(1, Compiler::default());
    let first = poll(&mut wait(&queue, "first", 500)).await.unwrap();
    let mut large = wait(&queue, "large", 1_000);
    let mut small = wait(&queue, "small", 10);
    assert!(poll(&mut large).await.is_none());
    assert!(poll(&mut small).await.is_none());
    let before: Vec<_> = queue.compilations().into_iter().map(|it| (it.bytes, it.state)).collect();
    assert_eq!(
        before,
        [
            (500, CompilationState::Running { so_far: Duration::ZERO }),
            (10, CompilationState::Waiting { before: 1 }),
            (1_000, CompilationState::Waiting { before: 2 }),
        ]
    );
    first.succeeded(None);
    assert!(poll(&mut large).await.is_none());
    poll(&mut small).await.unwrap().succeeded(None);
    poll(&mut large).await.unwrap().succeeded(None);
    assert!(queue.compilations().is_empty());
}

#[tokio::test(start_paused = true)]
async fn two_large_components_leave_a_slot_for_a_small_one() {
    let queue = Queue::new(2, Compiler::default());
    let _python = poll(&mut wait(&queue, "python", 40 << 20)).await.unwrap();
    let mut script = wait(&queue, "script", 12 << 20);
    assert!(poll(&mut script).await.is_none());
    assert!(poll(&mut wait(&queue, "rust", 100 << 10)).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn promise_4_compilers_together_have_no_more_memory_than_their_total() {
    let total = (5 << 30) / 2;
    let queue = Queue::new(3, Compiler { total_memory: Some(total), ..Compiler::default() });
    let first = poll(&mut wait(&queue, "first", 1 << 20)).await.unwrap();
    let second = poll(&mut wait(&queue, "second", 1 << 20)).await.unwrap();
    let mut third = wait(&queue, "third", 1);
    assert!(poll(&mut third).await.is_none(), "a slot is free, but no memory");
    first.succeeded(None);
    let third = poll(&mut third).await.unwrap();
    second.succeeded(None);
    third.succeeded(None);
    assert!(queue.compilations().is_empty());
}

#[tokio::test(start_paused = true)]
async fn promise_4_large_components_leave_memory_for_a_small_one() {
    let compiler = Compiler { total_memory: Some((5 << 30) / 2), ..Compiler::default() };
    let small = compiler.limits(LARGE);
    let large = compiler.limits(64 << 20);
    assert_eq!(small.memory + large.memory, (5 << 30) / 2, "4 GiB otherwise");
    assert!(!small.is_all_memory && large.is_all_memory);
    let queue = Queue::new(3, compiler);
    let first = poll(&mut wait(&queue, "first", 64 << 20)).await.unwrap();
    let mut second = wait(&queue, "second", 64 << 20);
    assert!(poll(&mut second).await.is_none());
    assert!(poll(&mut wait(&queue, "small", LARGE)).await.is_some());
    first.succeeded(None);
    assert!(poll(&mut second).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_total_for_one_component_is_all_for_each() {
    let queue = Queue::new(3, Compiler { total_memory: Some(640 << 20), ..Compiler::default() });
    for bytes in [1, LARGE + 1] {
        let limits = queue.compiler.limits(bytes);
        assert_eq!((limits.memory, limits.is_all_memory), (640 << 20, true));
    }
    let large = poll(&mut wait(&queue, "large", LARGE + 1)).await.unwrap();
    let mut small = wait(&queue, "small", 1);
    assert!(poll(&mut small).await.is_none());
    large.succeeded(None);
    assert!(poll(&mut small).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn an_overdue_component_comes_before_smaller_ones() {
    let queue = Queue::new(3, Compiler { total_memory: Some(9 << 28), ..Compiler::default() });
    let mut small = Vec::new();
    for plugin in ["first", "second"] {
        small.push(poll(&mut wait(&queue, plugin, 1)).await.unwrap());
    }
    // Its memory is free only when both have ended.
    let mut large = wait(&queue, "large", 64 << 20);
    assert!(poll(&mut large).await.is_none());
    let mut third = wait(&queue, "third", 1);
    small.pop().unwrap().succeeded(None);
    small.push(poll(&mut third).await.expect("the large one is not overdue yet"));
    tokio::time::advance(MAX_WAIT).await;
    small.pop().unwrap().succeeded(None);
    // Both small ones and the large one do not fit.
    let mut fourth = wait(&queue, "fourth", 1 << 20);
    assert!(poll(&mut fourth).await.is_none(), "the large one is overdue");
    assert!(poll(&mut large).await.is_none());
    small.pop().unwrap().succeeded(None);
    assert!(poll(&mut large).await.is_some());
    assert!(poll(&mut fourth).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn the_oldest_overdue_component_comes_first_whatever_its_size() {
    let queue = Queue::new(1, Compiler::default());
    let running = poll(&mut wait(&queue, "first", 1)).await.unwrap();
    let mut large = wait(&queue, "large", 300);
    assert!(poll(&mut large).await.is_none());
    let mut small = wait(&queue, "small", 2);
    assert!(poll(&mut small).await.is_none());
    tokio::time::advance(MAX_WAIT).await;
    let mut young = wait(&queue, "young", 1);
    assert!(poll(&mut young).await.is_none());
    running.succeeded(None);
    let turn = poll(&mut large).await.expect("it has waited longest");
    assert!(poll(&mut small).await.is_none());
    turn.succeeded(None);
    assert!(poll(&mut young).await.is_none(), "it is small, and not overdue");
    assert!(poll(&mut small).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_plugin_uses_one_slot_at_a_time() {
    let queue = Queue::new(3, Compiler::default());
    let _first = poll(&mut wait(&queue, "hostile", 1)).await.unwrap();
    let mut second = wait(&queue, "hostile", 2);
    assert!(poll(&mut second).await.is_none());
    assert!(poll(&mut wait(&queue, "good", 300)).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_plugin_in_debt_waits_and_comes_after_all_others() {
    let queue = Queue::new(2, Compiler::default());
    for _ in 0..FAILURES_BEFORE_WAIT {
        for plugin in ["hostile-1", "hostile-2"] {
            let mut waiting = wait(&queue, plugin, 1);
            let turn = tokio::time::timeout(MAX_DEBT * 2, &mut waiting).await.unwrap();
            tokio::time::advance(Duration::from_secs(10)).await;
            drop(turn);
        }
    }
    let mut hostile = ["hostile-1", "hostile-2"].map(|plugin| wait(&queue, plugin, 1));
    for hostile in &mut hostile {
        assert!(poll(hostile).await.is_none(), "it waits as long as its compilations took");
    }
    tokio::time::advance(MAX_DEBT).await;
    let running = poll(&mut hostile[0]).await.unwrap();
    assert!(poll(&mut hostile[1]).await.is_none(), "plugins in debt leave one slot free");
    assert!(poll(&mut wait(&queue, "good", 1_000)).await.is_some());
    running.succeeded(None);
    assert!(poll(&mut hostile[1]).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_future_leaves_the_queue() {
    let queue = Queue::new(1, Compiler::default());
    let running = poll(&mut wait(&queue, "a", 1)).await.unwrap();
    let mut cancelled = wait(&queue, "b", 1);
    assert!(poll(&mut cancelled).await.is_none());
    drop(cancelled);
    assert_eq!(queue.compilations().len(), 1);
    drop(running);
    assert!(poll(&mut wait(&queue, "c", 1)).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn one_component_is_compiled_for_one_plugin_at_a_time() {
    let queue = Queue::new(3, Compiler::default());
    let digest = Digest::of(b"the same");
    let turn = |plugin: &str| {
        let (queue, plugin) = (Arc::clone(&queue), Some(plugin.into()));
        Box::pin(async move { queue.turn(plugin, 8, digest).await }) as Waiting
    };
    let first = poll(&mut turn("a")).await.unwrap();
    let mut second = turn("b");
    assert!(poll(&mut second).await.is_none());
    first.succeeded(None);
    assert!(poll(&mut second).await.is_some());
}
