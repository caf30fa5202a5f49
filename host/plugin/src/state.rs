//! The data of one instance's store: the current event, the access to Kubernetes, the limiter.

use std::{
    future::poll_fn,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use wasmtime::component::ResourceTable;
use wasmtime_wasi::WasiCtx;

use crate::{
    Configuration,
    contract::{Error, ObjectKey},
    crossing::{Crossed, Crossing},
    guest::{GuestLog, GuestMetrics, Usage},
    intercept::Intercept,
    kube_access::{EventObject, KubeAccess},
    limiter::Limiter,
    limits::Limits,
    output::Output,
    replaceable::Replaceable,
};

/// The data of a store.
pub(crate) struct StoreState {
    pub(crate) access: KubeAccess,
    pub(crate) config: Configuration,
    pub(crate) log: Arc<GuestLog>,
    pub(crate) output: Arc<Output>,
    pub(crate) metrics: Arc<GuestMetrics>,
    /// Sees all calls and imports, for a record or a replay.
    pub(crate) interceptor: Option<Arc<dyn Intercept>>,
    pub(crate) usage: Usage,
    pub(crate) old: Option<Arc<dyn EventObject>>,
    pub(crate) new: Option<Arc<dyn EventObject>>,
    /// The object of the key that the reconciler is called with.
    pub(crate) key: Option<ObjectKey>,
    pub(crate) replaceable: Replaceable,
    pub(crate) limiter: Limiter,
    pub(crate) n_calls: u64,
    /// The bytes that crossed during this call, and their limit.
    pub(crate) crossed: Crossed,
    pub(crate) crossing_limit: u64,
    pub(crate) made: Instant,
    /// The time within which the current call must end.
    pub(crate) limit: Duration,
    /// The import that the guest waits for, if it is one that may take long.
    pub(crate) waiting_for: Option<&'static str>,
    /// Created at the first use: most components never import WASI.
    pub(crate) wasi: Option<Box<Wasi>>,
}

pub(crate) struct Wasi {
    pub(crate) context: WasiCtx,
    pub(crate) table: ResourceTable,
}

// === impl StoreState ===

impl StoreState {
    pub(crate) fn new(
        access: KubeAccess,
        config: Configuration,
        log: Arc<GuestLog>,
        metrics: Arc<GuestMetrics>,
        usage: &Usage,
        limits: &Limits,
    ) -> Self {
        Self {
            interceptor: None,
            access,
            config,
            output: Arc::new(Output::new(Arc::clone(&log))),
            log,
            metrics,
            usage: usage.clone(),
            old: None,
            new: None,
            key: None,
            replaceable: Replaceable::default(),
            limiter: Limiter::new(limits, usage),
            n_calls: 0,
            crossed: Crossed::default(),
            crossing_limit: limits.crossing,
            made: Instant::now(),
            limit: limits.start_deadline,
            waiting_for: None,
            wasi: None,
        }
    }

    /// Returns the object or key of the current call, as NAMESPACE/NAME.
    pub(crate) fn object_of_call(&self) -> Option<String> {
        match &self.key {
            Some(ObjectKey { namespace, name }) if namespace.is_empty() => Some(name.clone()),
            Some(ObjectKey { namespace, name }) => Some(format!("{namespace}/{name}")),
            None => self.new.as_ref().or(self.old.as_ref())?.name(),
        }
    }

    /// Awaits an answer of the host. If the call ends meanwhile, its error names the import.
    pub(crate) async fn waits_for<T: Crossing>(
        &mut self,
        import: &'static str,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        if import.starts_with("cache.") {
            self.usage.read_cache();
        } else {
            self.usage.requested();
        }
        self.waiting_for = Some(import);
        // The guest continued after its last output, so that is not an exception that ends in a trap.
        self.output.flush();
        let mut answer = pin!(answer);
        // The end of the last poll. Most answers are ready at the first one, which takes two clock readings.
        let mut waits_since = None;
        let answer = poll_fn(|context| {
            let began = Instant::now();
            if let Some(since) = waits_since {
                self.usage.waited(began.saturating_duration_since(since));
            }
            let polled = answer.as_mut().poll(context);
            let ended = Instant::now();
            self.usage.hosted(ended.saturating_duration_since(began));
            waits_since = Some(ended);
            polled
        })
        .await;
        self.waiting_for = None;
        self.gives(answer)
    }

    /// Counts an answer of an import. `limit-exceeded` if too much crossed in this call already.
    pub(crate) fn gives<T: Crossing>(&mut self, answer: Result<T, Error>) -> Result<T, Error> {
        let answer = answer?;
        self.crossed.add(answer.bytes(), 0, self.crossing_limit)?;
        Ok(answer)
    }

    /// Counts the arguments of an import. `limit-exceeded` if too much crossed in this call already.
    pub(crate) fn takes(&mut self, arguments: &[&dyn Crossing]) -> Result<(), Error> {
        self.crossed.add(0, arguments.iter().map(|it| it.bytes()).sum(), self.crossing_limit)
    }
}
