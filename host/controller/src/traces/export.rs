//! Exports spans, in batches and in a task of its own, so that a collector never delays a plugin.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry::Context;
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

/// Takes the spans that end. It never waits: spans beyond the capacity are dropped and counted.
pub(super) struct Queue {
    sender: Sender<SpanData>,
    n_dropped: Arc<AtomicU64>,
}

/// Exports the spans of a [`Queue`].
pub(crate) struct Export {
    exporter: SpanExporter,
    last_error: LastError,
    /// The URL, for messages.
    endpoint: String,
    spans: Receiver<SpanData>,
    batch: Vec<SpanData>,
    /// How many spans the request in progress has.
    n_in_request: usize,
    n_dropped: Arc<AtomicU64>,
    /// The last request failed, which was reported.
    is_failing: bool,
}

// === impl Queue ===

impl Queue {
    pub(super) fn new(sender: Sender<SpanData>, n_dropped: Arc<AtomicU64>) -> Self {
        Self { sender, n_dropped }
    }
}

impl SpanProcessor for Queue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if self.sender.try_send(span).is_err() {
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
        n_dropped: Arc<AtomicU64>,
    ) -> Result<Self, Error> {
        let (exporter, last_error) = endpoint::exporter(config, resource)?;
        Ok(Self {
            exporter,
            last_error,
            endpoint: config.endpoint.to_string(),
            spans,
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
        let exported = self.exporter.export(batch).await;
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
