//! Traces over OTLP, with a collector in the test.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PostParams};
use oarlock_controller::runtime::Config;
use oarlock_controller::traces;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value as Any};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use rcgen::{CertificateParams, KeyPair};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::rig::{LIMIT, Rig};

/// A collector on loopback, and the bodies that it has received.
pub(crate) struct Collector {
    /// Its URL.
    pub(crate) url: String,
    bodies: watch::Receiver<Vec<Bytes>>,
    _serving: JoinSet<()>,
}

/// The spans that a collector has received.
pub(crate) type Spans = Vec<Span>;

// === impl Collector ===

impl Collector {
    pub(crate) async fn start() -> Self {
        Self::start_with("http", |connection| async { Some(connection) }).await
    }

    async fn start_with<C, F, T>(scheme: &str, accept: F) -> Self
    where
        C: Future<Output = Option<T>> + Send,
        F: Fn(TcpStream) -> C + Clone + Send + 'static,
        T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{scheme}://localhost:{}", listener.local_addr().unwrap().port());
        let (sender, bodies) = watch::channel(Vec::new());
        let sender = Arc::new(sender);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (connection, _) = listener.accept().await.unwrap();
                let (accept, sender) = (accept.clone(), sender.clone());
                connections.spawn(async move {
                    let Some(connection) = accept(connection).await else { return };
                    let service = service_fn(|request| answer(request, &sender));
                    let connection = TokioIo::new(connection);
                    // The host may close the connection at any time.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(connection, service)
                        .await;
                });
            }
        });
        Self { url, bodies, _serving: serving }
    }

    /// Returns the configuration of a host that traces every event to this collector.
    pub(crate) fn config(&self) -> traces::Config {
        traces::Config::of_collector(&self.url, 1.0).unwrap()
    }

    /// Returns the received bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.bodies.borrow().concat()
    }

    /// Returns the received spans.
    pub(crate) fn spans(&self) -> Spans {
        let decode = |body: &Bytes| ExportTraceServiceRequest::decode(body.clone()).unwrap();
        let requests: Vec<_> = self.bodies.borrow().iter().map(decode).collect();
        let resources = requests.into_iter().flat_map(|request| request.resource_spans);
        resources.flat_map(|it| it.scope_spans).flat_map(|it| it.spans).collect()
    }

    /// Waits until the spans have what is looked for.
    pub(crate) async fn until<T>(&self, find: impl Fn(&Spans) -> Option<T>) -> T {
        let mut bodies = self.bodies.clone();
        let found = async {
            loop {
                if let Some(found) = find(&self.spans()) {
                    return found;
                }
                bodies.changed().await.unwrap();
            }
        };
        let found = tokio::time::timeout(LIMIT, found).await;
        found.unwrap_or_else(|_| panic!("these spans are not it: {:#?}", self.spans()))
    }
}

async fn answer(
    request: Request<Incoming>,
    sender: &watch::Sender<Vec<Bytes>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    assert_eq!(request.uri().path(), "/v1/traces");
    assert_eq!(request.headers()["content-type"], "application/x-protobuf");
    let body = request.into_body().collect().await.unwrap().to_bytes();
    sender.send_modify(|bodies| bodies.push(body));
    Ok(Response::new(Full::default()))
}

/// Returns attributes as text.
fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &Option<AnyValue>| match value.as_ref().and_then(|it| it.value.as_ref()) {
        Some(Any::StringValue(text)) => text.clone(),
        other => other.map(|it| format!("{it:?}")).unwrap_or_default(),
    };
    attributes.iter().map(|it| (it.key.clone(), text(&it.value))).collect()
}

/// Returns the spans of this name in the trace of a span.
fn in_trace<'a>(spans: &'a Spans, of: &Span, name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.trace_id == of.trace_id && span.name == name).collect()
}

async fn annotated_secret(rig: &Rig, value: &str) {
    let secret = json!({
        "metadata": {"name": "settings", "annotations": {"oarlock.dev/mirror-to": "kube-public"}},
        "stringData": {"password": value},
    });
    let secrets: Api<Secret> = Api::namespaced(rig.client.clone(), "default");
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_event_is_one_trace_of_its_call_its_write_and_its_log_lines() {
    const CANARY: &str = "canary-91d0b7";
    let collector = Collector::start().await;
    let config = collector.config();
    let rig = Rig::start_with(|it| Config { traces: Some(config), ..it }).await;
    rig.plugin_with("mirror", "mirror", json!({"config": {"password": CANARY}}));
    rig.serves("mirror", 1).await;
    annotated_secret(&rig, CANARY).await;
    // The spans of a trace are exported as they end, the event's last.
    let (event, spans) = collector
        .until(|spans| {
            let event = spans.iter().find(|span| {
                let texts = texts(&span.attributes);
                span.name == "watch event"
                    && texts["oarlock.object.name"] == "settings"
                    && texts["k8s.namespace.name"] == "default"
                    && !in_trace(spans, span, "api write").is_empty()
            })?;
            Some((event.clone(), spans.clone()))
        })
        .await;
    let about = texts(&event.attributes);
    assert_eq!(about["oarlock.plugin"], "mirror");
    assert_eq!(about["oarlock.object.resource"], "v1/secrets");
    assert_eq!(about["oarlock.event.type"], "add");
    assert!(about["oarlock.object.resource_version"].parse::<u64>().is_ok(), "{about:?}");
    assert!(about.contains_key("oarlock.event.wait"), "{about:?}");
    assert!(event.parent_span_id.is_empty());

    let calls = in_trace(&spans, &event, "call");
    let [call] = calls[..] else { panic!("{calls:#?}") };
    assert_eq!(call.parent_span_id, event.span_id);
    let about = texts(&call.attributes);
    assert_eq!(about["code.function.name"], "on-add");
    assert_eq!((&*about["oarlock.call.outcome"], &*about["oarlock.generation"]), ("done", "IntValue(1)"));
    let cpu_time = about["oarlock.call.cpu_time"].strip_prefix("DoubleValue(");
    let seconds = cpu_time.and_then(|it| it.strip_suffix(')')?.parse::<f64>().ok());
    // A call ends after seconds, so nanoseconds would be more.
    assert!(seconds.is_some_and(|it| it > 0.0 && it < 100.0), "{about:?}");
    assert!(event.start_time_unix_nano <= call.start_time_unix_nano);
    let logged: Vec<_> = call.events.iter().map(|event| texts(&event.attributes)).collect();
    let copied = logged.iter().find(|line| line["message"] == "copied");
    assert_eq!(copied.unwrap()["object"], "default/settings", "{logged:?}");

    let writes = in_trace(&spans, &event, "api write");
    let [write] = writes[..] else { panic!("{writes:#?}") };
    assert_eq!(write.parent_span_id, call.span_id);
    let about = texts(&write.attributes);
    assert_eq!(about["oarlock.request.verb"], "create");
    assert_eq!(about["oarlock.request.resource"], "secrets");
    assert_eq!(about["k8s.namespace.name"], "kube-public");
    assert_eq!(about["http.request.method"], "POST");
    assert_eq!(about["http.response.status_code"], "IntValue(201)");
    assert_eq!(about["server.address"], "127.0.0.1");
    rig.end().await;

    let bytes = collector.bytes();
    for canary in [CANARY, "Y2FuYXJ5LTkxZDBiN"] {
        assert!(!bytes.windows(canary.len()).any(|it| it == canary.as_bytes()), "{canary}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_call_of_a_key_is_in_the_trace_of_the_event_that_queued_it() {
    let collector = Collector::start().await;
    let config = collector.config();
    let rig = Rig::start_with(|it| Config { traces: Some(config), ..it }).await;
    rig.plugin("reconciles", "reconciles");
    rig.serves("reconciles", 1).await;
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    let deployment = json!({
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    });
    let deployments: Api<Deployment> = Api::namespaced(rig.client.clone(), "default");
    deployments.create(&PostParams::default(), &serde_json::from_value(deployment).unwrap()).await.unwrap();
    let (event, call) = collector
        .until(|spans| {
            let is_reconcile = |span: &&Span| {
                texts(&span.attributes).get("code.function.name").is_some_and(|it| it == "reconcile")
            };
            let call = spans.iter().find(|span| is_reconcile(span))?.clone();
            let event = in_trace(spans, &call, "watch event").first().copied()?.clone();
            Some((event, call))
        })
        .await;
    assert_eq!(call.parent_span_id, event.span_id);
    let about = texts(&call.attributes);
    assert!(about.contains_key("oarlock.key") && about.contains_key("oarlock.key.wait"), "{about:?}");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_down_is_reported_once_and_delays_no_plugin() {
    // The port was free a moment ago, and nothing listens there.
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let config = traces::Config::of_collector(&format!("http://{free}"), 1.0).unwrap();
    let rig = Rig::start_with(|it| Config { traces: Some(config), ..it }).await;
    rig.plugin("hello", "hello-rust");
    rig.serves("hello", 1).await;
    rig.create("one").await;
    let line = rig.line(|it| it["event"] == "traces-not-exported").await;
    assert_eq!(line["level"], "warn");
    assert!(line["message"].as_str().unwrap().contains("refused"), "{line}");
    for n in 0..50 {
        rig.create(&format!("more-{n}")).await;
    }
    rig.line(|it| it["event"] == "delivered" && it["name"] == "more-49").await;
    let lines = rig.lines();
    assert_eq!(lines.iter().filter(|it| it["event"] == "traces-not-exported").count(), 1);
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ratio_of_zero_exports_nothing_and_the_end_of_the_host_exports_what_waits() {
    for (ratio, is_exported) in [(0.0, false), (1.0, true)] {
        let collector = Collector::start().await;
        let config = traces::Config::of_collector(&collector.url, ratio).unwrap();
        let rig = Rig::start_with(|it| Config { traces: Some(config), ..it }).await;
        rig.plugin("hello", "hello-rust");
        rig.serves("hello", 1).await;
        rig.create("one").await;
        rig.line(|it| it["event"] == "delivered" && it["name"] == "one").await;
        rig.end().await;
        let spans = collector.spans();
        let of_one = spans.iter().filter(|span| {
            texts(&span.attributes).get("oarlock.object.name").is_some_and(|name| name == "one")
        });
        assert_eq!((of_one.count() > 0, !spans.is_empty()), (is_exported, is_exported), "{ratio}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_https_collector_is_trusted_with_its_certificate_authority_only() {
    let key = KeyPair::generate().unwrap();
    let made = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.der().clone()], key.into())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let accept = move |connection: TcpStream| {
        let acceptor = acceptor.clone();
        async move { acceptor.accept(connection).await.ok() }
    };
    let collector = Collector::start_with("https", accept).await;
    for is_trusted in [false, true] {
        let mut config = collector.config();
        if is_trusted {
            config = config.trusting(made.pem().as_bytes()).unwrap();
        }
        let rig = Rig::start_with(|it| Config { traces: Some(config), ..it }).await;
        rig.plugin("hello", "hello-rust");
        rig.serves("hello", 1).await;
        rig.create("one").await;
        if is_trusted {
            collector.until(|spans| spans.first().cloned()).await;
        } else {
            let line = rig.line(|it| it["event"] == "traces-not-exported").await;
            assert!(line["message"].as_str().unwrap().contains("certificate"), "{line}");
            assert!(collector.spans().is_empty());
        }
        rig.end().await;
    }
}
