//! Panics in functions of users: each is an error of that one call.

use parking_lot::Mutex;

use super::*;
use crate::indexer::{IndexError, IndexFunction};
use crate::object::Object;
use crate::reflector::WatchErrorHandler;
use crate::toolkit::cache::{FilteringHandler, HandlerFunctions};
use crate::toolkit::metrics::{Identity, InformerMetrics, InformerName};
use crate::user_function::{self, UserFunction};

fn is_bad(object: &Object) -> bool {
    object.key().name().starts_with("bad")
}

/// Panics for objects whose names begin with `bad`, and returns `good` for all others.
fn panics_for_bad() -> IndexSource {
    IndexSource::Function(IndexFunction::new(|object| {
        assert!(!is_bad(object), "no value for {}", object.key());
        Ok(vec!["good".to_owned()])
    }))
}

fn names(objects: &[Object]) -> Vec<&str> {
    objects.iter().map(|object| object.key().name()).collect()
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_index_function_panics_is_not_in_the_index() {
    let fake = FakeListWatch::pods();
    for name in ["ns/a", "ns/bad", "ns/c"] {
        fake.put(name);
    }
    let informer = informer(&fake);
    let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
    run(&informer, async {
        receive(&mut listener, 3).await;
        let counted = user_function::n_panics(UserFunction::Index);
        informer.add_index("names", panics_for_bad()).unwrap();
        assert!(user_function::n_panics(UserFunction::Index) > counted);
        let by_index = || informer.indexer().by_index("names", "good").unwrap();
        assert_eq!(names(&by_index()), ["a", "c"]);
        let failures = informer.indexer().index_failures("names").unwrap();
        insta::assert_snapshot!(failures[&key("bad")], @"cannot be indexed: the index function panicked: no value for ns/bad");
        assert_eq!(informer.indexer().index_status("names").unwrap().failed, 1);

        // The same for later objects.
        fake.until_watches(1).await;
        fake.put("ns/bad");
        fake.put("ns/bad-too");
        fake.put("ns/d");
        assert_eq!(receive(&mut listener, 3).await, ["update ns/bad@3→5", "add ns/bad-too@6", "add ns/d@7"]);
        assert_eq!(names(&by_index()), ["a", "c", "d"]);
        assert_eq!(informer.indexer().index_status("names").unwrap().failed, 2);
        assert!(informer.indexer().index("names", &fake.put("ns/bad")).is_err(), "the object has no value in this index");
        fake.delete("ns/bad");
        assert_eq!(receive(&mut listener, 1).await.len(), 1);
        assert!(informer.remove_index("names"));
        assert_eq!(informer.lifecycle(), Lifecycle::Started);
    })
    .await;
}

/// Tests an index that exists before the first list, with several others.
#[tokio::test(start_paused = true)]
async fn an_index_function_that_always_panics_does_not_affect_other_indices() {
    let fake = FakeListWatch::pods();
    fake.put(Draft::new("ns/a").label("app", "web"));
    let informer = informer(&fake);
    let failing =
        IndexFunction::new(|_| -> Result<Vec<String>, IndexError> { panic!("the index function panics") });
    informer.add_index("failing", IndexSource::Function(failing)).unwrap();
    informer.add_index("app", IndexSource::Label("app".into())).unwrap();
    run(&informer, async {
        informer.wait_for_sync().await;
        assert_eq!(informer.indexer().by_index("app", "web").unwrap().len(), 1);
        assert_eq!(informer.indexer().by_index("failing", "web").unwrap().len(), 0);
        assert_eq!(informer.indexer().index_status("failing").unwrap().failed, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_transformer_that_panics_counts_as_failed() {
    let fake = FakeListWatch::pods();
    fake.put("ns/a");
    fake.put("ns/bad");
    let informer = informer(&fake);
    informer
        .set_transformer(Arc::new(|object| {
            assert!(!is_bad(&object), "rejected: {}", object.key());
            Ok(object)
        }))
        .unwrap();
    let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
    run(&informer, async {
        assert_eq!(receive(&mut listener, 1).await, ["add ns/a@2 (initial)"]);
        assert!(informer.wait_for_sync().await);
        fake.until_watches(1).await;
        fake.put("ns/bad");
        fake.put("ns/b");
        assert_eq!(receive(&mut listener, 1).await, ["add ns/b@5"]);
        assert_eq!(waited(&informer, "5").await, Ok(()));
    })
    .await;
}

async fn waited(informer: &SharedInformer, version: &str) -> Result<(), WaitError> {
    tokio::time::timeout(Duration::from_secs(60), informer.wait_until_seen(version)).await.unwrap()
}

/// A panic payload that panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("the message of the panic panics");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_filter_or_handler_that_panics_is_called_for_later_objects() {
    let fake = FakeListWatch::pods();
    for name in ["ns/a", "ns/bad", "ns/bad-handled", "ns/c"] {
        fake.put(name);
    }
    let informer = informer(&fake);
    let called = Arc::new(Mutex::new(Vec::new()));
    let calling = called.clone();
    let handler = HandlerFunctions::new().on_add(move |object, _| {
        if is_bad(object) {
            std::panic::panic_any(Bomb);
        }
        calling.lock().push(object.key().name().to_owned());
    });
    let filter = |object: &Object| {
        assert_ne!(object.key().name(), "bad");
        true
    };
    let handler = FilteringHandler::new(filter, handler);
    let handling = informer.add_event_handler(ListenerConfig::default(), handler).unwrap();
    let registration = handling.registration().clone();
    let test = run(&informer, async {
        assert!(registration.wait_for_sync().await);
        assert_eq!(*called.lock(), ["a", "c"]);
        assert_eq!(registration.parked(), [key("bad"), key("bad-handled")]);
    });
    tokio::join!(handling, test);
}

struct PanickingMetrics;

impl InformerMetrics for PanickingMetrics {
    fn queued(&self, _: &Identity, _: usize) {
        panic!("the metrics panic");
    }

    fn processed(&self, _: &Identity, _: Duration) {
        panic!("the metrics panic");
    }

    fn resource_version(&self, _: &Identity, _: &str) {
        panic!("the metrics panic");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_error_handler_and_metrics_that_panic_do_not_stop_the_informer() {
    let fake = FakeListWatch::pods();
    fake.put("ns/a");
    fake.refuse_watch_lists();
    fake.fail_list(errors::internal().into());
    let name = InformerName::new("panicking").unwrap();
    let pods = GroupVersionResource::new("", "v1", "pods");
    let publisher = crate::toolkit::metrics::Publisher {
        identity: name.identify(&pods),
        metrics: Arc::new(PanickingMetrics),
    };
    let config = Config { publisher: Some(publisher), ..config() };
    let informer = SharedInformer::new(Arc::new(fake.clone()), config);
    informer
        .set_watch_error_handler(WatchErrorHandler::new(|_| panic!("the watch error handler panics")))
        .unwrap();
    let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
    run(&informer, async {
        assert_eq!(receive(&mut listener, 1).await, ["add ns/a@2 (initial)"]);
        assert!(informer.wait_for_sync().await);
        fake.until_watches(1).await;
        fake.put("ns/b");
        assert_eq!(receive(&mut listener, 1).await, ["add ns/b@3"]);
    })
    .await;
}
