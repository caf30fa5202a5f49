//! The span of a watch event.

use std::sync::Arc;
use std::time::SystemTime;

use opentelemetry::trace::{SpanContext, SpanKind, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};
use tokio::time::Instant;

use super::TracesShared;
use super::call::CallTrace;

/// The trace of a watch event that is sampled. Its span ends when this and the trace of its call are dropped.
pub(crate) struct EventTrace {
    shared: Arc<TracesShared>,
    context: Context,
}

/// A sampled event, or a call, that queued a key.
#[derive(Clone, Debug)]
pub(crate) struct Cause {
    pub(super) span: SpanContext,
    /// When it queued the key.
    pub(super) at: Instant,
}

// === impl EventTrace ===

impl EventTrace {
    /// Begins the span of an event that arrived at this time.
    pub(super) fn begin(shared: Arc<TracesShared>, arrived: Instant, mut attributes: Vec<KeyValue>) -> Self {
        let waited = arrived.elapsed();
        attributes.push(KeyValue::new("oarlock.event.wait", waited.as_secs_f64()));
        let now = SystemTime::now();
        let builder = shared
            .tracer
            .span_builder("watch event")
            .with_kind(SpanKind::Consumer)
            .with_start_time(now.checked_sub(waited).unwrap_or(now))
            .with_attributes(attributes);
        let span = builder.start_with_context(&shared.tracer, &Context::new());
        Self { context: Context::new().with_span(span), shared }
    }

    /// Returns it as the cause of a key that is queued now.
    pub(crate) fn cause(&self) -> Cause {
        Cause { span: self.context.span().span_context().clone(), at: Instant::now() }
    }

    /// Begins the span of the event's call, which ends together with the event's.
    pub(crate) fn call(self, attributes: Vec<KeyValue>) -> CallTrace {
        let Self { shared, context } = self;
        CallTrace::begin(shared, context, Vec::new(), attributes)
    }
}
