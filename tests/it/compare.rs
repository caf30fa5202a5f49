//! The embedded API server against the real one: the same requests to both, their answers compared.
//!
//! The requests are the YAML files beside this one, in the order of `SCRIPTS`. What differs and is to stay that way is
//! said there, with the reason; everything else that differs fails the test, and so does a difference that is gone.

mod answer;
mod script;

use answer::{Answer, differences};
use anyhow::{Context, ensure};
use http::Request;
use kube::Client;
use kube::client::Body;
use kube::config::Kubeconfig;
use oarlock_dev_cluster::{Config, DevCluster};
use oarlock_tests::control_plane::ControlPlane;
use script::{Script, Step};
use std::collections::BTreeMap;

/// Name and text of each script; each runs in a namespace of its own.
const SCRIPTS: &[(&str, &str)] = &[
    ("objects", include_str!("compare/objects.yaml")),
    ("lists", include_str!("compare/lists.yaml")),
    ("patches", include_str!("compare/patches.yaml")),
    ("apply", include_str!("compare/apply.yaml")),
    ("workloads", include_str!("compare/workloads.yaml")),
    ("rights", include_str!("compare/rights.yaml")),
    ("custom", include_str!("compare/custom.yaml")),
    ("kubectl", include_str!("compare/kubectl.yaml")),
    ("definitions", include_str!("compare/definitions.yaml")),
    ("lifecycles", include_str!("compare/lifecycles.yaml")),
    ("watch", include_str!("compare/watch.yaml")),
    ("refusals", include_str!("compare/refusals.yaml")),
];

/// One of the two servers, with what answers left for later requests.
struct Server {
    client: Client,
    variables: BTreeMap<String, String>,
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_server_answers_as_the_real_one() -> anyhow::Result<()> {
    let real = ControlPlane::shared().await?;
    let embedded = DevCluster::start(Config::default()).await?;
    let mut n_steps = 0;
    let mut failures = Vec::new();
    for (name, text) in SCRIPTS {
        let script = Script::parse(text).with_context(|| format!("{name}.yaml"))?;
        let mut servers = [
            Server::connect(real.kubeconfig()?, name).await?,
            Server::connect(Kubeconfig::from_yaml(&embedded.kubeconfig())?, name).await?,
        ];
        for step in &script.steps {
            n_steps += 1;
            let [real, embedded] = &mut servers;
            let (real, embedded) = tokio::join!(real.run(step), embedded.run(step));
            let said = |whose: &str| format!("{name}: {}: {whose}", step.name);
            let (real, embedded) =
                (real.with_context(|| said("real"))?, embedded.with_context(|| said("embedded"))?);
            let found = differences(&real, &embedded, &step.differs);
            if !found.is_empty() {
                failures.push(format!("{name}: {}\n    {}", step.name, found.join("\n    ")));
            }
        }
    }
    embedded.shut_down().await;
    let n_failed = failures.len();
    ensure!(failures.is_empty(), "{n_failed} of {n_steps} answers differ:\n\n{}\n", failures.join("\n\n"));
    Ok(())
}

// === impl Server ===

impl Server {
    async fn connect(kubeconfig: Kubeconfig, script: &str) -> anyhow::Result<Self> {
        let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await?;
        // A refusal is what is compared, not what comes after it.
        config.default_retry = false;
        let namespace = format!("compare-{script}");
        let variables = BTreeMap::from([("ns".to_owned(), namespace)]);
        Ok(Self { client: Client::try_from(config)?, variables })
    }

    /// Makes a step's request, again and again if it is to be waited for, and keeps what it says to keep.
    async fn run(&mut self, step: &Step) -> anyhow::Result<Answer> {
        loop {
            let answer = self.ask(step).await?;
            // The real server answers so while it makes the storage of a resource that was defined or changed just now.
            if answer.status == 429 || step.until.as_ref().is_some_and(|until| !until.holds(&answer)) {
                continue;
            }
            for (name, pointer) in &step.keep {
                let value = answer.body.pointer(pointer);
                let value = value.with_context(|| format!("nothing at {pointer} in {}", answer.body))?;
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                self.variables.insert(name.clone(), text);
            }
            return Ok(answer.normalised(&self.variables));
        }
    }

    async fn ask(&self, step: &Step) -> anyhow::Result<Answer> {
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
