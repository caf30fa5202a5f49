//! One instance of a component: a store, its exports, and the calls of them.

mod runner;

use std::{
    future::poll_fn,
    pin::pin,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use serde::Serialize;
use wasmtime::{Store, UpdateDeadline};

use self::runner::Runner;
use crate::{
    CallError, Component, Configuration,
    bindings::exports::oarlock::plugin::{metadata, reconciler},
    call_error::{self, DeadlinePassed, During},
    component::{Guests, Handler},
    contract::{
        AddedArgument, DeletedArgument, Description, Failure, Level, Outcome, RetryInfo, Synced,
        UpdatedArgument, WorkKey,
    },
    crossing::{Crossed, Crossing},
    engine::{Share, Turn},
    guest::{GuestLog, GuestMetrics, Usage},
    intercept::{self, Interception},
    kube_access::{EventObject, KubeAccess},
    limits::Limits,
    state::StoreState,
};

/// The maximum number of handles of the component model. The contract has none, WASI a few.
const MAX_HANDLES: usize = 1_000;

/// The maximum length of the text of a guest's failure.
const MAX_FAILURE_BYTES: usize = 4 << 10;

/// Configures an instance.
#[derive(Clone)]
pub struct InstanceConfig {
    /// The plugin's configuration: a JSON object.
    pub config: Configuration,
    /// The limits of the instance.
    pub limits: Limits,
    /// The plugin's access to Kubernetes.
    pub access: KubeAccess,
    /// The plugin's log.
    pub log: Arc<GuestLog>,
    /// The plugin's metrics.
    pub metrics: Arc<GuestMetrics>,
    /// Counts what the plugin uses.
    pub usage: Usage,
    /// The plugin's share of the CPU, from [`Engine::share`](crate::Engine::share).
    pub share: Share,
    /// Records the calls of the instance, or answers its imports from a record.
    pub interception: Option<Interception>,
}

/// An instance of a component. It handles one call at a time.
///
/// **Failure.** After `Err(CallError)` the instance cannot be called again: drop it and create another. The
/// inner result is the guest's own answer.
///
/// **Cancellation.** If the future of a call is dropped, the instance cannot be called again either.
///
/// **Time.** A call ends within the plugin's deadline. A guest that computes yields to other tasks after
/// every time slice. While other guests have their turn, the deadline moves on.
pub struct Instance {
    store: Store<StoreState>,
    runner: Runner,
    metadata: metadata::Guest,
    handler: Option<Handler>,
    reconciler: Option<reconciler::Guest>,
    call_deadline: Duration,
    start_deadline: Duration,
    alive: bool,
}

// === impl Instance ===

impl Instance {
    /// Creates an instance, within the start deadline.
    ///
    /// # Errors
    ///
    /// When the component traps while it starts, or exceeds a limit. The error has no output of the guest,
    /// which is in its log: it may say in a status why a version is not used, and output may quote secrets.
    pub async fn new(component: &Component, config: InstanceConfig) -> Result<Self, CallError> {
        let InstanceConfig { config, limits, access, log, metrics, usage, share, interception } = config;
        let exports = component.exports();
        let turn = Arc::new(Turn::new());
        let state = StoreState::new(access, config, log, metrics, &usage, &limits);
        let mut store = Store::new(component.engine().wasmtime(), state);
        let linked;
        let mut pre = &exports.pre;
        if let Some(interception) = interception {
            linked = intercept::link(component).map_err(|error| call_error::mismatch(&error))?;
            pre = &linked;
            let interceptor = interception.interceptor();
            interceptor.call_begins("start", intercept::value(&limits));
            store.data_mut().interceptor = Some(interceptor);
        }
        store.limiter(|state| &mut state.limiter);
        store.set_hostcall_fuel(usize::try_from(limits.hostcall).unwrap_or(usize::MAX));
        store.set_max_component_handles(MAX_HANDLES);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback({
            let turn = Arc::clone(&turn);
            move |_| {
                let now = Instant::now();
                if turn.time_left(Duration::ZERO, now).is_zero()
                    && turn.time_left(turn.stopped(now), now).is_zero()
                {
                    return Err(DeadlinePassed.into());
                }
                if !turn.tick(now) {
                    return Ok(UpdateDeadline::Continue(1));
                }
                turn.end_slice();
                // The runner wakes the task, when it is the guest's turn again.
                let mut is_later = false;
                let next_poll = poll_fn(move |_| match std::mem::replace(&mut is_later, true) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                });
                Ok(UpdateDeadline::YieldCustom(1, Box::pin(next_poll)))
            }
        });
        let mut runner = Runner::new(component.engine().clone(), share, usage, turn);
        let started = runner.run(limits.start_deadline, pre.instantiate_async(&mut store)).await;
        let instance = started.map_err(|error| {
            let output = store.data().output.take();
            let mut error = call_error::classify(&error, store.data(), During::Start, output);
            intercept::call_ends(store.data(), Err::<&(), _>(&error));
            log_output(&mut error, &store.data().log);
            error
        })?;
        intercept::call_ends(store.data(), Ok(&()));
        store.data().output.flush();
        let Guests { metadata, handler, reconciler } =
            exports.load(&mut store, &instance).map_err(|error| call_error::mismatch(&error))?;
        Ok(Self {
            metadata,
            handler,
            reconciler,
            store,
            runner,
            call_deadline: limits.call_deadline,
            start_deadline: limits.start_deadline,
            alive: true,
        })
    }

    /// Calls `on-add`, with the new object.
    ///
    /// # Errors
    ///
    /// When the call ended without an answer.
    pub async fn on_add(
        &mut self,
        event: &AddedArgument<'_>,
        object: Arc<dyn EventObject>,
    ) -> Result<Result<(), Failure>, CallError> {
        let function = exported(self.handler.as_ref(), "handler")?.on_add;
        self.begin(self.call_deadline, None, Some(object))?;
        intercept::call_begins(self.store.data(), "on-add", event);
        self.passes(event);
        let answer = {
            let call = pin!(function.call_async(&mut self.store, (event,)));
            self.runner.run(self.call_deadline, call).await
        };
        self.end(answer.map(|(answer,)| answer)).map(cut_failure)
    }

    /// Calls `on-update`, with the old and the new object.
    ///
    /// # Errors
    ///
    /// When the call ended without an answer.
    pub async fn on_update(
        &mut self,
        event: &UpdatedArgument<'_>,
        old: Arc<dyn EventObject>,
        new: Arc<dyn EventObject>,
    ) -> Result<Result<(), Failure>, CallError> {
        let function = exported(self.handler.as_ref(), "handler")?.on_update;
        self.begin(self.call_deadline, Some(old), Some(new))?;
        intercept::call_begins(self.store.data(), "on-update", event);
        self.passes(event);
        let answer = {
            let call = pin!(function.call_async(&mut self.store, (event,)));
            self.runner.run(self.call_deadline, call).await
        };
        self.end(answer.map(|(answer,)| answer)).map(cut_failure)
    }

    /// Calls `on-delete`. `last` is the last known state of the object.
    ///
    /// # Errors
    ///
    /// When the call ended without an answer.
    pub async fn on_delete(
        &mut self,
        event: &DeletedArgument<'_>,
        last: Arc<dyn EventObject>,
    ) -> Result<Result<(), Failure>, CallError> {
        let function = exported(self.handler.as_ref(), "handler")?.on_delete;
        self.begin(self.call_deadline, Some(last), None)?;
        intercept::call_begins(self.store.data(), "on-delete", event);
        self.passes(event);
        let answer = {
            let call = pin!(function.call_async(&mut self.store, (event,)));
            self.runner.run(self.call_deadline, call).await
        };
        self.end(answer.map(|(answer,)| answer)).map(cut_failure)
    }

    /// Calls `on-synced`.
    ///
    /// # Errors
    ///
    /// When the call ended without an answer.
    pub async fn on_synced(&mut self, event: &Synced) -> Result<Result<(), Failure>, CallError> {
        let function = exported(self.handler.as_ref(), "handler")?.on_synced;
        self.begin(self.call_deadline, None, None)?;
        intercept::call_begins(self.store.data(), "on-synced", event);
        self.passes(event);
        let answer = {
            let call = pin!(function.call_async(&mut self.store, (event,)));
            self.runner.run(self.call_deadline, call).await
        };
        self.end(answer.map(|(answer,)| answer)).map(cut_failure)
    }

    /// Calls `reconcile` with a key.
    ///
    /// # Errors
    ///
    /// When the call ended without an answer.
    pub async fn reconcile(&mut self, key: &WorkKey) -> Result<Result<Outcome, Failure>, CallError> {
        let guest = exported(self.reconciler.clone(), "reconciler")?;
        self.begin(self.call_deadline, None, None)?;
        self.store.data_mut().key = Some(key.object.clone());
        intercept::call_begins(self.store.data(), "reconcile", key);
        self.passes(key);
        let run = self.store.data().access.cache.run_begins(key);
        // If the future of the call is dropped, so is the instance, and with it the access of the run.
        let outer = run.map(|run| std::mem::replace(&mut self.store.data_mut().access.cache, run));
        let answer = self.runner.run(self.call_deadline, guest.call_reconcile(&mut self.store, key)).await;
        if let Some(outer) = outer {
            let run = std::mem::replace(&mut self.store.data_mut().access.cache, outer);
            if matches!(answer, Ok(Ok(_))) {
                run.run_succeeded();
            }
        }
        self.end(answer).map(cut_failure)
    }

    /// Returns the size of its linear memories, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.store.data().limiter.memory_bytes()
    }

    /// Returns the number of its calls that ended.
    #[must_use]
    pub fn n_calls(&self) -> u64 {
        self.store.data().n_calls
    }

    /// Returns when its newest call ended; `None` if none has, or if the call was cancelled.
    #[must_use]
    pub fn ended_at(&self) -> Option<Instant> {
        self.runner.ended()
    }

    /// Returns whether it can be called.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.alive
    }

    /// Calls `describe`. Only [`crate::describe`] does that, in an instance of its own. An error has no
    /// output of the guest, as for [`Instance::new`].
    pub(crate) async fn describe(&mut self) -> Result<Result<Description, String>, CallError> {
        self.begin(self.start_deadline, None, None)?;
        intercept::call_begins(self.store.data(), "describe", &());
        let answer = self.runner.run(self.start_deadline, self.metadata.call_describe(&mut self.store)).await;
        self.end(answer).map_err(|mut error| {
            log_output(&mut error, &self.store.data().log);
            error
        })
    }

    fn begin(
        &mut self,
        limit: Duration,
        old: Option<Arc<dyn EventObject>>,
        new: Option<Arc<dyn EventObject>>,
    ) -> Result<(), CallError> {
        // If the future of the call is dropped, `end` never sets it to true again.
        if !std::mem::replace(&mut self.alive, false) {
            return Err(CallError::Dead);
        }
        let state = self.store.data_mut();
        state.old = old;
        state.new = new;
        state.limit = limit;
        state.limiter.call_begins();
        state.crossed = Crossed::default();
        self.store.set_epoch_deadline(1);
        Ok(())
    }

    /// Counts the argument of a call, which is bounded already.
    fn passes(&mut self, argument: &impl Crossing) {
        self.store.data_mut().crossed.count(argument.bytes(), 0);
    }

    fn end<T: Serialize + Crossing>(&mut self, answer: Result<T, wasmtime::Error>) -> Result<T, CallError> {
        let state = self.store.data_mut();
        state.crossed.count(0, answer.as_ref().map_or(0, T::bytes));
        state.old = None;
        state.new = None;
        state.key = None;
        let Crossed { to_guest, from_guest } = state.crossed;
        state.usage.crossed(to_guest, from_guest);
        state.usage.called();
        state.n_calls += 1;
        state.log.call_ends();
        match answer {
            Ok(answer) => {
                state.output.flush();
                intercept::call_ends(state, Ok(&answer));
                self.alive = true;
                Ok(answer)
            }
            Err(error) => {
                let output = state.output.take();
                let error = call_error::classify(&error, state, During::Call, output);
                intercept::call_ends(state, Err::<&T, _>(&error));
                Err(error)
            }
        }
    }
}

/// Moves the guest's last output from an error to its log.
fn log_output(error: &mut CallError, log: &GuestLog) {
    for line in error.take_output().lines() {
        log.write(Level::Error, None, line, &[]);
    }
}

/// Truncates the text of a failure, which becomes part of logs and of the plugin's status.
fn cut_failure<T>(answer: Result<T, Failure>) -> Result<T, Failure> {
    let cut = |mut text: String| {
        text.truncate(text.floor_char_boundary(MAX_FAILURE_BYTES));
        text
    };
    answer.map_err(|failure| match failure {
        Failure::Retry(text) => Failure::Retry(cut(text)),
        Failure::RetryAfter(info) => Failure::RetryAfter(RetryInfo { message: cut(info.message), ..info }),
        Failure::Terminal(text) => Failure::Terminal(cut(text)),
    })
}

fn exported<T>(guest: Option<T>, interface: &'static str) -> Result<T, CallError> {
    guest.ok_or(CallError::NotExported { interface })
}
