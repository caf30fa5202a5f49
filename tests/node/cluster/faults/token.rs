//! All tokens of ServiceAccounts become invalid, as an expired one is, and the kubelet writes new ones.
//!
//! A token lives 10 minutes at least, so the test replaces the key that signs them instead of waiting.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use oarlock_node::Component;

use crate::cluster::{Cluster, NAMESPACE};
use crate::pods::TOKEN;

use super::Begun;

impl Begun<'_> {
    pub(super) async fn replace_tokens(self) -> Result<(Duration, Instant)> {
        let Self { cluster, load, leader, .. } = self;
        let token = cluster.node.run("cat", [cluster.file_of(&leader, TOKEN)?])?;
        for component in [Component::ApiServer, Component::ControllerManager] {
            cluster.node.kill(component)?;
        }
        cluster.node.replace_account_key()?;
        let fault_at = Instant::now();
        cluster.node.start_component(Component::ApiServer)?;
        check_refused(cluster, token.trim())?;
        cluster.node.start_component(Component::ControllerManager)?;
        // A kubelet that has just started knows no tokens, so it requests new ones.
        cluster.node.kill(Component::Kubelet)?;
        cluster.node.start_component(Component::Kubelet)?;
        Ok((load.first_copy_since(fault_at).await?, fault_at))
    }
}

fn check_refused(cluster: &Cluster, token: &str) -> Result<()> {
    let token = format!("--token={token}");
    let arguments =
        ["--kubeconfig=/dev/null", "--server=https://10.0.0.1", "--insecure-skip-tls-verify", &token];
    let get = ["get", "lease", "oarlock", "--namespace", NAMESPACE];
    let refused = cluster.node.run("kubectl", arguments.into_iter().chain(get));
    let error = format!("{:#}", refused.err().context("the API server accepts a token of the old key")?);
    ensure!(error.contains("Unauthorized") || error.contains("must be logged in"), "{error}");
    Ok(())
}
