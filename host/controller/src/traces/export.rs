//! Exports spans, in batches and in a task of its own, so that a collector never delays a plugin.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanExporter as _, SpanProcessor};
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::config::{Config, Error};
use super::endpoint::{self, LastError};
use crate::drain::Drain;
use crate::report::{HostEvent, Reporter};

/// How many spans one request has at most.
const MOST_PER_REQUEST: usize = 512;

/// How long the first span of a batch waits for others.
const DELAY: Duration = Duration::from_secs(1);

/// How much memory the spans take that wait for export, or are being exported. More are dropped. The texts of
/// guests make most of it.
const MOST_BYTES: usize = 8 << 20;

/// What a span takes beside its texts, roughly: its fields, and those of an attribute or event.
const SPAN_BYTES: usize = 512;
const ATTRIBUTE_BYTES: usize = 64;

/// Takes the spans that end. It never waits: spans beyond the capacity are dropped and counted.
pub(super) struct Queue {
    sender: Sender<SpanData>,
    bytes: Bytes,
    n_dropped: Arc<AtomicU64>,
}

/// The memory of the spans that wait for export. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Bytes(Arc<AtomicUsize>);

/// Exports the spans of a [`Queue`].
pub(crate) struct Export {
    exporter: SpanExporter,
    last_error: LastError,
    /// The URL, for messages.
    endpoint: String,
    spans: Receiver<SpanData>,
    bytes: Bytes,
    batch: Vec<SpanData>,
    /// How many spans the request in progress has.
    n_in_request: usize,
    n_dropped: Arc<AtomicU64>,
    /// The last request failed, which was reported.
    is_failing: bool,
}

// === impl Bytes ===

impl Bytes {
    /// Adds to the sum. Returns false, and adds nothing, if it would be too much.
    fn add(&self, n_bytes: usize) -> bool {
        let added = |sum: usize| Some(sum.saturating_add(n_bytes)).filter(|sum| *sum <= MOST_BYTES);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added).is_ok()
    }

    fn remove(&self, n_bytes: usize) {
        self.0.fetch_sub(n_bytes, Ordering::Relaxed);
    }
}

/// Returns about how much memory a span takes.
fn bytes_of(span: &SpanData) -> usize {
    let attributes = |them: &[KeyValue]| -> usize {
        them.iter().map(|it| ATTRIBUTE_BYTES + it.key.as_str().len() + it.value.as_str().len()).sum()
    };
    let events: usize = span.events.iter().map(|event| ATTRIBUTE_BYTES + attributes(&event.attributes)).sum();
    let links = span.links.iter().count() * ATTRIBUTE_BYTES;
    SPAN_BYTES + attributes(&span.attributes) + events + links
}

// === impl Queue ===

impl Queue {
    pub(super) fn new(sender: Sender<SpanData>, bytes: Bytes, n_dropped: Arc<AtomicU64>) -> Self {
        Self { sender, bytes, n_dropped }
    }
}

impl SpanProcessor for Queue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        let n_bytes = bytes_of(&span);
        if !self.bytes.add(n_bytes) {
            self.n_dropped.fetch_add(1, Ordering::Relaxed);
        } else if self.sender.try_send(span).is_err() {
            self.bytes.remove(n_bytes);
            self.n_dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Queue")
    }
}

// === impl Export ===

impl Export {
    pub(super) fn new(
        config: &Config,
        resource: &Resource,
        spans: Receiver<SpanData>,
        bytes: Bytes,
        n_dropped: Arc<AtomicU64>,
    ) -> Result<Self, Error> {
        let (exporter, last_error) = endpoint::exporter(config, resource)?;
        Ok(Self {
            exporter,
            last_error,
            endpoint: config.endpoint.to_string(),
            spans,
            bytes,
            batch: Vec::new(),
            n_in_request: 0,
            n_dropped,
            is_failing: false,
        })
    }

    /// Exports spans until the token is cancelled. Then it exports those of the calls that still end, within
    /// the time to drain.
    pub(crate) async fn run(mut self, reporter: Reporter, drain: Drain, token: CancellationToken) {
        let limit = async {
            token.cancelled().await;
            tokio::time::sleep(drain.timeout()).await;
        };
        tokio::select! {
            biased;
            () = self.export_all(&reporter, &drain, &token) => {}
            () = limit => {}
        }
        self.drop_spans(self.n_in_request + self.batch.len() + self.spans.len());
    }

    async fn export_all(&mut self, reporter: &Reporter, drain: &Drain, token: &CancellationToken) {
        loop {
            tokio::select! {
                biased;
                () = token.cancelled() => break,
                () = self.collect() => {}
            }
            self.export(reporter).await;
        }
        drain.ended().await;
        self.spans.close();
        loop {
            while self.batch.len() < MOST_PER_REQUEST
                && let Ok(span) = self.spans.try_recv()
            {
                self.batch.push(span);
            }
            // After a failure the others would only wait for the same collector.
            if self.batch.is_empty() || !self.export(reporter).await {
                return;
            }
        }
    }

    /// Waits for a batch of spans. If this is dropped, the spans stay in the batch.
    async fn collect(&mut self) {
        let Self { batch, spans, .. } = self;
        let mut deadline = None;
        while batch.len() < MOST_PER_REQUEST {
            let room = MOST_PER_REQUEST - batch.len();
            let receive = spans.recv_many(batch, room);
            match deadline {
                // The sender lives as long as a span can end.
                None => {
                    if receive.await == 0 {
                        return std::future::pending().await;
                    }
                    deadline = Some(Instant::now() + DELAY);
                }
                Some(deadline) => match tokio::time::timeout_at(deadline, receive).await {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                },
            }
        }
    }

    /// Exports the batch. Returns whether the collector has taken it.
    async fn export(&mut self, reporter: &Reporter) -> bool {
        let batch = std::mem::take(&mut self.batch);
        self.n_in_request = batch.len();
        let n_bytes = batch.iter().map(bytes_of).sum();
        let exported = self.exporter.export(batch).await;
        self.bytes.remove(n_bytes);
        let n_spans = std::mem::take(&mut self.n_in_request);
        let was_failing = std::mem::replace(&mut self.is_failing, exported.is_err());
        match exported {
            Ok(()) if was_failing => {
                reporter.report(HostEvent::TracesExported { endpoint: self.endpoint.clone() });
            }
            Ok(()) => {}
            Err(error) => {
                self.drop_spans(n_spans);
                if !was_failing {
                    let message = self.last_error.lock().take().unwrap_or_else(|| error.to_string());
                    let endpoint = self.endpoint.clone();
                    reporter.report(HostEvent::TracesNotExported { endpoint, message });
                }
            }
        }
        !self.is_failing
    }

    fn drop_spans(&self, n_spans: usize) {
        self.n_dropped.fetch_add(n_spans as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{Span as _, Tracer as _, TracerProvider as _};
    use opentelemetry_sdk::trace::SdkTracerProvider;

    use super::*;

    #[test]
    fn spans_beyond_the_memory_are_dropped_and_counted() {
        let (sender, mut spans) = tokio::sync::mpsc::channel(1024);
        let (bytes, n_dropped) = (Bytes::default(), Arc::default());
        let queue = Queue::new(sender, bytes.clone(), Arc::clone(&n_dropped));
        let provider = SdkTracerProvider::builder().with_span_processor(queue).build();
        let tracer = provider.tracer("test");
        let end_one = || {
            let mut span = tracer.start("call");
            span.add_event("log", vec![KeyValue::new("message", "x".repeat(1 << 20))]);
            span.end();
        };
        (0..20).for_each(|_| end_one());
        assert_eq!((spans.len(), n_dropped.load(Ordering::Relaxed)), (7, 13));
        // What was exported makes room.
        bytes.remove(bytes_of(&spans.try_recv().unwrap()));
        end_one();
        assert_eq!((spans.len(), n_dropped.load(Ordering::Relaxed)), (7, 13));
    }
}
