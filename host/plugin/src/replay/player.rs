//! One instance of a record: it is started and called as the record says.

use std::{sync::Arc, time::Duration};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::interceptor::CallReplay;
use super::{Options, ReplayError};
use crate::{
    CallError, Component, Configuration, Instance, InstanceConfig, Interception, Limits,
    contract::{Added, Deleted, Error, Level, Updated},
    describe::no_access::NoAccess,
    engine::DEFAULT_WEIGHT,
    guest::{GuestLog, GuestMetrics, LogLine, LogSink, Usage},
    intercept,
    kube_access::{EventObject, KubeAccess},
    record::{Call, Ended, ended},
};

/// A replay is given this many times the recorded time for a call, since the machine may be slower.
const PATIENCE: u32 = 4;

/// The longest deadline of a call in a replay.
const LONGEST: Duration = Duration::from_secs(600);

/// One instance of the record.
pub(super) struct Player {
    start: Call,
    /// The length of the start in the record.
    pub(super) n_bytes: usize,
    limits: Limits,
    pub(super) replay: Arc<CallReplay>,
    /// `None` after a difference or a failure.
    instance: Option<Instance>,
    /// The record lacks calls, so that the state of the instance is not known.
    pub(super) has_gap: bool,
}

/// Writes no lines.
struct NoLines;

/// The object of a notification, which answers nothing: the interceptor does.
struct NoObject;

// === impl Player ===

impl Player {
    /// Returns an instance that has not started. `limits` are those of the recorded one.
    pub(super) fn new(start: Call, n_bytes: usize, limits: Limits) -> Self {
        let patient = |limit: Duration| (limit * PATIENCE).min(LONGEST);
        let limits = Limits {
            call_deadline: patient(limits.call_deadline),
            start_deadline: patient(limits.start_deadline),
            ..limits
        };
        Self { start, n_bytes, limits, replay: Arc::default(), instance: None, has_gap: false }
    }

    /// Starts the instance.
    pub(super) async fn start(&mut self, component: &Component, options: &Options) -> Ended {
        self.replay.expect(&self.start, options);
        let replay = self.replay.clone();
        let log = GuestLog::new("replay".into(), 1, 0, Arc::new(NoLines));
        let config = InstanceConfig {
            config: Configuration::default(),
            limits: self.limits.clone(),
            access: KubeAccess::of(Arc::new(NoAccess)),
            log: Arc::new(log),
            metrics: Arc::new(GuestMetrics::new()),
            usage: Usage::default(),
            share: component.engine().share(DEFAULT_WEIGHT),
            interception: Some(Interception::shared(replay)),
        };
        match Instance::new(component, config).await {
            Ok(instance) => {
                self.instance = Some(instance);
                Ended::Answer(Value::Null)
            }
            Err(error) => ended(Err(&error)),
        }
    }

    /// Makes a recorded call. Starts the instance again if there is none.
    pub(super) async fn call(
        &mut self,
        component: &Component,
        call: &Call,
        options: &Options,
    ) -> Result<Ended, ReplayError> {
        if self.instance.is_none() {
            // After a difference. The first start was compared already.
            self.start(component, options).await;
        }
        let Some(instance) = &mut self.instance else {
            self.replay.expect(call, options);
            return Ok(ended(Err(&CallError::Dead)));
        };
        self.replay.expect(call, options);
        let nothing = || Arc::new(NoObject) as Arc<dyn EventObject>;
        let ended = match call.function.as_str() {
            "on-add" => {
                let added: Added = argument(call)?;
                answer(&instance.on_add(&added.borrowed().argument(), nothing()).await)
            }
            "on-update" => {
                let updated: Updated = argument(call)?;
                let updated = updated.borrowed();
                answer(&instance.on_update(&updated.argument(), nothing(), nothing()).await)
            }
            "on-delete" => {
                let deleted: Deleted = argument(call)?;
                answer(&instance.on_delete(&deleted.borrowed().argument(), nothing()).await)
            }
            "on-synced" => answer(&instance.on_synced(&argument(call)?).await),
            "reconcile" => answer(&instance.reconcile(&argument(call)?).await),
            other => {
                return Err(ReplayError::other_contract(call, "function", &format!("no function {other}")));
            }
        };
        if !instance.is_alive() {
            self.instance = None;
        }
        Ok(ended)
    }
}

fn argument<T: DeserializeOwned>(call: &Call) -> Result<T, ReplayError> {
    T::deserialize(&call.argument)
        .map_err(|error| ReplayError::other_contract(call, "argument", &error.to_string()))
}

fn answer<T: Serialize>(answer: &Result<T, CallError>) -> Ended {
    ended(answer.as_ref().map(intercept::value))
}

impl LogSink for NoLines {
    fn enabled(&self, _: &str, _: Level) -> bool {
        false
    }

    fn write(&self, _: LogLine<'_>) {}
}

impl EventObject for NoObject {
    fn field(&self, _: &str) -> Result<Option<String>, Error> {
        Err(no_object())
    }

    fn fields(&self, _: &[String]) -> Result<Vec<Option<String>>, Error> {
        Err(no_object())
    }

    fn json(&self) -> Result<String, Error> {
        Err(no_object())
    }
}

fn no_object() -> Error {
    Error::NotFound("a replay has no objects".to_owned())
}
