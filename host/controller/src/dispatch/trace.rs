//! Traces of sampled events: through the work queue, and over the call.

use std::sync::Arc;

use oarlock_informer::listener::Delivery;
use oarlock_plugin::contract::Failure;
use opentelemetry::KeyValue;

use super::Dispatcher;
use super::active_generation::ActiveGeneration;
use super::call::{self, Answer, Answering};
use super::due_call::DueCall;
use super::loss::loss_reason;
use super::queue::{Key, PluginQueue};
use crate::plan::SubscriptionPlan;
use crate::traces::{CallTrace, Cause, EventTrace};

/// The trace of a call that is to be made.
pub(super) struct TracedCall {
    trace: Arc<CallTrace>,
    /// For a key: what caused the call. The next attempt has the same causes.
    causes: Option<(PluginQueue, Key, Vec<Cause>)>,
}

// === impl Dispatcher ===

impl Dispatcher {
    /// Begins the trace of an event, if it is sampled.
    pub(super) fn trace_event(&self, plan: &SubscriptionPlan, delivery: &Delivery) -> Option<EventTrace> {
        self.shared.traces.event(delivery.arrived, || {
            let object = delivery.notification.object();
            let mut attributes = vec![
                KeyValue::new("oarlock.plugin", self.plugin.to_string()),
                KeyValue::new("oarlock.subscription", plan.name.clone()),
                KeyValue::new("oarlock.event.type", call::type_of(&delivery.notification).to_string()),
                KeyValue::new("oarlock.event.attempts", i64::from(delivery.attempts)),
                KeyValue::new("oarlock.object.resource", plan.resource.to_string()),
                KeyValue::new("oarlock.object.name", object.key().name().to_owned()),
                KeyValue::new("oarlock.object.resource_version", object.resource_version().to_owned()),
            ];
            let namespace = object.key().namespace();
            if !namespace.is_empty() {
                attributes.push(KeyValue::new("k8s.namespace.name", namespace.to_owned()));
            }
            attributes
        })
    }

    /// Begins the trace of a call: of a sampled notification, or of a key that a sampled event queued.
    pub(super) fn trace_call(&self, active: &ActiveGeneration, due: &DueCall) -> Option<Box<TracedCall>> {
        if !self.shared.traces.is_on() {
            return None;
        }
        let attributes = || {
            vec![
                KeyValue::new("oarlock.plugin", self.plugin.to_string()),
                KeyValue::new("oarlock.generation", i64::try_from(active.number).unwrap_or(i64::MAX)),
                KeyValue::new("code.function.name", due.function()),
            ]
        };
        let (trace, causes) = match due {
            DueCall::Notification { subscription, delivery } => {
                let event = self.trace_event(&active.subscriptions[*subscription].plan, delivery)?;
                (event.call(attributes()), None)
            }
            DueCall::Synced { .. } => return None,
            DueCall::Key(key) => {
                let causes = self.queue.causes().take(key);
                if causes.is_empty() {
                    return None;
                }
                let mut attributes = attributes();
                attributes.push(KeyValue::new("oarlock.key", key.to_string()));
                let trace = self.shared.traces.caused_call(&causes, attributes)?;
                (trace, Some((self.queue.clone(), key.clone(), causes)))
            }
        };
        Some(Box::new(TracedCall { trace: Arc::new(trace), causes }))
    }
}

// === impl TracedCall ===

impl TracedCall {
    /// Makes the call, and ends its span.
    pub(super) async fn follow(self, call: impl Future<Output = Answering>) -> Answering {
        let Self { trace, causes } = self;
        let (answering, cpu) = trace.follow(call).await;
        let (outcome, error) = match &answering {
            Ok(Ok(Answer::Done)) => ("done", None),
            Ok(Ok(Answer::RequeueAfter(_))) => ("requeue", None),
            Ok(Err(Failure::Retry(_) | Failure::RetryAfter(_))) => ("retry", Some("retry")),
            Ok(Err(Failure::Terminal(_))) => ("terminal", Some("terminal")),
            Err(error) => ("lost", Some(loss_reason(error))),
        };
        trace.set_outcome(outcome, error, cpu);
        if let Some((queue, key, causes)) = causes
            && matches!(outcome, "retry" | "lost")
        {
            causes.into_iter().for_each(|cause| queue.causes().add(&key, cause));
        }
        answering
    }
}
