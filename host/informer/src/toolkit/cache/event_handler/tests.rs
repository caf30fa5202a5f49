//! The clauses EH-…, PL-04, SI-20 and SI-21, and what becomes of a handler that panics.

use std::sync::{Arc, mpsc};

use futures::FutureExt;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::listener::ListenerConfig;
use crate::names::GroupVersionResource;
use crate::reflector::tests::warnings::Warnings;
use crate::shared_informer::{Config, SharedInformer};
use crate::testing::{Draft, FakeListWatch};

/// Records its calls.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Recorder {
    fn note(&self, text: String) {
        self.0.lock().push(text);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

impl EventHandler for Recorder {
    fn on_add(&mut self, object: &Object, is_in_initial_list: bool) {
        let initial = if is_in_initial_list { " (initial)" } else { "" };
        self.note(format!("add {}@{}{initial}", object.key(), object.resource_version()));
    }

    fn on_update(&mut self, old: &Object, new: &Object) {
        self.note(format!("update {}@{}→{}", new.key(), old.resource_version(), new.resource_version()));
    }

    fn on_delete(&mut self, object: &Object, final_state_unknown: bool) {
        let unknown = if final_state_unknown { " (unknown)" } else { "" };
        self.note(format!("delete {}@{}{unknown}", object.key(), object.resource_version()));
    }
}

fn informer(fake: &FakeListWatch) -> SharedInformer {
    SharedInformer::new(Arc::new(fake.clone()), Config::new(GroupVersionResource::new("", "v1", "pods")))
}

fn add(informer: &SharedInformer, handler: impl EventHandler + 'static) -> (Registration, Handling) {
    let handling = informer.add_event_handler(ListenerConfig::default(), handler).unwrap();
    (handling.registration().clone(), handling)
}

/// Runs an informer and its handlers beside a test, and stops the informer at the end.
async fn run<T>(
    informer: &SharedInformer,
    handlers: impl IntoIterator<Item = Handling>,
    test: impl Future<Output = T>,
) -> T {
    let token = CancellationToken::new();
    let test = async {
        let result = test.await;
        token.cancel();
        result
    };
    tokio::join!(informer.run(token.clone()), futures::future::join_all(handlers), test).2
}

/// Runs a future on a thread that has no runtime.
fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

fn object(key: &str, app: &str) -> Object {
    FakeListWatch::pods().put(Draft::new(key).label("app", app))
}

fn is_web(object: &Object) -> bool {
    object.labels().get("app").is_some_and(|app| app == "web")
}

#[test]
fn events_without_a_function_are_ignored_eh_01() {
    let calls = Recorder::default();
    let recorder = calls.clone();
    let handler = HandlerFunctions::new().on_update(move |_, new| recorder.note(new.key().to_string()));
    let mut handler: Box<dyn EventHandler> = Box::new(handler);
    let object = object("ns/a", "web");
    handler.on_add(&object, true);
    handler.on_update(&object, &object);
    handler.on_delete(&object, false);
    assert_eq!(calls.take(), ["ns/a"]);
}

#[test]
fn a_newly_accepted_object_is_an_add_and_a_rejected_one_a_delete_of_the_old_state_eh_02() {
    let calls = Recorder::default();
    let asked = Recorder::default();
    let asking = asked.clone();
    let filter = move |object: &Object| {
        asking.note(object.labels()["app"].clone());
        is_web(object)
    };
    let mut handler = FilteringHandler::new(filter, calls.clone());
    let [old, new] = ["old", "new"].map(|name| object(name, "web"));
    let other = object("other", "db");
    handler.on_update(&old, &new);
    assert_eq!(calls.take(), ["update new@2→2"]);
    handler.on_update(&other, &new);
    assert_eq!(calls.take(), ["add new@2"], "never part of an initial list");
    handler.on_update(&old, &other);
    assert_eq!(calls.take(), ["delete old@2"], "the old state, and known");
    handler.on_update(&other, &other);
    handler.on_add(&other, true);
    handler.on_delete(&other, false);
    assert_eq!(calls.take(), Vec::<String>::new());
    asked.take();
    handler.on_update(&old, &other);
    assert_eq!(asked.take(), ["db", "web"], "new is asked about before old");
}

// Conformance: G.36
#[tokio::test(start_paused = true)]
async fn a_filter_gets_the_last_known_state_of_a_missed_delete_eh_03() {
    let fake = FakeListWatch::pods();
    fake.put(Draft::new("ns/web").label("app", "web"));
    fake.put(Draft::new("ns/db").label("app", "db"));
    let informer = informer(&fake);
    let calls = Recorder::default();
    let (_, deliver) = add(&informer, FilteringHandler::new(is_web, calls.clone()));
    run(&informer, [deliver], async {
        fake.until_watches(1).await;
        settle().await;
        assert_eq!(calls.take(), ["add ns/web@2 (initial)"]);
        fake.delete_unseen("ns/web");
        fake.delete_unseen("ns/db");
        fake.expire_history();
        fake.close_watches();
        fake.until_watches(2).await;
        settle().await;
        assert_eq!(calls.take(), ["delete ns/web@2 (unknown)"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn each_handler_is_called_in_order_and_syncs_by_itself_pl_03() {
    let fake = FakeListWatch::pods();
    fake.put("ns/a");
    let informer = informer(&fake);
    let (calls, late) = (Recorder::default(), Recorder::default());
    let (registration, deliver) = add(&informer, calls.clone());
    let (late_registration, deliver_late) = add(&informer, late.clone());
    run(&informer, [deliver], async {
        assert!(registration.wait_for_sync().await);
        fake.until_watches(1).await;
        fake.put("ns/a");
        fake.delete("ns/a");
        settle().await;
        assert_eq!(calls.take(), ["add ns/a@2 (initial)", "update ns/a@2→3", "delete ns/a@4"]);
        assert!(!late_registration.has_synced(), "the listener does not run yet");
        let remove_late = async {
            assert!(late_registration.wait_for_sync().await);
            late_registration.remove();
        };
        tokio::join!(deliver_late, remove_late);
        assert_eq!(late.take(), ["add ns/a@2 (initial)", "update ns/a@2→3", "delete ns/a@4"], "as it came");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_before_a_long_backlog_is_logged_pl_05() {
    for (n_waiting, millis, is_logged) in [(1025, 101, true), (1024, 101, false), (1025, 100, false)] {
        let fake = FakeListWatch::pods();
        for n in 0..=n_waiting {
            fake.put(&*format!("ns/{n}"));
        }
        let informer = informer(&fake);
        let mut is_first = true;
        let handler = HandlerFunctions::new().on_add(move |_, _| {
            if std::mem::take(&mut is_first) {
                // Moves the clock at its first poll.
                let _ = tokio::time::advance(Duration::from_millis(millis)).now_or_never();
            }
        });
        let warnings = Warnings::default();
        let _log = tracing::subscriber::set_default(warnings.clone());
        run(&informer, [], async {
            assert!(informer.wait_for_sync().await);
            // All objects wait for it at once.
            let (registration, deliver) = add(&informer, handler);
            let remove = async {
                assert!(registration.wait_for_sync().await);
                registration.remove();
            };
            tokio::join!(deliver, remove);
        })
        .await;
        let expected = ["a slow handler has a long backlog"];
        assert_eq!(warnings.take(), expected[..usize::from(is_logged)], "{n_waiting} wait, {millis} ms");
    }
}

/// The handler that panics is called again for what comes next, and with what it missed.
#[tokio::test(start_paused = true)]
async fn a_panic_of_a_handler_ends_one_call_which_counts_as_finished_pl_04_sy_04() {
    let fake = FakeListWatch::pods();
    fake.put("ns/a");
    fake.put("ns/b");
    let informer = informer(&fake);
    let calls = Recorder::default();
    let mut recorder = calls.clone();
    let mut is_first = true;
    let handler = HandlerFunctions::new().on_add(move |object, is_in_initial_list| {
        assert!(!std::mem::take(&mut is_first), "the handler panics on purpose");
        recorder.on_add(object, is_in_initial_list);
    });
    let (registration, deliver) = add(&informer, handler);
    run(&informer, [deliver], async {
        assert!(registration.wait_for_sync().await, "it syncs though an initial add has failed");
        assert_eq!(calls.take(), ["add ns/b@3 (initial)"]);
        assert_eq!(registration.parked().len(), 1);
        fake.until_watches(1).await;
        fake.put("ns/a");
        settle().await;
        assert_eq!(calls.take(), ["add ns/a@4 (initial)"], "merged into the next");
        assert_eq!(registration.parked().len(), 0);
    })
    .await;
}

// Conformance: 20.12
#[tokio::test(start_paused = true)]
async fn shared_informer_multiple_registration() {
    let fake = FakeListWatch::pods();
    let informer = informer(&fake);
    let calls = Recorder::default();
    let (first, deliver_first) = add(&informer, calls.clone());
    let (_second, deliver_second) = add(&informer, calls.clone());
    assert_eq!(informer.status().listeners, 2);
    run(&informer, [deliver_first, deliver_second], async {
        fake.until_watches(1).await;
        fake.put("ns/a");
        settle().await;
        assert_eq!(calls.take(), ["add ns/a@2", "add ns/a@2"]);
        first.remove();
        assert_eq!(informer.status().listeners, 1);
        fake.put("ns/a");
        settle().await;
        assert_eq!(calls.take(), ["update ns/a@2→3"]);
    })
    .await;
}

// Conformance: 20.23
#[test]
fn the_shutdown_of_a_handler_waits_for_its_running_call_si_21() {
    let fake = FakeListWatch::pods();
    let informer = informer(&fake);
    let (entered, has_entered) = mpsc::channel();
    let (leave, may_leave) = mpsc::channel();
    let calls = Recorder::default();
    let recorder = calls.clone();
    let handler = HandlerFunctions::new().on_add(move |object, _| {
        entered.send(()).unwrap();
        may_leave.recv().unwrap();
        recorder.note(format!("end of {}", object.key()));
    });
    let (registration, deliver) = add(&informer, handler);
    fake.put("ns/a");
    fake.put("ns/b");
    let token = CancellationToken::new();
    std::thread::scope(|scope| {
        let _stop = token.clone().drop_guard();
        scope.spawn(|| block_on(informer.run(token.clone())));
        scope.spawn(|| block_on(deliver));
        has_entered.recv().unwrap();
        let mut shut_down = Box::pin(registration.shut_down());
        assert!((&mut shut_down).now_or_never().is_none(), "the call is under way");
        leave.send(()).unwrap();
        block_on(shut_down);
        assert_eq!(calls.take(), ["end of ns/a"], "what waited is dropped");
    });
    block_on(registration.shut_down());
}

#[test]
fn the_shutdown_of_an_uncalled_handler_returns_at_once_si_21() {
    let informer = informer(&FakeListWatch::pods());
    let calls = Recorder::default();
    let (registration, deliver) = add(&informer, calls.clone());
    assert!(registration.shut_down().now_or_never().is_some());
    assert!(deliver.now_or_never().is_some(), "and will not be");
    assert_eq!(informer.status().listeners, 0);
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_future_is_dropped_is_removed() {
    let informer = informer(&FakeListWatch::pods());
    let (registration, deliver) = add(&informer, Recorder::default());
    drop(deliver);
    assert_eq!(informer.status().listeners, 0);
    assert!(!registration.wait_for_sync().await);
    registration.shut_down().await;
}
