//! Tests of listeners with a real processor and without an API server.

mod bytes;
mod initial_values;
mod matching;
mod model;
mod order;
mod registration;
mod replay;

use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::delta_fifo::{self, DeltaFifo, KnownObjects, Processed};
use crate::indexer::IndexerWriter;
use crate::names::{ObjectKey, TypeMeta};
use crate::namespaces::Namespaces;
use crate::object::Object;
use crate::processor::DeltaHandler;
use crate::testing::Draft;

/// A cache and its listeners. Changes are processed at once.
pub(super) struct Bench {
    fifo: Arc<DeltaFifo>,
    pub(super) processor: Arc<Processor>,
    handler: Mutex<DeltaHandler>,
    version: u32,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self::with_resync(Duration::ZERO)
    }

    fn with_resync(resync_period: Duration) -> Self {
        let writer = IndexerWriter::new();
        let known_objects = Some(Arc::new(writer.indexer().clone()) as Arc<dyn KnownObjects>);
        let config = delta_fifo::Config { known_objects, ..delta_fifo::Config::default() };
        let fifo = Arc::new(DeltaFifo::new(config));
        let processor = Arc::new(Processor::new(writer, fifo.clone(), resync_period));
        let handler = Mutex::new(DeltaHandler::new(processor.clone()));
        Self { fifo, processor, handler, version: 0 }
    }

    /// Puts an object at the next version; returns the version.
    pub(super) fn put(&mut self, draft: impl Into<Draft>) -> u32 {
        self.version += 1;
        self.fifo.update(at(&draft.into(), self.version)).unwrap();
        self.process();
        self.version
    }

    pub(super) fn delete(&mut self, name: &str) {
        self.version += 1;
        self.fifo.delete(object(name, self.version)).unwrap();
        self.process();
    }

    /// Applies the object of a watch event.
    fn update(&self, object: Object) {
        self.fifo.update(object).unwrap();
        self.process();
    }

    /// Applies the final state of a delete event.
    fn deleted(&self, object: Object) {
        self.fifo.delete(object).unwrap();
        self.process();
    }

    pub(super) fn relist(&mut self, objects: Vec<Object>) {
        self.fifo.replace(objects).unwrap();
        self.process();
    }

    pub(super) fn resync(&self) {
        if self.processor.should_resync(Instant::now()) {
            self.fifo.resync();
            self.process();
        }
    }

    pub(super) fn process(&self) {
        let pop = || {
            self.fifo.try_pop(|_, deltas, is_in_initial_list| {
                self.handler.lock().handle(deltas, is_in_initial_list);
                Processed::Done
            })
        };
        while pop() == Ok(true) {}
        if self.fifo.has_synced() {
            self.processor.informer_has_synced();
        }
    }

    pub(super) fn listen(&self, config: ListenerConfig) -> Listener {
        self.processor.add_listener(config).unwrap()
    }

    fn listener(&self) -> Listener {
        self.listen(ListenerConfig::default())
    }
}

pub(super) fn at(draft: &Draft, version: u32) -> Object {
    draft.at(&TypeMeta::new("v1", "Pod"), "uid", &version.to_string())
}

pub(super) fn object(name: &str, version: u32) -> Object {
    at(&name.into(), version)
}

/// Formats a notification: `add a@1 (initial)`, `update a@1→2`, `delete a@3 (unknown)`.
pub(crate) fn outline(notification: &Notification) -> String {
    let key = notification.object().key();
    match notification {
        Notification::Added { object, is_in_initial_list } => {
            let initial = if *is_in_initial_list { " (initial)" } else { "" };
            format!("add {key}@{}{initial}", object.resource_version())
        }
        Notification::Updated { old, new } => {
            format!("update {key}@{}→{}", old.resource_version(), new.resource_version())
        }
        Notification::Deleted { object, final_state_unknown } => {
            let unknown = if *final_state_unknown { " (unknown)" } else { "" };
            format!("delete {key}@{}{unknown}", object.resource_version())
        }
    }
}

/// Takes the next notification, if one is ready.
fn take(listener: &mut Listener) -> Option<Delivery> {
    listener.next().now_or_never().flatten()
}

/// Takes the next notification, formats it, and leaves it in flight.
fn peek(listener: &mut Listener) -> String {
    take(listener).map(|delivery| outline(&delivery.notification)).unwrap_or_default()
}

/// Takes and finishes all ready notifications.
fn drain(listener: &mut Listener) -> Vec<String> {
    let mut received = Vec::new();
    while let Some(delivery) = take(listener) {
        received.push(outline(&delivery.notification));
        listener.finish(&delivery.key, Outcome::Done);
    }
    received
}

/// Takes the next notification and fails it; its object backs off for a second.
fn fail(listener: &mut Listener) -> String {
    let delivery = take(listener).unwrap();
    listener.finish(&delivery.key, Outcome::Retry { after: Duration::from_secs(1) });
    format!("{} (attempt {})", outline(&delivery.notification), delivery.attempts)
}

fn park(listener: &mut Listener) -> String {
    let delivery = take(listener).unwrap();
    listener.finish(&delivery.key, Outcome::Park);
    outline(&delivery.notification)
}

fn key(name: &str) -> ObjectKey {
    name.parse().unwrap()
}

fn second() -> Duration {
    Duration::from_secs(1)
}

// Order.

#[tokio::test(start_paused = true)]
async fn notifications_are_delivered_in_the_order_in_which_they_came() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    for name in ["a", "b", "a", "c", "b"] {
        bench.put(name);
    }
    bench.delete("a");
    assert_eq!(
        drain(&mut listener),
        ["add a@1", "add b@2", "update a@1→3", "add c@4", "update b@2→5", "delete a@6"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_in_flight_delays_no_other_object_pl_03() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    for name in ["a", "a", "b"] {
        bench.put(name);
    }
    assert_eq!(peek(&mut listener), "add a@1");
    assert_eq!(peek(&mut listener), "add b@3");
    assert_eq!(peek(&mut listener), "");
    listener.finish(&key("a"), Outcome::Done);
    assert_eq!(peek(&mut listener), "update a@1→2");
}

#[tokio::test(start_paused = true)]
async fn an_object_in_back_off_delays_no_other_object_pl_03() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    for name in ["a", "b"] {
        bench.put(name);
    }
    assert_eq!(fail(&mut listener), "add a@1 (attempt 0)");
    assert_eq!(drain(&mut listener), ["add b@2"]);
    let before = Instant::now();
    let delivery = listener.next().await.unwrap();
    assert_eq!((Instant::now() - before, delivery.attempts, delivery.waited()), (second(), 1, second()));
    assert_eq!(outline(&delivery.notification), "add a@1");
}

#[tokio::test(start_paused = true)]
async fn next_waits_for_a_notification_and_may_be_cancelled() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    {
        let mut next = Box::pin(listener.next());
        assert!(next.as_mut().now_or_never().is_none());
        bench.put("a");
    }
    let mut next = Box::pin(listener.next());
    assert_eq!(outline(&next.as_mut().await.unwrap().notification), "add a@1");
    drop(next);
    let handle = listener.handle();
    let mut next = Box::pin(listener.next());
    assert!(next.as_mut().now_or_never().is_none());
    bench.put("a");
    assert!(next.as_mut().now_or_never().is_none(), "a is in flight");
    handle.finish(&key("a"), Outcome::Done);
    assert_eq!(outline(&next.await.unwrap().notification), "update a@1→2");
}

// Merging.

#[tokio::test(start_paused = true)]
async fn notifications_merge_per_object_beyond_the_limit_only_pl_01() {
    let mut bench = Bench::new();
    let mut listener = bench.listen(ListenerConfig { backlog_limit: 4, ..ListenerConfig::default() });
    for name in ["a", "a", "b", "b"] {
        bench.put(name);
    }
    assert_eq!(listener.stats().pending, 4);
    for _ in 0..100 {
        bench.put("a");
    }
    // Merging makes room, so every second notification merges with the two before it.
    assert_eq!(listener.stats().merged, 100);
    bench.put("c");
    let received = drain(&mut listener);
    assert_eq!(received, ["add a@103", "add b@3", "update b@3→4", "update a@103→104", "add c@105"]);
}

#[tokio::test(start_paused = true)]
async fn the_backlog_holds_at_most_the_limit_plus_two_per_object() {
    let mut bench = Bench::new();
    let mut listener = bench.listen(ListenerConfig { backlog_limit: 10, ..ListenerConfig::default() });
    for round in 0..50 {
        for name in ["a", "b", "c"] {
            if round % 5 == 4 {
                bench.delete(name);
            } else {
                bench.put(name);
            }
            assert!(listener.stats().pending <= 10 + 2 * 3);
        }
    }
    drain(&mut listener);
    assert_eq!(listener.stats().pending, 0);
}

#[tokio::test(start_paused = true)]
async fn with_a_limit_of_zero_only_the_newest_state_is_delivered() {
    let mut bench = Bench::new();
    let mut listener = bench.listen(ListenerConfig { backlog_limit: 0, ..ListenerConfig::default() });
    for _ in 0..5 {
        bench.put("a");
    }
    bench.put("b");
    bench.delete("b");
    assert_eq!(drain(&mut listener), ["add a@5"]);
}

#[tokio::test(start_paused = true)]
async fn memory_is_freed_after_a_burst_pl_02() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    for i in 0..5000 {
        bench.put(&*i.to_string());
    }
    assert_eq!(drain(&mut listener).len(), 5000);
    assert!(listener.shared.state.lock().backlog.capacity() <= 512);
    listener.free_spare();
    assert_eq!(listener.shared.state.lock().backlog.capacity(), 0);
    bench.put("1");
    assert_eq!(drain(&mut listener), ["update 1@2→5001"]);
    // What waits stays.
    bench.put("1");
    bench.put("2");
    listener.free_spare();
    assert_eq!(drain(&mut listener), ["update 1@5001→5002", "update 2@3→5003"]);
}

// Failures.

#[tokio::test(start_paused = true)]
async fn a_failed_notification_merges_with_later_ones() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    bench.put("a");
    drain(&mut listener);
    bench.put("a");
    let delivery = take(&mut listener).unwrap();
    bench.put("a");
    bench.put("a");
    listener.finish(&delivery.key, Outcome::Retry { after: second() });
    bench.put("a");
    assert_eq!(listener.stats().pending, 1);
    assert_eq!(peek(&mut listener), "");
    tokio::time::advance(second()).await;
    assert_eq!(fail(&mut listener), "update a@1→5 (attempt 1)");
    bench.delete("a");
    bench.put("a");
    tokio::time::advance(second()).await;
    assert_eq!(drain(&mut listener), ["delete a@6", "add a@7"]);
}

#[tokio::test(start_paused = true)]
async fn the_delete_after_a_failed_add_is_delivered() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    bench.put("a");
    fail(&mut listener);
    bench.delete("a");
    tokio::time::advance(second()).await;
    assert_eq!(drain(&mut listener), ["delete a@2"]);
}

#[tokio::test(start_paused = true)]
async fn a_parked_object_waits_for_its_next_event() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    bench.put("a");
    bench.put("b");
    assert_eq!(park(&mut listener), "add a@1");
    assert_eq!(drain(&mut listener), ["add b@2"]);
    assert_eq!(
        (listener.parked(), listener.stats().parked, listener.stats().pending),
        (vec![key("a")], 1, 0)
    );
    bench.put("a");
    assert_eq!(listener.stats().parked, 0);
    assert_eq!(drain(&mut listener), ["add a@3"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_with_later_notifications_is_not_parked() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    bench.put("a");
    let delivery = take(&mut listener).unwrap();
    bench.put("a");
    listener.finish(&delivery.key, Outcome::Park);
    let delivery = take(&mut listener).unwrap();
    assert_eq!((outline(&delivery.notification), delivery.attempts), ("add a@2".to_owned(), 0));
}

#[tokio::test(start_paused = true)]
async fn parked_objects_are_retried_on_request() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    bench.put("a");
    fail(&mut listener);
    tokio::time::advance(second()).await;
    park(&mut listener);
    assert_eq!(listener.retry_parked(), 1);
    let delivery = take(&mut listener).unwrap();
    assert_eq!((outline(&delivery.notification), delivery.attempts), ("add a@1".to_owned(), 0));
}

#[tokio::test(start_paused = true)]
async fn objects_in_back_off_are_retried_on_request() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    for name in ["a", "b"] {
        bench.put(name);
        fail(&mut listener);
    }
    assert_eq!((peek(&mut listener), listener.stats().backing_off), (String::new(), 2));
    assert_eq!(listener.retry_backing_off(), 2);
    let delivery = take(&mut listener).unwrap();
    assert_eq!((outline(&delivery.notification), delivery.attempts), ("add a@1".to_owned(), 0));
    listener.finish(&delivery.key, Outcome::Done);
    assert_eq!(drain(&mut listener), ["add b@2"]);
    assert_eq!(listener.retry_backing_off(), 0);
}

#[tokio::test(start_paused = true)]
async fn abandoned_deliveries_go_to_the_next_consumer() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    for name in ["a", "b", "a"] {
        bench.put(name);
    }
    assert_eq!([peek(&mut listener), peek(&mut listener)], ["add a@1", "add b@2"]);
    listener.finish(&key("b"), Outcome::Done);
    assert_eq!(listener.abandon_in_flight(), 1);
    assert_eq!(drain(&mut listener), ["add a@1", "update a@1→3"]);
}

#[tokio::test(start_paused = true)]
async fn finish_ignores_objects_that_are_not_in_flight() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    bench.put("a");
    listener.finish(&key("a"), Outcome::Done);
    listener.finish(&key("b"), Outcome::Park);
    assert_eq!(drain(&mut listener), ["add a@1"]);
}

#[tokio::test(start_paused = true)]
async fn stats_have_the_age_of_the_oldest_notification() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    bench.put("a");
    tokio::time::advance(second()).await;
    bench.put("b");
    tokio::time::advance(second()).await;
    assert_eq!(listener.stats().oldest_age, 2 * second());
    assert_eq!(peek(&mut listener), "add a@1");
    assert_eq!(listener.stats().oldest_age, second());
    assert_eq!((listener.stats().in_flight, listener.stats().pending), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_change_of_deletion_timestamp_is_delivered_despite_declared_fields() {
    let mut bench = Bench::new();
    let fields = vec!["/spec".parse().unwrap()];
    let mut listener = bench.listen(ListenerConfig { fields, ..ListenerConfig::default() });
    bench.put("a");
    bench.put("a");
    bench.put(Draft::new("a").metadata("deletionTimestamp", json!("2026-01-01T00:00:00Z")));
    bench.delete("a");
    assert_eq!(drain(&mut listener), ["add a@1", "update a@2→3", "delete a@4"]);
}
