use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::delta_fifo::Transformer;
use crate::names::ObjectKey;
use crate::object::Object;
use crate::reflector::{
    Config, InitialList, Phase, Reflector, ReflectorStatus, ReflectorStore, Source, SourceGeneration,
    Sources, StoreError,
};
use crate::testing::{FakeListWatch, RequestKind};

/// A store that records its calls, and keeps the objects as a cache does.
#[derive(Default)]
pub(super) struct RecordingStore {
    calls: Mutex<Vec<String>>,
    cache: Mutex<BTreeMap<ObjectKey, Object>>,
    replaced: Mutex<Vec<Object>>,
    /// The names of the calls that fail, each once.
    rejections: Mutex<Vec<&'static str>>,
    pub(super) declines_resync: Mutex<bool>,
    pub(super) resync_takes: Mutex<Duration>,
    transformer: Option<Transformer>,
}

/// A running reflector, for the script of a test.
pub(super) struct Scene {
    pub(super) server: FakeListWatch,
    pub(super) store: Arc<RecordingStore>,
    pub(super) begun_at: Instant,
    pub(super) sources: Sources,
    reflector: Reflector,
}

/// The deadline of a test: no script takes so long, and a paused clock passes it at once when all tasks are
/// idle.
const LIMIT: Duration = Duration::from_secs(30 * 86_400);

/// Waits for a future, and panics instead of a wait without an end.
pub(in crate::reflector) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("no task of the test can continue")
}

/// Returns a configuration that lists instead of streaming.
pub(super) fn listed() -> Config {
    Config { initial_list: InitialList::Listed, ..Config::default() }
}

/// Runs a reflector during `script`, then cancels it and checks that it ends at once.
pub(super) async fn play(server: FakeListWatch, config: Config, script: impl AsyncFnOnce(&Scene)) {
    play_over(server, RecordingStore::default(), config, script).await;
}

/// Does the same with a store of the caller.
pub(super) async fn play_over(
    server: FakeListWatch,
    store: RecordingStore,
    config: Config,
    script: impl AsyncFnOnce(&Scene),
) {
    let store = Arc::new(store);
    let config = Config { seed: config.seed.or(Some(7)), ..config };
    let source = Source { list_watch: Some(Arc::new(server.clone())), type_meta: config.type_meta.clone() };
    let sources = Sources::new(source);
    let reflector = Reflector::with_sources(sources.clone(), store.clone(), config);
    let scene = Scene { server, store, begun_at: Instant::now(), sources, reflector };
    let token = CancellationToken::new();
    // The script runs first, so that it can prepare the server.
    let (cancelled_at, ended_at) = in_time(async {
        tokio::join!(
            async {
                script(&scene).await;
                token.cancel();
                Instant::now()
            },
            async {
                scene.reflector.run(&token).await;
                Instant::now()
            }
        )
    })
    .await;
    assert_eq!(cancelled_at, ended_at, "the reflector ends when it is cancelled");
    assert_eq!(scene.server.n_open_watches(), 0, "no watch stays open");
}

// === impl Scene ===

impl Scene {
    /// Lets the reflector do all it can without waiting.
    pub(super) async fn settle(&self) {
        self.pass(1).await;
    }

    /// Lets this many milliseconds pass.
    pub(super) async fn pass(&self, millis: u64) {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    /// Returns the store's calls since the last call of this method.
    pub(super) fn store_calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.store.calls.lock())
    }

    pub(super) fn status(&self) -> ReflectorStatus {
        self.reflector.status()
    }

    pub(super) fn phase_receiver(&self) -> tokio::sync::watch::Receiver<Phase> {
        self.reflector.phase()
    }

    pub(super) fn phase(&self) -> Phase {
        self.status().phase
    }

    pub(super) fn last_error(&self) -> String {
        self.status().last_error.map(|failure| failure.message).unwrap_or_default()
    }

    /// Returns all requests so far: `list LIMIT at VERSION`, `stream VERSION` for a watch with initial
    /// events, `watch VERSION`.
    pub(super) fn requests(&self) -> Vec<String> {
        let text = |kind: RequestKind| match kind {
            RequestKind::List(options) => {
                let limit = options.limit.map_or("all".to_owned(), |limit| limit.to_string());
                match options.continue_token {
                    Some(_) => format!("list next {limit} at {:?}", options.resource_version),
                    None => format!("list {limit} at {:?}", options.resource_version),
                }
            }
            RequestKind::Watch(options) if options.send_initial_events => {
                assert!(options.allow_bookmarks);
                format!("stream {:?}", options.resource_version)
            }
            RequestKind::Watch(options) => format!("watch {:?}", options.resource_version),
        };
        self.server.requests().into_iter().map(|request| text(request.kind)).collect()
    }

    /// Returns when the requests were sent, in milliseconds from the beginning.
    pub(super) fn requested_at(&self) -> Vec<u128> {
        self.server.requests().iter().map(|request| (request.at - self.begun_at).as_millis()).collect()
    }
}

// === impl RecordingStore ===

impl RecordingStore {
    pub(super) fn reject(&self, call: &'static str) {
        self.rejections.lock().push(call);
    }

    /// Returns a store with a transformer.
    pub(super) fn with_transformer(transformer: Transformer) -> Self {
        Self { transformer: Some(transformer), ..Self::default() }
    }

    /// Returns the keys and versions of the cached objects.
    pub(super) fn objects(&self) -> String {
        let names: Vec<String> = self.cache.lock().values().map(name).collect();
        names.join(" ")
    }

    /// Returns the items of the last `replace`.
    pub(super) fn replaced(&self) -> Vec<Object> {
        self.replaced.lock().clone()
    }

    fn record(&self, call: &'static str, what: &str) -> Result<(), StoreError> {
        let mut rejections = self.rejections.lock();
        if let Some(idx) = rejections.iter().position(|rejected| *rejected == call) {
            rejections.remove(idx);
            return Err(format!("the store rejects {call}").into());
        }
        self.calls.lock().push(format!("{call} {what}").trim_end().to_owned());
        Ok(())
    }
}

fn name(object: &Object) -> String {
    format!("{}@{}", object.key(), object.resource_version())
}

impl ReflectorStore for RecordingStore {
    fn add(&self, object: Object) -> Result<(), StoreError> {
        self.record("add", &name(&object))?;
        self.cache.lock().insert(object.key().clone(), object);
        Ok(())
    }

    fn update(&self, object: Object) -> Result<(), StoreError> {
        self.record("update", &name(&object))?;
        self.cache.lock().insert(object.key().clone(), object);
        Ok(())
    }

    fn delete(&self, object: Object) -> Result<(), StoreError> {
        self.record("delete", &name(&object))?;
        self.cache.lock().remove(object.key());
        Ok(())
    }

    fn replace(&self, items: Vec<Object>, resource_version: &str) -> Result<(), StoreError> {
        let names: Vec<String> = items.iter().map(name).collect();
        self.record("replace", &format!("[{}] at {resource_version}", names.join(" ")))?;
        *self.cache.lock() = items.iter().map(|item| (item.key().clone(), item.clone())).collect();
        *self.replaced.lock() = items;
        Ok(())
    }

    fn resync(&self) -> Result<(), StoreError> {
        let takes = *self.resync_takes.lock();
        if !takes.is_zero() {
            // Moves the clock at its first poll.
            let _ = tokio::time::advance(takes).now_or_never();
        }
        self.record("resync", "")
    }

    fn should_resync(&self) -> bool {
        !*self.declines_resync.lock()
    }

    fn intern(&self, object: Object) -> Object {
        let cached = self.cache.lock().get(object.key()).cloned();
        cached.filter(|cached| *cached == object).unwrap_or(object)
    }

    fn source_changed(&self, generation: SourceGeneration) {
        if generation > SourceGeneration::default() {
            // Never rejected.
            let _ = self.record("source", &generation.to_string());
        }
    }

    fn transform(&self, object: Object) -> Result<Object, StoreError> {
        match &self.transformer {
            Some(transformer) => Ok(transformer(object)?),
            None => Ok(object),
        }
    }

    fn newest(&self, key: &ObjectKey) -> Option<Object> {
        self.cache.lock().get(key).cloned()
    }

    fn keys(&self) -> Vec<ObjectKey> {
        self.cache.lock().keys().cloned().collect()
    }

    fn bookmark(&self, resource_version: &str) {
        // Never rejected.
        let _ = self.record("bookmark", resource_version);
    }

    fn update_resource_version(&self, resource_version: &str) {
        // Never rejected.
        let _ = self.record("version", resource_version);
    }
}
