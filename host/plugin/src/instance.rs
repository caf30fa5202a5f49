//! One living instance of a component: a store, its exports, and how it is called.

use std::{future::Future, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt as _;
use serde_json::Value;
use wasmtime::{Store, UpdateDeadline};

use crate::{
    CallError, Component, GuestLog, GuestMetrics, KubeAccess,
    bindings::exports::oarlock::plugin::{handler, metadata, reconciler},
    call_error::{self, DeadlinePassed, During},
    component::Guests,
    contract::{Added, Deleted, Description, Failure, Outcome, Synced, Updated, WorkKey},
    engine::Running,
    kube_access::EventObject,
    limits::Limits,
    state::{Deadline, State},
};

/// Component-model handles at the same time; the contract has none, WASI a few.
const MAX_HANDLES: usize = 1_000;

/// Where the text of a guest's failure is cut.
const MAX_FAILURE_BYTES: usize = 4 << 10;

/// How much later a waiting call is ended than a computing one, so that the latter gets to say where it was.
const GRACE: Duration = Duration::from_millis(10);

/// What an instance is made with.
#[derive(Clone)]
pub struct InstanceConfig {
    /// What the operator wrote under `config`: a JSON object.
    pub config: Arc<Value>,
    /// What the instance may use.
    pub limits: Limits,
    /// Kubernetes, as the plugin may see it.
    pub access: Arc<dyn KubeAccess>,
    /// Where its lines go.
    pub log: Arc<GuestLog>,
    /// Where its series are kept.
    pub metrics: Arc<GuestMetrics>,
}

/// An instance of a component, called once at a time.
///
/// **Failure.** Every `Err(CallError)` means that the instance is dead: drop it and make another. The inner result is the guest's own answer.
/// **Cancellation.** A call whose future is dropped leaves the instance dead too.
/// **Time.** A call ends within the plugin's deadline. While the guest computes, other tasks of the runtime get their turn
/// every time slice.
pub struct Instance {
    store: Store<State>,
    component: Component,
    metadata: metadata::Guest,
    handler: Option<handler::Guest>,
    reconciler: Option<reconciler::Guest>,
    call_deadline: Duration,
    start_deadline: Duration,
    alive: bool,
}

// === impl Instance ===

impl Instance {
    /// Makes an instance, within the start deadline.
    ///
    /// # Errors
    ///
    /// When the component traps while it starts, or its limits do not let it.
    pub async fn new(component: &Component, config: InstanceConfig) -> Result<Self, CallError> {
        let InstanceConfig { config, limits, access, log, metrics } = config;
        let exports = component.exports();
        let mut store =
            Store::new(component.engine().wasmtime(), State::new(access, config, log, metrics, &limits));
        store.limiter(|state| &mut state.limiter);
        store.set_hostcall_fuel(usize::try_from(limits.hostcall).unwrap_or(usize::MAX));
        store.set_max_component_handles(MAX_HANDLES);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|context| {
            if context.data().deadline.has_passed() {
                return Err(DeadlinePassed.into());
            }
            // tokio's own yield lets it look at timers and sockets before it comes back.
            Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
        });
        let limit = limits.start_deadline;
        let running = component.engine().running();
        let started = within(limit, exports.pre.instantiate_async(&mut store)).await;
        drop(running);
        let instance = started.map_err(|error| {
            let output = store.data().output.take();
            call_error::classify(&error, store.data(), During::Start, output)
        })?;
        store.data().output.flush();
        let Guests { metadata, handler, reconciler } =
            exports.load(&mut store, &instance).map_err(|error| call_error::mismatch(&error))?;
        Ok(Self {
            metadata,
            handler,
            reconciler,
            store,
            component: component.clone(),
            call_deadline: limits.call_deadline,
            start_deadline: limits.start_deadline,
            alive: true,
        })
    }

    /// Tells the guest of an object that is new to it.
    ///
    /// # Errors
    ///
    /// When the call ended without an answer.
    pub async fn on_add(
        &mut self,
        event: &Added,
        object: Arc<dyn EventObject>,
    ) -> Result<Result<(), Failure>, CallError> {
        let guest = exported(self.handler.clone(), "handler")?;
        let call = self.begin(self.call_deadline, None, Some(object))?;
        let answer = within(call.limit, guest.call_on_add(&mut self.store, event)).await;
        self.end(call, answer).map(cut_failure)
    }

    /// Tells the guest of a change.
    ///
    /// # Errors
    ///
    /// When the call ended without an answer.
    pub async fn on_update(
        &mut self,
        event: &Updated,
        old: Arc<dyn EventObject>,
        new: Arc<dyn EventObject>,
    ) -> Result<Result<(), Failure>, CallError> {
        let guest = exported(self.handler.clone(), "handler")?;
        let call = self.begin(self.call_deadline, Some(old), Some(new))?;
        let answer = within(call.limit, guest.call_on_update(&mut self.store, event)).await;
        self.end(call, answer).map(cut_failure)
    }

    /// Tells the guest of an object that is no more; `last` is its last known state.
    ///
    /// # Errors
    ///
    /// When the call ended without an answer.
    pub async fn on_delete(
        &mut self,
        event: &Deleted,
        last: Arc<dyn EventObject>,
    ) -> Result<Result<(), Failure>, CallError> {
        let guest = exported(self.handler.clone(), "handler")?;
        let call = self.begin(self.call_deadline, Some(last), None)?;
        let answer = within(call.limit, guest.call_on_delete(&mut self.store, event)).await;
        self.end(call, answer).map(cut_failure)
    }

    /// Tells the guest that a subscription's initial adds are done.
    ///
    /// # Errors
    ///
    /// When the call ended without an answer.
    pub async fn on_synced(&mut self, event: &Synced) -> Result<Result<(), Failure>, CallError> {
        let guest = exported(self.handler.clone(), "handler")?;
        let call = self.begin(self.call_deadline, None, None)?;
        let answer = within(call.limit, guest.call_on_synced(&mut self.store, event)).await;
        self.end(call, answer).map(cut_failure)
    }

    /// Has the guest reconcile a key.
    ///
    /// # Errors
    ///
    /// When the call ended without an answer.
    pub async fn reconcile(&mut self, key: &WorkKey) -> Result<Result<Outcome, Failure>, CallError> {
        let guest = exported(self.reconciler.clone(), "reconciler")?;
        let call = self.begin(self.call_deadline, None, None)?;
        let answer = within(call.limit, guest.call_reconcile(&mut self.store, key)).await;
        self.end(call, answer).map(cut_failure)
    }

    /// Returns the linear memory it has, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.store.data().limiter.memory_bytes()
    }

    /// Tells whether it can still be called.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.alive
    }

    /// Asks the guest what it is. Only [`crate::describe`] does, in an instance of its own.
    pub(crate) async fn describe(&mut self) -> Result<Result<Description, String>, CallError> {
        let call = self.begin(self.start_deadline, None, None)?;
        let answer = within(call.limit, self.metadata.call_describe(&mut self.store)).await;
        self.end(call, answer)
    }

    fn begin(
        &mut self,
        limit: Duration,
        old: Option<Arc<dyn EventObject>>,
        new: Option<Arc<dyn EventObject>>,
    ) -> Result<Call, CallError> {
        // Whoever drops the call's future never gets to `end`, and so leaves it dead.
        if !std::mem::replace(&mut self.alive, false) {
            return Err(CallError::Dead);
        }
        let state = self.store.data_mut();
        state.old = old;
        state.new = new;
        state.deadline = Deadline::after(limit);
        state.limiter.call_begins();
        self.store.set_epoch_deadline(1);
        Ok(Call { limit, _running: self.component.engine().running() })
    }

    fn end<T>(&mut self, call: Call, answer: Result<T, wasmtime::Error>) -> Result<T, CallError> {
        drop(call);
        let state = self.store.data_mut();
        state.old = None;
        state.new = None;
        state.log.call_ends();
        match answer {
            Ok(answer) => {
                state.output.flush();
                self.alive = true;
                Ok(answer)
            }
            Err(error) => {
                let output = state.output.take();
                Err(call_error::classify(&error, state, During::Call, output))
            }
        }
    }
}

/// A call in progress.
struct Call {
    limit: Duration,
    _running: Running,
}

/// Ends what waits for the host longer than it may; what computes too long is ended by the epochs.
///
/// The one place where a panic of the host within a call is caught: it costs the instance, which is then as dead as after a trap.
async fn within<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, wasmtime::Error>>,
) -> Result<T, wasmtime::Error> {
    match tokio::time::timeout(limit + GRACE, AssertUnwindSafe(call).catch_unwind()).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(panic)) => Err(call_error::panicked(panic.as_ref())),
        Err(_) => Err(DeadlinePassed.into()),
    }
}

/// Cuts the text of a failure: it ends up in logs and in the plugin's status.
fn cut_failure<T>(answer: Result<T, Failure>) -> Result<T, Failure> {
    let cut = |mut text: String| {
        text.truncate(text.floor_char_boundary(MAX_FAILURE_BYTES));
        text
    };
    answer.map_err(|failure| match failure {
        Failure::Retry(text) => Failure::Retry(cut(text)),
        Failure::Terminal(text) => Failure::Terminal(cut(text)),
    })
}

fn exported<T>(guest: Option<T>, interface: &'static str) -> Result<T, CallError> {
    guest.ok_or(CallError::NotExported { interface })
}
