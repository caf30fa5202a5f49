//! What one instance's store carries: the event in progress, the access, the limits' memory.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::Value;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::WasiCtx;

use crate::{
    GuestLog, GuestMetrics, KubeAccess, kube_access::EventObject, limiter::Limiter, limits::Limits,
    output::Output, replaceable::Replaceable,
};

/// The data of a store.
pub(crate) struct State {
    pub(crate) access: Arc<dyn KubeAccess>,
    pub(crate) config: Arc<Value>,
    pub(crate) log: Arc<GuestLog>,
    pub(crate) output: Arc<Output>,
    pub(crate) metrics: Arc<GuestMetrics>,
    pub(crate) old: Option<Arc<dyn EventObject>>,
    pub(crate) new: Option<Arc<dyn EventObject>>,
    pub(crate) replaceable: Replaceable,
    pub(crate) limiter: Limiter,
    pub(crate) made: Instant,
    pub(crate) deadline: Deadline,
    /// The import that the guest is in, if it is one that may take long.
    pub(crate) waiting_for: Option<&'static str>,
    /// Made when first asked for: most components never import WASI.
    pub(crate) wasi: Option<Box<Wasi>>,
}

/// When the call in progress must end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    pub(crate) limit: Duration,
}

pub(crate) struct Wasi {
    pub(crate) context: WasiCtx,
    pub(crate) table: ResourceTable,
}

// === impl State ===

impl State {
    pub(crate) fn new(
        access: Arc<dyn KubeAccess>,
        config: Arc<Value>,
        log: Arc<GuestLog>,
        metrics: Arc<GuestMetrics>,
        limits: &Limits,
    ) -> Self {
        Self {
            access,
            config,
            output: Arc::new(Output::new(Arc::clone(&log))),
            log,
            metrics,
            old: None,
            new: None,
            replaceable: Replaceable::default(),
            limiter: Limiter::new(limits),
            made: Instant::now(),
            deadline: Deadline::after(limits.start_deadline),
            waiting_for: None,
            wasi: None,
        }
    }

    /// Waits for the host, so that a call which ends meanwhile can say for what.
    pub(crate) async fn waits_for<T>(&mut self, import: &'static str, answer: impl Future<Output = T>) -> T {
        self.waiting_for = Some(import);
        // A guest that asks for something is not about to break of what it wrote before.
        self.output.flush();
        let answer = answer.await;
        self.waiting_for = None;
        answer
    }
}

// === impl Deadline ===

impl Deadline {
    pub(crate) fn after(limit: Duration) -> Self {
        Self { at: Instant::now() + limit, limit }
    }

    pub(crate) fn has_passed(self) -> bool {
        Instant::now() >= self.at
    }
}
