//! The span of a call of a plugin.

use std::fmt::Display;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant as StdInstant};

use opentelemetry::trace::{Link, SpanContext, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::Span as SdkSpan;
use tokio::time::Instant;

use super::TracesShared;
use super::event::Cause;

tokio::task_local! {
    /// The call in progress, if it is traced.
    static CURRENT: Arc<CallTrace>;
}

/// How much of a log line is exported: characters of each text, and pairs.
const MOST_CHARACTERS: usize = 1024;
const MOST_PAIRS: usize = 16;

/// The trace of a call. Its span ends when this is dropped.
pub(crate) struct CallTrace {
    shared: Arc<TracesShared>,
    context: Context,
    /// The span of the event, which ends with the call; without a span of its own if it has ended already.
    _event: Context,
}

// === impl CallTrace ===

impl CallTrace {
    pub(super) fn begin(
        shared: Arc<TracesShared>,
        event: Context,
        links: Vec<Link>,
        attributes: Vec<KeyValue>,
    ) -> Self {
        let builder = shared.tracer.span_builder("call").with_kind(SpanKind::Internal);
        let builder = builder.with_attributes(attributes).with_links(links);
        let span = builder.start_with_context(&shared.tracer, &event);
        Self { context: Context::new().with_span(span), _event: event, shared }
    }

    /// Begins the span of a call that several events caused. It is in the trace of the first one.
    pub(super) fn caused(
        shared: Arc<TracesShared>,
        first: &Cause,
        others: &[Cause],
        mut attributes: Vec<KeyValue>,
    ) -> Self {
        attributes.push(KeyValue::new("oarlock.key.wait", first.at.elapsed().as_secs_f64()));
        let links = others.iter().map(|cause| Link::with_context(cause.span.clone())).collect();
        let event = Context::new().with_remote_span_context(first.span.clone());
        Self::begin(shared, event, links, attributes)
    }

    /// Makes the call, as the call in progress of this task. Also returns the time in which it was polled.
    pub(crate) async fn follow<T>(self: &Arc<Self>, call: impl Future<Output = T>) -> (T, Duration) {
        let mut cpu = Duration::ZERO;
        let mut call = pin!(CURRENT.scope(self.clone(), call));
        let result = std::future::poll_fn(|cx| {
            let began = StdInstant::now();
            let polled = call.as_mut().poll(cx);
            cpu += began.elapsed();
            polled
        })
        .await;
        (result, cpu)
    }

    /// Adds the outcome of the call. `error` is a fixed word, not the text of a failure.
    pub(crate) fn set_outcome(&self, outcome: &'static str, error: Option<&'static str>, cpu: Duration) {
        let span = self.context.span();
        span.set_attribute(KeyValue::new("oarlock.call.outcome", outcome));
        span.set_attribute(KeyValue::new("oarlock.call.cpu_time", cpu.as_secs_f64()));
        if let Some(error) = error {
            span.set_attribute(KeyValue::new("error.type", error));
            span.set_status(Status::error(""));
        }
    }

    /// Begins the span of a request of this call.
    pub(super) fn request(&self, name: &'static str, mut attributes: Vec<KeyValue>) -> SdkSpan {
        attributes.extend(self.shared.server.iter().cloned());
        let builder = self.shared.tracer.span_builder(name).with_kind(SpanKind::Client);
        builder.with_attributes(attributes).start_with_context(&self.shared.tracer, &self.context)
    }

    fn span_context(&self) -> SpanContext {
        self.context.span().span_context().clone()
    }
}

/// Calls the function with the traced call in progress of this task, if there is one.
pub(super) fn with_current<T>(function: impl FnOnce(&CallTrace) -> T) -> Option<T> {
    CURRENT.try_with(|call| function(call)).ok()
}

/// Returns the traced call in progress of this task as the cause of a key that it queues now.
pub(crate) fn current_cause() -> Option<Cause> {
    with_current(|call| Cause { span: call.span_context(), at: Instant::now() })
}

/// Adds a log line of the guest to the span of the traced call in progress, if there is one.
pub(crate) fn log(level: &impl Display, object: Option<&str>, message: &str, pairs: &[(&str, &str)]) {
    let cut = |text: &str| text.chars().take(MOST_CHARACTERS).collect::<String>();
    with_current(|call| {
        let mut attributes =
            vec![KeyValue::new("level", level.to_string()), KeyValue::new("message", cut(message))];
        attributes.extend(object.map(|object| KeyValue::new("object", object.to_owned())));
        let pairs = pairs.iter().take(MOST_PAIRS);
        attributes.extend(pairs.map(|(name, value)| KeyValue::new(format!("log.{}", cut(name)), cut(value))));
        call.context.span().add_event("log", attributes);
    });
}
