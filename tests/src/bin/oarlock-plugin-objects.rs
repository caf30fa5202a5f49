//! Measures one host with many Plugin objects on a real API server, and prints the result as one line of
//! JSON: the time until all are Ready, the memory for each, the rate of status writes, and the CPU at rest.
//!
//! Each namespace has one component of its own and the same number of Plugins, which subscribe to the
//! ConfigMaps of the cluster.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "the program prints its result")]

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use futures::{StreamExt, TryStreamExt, stream};
use kube::config::Kubeconfig;
use oarlock_tests::cluster::{Cluster, HOST_ACCOUNT};
use oarlock_tests::host_process::HostProcess;
use oarlock_tests::manifests::printed;
use oarlock_tests::wait::wait_until;
use serde_json::{Value, json};

/// The pause between two readings.
const PAUSE: Duration = Duration::from_secs(1);
/// For how long a host at rest is observed: longer than the period after which it reads all sources again.
const REST: Duration = Duration::from_secs(60);
/// How many statuses a host may write in a second.
const WRITES_PER_SECOND: f64 = 20.0;
/// How many more there may be in any interval: those that a pause allows at once, and as many that the API
/// server had not yet counted at the begin of the interval.
const MOST_ABOVE: f64 = 40.0;
/// After its probation of 60 s, a version is the last good one, and the status says so: no write of a host at
/// rest.
const PROBATION: Duration = Duration::from_secs(70);
/// The unit of the times in `/proc/PID/stat`.
const TICKS_PER_SECOND: f64 = 100.0;
/// How many Plugins are created at once.
const AT_ONCE: usize = 8;

/// The controller manager fills `oarlock-watch` from the roles with its label. None runs here.
const WATCH_ROLE: &str = r#"
kind: ClusterRoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: oarlock-watch-default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: oarlock-watch-default}
subjects: [{kind: ServiceAccount, name: oarlock, namespace: oarlock-system}]
"#;

/// Measures one host with many Plugin objects.
#[derive(Parser)]
struct Args {
    /// The kubeconfig of an administrator of an empty API server.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// The number of Plugins.
    #[arg(long, default_value_t = 1_000)]
    plugins: usize,
    /// The number of distinct components.
    #[arg(long, default_value_t = 20)]
    components: usize,
}

/// Counts of the API server.
#[derive(Clone, Copy)]
struct Reading {
    at: Instant,
    /// Requests that write the status of a Plugin, refused ones too.
    n_status_writes: u64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Args { kubeconfig, plugins, components } = Args::parse();
    let cluster = Cluster::connect(Kubeconfig::read_from(kubeconfig)?).await?;
    for object in printed(HOST_ACCOUNT.0)? {
        cluster.apply(&object.to_string()).await?;
    }
    cluster.apply(WATCH_ROLE).await?;
    for n in 0..components {
        create_namespace(&cluster, n).await?;
    }
    wait_until("the definitions", async || ready(&cluster).await).await?;

    let kubeconfig = cluster.kubeconfig_for(HOST_ACCOUNT.0, HOST_ACCOUNT.1).await?;
    let mut arguments = vec!["run".into(), "--watch-plugins".into()];
    for (flag, path) in [
        ("--kubeconfig", kubeconfig),
        ("--cache-dir", cluster.path("cache")),
        ("--state-dir", cluster.path("state")),
    ] {
        arguments.extend([flag.into(), path.into_os_string()]);
    }
    let host = HostProcess::start(arguments)?;
    // One of each component first: the memory for one more Plugin does not contain that of the code.
    create(&cluster, 0..components, components).await?;
    until_ready(&cluster, components).await?;
    at_rest(&host).await?;
    let memory_before = resident(&host)?;
    let mut readings = vec![read(&cluster).await?];

    let ticks_before = ticks(&host)?;
    let begun_at = Instant::now();
    let (created, counted) = tokio::join!(create(&cluster, components..plugins, components), async {
        loop {
            readings.push(read(&cluster).await?);
            if ready(&cluster).await? == plugins {
                return anyhow::Ok(());
            }
            ensure!(
                begun_at.elapsed() < Duration::from_secs(1800),
                "not all Plugins are Ready after 30 minutes"
            );
            tokio::time::sleep(PAUSE).await;
        }
    });
    let created_in = created?;
    counted?;
    let ready_in = begun_at.elapsed();
    at_rest(&host).await?;
    let ready_cpu = seconds(ticks(&host)? - ticks_before);
    tokio::time::sleep(PROBATION).await;
    at_rest(&host).await?;
    readings.push(read(&cluster).await?);
    let memory = resident(&host)?;
    let settled = read(&cluster).await?;
    let ticks_before = ticks(&host)?;
    tokio::time::sleep(REST).await;
    let rest_cpu = seconds(ticks(&host)? - ticks_before);
    let rested = read(&cluster).await?;

    let most_above = most_above(&readings);
    ensure!(
        most_above <= MOST_ABOVE,
        "{most_above} status writes more than {WRITES_PER_SECOND} a second; at most {MOST_ABOVE} are expected"
    );
    let at_rest = rested.since(settled);
    ensure!(at_rest == 0, "{at_rest} status writes at rest");
    let rates = readings.windows(2).map(|pair| pair[1].per_second_since(pair[0]));
    let n_added = (plugins - components) as u64;
    println!(
        "{}",
        json!({
            "plugins": plugins,
            "components": components,
            "created_seconds": rounded(created_in.as_secs_f64()),
            "ready_seconds": rounded(ready_in.as_secs_f64()),
            "ready_cpu_seconds": rounded(ready_cpu),
            "resident_bytes": memory,
            "bytes_per_plugin": memory.saturating_sub(memory_before) / n_added,
            "status_writes_per_plugin": rounded(settled.since(readings[0]) as f64 / n_added as f64),
            "status_writes_per_second_most": rounded(rates.fold(0.0, f64::max)),
            "status_writes_above_rate_most": rounded(most_above),
            "status_writes_at_rest": at_rest,
            "rest_seconds": REST.as_secs(),
            "rest_cpu_seconds": rounded(rest_cpu),
        })
    );
    host.terminate().await.map(drop)
}

// === impl Reading ===

impl Reading {
    fn since(self, earlier: Self) -> u64 {
        self.n_status_writes - earlier.n_status_writes
    }

    fn per_second_since(self, earlier: Self) -> f64 {
        self.since(earlier) as f64 / (self.at - earlier.at).as_secs_f64()
    }
}

/// Returns the largest number of writes above [`WRITES_PER_SECOND`] in any interval between two readings.
fn most_above(readings: &[Reading]) -> f64 {
    let above = |(n, later): (usize, &Reading)| {
        let earlier = readings[..n].iter();
        let above =
            earlier.map(|it| later.since(*it) as f64 - WRITES_PER_SECOND * (later.at - it.at).as_secs_f64());
        above.fold(0.0, f64::max)
    };
    readings.iter().enumerate().map(above).fold(0.0, f64::max)
}

/// Creates a namespace that has opted in, with an account and a component.
async fn create_namespace(cluster: &Cluster, n: usize) -> Result<()> {
    let name = namespace(n);
    let rbac = "apiVersion: rbac.authorization.k8s.io/v1";
    cluster
        .apply(&format!(
            r#"
{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}
---
{{apiVersion: v1, kind: ServiceAccount, metadata: {{name: plugin, namespace: {name}}}}}
---
{{{rbac}, kind: RoleBinding, metadata: {{name: oarlock-impersonator, namespace: {name}}},
  roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: oarlock-impersonator}},
  subjects: [{{kind: ServiceAccount, name: oarlock, namespace: oarlock-system}}]}}
---
{{{rbac}, kind: Role, metadata: {{name: plugin, namespace: {name}}},
  rules: [{{apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}}]}}
---
{{{rbac}, kind: RoleBinding, metadata: {{name: plugin, namespace: {name}}},
  roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: plugin}},
  subjects: [{{kind: ServiceAccount, name: plugin, namespace: {name}}}]}}
"#
        ))
        .await?;
    let mut component = fs::read(oarlock_built_guests::component("hello-rust"))?;
    // A custom section `n` of two bytes, which makes it another component.
    component.extend([0, 3, 1, b'n', u8::try_from(n).context("at most 256 components")?]);
    let component = k8s_openapi::ByteString(component);
    let object = json!({"metadata": {"name": "component"}, "binaryData": {"plugin.wasm": component}});
    cluster.request("POST", &format!("/api/v1/namespaces/{name}/configmaps"), Some(&object)).await.map(drop)
}

fn namespace(n: usize) -> String {
    format!("team-{n}")
}

/// Creates Plugins. Returns the time that it took.
async fn create(cluster: &Cluster, numbers: std::ops::Range<usize>, components: usize) -> Result<Duration> {
    let begun_at = Instant::now();
    let creations = stream::iter(numbers).map(async |n| {
        let path = format!("/apis/oarlock.dev/v1alpha1/namespaces/{}/plugins", namespace(n % components));
        let plugin = json!({
            "apiVersion": "oarlock.dev/v1alpha1",
            "kind": "Plugin",
            "metadata": {"name": format!("plugin-{n}")},
            "spec": {
                "source": {"configMap": {"name": "component", "key": "plugin.wasm"}},
                "serviceAccountName": "plugin",
                "config": {"labelSelector": format!("plugin={n}")},
            },
        });
        cluster.request("POST", &path, Some(&plugin)).await.map(drop)
    });
    creations.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    Ok(begun_at.elapsed())
}

async fn until_ready(cluster: &Cluster, n_plugins: usize) -> Result<()> {
    wait_until("the Plugins to be Ready", async || match ready(cluster).await {
        Ok(n_ready) if n_ready == n_plugins => Ok(()),
        other => Err(other),
    })
    .await
}

/// Returns how many Plugins are Ready.
async fn ready(cluster: &Cluster) -> Result<usize> {
    let list = cluster.request("GET", "/apis/oarlock.dev/v1alpha1/plugins", None).await?;
    let is_ready = |plugin: &&Value| {
        let mut conditions = plugin["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    };
    Ok(list["items"].as_array().context("a list has items")?.iter().filter(is_ready).count())
}

async fn read(cluster: &Cluster) -> Result<Reading> {
    let request = http::Request::get("/metrics").body(Vec::new())?;
    let metrics = cluster.client.request_text(request).await?;
    let at = Instant::now();
    let is_status_write = |line: &&str| {
        line.starts_with("apiserver_request_total{")
            && line.contains(r#"group="oarlock.dev""#)
            && line.contains(r#"subresource="status""#)
    };
    let counts = metrics.lines().filter(is_status_write).filter_map(|line| line.rsplit(' ').next());
    let n_status_writes = counts.map(|count| Ok(count.parse::<f64>()? as u64)).sum::<Result<u64>>()?;
    Ok(Reading { at, n_status_writes })
}

/// Waits until the host has used less than 1 % of a core for two seconds.
async fn at_rest(host: &HostProcess) -> Result<()> {
    let mut used = ticks(host)?;
    let mut n_quiet = 0;
    wait_until("the host to be at rest", async || {
        tokio::time::sleep(PAUSE).await;
        let before = std::mem::replace(&mut used, ticks(host).map_err(|error| error.to_string())?);
        n_quiet = if used - before <= 1 { n_quiet + 1 } else { 0 };
        if n_quiet == 2 { Ok(()) } else { Err(format!("{} ticks in a second", used - before)) }
    })
    .await
}

/// Returns the CPU time of the host, in ticks of 10 ms.
fn ticks(host: &HostProcess) -> Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", host.id().context("the host has ended")?))?;
    let (_, fields) = stat.rsplit_once(')').context("no fields")?;
    // The state is the third field; user and system time are the 14th and the 15th.
    let times = fields.split_whitespace().skip(11).take(2).map(|field| Ok(field.parse::<u64>()?));
    times.sum()
}

/// Returns the resident memory of the host, in bytes.
fn resident(host: &HostProcess) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", host.id().context("the host has ended")?))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib * 1024)
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / TICKS_PER_SECOND
}

fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
