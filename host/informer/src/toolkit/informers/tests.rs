//! The clauses FA-…, GI-01 and MX-02, and the upstream cases A6, A8 and A10.5.

use std::convert::Infallible;
use std::pin::pin;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::join_all;
use http::{Request, Response};
use http_body_util::StreamBody;
use kube::client::Body;
use oarlock_label_selector::LabelSelector;

use super::*;
use crate::list_watch::ListWatch;
use crate::listener::ListenerConfig;
use crate::names::{ObjectKey, TypeMeta};
use crate::shared_informer::Lifecycle;
use crate::testing::{Draft, FakeListWatch};
use crate::toolkit::cache::{HandlerFunctions, Handling};
use crate::toolkit::wait::cancelled;

fn pods() -> GroupVersionResource {
    GroupVersionResource::new("", "v1", "pods")
}

fn deployments() -> GroupVersionResource {
    GroupVersionResource::new("apps", "v1", "deployments")
}

/// Serves one fake under every resource's name, restricted to a namespace as an API server would.
fn source(fake: &FakeListWatch) -> impl Source + use<> {
    let fake = fake.clone();
    move |_: &GroupVersionResource, namespace: Option<&str>| {
        let list_watch: Arc<dyn ListWatch> = Arc::new(fake.clone());
        let Some(namespace) = namespace.map(str::to_owned) else { return list_watch };
        Tweak::new(move |mut options| {
            let selector = options.field_selector();
            let separator = if selector.is_empty() { "" } else { "," };
            *selector = format!("{selector}{separator}metadata.namespace={namespace}");
        })
        .apply_to(list_watch)
    }
}

/// Runs what a factory has made beside a test, and shuts it down at the end.
async fn run<T>(factory: &InformerFactory, test: impl Future<Output = T>) -> T {
    let token = CancellationToken::new();
    let mut runs = Vec::new();
    factory.start(&token, |_, run| runs.push(run));
    let test = async {
        let result = test.await;
        token.cancel();
        result
    };
    let result = tokio::join!(join_all(runs), test).1;
    factory.shut_down().await;
    result
}

async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Adds a handler that records its calls; returns the records and the future that calls it.
fn noting(informer: &SharedInformer) -> (Arc<Mutex<Vec<String>>>, Handling) {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let [adds, updates, deletes] = std::array::from_fn(|_| notes.clone());
    let handler = HandlerFunctions::new()
        .on_add(move |object, _| adds.lock().push(format!("add {}", object.key())))
        .on_update(move |_, new| updates.lock().push(format!("update {}", new.key())))
        .on_delete(move |object, _| deletes.lock().push(format!("delete {}", object.key())));
    (notes, informer.add_event_handler(ListenerConfig::default(), handler).unwrap())
}

/// What upstream's factory tests do: one of each, and the matching callback is called.
async fn delivers_create_update_delete(fake: &FakeListWatch) {
    let factory = InformerFactory::new(source(fake), Config::default());
    let (notes, deliver) = noting(&factory.informer(&deployments()));
    let test = run(&factory, async {
        fake.until_watches(1).await;
        fake.put("ns-foo/name-foo");
        settle().await;
        fake.put("ns-foo/name-foo");
        settle().await;
        fake.delete("ns-foo/name-foo");
        settle().await;
    });
    tokio::join!(test, deliver);
    assert_eq!(*notes.lock(), ["add ns-foo/name-foo", "update ns-foo/name-foo", "delete ns-foo/name-foo"]);
}

/// The metadata alone is another source, not another factory.
// Conformance: A6.3, A8.4, A10.5
#[tokio::test(start_paused = true)]
async fn dynamic_shared_informer_factory() {
    delivers_create_update_delete(&FakeListWatch::pods()).await;
}

/// Returns a source whose server sends metadata only: `ns/a` at first, as a list unless it `streams`, and
/// then `ns/b` on a watch that stays open.
fn metadata_source(streams: bool) -> ApiSource {
    let service = tower::service_fn(move |request: Request<Body>| {
        let accept = request.headers()["accept"].to_str().unwrap().to_owned();
        let query = request.uri().query().unwrap_or_default();
        let head = r#""kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1""#;
        let object = |name: &str, version: u32| {
            format!(
                r#"{{{head},"metadata":{{"name":"{name}","namespace":"ns","uid":"{name}","resourceVersion":"{version}"}}}}"#
            )
        };
        let event = |of: &str, object: &str| format!("{{\"type\":\"{of}\",\"object\":{object}}}\n");
        let b = event("ADDED", &object("b", 3));
        let text = if query.contains("sendInitialEvents=true") {
            let end = r#"{"resourceVersion":"2","annotations":{"k8s.io/initial-events-end":"true"}}"#;
            let end = event("BOOKMARK", &format!("{{{head},\"metadata\":{end}}}"));
            if streams { [event("ADDED", &object("a", 2)), end, b].concat() } else { String::new() }
        } else if query.contains("watch=true") {
            b
        } else {
            assert!(accept.starts_with("application/json;as=PartialObjectMetadataList;"), "{accept}");
            let items = object("a", 2);
            format!(
                r#"{{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{{"resourceVersion":"2"}},"items":[{items}]}}"#
            )
        };
        let stays_open = query.contains("watch=true") && !text.is_empty();
        let body = futures::stream::iter([Ok::<_, Infallible>(http_body::Frame::data(Bytes::from(text)))]);
        let rest = futures::stream::pending().take(usize::from(stays_open));
        async { Ok::<_, Infallible>(Response::new(StreamBody::new(body.chain(rest)))) }
    });
    ApiSource::metadata(kube::Client::new(service, "default"))
}

/// As client-go's metadata informers do, which know no other type.
// Conformance: A6.3
#[tokio::test(start_paused = true)]
async fn a_metadata_factory_has_the_objects_of_any_resource_gi_01() {
    for streams in [true, false] {
        let factory = InformerFactory::new(metadata_source(streams), Config::default());
        let lister = factory.lister(&deployments());
        run(&factory, async {
            let both = async {
                while lister.list(None, &LabelSelector::everything()).len() < 2 {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(60), both).await.expect("objects are missing");
            for name in ["a", "b"] {
                let object = lister.get(&ObjectKey::new("ns", name)).unwrap();
                let partial = TypeMeta::new("meta.k8s.io/v1", "PartialObjectMetadata");
                assert_eq!(object.type_meta(), &partial);
            }
            assert_eq!(factory.informer(&deployments()).status().undecodable, 0);
        })
        .await;
    }
}

/// A server that takes nothing but watches, and says at once that this was all.
// Conformance: A6.1, A8.1
#[tokio::test(start_paused = true)]
async fn watch_list_semantics_simple() {
    let fake = FakeListWatch::pods();
    (0..100).for_each(|_| fake.fail_list(crate::testing::errors::forbidden().into()));
    let factory = InformerFactory::new(source(&fake), Config::default());
    let informer = factory.informer(&pods());
    run(&factory, async { assert!(informer.wait_for_sync().await) }).await;
    assert!(fake.lists().is_empty() && fake.watches()[0].send_initial_events);
}

// Conformance: A8.3
#[tokio::test(start_paused = true)]
async fn filtered_dynamic_shared_informer_factory() {
    type Function = fn(RequestOptions<'_>);
    let by_label: Function =
        |mut options| *options.label_selector() = "environment=production".parse().unwrap();
    let by_field: Function = |mut options| *options.field_selector() = "metadata.name=name-foo".into();
    let production = || Draft::new("ns-foo/name-foo").label("environment", "production");
    let cases: [(&str, Option<Function>, Draft, bool); 6] = [
        ("ns-bar", None, Draft::new("ns-foo/name-foo"), false),
        ("ns-foo", None, Draft::new("ns-foo/name-foo"), true),
        ("ns-foo", Some(by_label), Draft::new("ns-foo/name-foo"), false),
        ("ns-foo", Some(by_label), production(), true),
        ("ns-foo", Some(by_field), Draft::new("ns-foo/name-bar"), false),
        ("ns-foo", Some(by_field), Draft::new("ns-foo/name-foo"), true),
    ];
    for (case, (namespace, tweak, draft, is_warned)) in cases.into_iter().enumerate() {
        let fake = FakeListWatch::pods();
        let config =
            Config { namespace: Some(namespace.into()), tweak: tweak.map(Tweak::new), ..Config::default() };
        let factory = InformerFactory::new(source(&fake), config);
        let (notes, deliver) = noting(&factory.informer(&deployments()));
        let test = run(&factory, async {
            fake.until_watches(1).await;
            fake.put(draft);
            settle().await;
        });
        tokio::join!(test, deliver);
        assert_eq!(!notes.lock().is_empty(), is_warned, "case {case}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_tweak_gets_every_request_with_the_options_of_the_reflector_fa_05() {
    let fake = FakeListWatch::pods();
    fake.decline_watch_list();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let seeing = seen.clone();
    let tweak = Tweak::new(move |mut options| {
        let what = match &options {
            RequestOptions::List(options) => format!("list {:?}", options.limit.map(|limit| limit.get())),
            RequestOptions::Watch(options) => format!("watch {}", options.allow_bookmarks),
        };
        seeing.lock().push(format!("{what} from {:?}", options.resource_version()));
        if let RequestOptions::List(options) = options {
            options.resource_version.clear();
        }
    });
    let factory = InformerFactory::new(source(&fake), Config { tweak: Some(tweak), ..Config::default() });
    let _ = factory.informer(&pods());
    run(&factory, async {
        fake.until_watches(1).await;
        fake.close_watches();
        tokio::time::sleep(Duration::from_secs(1)).await;
        fake.until_watches(2).await;
    })
    .await;
    assert_eq!(fake.lists()[0].resource_version, "", "it has the last word");
    let seen = seen.lock();
    assert_eq!(seen.len(), fake.requests().len());
    assert_eq!(seen[0], r#"list Some(500) from "0""#);
    assert!(seen.contains(&r#"watch true from "1""#.to_owned()), "{seen:?}");
}

// Conformance: G.34
#[tokio::test(start_paused = true)]
async fn the_rules_of_the_factory_fa_01_fa_02_fa_08_fa_09_fa_10() {
    let fake = FakeListWatch::pods();
    fake.put("ns/a");
    let config = Config {
        resync_period: Duration::from_secs(100),
        custom_resync: BTreeMap::from([(deployments(), Duration::from_secs(7))]),
        ..Config::default()
    };
    let factory = InformerFactory::new(source(&fake), config);

    // The first creation function wins.
    let mut periods = Vec::new();
    let make = |config: shared_informer::Config| {
        periods.push(config.resync_period);
        SharedInformer::new(Arc::new(fake.clone()), config)
    };
    let first = factory.informer_by(&deployments(), make);
    let again = factory.informer_by(&deployments(), |_| unreachable!("it is made already"));
    let lister = factory.lister(&deployments());
    assert_eq!(periods, [Duration::from_secs(7)], "custom resync");
    let _ = factory.informer_by(&pods(), |config| {
        assert_eq!(config.resync_period, Duration::from_secs(100));
        SharedInformer::new(Arc::new(fake.clone()), config)
    });

    // Nothing runs and nothing is waited for before the start.
    let result = factory.wait_for_cache_sync(std::future::pending::<Cause>()).await;
    assert!(result.synced.is_empty() && result.is_synced());

    let token = CancellationToken::new();
    let mut runs = Vec::new();
    let mut started = Vec::new();
    for _ in 0..2 {
        factory.start(&token, |resource, run| {
            started.push(resource.to_string());
            runs.push(run);
        });
    }
    assert_eq!(started, ["v1/pods", "apps/v1/deployments"], "each once");

    let late = GroupVersionResource::new("", "v1", "services");
    let test = async {
        let result = factory.wait_for_cache_sync(cancelled(&token)).await;
        assert_eq!(result.synced, BTreeMap::from([(pods(), true), (deployments(), true)]));
        assert!(result.into_result().is_ok());
        assert_eq!(lister.list(None, &LabelSelector::everything()).len(), 1);
        assert!(first.has_synced() && again.has_synced(), "the same informer");

        // One that is asked for later needs another start, and may be given up alone.
        let late_informer = factory.informer(&late);
        settle().await;
        assert_eq!(late_informer.lifecycle(), Lifecycle::Created);
        let late_token = CancellationToken::new();
        let mut late_runs = Vec::new();
        factory.start(&late_token, |_, run| late_runs.push(run));
        assert_eq!(late_runs.len(), 1);
        let waited = async {
            let result = factory.wait_for_cache_sync(cancelled(&token)).await;
            assert_eq!(result.synced.len(), 3);
            late_token.cancel();
        };
        tokio::join!(join_all(late_runs), waited);
        assert_eq!(late_informer.lifecycle(), Lifecycle::Stopped);
        factory.start(&token, |resource, _| panic!("{resource} is started again"));

        // Shutting down blocks until all have ended, however often it is asked for.
        let mut shut_downs = [Box::pin(factory.shut_down()), Box::pin(factory.shut_down())];
        for shut_down in &mut shut_downs {
            assert!(shut_down.now_or_never().is_none());
        }
        token.cancel();
        join_all(shut_downs).await;
        assert_eq!(first.lifecycle(), Lifecycle::Stopped);
    };
    tokio::join!(join_all(runs), test);
    factory.shut_down().await;
    let _ = factory.informer(&GroupVersionResource::new("", "v1", "nodes"));
    factory.start(&CancellationToken::new(), |resource, _| panic!("{resource} is started after the end"));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_wait_names_the_unsynced_informers_fa_09() {
    let fake = FakeListWatch::pods();
    fake.hang_watch();
    let factory = InformerFactory::new(source(&fake), Config::default());
    let _ = factory.informer(&pods());
    run(&factory, async {
        let patience = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            "out of patience"
        };
        let result = factory.wait_for_cache_sync(patience).await;
        assert_eq!(result.synced, BTreeMap::from([(pods(), false)]));
        let error = result.into_result().unwrap_err();
        insta::assert_snapshot!(error, @"failed to sync all caches: v1/pods: out of patience");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn every_informer_has_the_transformer_of_the_factory_fa_03() {
    let fake = FakeListWatch::pods();
    fake.put(Draft::new("ns/a").label("app", "web"));
    let transformer: Transformer = Arc::new(|object| {
        let text = object.json().replace("\"web\"", "\"WEB\"");
        crate::object::Object::parse(text.as_bytes(), None)
            .map_err(|error| crate::delta_fifo::TransformError(error.into()))
    });
    let config = Config { transformer: Some(transformer), ..Config::default() };
    let factory = InformerFactory::new(source(&fake), config);
    let listers = [factory.lister(&pods()), factory.lister(&deployments())];
    run(&factory, async {
        factory.wait_for_cache_sync(std::future::pending::<Cause>()).await;
        for lister in listers {
            assert_eq!(lister.get(&ObjectKey::new("ns", "a")).unwrap().labels()["app"], "WEB");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_of_an_informer_stops_it() {
    let factory = InformerFactory::new(source(&FakeListWatch::pods()), Config::default());
    let informer = factory.informer(&pods());
    let token = CancellationToken::new();
    let mut runs = Vec::new();
    factory.start(&token, |_, run| runs.push(run));
    let mut shut_down = pin!(factory.shut_down());
    assert!(shut_down.as_mut().now_or_never().is_none());
    assert!(runs[0].as_mut().now_or_never().is_none());
    drop(runs);
    shut_down.await;
    assert_eq!(informer.lifecycle(), Lifecycle::Stopped);
}

/// Keeps the last figure of each kind.
#[derive(Default)]
struct Figures(Mutex<BTreeMap<&'static str, String>>);

impl InformerMetrics for Figures {
    fn queued(&self, informer: &crate::toolkit::metrics::Identity, n_keys: usize) {
        self.0.lock().insert("queued", format!("{} {} {n_keys}", informer.name(), informer.resource()));
    }

    fn processed(&self, _: &crate::toolkit::metrics::Identity, took: Duration) {
        self.0.lock().insert("processed", format!("{took:?}"));
    }

    fn resource_version(&self, _: &crate::toolkit::metrics::Identity, resource_version: &str) {
        self.0.lock().insert("version", resource_version.to_owned());
    }
}

#[tokio::test(start_paused = true)]
async fn the_informers_of_a_named_factory_publish_metrics_until_its_shutdown_mx_02() {
    let fake = FakeListWatch::pods();
    let figures = Arc::new(Figures::default());
    let config = Config {
        name: Some(InformerName::new("mx-02").unwrap()),
        metrics: Some(figures.clone()),
        ..Config::default()
    };
    let factory = InformerFactory::new(source(&fake), config);
    let _ = factory.informer(&pods());
    run(&factory, async {
        fake.until_watches(1).await;
        fake.put("ns/a");
        settle().await;
        let expected = [("processed", "0ns"), ("queued", "mx-02 v1/pods 0"), ("version", "2")];
        assert_eq!(*figures.0.lock(), expected.map(|(name, figure)| (name, figure.to_owned())).into());
        assert!(InformerName::new("mx-02").is_err());
    })
    .await;
    assert!(InformerName::new("mx-02").is_ok(), "FA-10");
}
