//! Compares the embedded API server with the real one: sends the same requests to both, and compares the
//! responses.
//!
//! The requests are in the YAML files beside this one, in the order of `SCRIPTS`. A known difference is
//! listed there with its reason. Any other difference fails the test, and so does a known difference that is
//! gone.
//!
//! One run has to pass. The real server does some work in the background, and a script has to wait for it
//! (`until`, `events`) before it depends on it:
//!
//! - The authorizer, and admission plugins such as Priority, read through informers: a Role or PriorityClass
//!   takes effect a moment after the response to its creation.
//! - Controllers establish a CustomResourceDefinition, and a change of it takes effect later. Meanwhile the
//!   server answers 404, or 429 while it initializes the storage (`Server::run` repeats those).
//! - The watch cache sends initial events and bookmarks in its own time, and on a busy machine a watch ends
//!   before that.
//! - The times of managedFields are in seconds, and kube-apiserver merges the oldest of more than ten
//!   entries, sorted by time and name. Whether two writes have the same second is chance, so a script with
//!   that many managers writes with them in order of their names.

mod answer;
mod script;

use answer::{Answer, differences};
use anyhow::{Context, ensure};
use http::Request;
use kube::Client;
use kube::client::Body;
use kube::config::Kubeconfig;
use oarlock_dev_cluster::{Config, DevCluster};
use oarlock_tests::control_plane;
use oarlock_tests::wait::WAIT_LIMIT;
use script::{Script, Step};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Name and text of each script; each runs in a namespace of its own.
const SCRIPTS: &[(&str, &str)] = &[
    ("objects", include_str!("compare/objects.yaml")),
    ("lists", include_str!("compare/lists.yaml")),
    ("patches", include_str!("compare/patches.yaml")),
    ("apply", include_str!("compare/apply.yaml")),
    ("workloads", include_str!("compare/workloads.yaml")),
    ("rights", include_str!("compare/rights.yaml")),
    ("custom", include_str!("compare/custom.yaml")),
    ("rules", include_str!("compare/rules.yaml")),
    ("kubectl", include_str!("compare/kubectl.yaml")),
    ("definitions", include_str!("compare/definitions.yaml")),
    ("lifecycles", include_str!("compare/lifecycles.yaml")),
    ("watch", include_str!("compare/watch.yaml")),
    ("watch-list", include_str!("compare/watch-list.yaml")),
    ("kinds", include_str!("compare/kinds.yaml")),
    ("subresources", include_str!("compare/subresources.yaml")),
    ("refusals", include_str!("compare/refusals.yaml")),
];

/// The time between two attempts of a request that is repeated.
const PAUSE: Duration = Duration::from_millis(20);

/// One of the two servers, and the values that its responses left for later requests.
struct Server {
    client: Client,
    variables: BTreeMap<String, String>,
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_server_answers_as_the_real_one() -> anyhow::Result<()> {
    let mut scripts = Vec::new();
    for (name, text) in SCRIPTS {
        scripts.push((name, Script::parse(text).with_context(|| format!("{name}.yaml"))?));
    }
    let real = control_plane::start().await?;
    // The real server runs without a controller-manager.
    let embedded = DevCluster::start(Config { garbage_collection: false, ..Config::default() }).await?;
    let mut failures = BTreeMap::new();
    for (name, script) in &scripts {
        let mut servers = [
            Server::connect(Kubeconfig::from_yaml(&real.kubeconfig())?, name).await?,
            Server::connect(Kubeconfig::from_yaml(&embedded.kubeconfig())?, name).await?,
        ];
        for step in &script.steps {
            let [real, embedded] = &mut servers;
            let (real, embedded) = tokio::join!(real.run(step), embedded.run(step));
            let at = |server: &str| format!("{name}: {}: {server}", step.name);
            let (real, embedded) =
                (real.with_context(|| at("real"))?, embedded.with_context(|| at("embedded"))?);
            let found = differences(&real, &embedded, &step.differs);
            if !found.is_empty() {
                failures.insert(format!("{name}: {}", step.name), found.join("\n"));
            }
        }
    }
    embedded.shut_down().await;
    ensure!(failures.is_empty(), "{} responses differ: {failures:#?}", failures.len());
    Ok(())
}

// === impl Server ===

impl Server {
    async fn connect(kubeconfig: Kubeconfig, script: &str) -> anyhow::Result<Self> {
        let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await?;
        // Errors are compared too, so the client must not retry.
        config.default_retry = false;
        let namespace = format!("compare-{script}");
        let variables = BTreeMap::from([("ns".to_owned(), namespace)]);
        Ok(Self { client: Client::try_from(config)?, variables })
    }

    /// Sends a step's request, repeats it until the step's condition holds, and keeps the values that the
    /// step names.
    async fn run(&mut self, step: &Step) -> anyhow::Result<Answer> {
        let begun_at = Instant::now();
        loop {
            let answer = self.send(step).await?;
            // The real server answers so while it creates the storage of a new or changed custom resource.
            let initializes_storage = answer.status == 429
                && answer.body["message"].as_str().is_some_and(|message| message.contains("initializing"));
            if initializes_storage || step.until.as_ref().is_some_and(|until| !until.holds(&answer)) {
                let (status, body) = (answer.status, &answer.body);
                ensure!(
                    begun_at.elapsed() < WAIT_LIMIT,
                    "waited {WAIT_LIMIT:?} for {:?}; the last response to {} {} was {status}: {body}",
                    step.until,
                    step.method,
                    step.path
                );
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            for (name, pointer) in &step.keep {
                let value = answer.body.pointer(pointer);
                let value = value.with_context(|| format!("no value at {pointer} in {}", answer.body))?;
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                self.variables.insert(name.clone(), text);
            }
            return Ok(answer.normalized(&self.variables));
        }
    }

    async fn send(&self, step: &Step) -> anyhow::Result<Answer> {
        let fill_in = |text: &str| {
            self.variables
                .iter()
                .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
        };
        let mut request = Request::builder().method(step.method.as_str()).uri(fill_in(&step.path));
        let mut headers = step.headers.clone();
        headers.entry("user-agent".into()).or_insert_with(|| "compare/1.0".into());
        headers.entry("accept".into()).or_insert_with(|| "application/json".into());
        if step.body.is_some() {
            headers.entry("content-type".into()).or_insert_with(|| "application/json".into());
        }
        for (name, value) in &headers {
            request = request.header(name, fill_in(value));
        }
        let body = step.body.as_deref().map(fill_in).unwrap_or_default();
        let response = self.client.send(request.body(Body::from(body.into_bytes()))?).await?;
        let (head, body) = response.into_parts();
        let body = body.collect_bytes().await?;
        Ok(Answer::new(&head, &body))
    }
}
