//! Measures how long a standby needs to take over, and prints it as one line of JSON.
//!
//! In each round a leader is ended by a signal. The time ends when the copies of a source exist that was
//! created right after the signal. So it is the time in which no plugin was called.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "the program prints its result")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Parser;
use kube::config::Kubeconfig;
use oarlock_dev_cluster::{Config, DevCluster};
use oarlock_tests::cluster::Cluster;
use oarlock_tests::copies;
use oarlock_tests::host_process::{HostProcess, checkout};
use serde_json::{Value, json};

/// The longest time that a takeover may take.
const LIMIT: Duration = Duration::from_secs(60);

/// The time between two looks at the copies.
const PAUSE: Duration = Duration::from_millis(5);

/// Measures how long a standby needs to take over.
#[derive(Parser)]
struct Args {
    /// The number of takeovers after each signal.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Args { rounds } = Args::parse();
    let server = DevCluster::start(Config::default()).await?;
    let cluster = Cluster::connect(Kubeconfig::from_yaml(&server.kubeconfig())?).await?;
    copies::create_namespaces(&cluster).await?;
    let plugins = [checkout().join("plugins/mirror")];
    let kubeconfig = cluster.provision(&plugins).await?;
    let mut leader = start(&cluster, &kubeconfig, &plugins).await?;
    leader.until_synced().await?;
    let mut n_sources = 0;
    let mut line = json!({"takeover": rounds, "lease_ms": 4_000});
    for signal in ["KILL", "TERM"] {
        let mut times = Vec::new();
        for _ in 0..rounds {
            let mut standby = start(&cluster, &kubeconfig, &plugins).await?;
            let began = Instant::now();
            leader.signal(signal).await?;
            copies::create(&cluster, n_sources).await?;
            while !copies::is_copied(&cluster, n_sources, &n_sources.to_string()).await? {
                ensure!(began.elapsed() < LIMIT, "no host has taken over after {LIMIT:?}");
                tokio::time::sleep(PAUSE).await;
            }
            times.push(began.elapsed());
            n_sources += 1;
            leader.ended().await?;
            standby.until_synced().await?;
            leader = standby;
        }
        line[signal.to_lowercase()] = figures(&mut times);
    }
    let differences = copies::differences(&cluster).await?;
    ensure!(differences.is_empty(), "after all takeovers: {differences:?}");
    println!("{line}");
    Ok(())
}

async fn start(
    cluster: &Cluster,
    kubeconfig: &std::path::Path,
    plugins: &[PathBuf],
) -> anyhow::Result<HostProcess> {
    let mut host = cluster.run_candidate(kubeconfig, plugins)?;
    host.wait_for("mirror is loaded", |printed| printed.events("plugin-loaded").next().map(|_| ())).await?;
    Ok(host)
}

/// Returns the median, the 99th percentile and the greatest, in milliseconds.
fn figures(times: &mut [Duration]) -> Value {
    times.sort();
    let at = |part: f64| times[((times.len() - 1) as f64 * part).round() as usize].as_millis() as u64;
    json!({"p50_ms": at(0.5), "p99_ms": at(0.99), "least_ms": at(0.0)})
}
