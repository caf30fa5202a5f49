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
    // It may use 4 GiB otherwise. It runs alone, with all that there is.
    let mut huge = wait(&queue, "huge", 64 << 20);
    assert_eq!(queue.compiler.limits(64 << 20).memory, total);
    second.succeeded(None);
    assert!(poll(&mut huge).await.is_none());
    third.succeeded(None);
    let _huge = poll(&mut huge).await.unwrap();
    assert!(poll(&mut wait(&queue, "fourth", 1)).await.is_none());
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
