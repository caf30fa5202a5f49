//! deploy/monitoring: the queries of the alert rules and of the dashboard name metrics, labels and values
//! that a running host has; each alert has a runbook; and the page passes `promtool check metrics`.

mod evaluated;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use kube::config::Kubeconfig;
use oarlock_dev_cluster::{Config, DevCluster};
use oarlock_tests::cluster::Cluster;
use oarlock_tests::host_process::{HostProcess, checkout};
use oarlock_tests::manifests::charted;
use oarlock_tests::wait::wait_until;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const RULES: &str = "deploy/monitoring/alerts.yaml";
const DASHBOARD: &str = "deploy/monitoring/dashboard.json";

/// The program of tests/monitoring, which parses and evaluates the queries. Skips the test without Go.
fn program() -> anyhow::Result<PathBuf> {
    oarlock_built_guests::needs("go");
    let output = Command::new(env!("CARGO"))
        .args(["xtask", "monitoring-check"])
        .current_dir(checkout())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo xtask monitoring-check")?;
    ensure!(output.status.success(), "cargo xtask monitoring-check: {}", output.status);
    Ok(String::from_utf8(output.stdout)?.trim_end().into())
}

/// Checks a page, rules and a dashboard. Returns the faults.
fn faults(program: &Path, page: &Path, rules: &Path, dashboard: &Path) -> anyhow::Result<String> {
    let output =
        Command::new(program).arg("check").args([page, rules, dashboard]).current_dir(checkout()).output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(matches!(output.status.code(), Some(0 | 1)), "{}: {stderr}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns the page `/metrics`.
async fn metrics(address: &str) -> anyhow::Result<String> {
    let mut connection = TcpStream::connect(address).await?;
    connection.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n").await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    let (head, page) = answer.split_once("\r\n\r\n").context("an answer has a head")?;
    ensure!(head.starts_with("HTTP/1.0 200"), "{head}");
    Ok(page.to_owned())
}

/// A leader with a plugin of notifications and a reconciler, which have worked.
#[tokio::test(flavor = "multi_thread")]
async fn each_query_of_the_alerts_and_the_dashboard_names_what_a_running_host_serves() -> anyhow::Result<()> {
    let program = tokio::task::spawn_blocking(program).await??;
    let server = DevCluster::start(Config::default()).await?;
    let cluster = Cluster::connect(Kubeconfig::from_yaml(&server.kubeconfig())?).await?;
    let plugins: [PathBuf; 2] = [checkout().join("plugins/mirror"), checkout().join("plugins/reloader")];
    cluster.provision(&plugins).await?;
    let namespace = json!({"metadata": {"name": "team-a"}});
    cluster.request("POST", "/api/v1/namespaces", Some(&namespace)).await?;
    let annotations = json!({"oarlock.dev/mirror-to": "team-a"});
    let source = json!({"metadata": {"name": "settings", "annotations": annotations}, "data": {"n": "1"}});
    cluster.request("POST", "/api/v1/namespaces/default/configmaps", Some(&source)).await?;

    for kind in ["plugins", "clusterplugins"] {
        let definition = checkout().join(format!("deploy/crds/{kind}.oarlock.dev.yaml"));
        cluster.apply(&fs::read_to_string(definition)?).await?;
    }
    let plugin = json!({
        "apiVersion": "oarlock.dev/v1alpha1",
        "kind": "Plugin",
        "metadata": {"name": "hello", "namespace": "team-a"},
        "spec": {"source": {"file": {"path": "none.wasm"}}, "serviceAccountName": "none"},
    });
    wait_until("a Plugin without an account", async || cluster.apply(&plugin.to_string()).await).await?;

    let kubeconfig = cluster.path("administrator.kubeconfig");
    fs::write(&kubeconfig, server.kubeconfig())?;
    let mut arguments = vec!["run".into(), "--kubeconfig".into(), kubeconfig.into_os_string()];
    arguments.extend([
        "--watch-plugins".into(),
        "--cache-dir".into(),
        cluster.path("cache").into_os_string(),
    ]);
    arguments.extend(["--admin-addr", "127.0.0.1:0", "--leader-elect"].map(Into::into));
    arguments.extend(["--leader-elect-resource-namespace", "oarlock-system"].map(Into::into));
    for plugin in plugins {
        arguments.extend(["--plugins".into(), plugin.into_os_string()]);
    }
    let mut host = HostProcess::start(arguments)?;
    let address = host
        .wait_for("the admin pages", |printed| {
            printed.events("admin-listening").find_map(|line| line["address"].as_str().map(str::to_owned))
        })
        .await?;
    host.wait_for("both plugins", |printed| (printed.events("plugin-loaded").count() == 2).then_some(()))
        .await?;
    let page = cluster.path("metrics");
    let (rules, dashboard) = (checkout().join(RULES), checkout().join(DASHBOARD));
    // Calls and writes follow soon.
    wait_until("queries without faults", async || {
        let text = metrics(&address).await.map_err(|error| format!("{error:#}"))?;
        fs::write(&page, text).map_err(|error| error.to_string())?;
        match faults(&program, &page, &rules, &dashboard) {
            Ok(faults) if faults.is_empty() => Ok(()),
            Ok(faults) => Err(faults),
            Err(error) => Err(format!("{error:#}")),
        }
    })
    .await?;

    // The check finds what is wrong.
    let rule = "groups: [{name: a, rules: [{alert: A, expr: 'sum by (planet) (oarlock_plugin_up{phase=\"x\"}) + moons'}]}]";
    let wrong = cluster.path("wrong.yaml");
    fs::write(&wrong, rule)?;
    let found = faults(&program, &page, &wrong, &dashboard)?;
    for fault in [r#"no metric "moons""#, r#"no label "phase""#, r#"the label "planet""#] {
        assert!(found.contains(fault), "{fault}: {found}");
    }
    let bad_page = cluster.path("bad");
    fs::write(&bad_page, "# HELP a_total A.\n# TYPE a_total gauge\na_total 1\n")?;
    let found = faults(&program, &bad_page, &rules, &dashboard)?;
    assert!(found.contains("_total"), "{found}");
    Ok(())
}

#[derive(Deserialize)]
struct Rules {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    alert: String,
    labels: std::collections::BTreeMap<String, String>,
    annotations: std::collections::BTreeMap<String, String>,
}

/// Returns the alert rules.
fn rules() -> anyhow::Result<Vec<Rule>> {
    let rules: Rules = serde_norway::from_str(&fs::read_to_string(checkout().join(RULES))?)?;
    Ok(rules.groups.into_iter().flat_map(|group| group.rules).collect())
}

#[test]
fn each_alert_has_a_runbook_and_each_runbook_an_alert() -> anyhow::Result<()> {
    let rules = rules()?;
    let runbooks = fs::read_to_string(checkout().join("docs/runbooks.md"))?;
    let sections: BTreeSet<_> = runbooks.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let alerts: BTreeSet<_> = rules.iter().map(|rule| &*rule.alert).collect();
    assert_eq!(sections, alerts);
    for Rule { alert, labels, annotations } in rules {
        let link = format!("docs/runbooks.md#{}", alert.to_lowercase());
        assert_eq!(annotations["runbook"], link, "{alert}");
        assert!(["critical", "warning", "info"].contains(&&*labels["severity"]), "{alert}");
    }
    Ok(())
}

/// The values of the chart for the operator of Prometheus and for Grafana.
const VALUES: &str = r#"
image: {repository: registry.example.com/oarlock}
serviceMonitor: {enabled: true, interval: 30s}
podMonitor: {enabled: true, tokenSecret: {name: scraper}, labels: {release: prometheus}}
prometheusRule: {enabled: true, labels: {release: prometheus}}
dashboard: {enabled: true}
"#;

#[test]
fn the_chart_has_the_rules_and_the_dashboard_of_deploy_monitoring() -> anyhow::Result<()> {
    let objects = charted("controllers", VALUES)?;
    let named = |kind: &str, name: &str| {
        let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        objects.iter().find(is_it).with_context(|| format!("the chart has no {kind} {name}"))
    };
    let rules = named("PrometheusRule", "oarlock")?;
    let expected: Value = serde_norway::from_str(&fs::read_to_string(checkout().join(RULES))?)?;
    assert_eq!(rules["spec"], expected);
    assert_eq!(rules["metadata"]["labels"]["release"], "prometheus");
    let dashboard = named("ConfigMap", "oarlock-dashboard")?;
    assert_eq!(dashboard["metadata"]["labels"]["grafana_dashboard"], "1");
    let text = dashboard["data"]["oarlock.json"].as_str().context("the ConfigMap has the dashboard")?;
    let expected: Value = serde_json::from_str(&fs::read_to_string(checkout().join(DASHBOARD))?)?;
    assert_eq!(serde_json::from_str::<Value>(text)?, expected);

    // Both monitors select what the chart has.
    let port = &named("Service", "oarlock-admin")?["spec"]["ports"][0]["name"];
    let service_monitor = &named("ServiceMonitor", "oarlock")?["spec"];
    assert_eq!(&service_monitor["endpoints"][0]["port"], port);
    let pod = &named("Deployment", "oarlock")?["spec"]["template"];
    let pod_monitor = &named("PodMonitor", "oarlock")?["spec"];
    let endpoint = &pod_monitor["podMetricsEndpoints"][0];
    assert_eq!(endpoint["port"], pod["spec"]["containers"][0]["ports"][0]["name"]);
    assert_eq!(endpoint["authorization"]["credentials"], json!({"name": "scraper", "key": "token"}));
    for monitor in [service_monitor, pod_monitor] {
        let selected = monitor["selector"]["matchLabels"].as_object().context("labels")?;
        let labels = pod["metadata"]["labels"].as_object().context("labels")?;
        assert!(selected.iter().all(|(label, value)| labels.get(label) == Some(value)), "{monitor}");
    }

    // None of them without being asked for: the kinds may not exist.
    let plain = charted("controllers", "image: {repository: registry.example.com/oarlock}")?;
    assert!(!plain.iter().any(|it| it["apiVersion"] == "monitoring.coreos.com/v1"));
    assert!(!plain.iter().any(|it| it["metadata"]["name"] == "oarlock-dashboard"));
    Ok(())
}
