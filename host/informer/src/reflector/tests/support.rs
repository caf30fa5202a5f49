use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

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
use crate::testing::{Asked, FakeListWatch};

/// A store that writes down what it is told, and keeps the objects as a cache would.
#[derive(Default)]
pub(super) struct Ledger {
    log: Mutex<Vec<String>>,
    cache: Mutex<BTreeMap<ObjectKey, Object>>,
    replaced: Mutex<Vec<Object>>,
    /// What the next call of this name is answered with, once.
    refusals: Mutex<Vec<&'static str>>,
    pub(super) declines_resync: Mutex<bool>,
    transformer: Option<Transformer>,
}

/// A reflector at work, as a test's script sees it.
pub(super) struct Scene {
    pub(super) server: FakeListWatch,
    pub(super) store: Arc<Ledger>,
    pub(super) begun_at: Instant,
    pub(super) sources: Sources,
    reflector: Reflector,
}

/// Lists as reflectors did before there were streams.
pub(super) fn listed() -> Config {
    Config { initial_list: InitialList::Listed, ..Config::default() }
}

/// Runs a reflector while `script` does things to its server, then cancels it and sees that it ends at once.
pub(super) async fn play(server: FakeListWatch, config: Config, script: impl AsyncFnOnce(&Scene)) {
    play_over(server, Ledger::default(), config, script).await;
}

/// Does the same over a store that was there before.
pub(super) async fn play_over(
    server: FakeListWatch,
    store: Ledger,
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
    // The script first, so that it may prepare things.
    let (cancelled_at, ended_at) = tokio::join!(
        async {
            script(&scene).await;
            token.cancel();
            Instant::now()
        },
        async {
            scene.reflector.run(&token).await;
            Instant::now()
        }
    );
    assert_eq!(cancelled_at, ended_at, "cancelled, and ended at that moment");
    assert_eq!(scene.server.n_open_watches(), 0, "no watch is left behind");
}

// === impl Scene ===

impl Scene {
    /// Lets everything happen that happens without time passing.
    pub(super) async fn settle(&self) {
        self.pass(1).await;
    }

    /// Lets so many milliseconds pass.
    pub(super) async fn pass(&self, millis: u64) {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    /// What the store was told since the last look.
    pub(super) fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.store.log.lock())
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

    /// Everything asked so far: `list LIMIT at VERSION`, `stream VERSION` for a watch with initial events, `watch VERSION`.
    pub(super) fn asked(&self) -> Vec<String> {
        let asked = |asked: Asked| match asked {
            Asked::List(options) => {
                let limit = options.limit.map_or("all".to_owned(), |limit| limit.to_string());
                match options.continue_token {
                    Some(_) => format!("list next {limit} at {:?}", options.resource_version),
                    None => format!("list {limit} at {:?}", options.resource_version),
                }
            }
            Asked::Watch(options) if options.send_initial_events => {
                assert!(options.allow_bookmarks);
                format!("stream {:?}", options.resource_version)
            }
            Asked::Watch(options) => format!("watch {:?}", options.resource_version),
        };
        self.server.requests().into_iter().map(|request| asked(request.asked)).collect()
    }

    /// When the requests came, in milliseconds from the beginning.
    pub(super) fn asked_at(&self) -> Vec<u128> {
        self.server.requests().iter().map(|request| (request.at - self.begun_at).as_millis()).collect()
    }
}

// === impl Ledger ===

impl Ledger {
    pub(super) fn refuse(&self, call: &'static str) {
        self.refusals.lock().push(call);
    }

    /// A store that changes objects on their way in.
    pub(super) fn with_transformer(transformer: Transformer) -> Self {
        Self { transformer: Some(transformer), ..Self::default() }
    }

    /// The keys and versions of what is kept.
    pub(super) fn kept(&self) -> String {
        let names: Vec<String> = self.cache.lock().values().map(name).collect();
        names.join(" ")
    }

    /// The objects that the last replace brought, as they were handed over.
    pub(super) fn replaced(&self) -> Vec<Object> {
        self.replaced.lock().clone()
    }

    fn note(&self, call: &'static str, what: &str) -> Result<(), StoreError> {
        let mut refusals = self.refusals.lock();
        if let Some(idx) = refusals.iter().position(|refused| *refused == call) {
            refusals.remove(idx);
            return Err(format!("the store refuses to {call}").into());
        }
        self.log.lock().push(format!("{call} {what}").trim_end().to_owned());
        Ok(())
    }
}

fn name(object: &Object) -> String {
    format!("{}@{}", object.key(), object.resource_version())
}

impl ReflectorStore for Ledger {
    fn add(&self, object: Object) -> Result<(), StoreError> {
        self.note("add", &name(&object))?;
        self.cache.lock().insert(object.key().clone(), object);
        Ok(())
    }

    fn update(&self, object: Object) -> Result<(), StoreError> {
        self.note("update", &name(&object))?;
        self.cache.lock().insert(object.key().clone(), object);
        Ok(())
    }

    fn delete(&self, object: Object) -> Result<(), StoreError> {
        self.note("delete", &name(&object))?;
        self.cache.lock().remove(object.key());
        Ok(())
    }

    fn replace(&self, items: Vec<Object>, resource_version: &str) -> Result<(), StoreError> {
        let names: Vec<String> = items.iter().map(name).collect();
        self.note("replace", &format!("[{}] at {resource_version}", names.join(" ")))?;
        *self.cache.lock() = items.iter().map(|item| (item.key().clone(), item.clone())).collect();
        *self.replaced.lock() = items;
        Ok(())
    }

    fn resync(&self) -> Result<(), StoreError> {
        self.note("resync", "")
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
            // Cannot be refused.
            let _ = self.note("source", &generation.to_string());
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
        // Cannot be refused.
        let _ = self.note("bookmark", resource_version);
    }

    fn update_resource_version(&self, resource_version: &str) {
        // Cannot be refused.
        let _ = self.note("version", resource_version);
    }
}
