//! Traces of sampled watch events, exported with OTLP over HTTP.
//!
//! ```text
//!   watch event ─► call ─► api write      one trace
//!                   └─ log                the guest's log lines, as events of the span `call`
//! ```
//!
//! Whether an event is traced is decided once, when it enters dispatch: by a random number and the ratio of
//! the [`Config`]. For all other events nothing is allocated. A key of a work queue remembers the first
//! sampled events that queued it ([`Cause`]): its call is in the trace of the first one, with links to the
//! others.
//!
//! The call in progress is a variable of its task, so that imports find it: [`RequestTrace`] and [`log`].
//!
//! Attributes have names, versions, numbers and the texts that the guest logs. They have nothing of an
//! object's content, of a request's body or of a failure's text.

mod call;
mod config;
mod endpoint;
mod event;
mod export;
mod request;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tokio::sync::mpsc;
use tokio::time::Instant;
use url::Url;

pub(crate) use self::call::{CallTrace, current_cause, log};
pub use self::config::{Config, Error};
pub(crate) use self::event::{Cause, EventTrace};
pub(crate) use self::export::Export;
use self::export::{Bytes, Queue};
pub(crate) use self::request::RequestTrace;

/// How many spans wait to be exported. More are dropped.
const MOST_WAITING: usize = 2048;

/// How many log lines and links a span has at most. The number of the others is exported.
const MOST_EVENTS: u32 = 32;
const MOST_LINKS: u32 = 8;

/// Decides which events are traced. Cheap to clone. The default traces none.
#[derive(Clone, Default)]
pub(crate) struct Traces {
    shared: Option<Arc<TracesShared>>,
}

struct TracesShared {
    tracer: SdkTracer,
    ratio: f64,
    n_dropped: Arc<AtomicU64>,
    /// The address of the API server, as attributes of requests.
    server: Vec<KeyValue>,
}

// === impl Traces ===

impl Traces {
    /// Returns the traces, and what exports them. `server` is the address of the API server.
    pub(crate) fn new(config: &Config, server: &str) -> Result<(Self, Export), Error> {
        let (sender, spans) = mpsc::channel(MOST_WAITING);
        let n_dropped = Arc::new(AtomicU64::new(0));
        let resource = config::resource();
        let bytes = Bytes::default();
        let export = Export::new(config, &resource, spans, bytes.clone(), n_dropped.clone())?;
        let provider = SdkTracerProvider::builder()
            .with_span_processor(Queue::new(sender, bytes, n_dropped.clone()))
            .with_resource(resource)
            .with_max_events_per_span(MOST_EVENTS)
            .with_max_links_per_span(MOST_LINKS)
            .build();
        let shared = TracesShared {
            tracer: provider.tracer("oarlock"),
            ratio: config.ratio,
            n_dropped,
            server: address(server),
        };
        Ok((Self { shared: Some(Arc::new(shared)) }, export))
    }

    /// Returns whether any event may be traced.
    pub(crate) fn is_on(&self) -> bool {
        self.shared.is_some()
    }

    /// Begins the trace of an event that arrived at this time, if it is sampled.
    pub(crate) fn event(
        &self,
        arrived: Instant,
        attributes: impl FnOnce() -> Vec<KeyValue>,
    ) -> Option<EventTrace> {
        let shared = self.shared.as_ref()?;
        let is_sampled = rand::random::<f64>() < shared.ratio;
        is_sampled.then(|| EventTrace::begin(shared.clone(), arrived, attributes()))
    }

    /// Begins the trace of a call that these events caused.
    pub(crate) fn caused_call(&self, causes: &[Cause], attributes: Vec<KeyValue>) -> Option<CallTrace> {
        let (first, others) = causes.split_first()?;
        let shared = self.shared.clone()?;
        Some(CallTrace::caused(shared, first, others, attributes))
    }

    /// Returns how many spans were not exported.
    pub(crate) fn n_dropped(&self) -> u64 {
        self.shared.as_ref().map_or(0, |shared| shared.n_dropped.load(Ordering::Relaxed))
    }
}

/// Returns the attributes of the API server's address; none if it is no URL.
fn address(server: &str) -> Vec<KeyValue> {
    let Ok(url) = server.parse::<Url>() else { return Vec::new() };
    let host = url.host_str().map(|host| KeyValue::new("server.address", host.to_owned()));
    let port = url.port_or_known_default().map(|port| KeyValue::new("server.port", i64::from(port)));
    host.into_iter().chain(port).collect()
}
