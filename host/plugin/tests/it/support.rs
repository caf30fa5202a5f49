//! Loads built guests, and creates instances of them.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use oarlock_plugin::{
    CallError, Component, Engine, EngineConfig, Instance, InstanceConfig, Limits,
    contract::{Added, Description, Failure},
    describe::DescribeError,
    engine::Share,
    guest::{GuestLog, GuestMetrics, Usage},
    kube_access::KubeAccess,
};
use serde_json::{Value, json};

use super::fake::{FakeKube, FakeObject, Lines, config_map, object_ref};

/// One guest, and the configuration of its instances.
pub(super) struct Host {
    pub(super) component: Component,
    pub(super) kube: Arc<FakeKube>,
    pub(super) lines: Arc<Lines>,
    pub(super) log: Arc<GuestLog>,
    pub(super) limits: Limits,
    pub(super) config: Value,
    pub(super) usage: Usage,
    pub(super) share: Share,
}

/// Returns the engine that all tests share. It stores compiled code for the next run.
pub(super) fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| engine_with(EngineConfig::default()))
}

/// Returns an engine of its own for one test, with the stored code of the others.
pub(super) fn engine_with(config: EngineConfig) -> Engine {
    let cache_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("oarlock-compiled");
    Engine::new(EngineConfig { cache_dir: Some(cache_dir), ..config }).unwrap()
}

/// Returns the bytes of a built guest.
pub(super) fn guest(name: &str) -> Vec<u8> {
    std::fs::read(oarlock_built_guests::component(name)).unwrap()
}

/// Returns the arguments of an `on-add` of an object with this name.
pub(super) fn add(namespace: &str, name: &str) -> (Added, Arc<FakeObject>) {
    let object = config_map(namespace, name, 1);
    let event = Added {
        subscription: "configmaps".into(),
        object: object_ref(&object),
        is_in_initial_list: false,
        fields: vec![],
    };
    (event, FakeObject::new(&object))
}

// === impl Host ===

impl Host {
    pub(super) async fn new(name: &str) -> Self {
        Self::with(name, Limits::default(), json!({})).await
    }

    pub(super) async fn with(name: &str, limits: Limits, config: Value) -> Self {
        Self::of(Component::compile(engine(), guest(name)).await.unwrap(), limits, config)
    }

    pub(super) fn of(component: Component, limits: Limits, config: Value) -> Self {
        Self::in_engine(engine(), component, limits, config)
    }

    pub(super) fn in_engine(engine: &Engine, component: Component, limits: Limits, config: Value) -> Self {
        let lines = Arc::new(Lines::default());
        let log = GuestLog::new("guest".into(), 1, limits.log_lines_per_second, Arc::clone(&lines) as _);
        Self {
            component,
            kube: Arc::default(),
            lines,
            log: Arc::new(log),
            limits,
            config,
            usage: Usage::default(),
            share: engine.share(100),
        }
    }

    pub(super) async fn instance(&self) -> Result<Instance, CallError> {
        let config = InstanceConfig {
            config: self.config.clone().into(),
            limits: self.limits.clone(),
            access: KubeAccess::of(Arc::clone(&self.kube)),
            log: Arc::clone(&self.log),
            metrics: Arc::new(GuestMetrics::new()),
            interception: None,
            usage: self.usage.clone(),
            share: self.share.clone(),
        };
        Instance::new(&self.component, config).await
    }

    pub(super) async fn describe(&self) -> Result<Description, DescribeError> {
        let config = self.config.clone().into();
        oarlock_plugin::describe::describe(
            &self.component,
            config,
            self.limits.clone(),
            Arc::clone(&self.log),
        )
        .await
    }

    /// Creates an instance and calls its `on-add` with an object of this name.
    pub(super) async fn add_once(&self, name: &str) -> Result<Result<(), Failure>, CallError> {
        self.instance().await?.add("default", name).await
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.lines.0.lock().iter().map(|line| line.message.clone()).collect()
    }
}

/// A short way to call an instance.
pub(super) trait Add {
    async fn add(&mut self, namespace: &str, name: &str) -> Result<Result<(), Failure>, CallError>;
}

impl Add for Instance {
    async fn add(&mut self, namespace: &str, name: &str) -> Result<Result<(), Failure>, CallError> {
        let (event, object) = add(namespace, name);
        self.on_add(&event.borrowed().argument(), object).await
    }
}

pub(super) fn deadline(limit: Duration) -> Limits {
    Limits { call_deadline: limit, ..Limits::default() }
}
