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
use oarlock_tests::PATIENCE;
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

/// One of the two servers, with what answers left for later requests.
struct Server {
    client: Client,
    variables: BTreeMap<String, String>,
}

/// The real server's authorizer follows Roles and Bindings by watches of its own, so a right may take a moment there; timestamps have
/// seconds, and the order of managedFields follows them. Only what differs in each of several runs is a difference; what does
/// not is shown.
const RUNS: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_server_answers_as_the_real_one() -> anyhow::Result<()> {
    let mut always: Option<BTreeMap<String, String>> = None;
    for run in 1..=RUNS {
        let found = compare().await?;
        if found.is_empty() {
            return Ok(());
        }
        eprintln!("run {run}: {found:#?}");
        always = Some(match always {
            None => found,
            Some(before) => found.into_iter().filter(|(step, _)| before.contains_key(step)).collect(),
        });
    }
    let always = always.unwrap_or_default();
    ensure!(always.is_empty(), "{} answers differ: {always:#?}", always.len());
    Ok(())
}

/// Asks two fresh servers everything, and returns the differences by script and step.
async fn compare() -> anyhow::Result<BTreeMap<String, String>> {
    let real = ControlPlane::start().await?;
    // The real one has no controller-manager beside it.
    let embedded = DevCluster::start(Config { garbage_collection: false, ..Config::default() }).await?;
    let mut failures = BTreeMap::new();
    for (name, text) in SCRIPTS {
        let script = Script::parse(text).with_context(|| format!("{name}.yaml"))?;
        let mut servers = [
            Server::connect(real.kubeconfig()?, name).await?,
            Server::connect(Kubeconfig::from_yaml(&embedded.kubeconfig())?, name).await?,
        ];
        for step in &script.steps {
            let [real, embedded] = &mut servers;
            let (real, embedded) = tokio::join!(real.run(step), embedded.run(step));
            let said = |whose: &str| format!("{name}: {}: {whose}", step.name);
            let (real, embedded) =
                (real.with_context(|| said("real"))?, embedded.with_context(|| said("embedded"))?);
            let found = differences(&real, &embedded, &step.differs);
            if !found.is_empty() {
                failures.insert(format!("{name}: {}", step.name), found.join("\n"));
            }
        }
    }
    embedded.shut_down().await;
    Ok(failures)
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
        let begun = std::time::Instant::now();
        loop {
            let answer = self.ask(step).await?;
            // The real server answers so while it makes the storage of a resource that was defined or changed just now.
            let makes_storage = answer.status == 429
                && answer.body["message"].as_str().is_some_and(|message| message.contains("initializing"));
            if makes_storage || step.until.as_ref().is_some_and(|until| !until.holds(&answer)) {
                let (status, body) = (answer.status, &answer.body);
                ensure!(
                    begun.elapsed() < PATIENCE,
                    "{} {} still answers {status}: {body}",
                    step.method,
                    step.path
                );
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
