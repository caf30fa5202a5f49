//! The clauses CT-06 and PD-…, and client-go's tests of the plain informer, each under its name.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use parking_lot::Mutex;

use super::*;
use crate::testing::{Draft, FakeListWatch};
use crate::toolkit::cache::HandlerFunctions;

type Calls = Arc<Mutex<Vec<String>>>;

/// Records calls: names, versions and the label `state`.
fn recording(calls: &Calls) -> HandlerFunctions {
    let state = |object: &Object| object.labels().remove("state").unwrap_or_default();
    let shown =
        move |object: &Object| format!("{}@{}{}", object.key(), &*object.resource_version(), state(object));
    let [adds, updates, deletes] = [calls, calls, calls].map(Clone::clone);
    HandlerFunctions::new()
        .on_add(move |object, is_initial| {
            let initial = if is_initial { " (initial)" } else { "" };
            adds.lock().push(format!("add {}{initial}", shown(object)));
        })
        .on_update(move |old, new| updates.lock().push(format!("update {} → {}", shown(old), shown(new))))
        .on_delete(move |object, is_unknown| {
            let unknown = if is_unknown { " (unknown)" } else { "" };
            deletes.lock().push(format!("delete {}{unknown}", shown(object)));
        })
}

fn informer<H: EventHandler>(fake: &FakeListWatch, handler: H) -> Informer<H> {
    Informer::new(Arc::new(fake.clone()), reflector::Config::default(), None, handler)
}

/// Runs an informer concurrently with a test, and stops it at the end.
async fn run<H: EventHandler>(informer: Informer<H>, test: impl Future<Output = ()>) {
    let token = CancellationToken::new();
    let test = async {
        test.await;
        token.cancel();
    };
    tokio::join!(informer.run(&token), test);
}

/// Waits for this many calls and returns them.
async fn until(calls: &Calls, n_calls: usize) -> Vec<String> {
    let begun = tokio::time::Instant::now();
    while calls.lock().len() < n_calls {
        assert!(
            begun.elapsed() < std::time::Duration::from_secs(3600),
            "no {n_calls} calls: {:?}",
            calls.lock()
        );
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    std::mem::take(&mut *calls.lock())
}

// Conformance: 1.2
#[tokio::test(start_paused = true)]
async fn example_new_informer_calls_one_handler() {
    let fake = FakeListWatch::pods();
    let deleted = Arc::new(Mutex::new(Vec::new()));
    let handler = HandlerFunctions::new()
        .on_add({
            let fake = fake.clone();
            move |object, _| drop(fake.delete(object.key().name()))
        })
        .on_delete({
            let deleted = deleted.clone();
            move |object, _| deleted.lock().push(object.key().to_string())
        });
    let informer = informer(&fake, handler);
    let indexer = informer.indexer().clone();
    run(informer, async {
        for name in ["a-hello", "b-controller", "c-framework"] {
            fake.put(name);
        }
        let mut names = until(&deleted, 3).await;
        names.sort();
        assert_eq!(names, ["a-hello", "b-controller", "c-framework"]);
        assert!(indexer.is_empty());
    })
    .await;
}

// Conformance: 1.5
#[tokio::test(start_paused = true)]
async fn panic_propagated_from_the_handler_out_of_run() {
    let fake = FakeListWatch::pods();
    fake.put("ns/a");
    let handler = HandlerFunctions::new().on_add(|_, _| std::panic::panic_any("the very value"));
    let token = CancellationToken::new();
    let run = informer(&fake, handler);
    let ended = AssertUnwindSafe(run.run(&token)).catch_unwind().await;
    assert_eq!(ended.unwrap_err().downcast_ref(), Some(&"the very value"));
}

// Conformance: 1.6
#[tokio::test(start_paused = true)]
async fn transforming_informer_shows_transformed_objects_only() {
    let fake = FakeListWatch::pods();
    let draft = |name: &str| Draft::new(name).label("state", "raw");
    fake.put(draft("ns/before"));
    fake.put(draft("ns/before"));
    let transformer: Transformer = Arc::new(|object: Object| {
        let text = object.json().replace("\"raw\"", "\" ready\"");
        let version = format!("\"resourceVersion\":\"{}\"", &*object.resource_version());
        let text = text.replace(&version, "\"resourceVersion\":\"\"");
        Ok(Object::parse(text.as_bytes(), None).unwrap())
    });
    let calls = Calls::default();
    let informer = Informer::new(
        Arc::new(fake.clone()),
        reflector::Config::default(),
        Some(transformer),
        recording(&calls),
    );
    let indexer = informer.indexer().clone();
    run(informer, async {
        assert_eq!(until(&calls, 1).await, ["add ns/before@3 ready (initial)"]);
        fake.until_watches(1).await;
        fake.put(draft("ns/new"));
        fake.put(draft("ns/before"));
        fake.delete("ns/new");
        assert_eq!(
            until(&calls, 3).await,
            ["add ns/new@4 ready", "delete ns/new@6 ready", "update ns/before@3 ready → ns/before@5 ready"],
            "what waits for one object is handled together"
        );
        let cached = indexer.get(&ObjectKey::new("ns", "before")).unwrap();
        assert!(cached.json().contains("\" ready\"") && cached.json().contains("\"resourceVersion\":\"\""));
        assert_eq!(&*cached.resource_version(), "5", "a transformer cannot remove the version (PD-43)");
    })
    .await;
}

// Conformance: 1.13
#[tokio::test(start_paused = true)]
async fn after_a_reset_watch_missed_changes_are_delivered_once() {
    let fake = FakeListWatch::pods();
    fake.put("ns/first");
    let calls = Calls::default();
    run(informer(&fake, recording(&calls)), async {
        assert_eq!(until(&calls, 1).await, ["add ns/first@2 (initial)"]);
        fake.until_watches(1).await;
        fake.put_unseen("ns/first");
        fake.put_unseen("ns/second");
        fake.expire_history();
        fake.close_watches();
        let mut received = until(&calls, 2).await;
        received.sort();
        assert_eq!(received, ["add ns/second@4", "update ns/first@2 → ns/first@3"]);
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        assert!(calls.lock().is_empty());
    })
    .await;
}

/// A store that fails for one version.
struct Refusing(IndexerWriter, &'static str);

impl Store for Refusing {
    fn put(&mut self, key: &ObjectKey, object: Object) -> Result<Option<Object>, ProcessError> {
        if *object.resource_version() == *self.1 {
            return Err("no".into());
        }
        Store::put(&mut self.0, key, object)
    }

    fn delete(
        &mut self,
        key: &ObjectKey,
        last_state: Option<&Object>,
    ) -> Result<Option<Object>, ProcessError> {
        Store::delete(&mut self.0, key, last_state)
    }
}

// Conformance: G.53
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_drops_the_rest_of_the_list_pd_04_ct_02() {
    let fake = FakeListWatch::pods();
    let fifo = Arc::new(DeltaFifo::new(Config::default()));
    let controller = Controller::new(Arc::new(fake.clone()), fifo.clone(), reflector::Config::default());
    let calls = Calls::default();
    let mut handler = recording(&calls);
    let mut store = Refusing(IndexerWriter::new(), "3");
    // The store fails in the middle of the deltas of one key; another key follows.
    fifo.add(fake.put("ns/a")).unwrap();
    fifo.update(fake.put("ns/a")).unwrap();
    fifo.update(fake.put("ns/a")).unwrap();
    fifo.add(fake.put("ns/b")).unwrap();
    let token = CancellationToken::new();
    let mut n_lists = 0;
    fake.hang_list();
    fake.hang_watch();
    controller
        .run(&token, |key, deltas, is_initial| {
            n_lists += 1;
            if n_lists == 2 {
                token.cancel();
            }
            process_deltas(&mut store, &mut handler, key, deltas, is_initial)?;
            Ok(Processed::Done)
        })
        .await;
    assert_eq!(*calls.lock(), ["add ns/a@2", "add ns/b@5"]);
    assert!(fifo.is_empty());
}
