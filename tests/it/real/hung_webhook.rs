//! A webhook that does not answer holds more writes than one HTTP/2 connection carries. The host keeps its
//! Lease meanwhile, and nothing is lost.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::ensure;
use kube::config::Kubeconfig;
use oarlock_built_guests::component;
use oarlock_tests::cluster::Cluster;
use oarlock_tests::host_process::HostProcess;
use oarlock_tests::wait::wait_until;
use oarlock_tests::{control_plane, copies};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The requests that API servers allow at a time on one connection.
const ON_ONE_CONNECTION: usize = 100;

const N_WRITES: usize = 150;

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/oarlock-system/leases/oarlock";

const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// How often the Lease has to be renewed while the writes hang. With a retry period of 500 ms that takes
/// longer than the renew deadline of 3 s.
const N_RENEWALS: usize = 12;

/// Accepts connections, and answers nothing.
struct Silent {
    port: u16,
    accepted: Arc<Mutex<Vec<TcpStream>>>,
    accepts: JoinHandle<()>,
}

// === impl Silent ===

impl Silent {
    async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let accepted = Arc::new(Mutex::new(Vec::new()));
        let connections = accepted.clone();
        let accepting = async move {
            while let Ok((connection, _)) = listener.accept().await {
                connections.lock().push(connection);
            }
        };
        #[expect(clippy::disallowed_methods, reason = "owned by the Silent, which aborts it")]
        let accepts = tokio::spawn(accepting);
        Ok(Self { port, accepted, accepts })
    }

    /// Closes all connections, and accepts no more.
    async fn close(self) {
        self.accepts.abort();
        // Then nothing else owns the listener.
        let _ = self.accepts.await;
        self.accepted.lock().clear();
    }

    /// Returns how many connections the other side has not closed.
    fn n_open(&self) -> usize {
        let is_open = |connection: &&TcpStream| {
            let mut bytes = [0; 4096];
            // Reads the TLS greeting until there is no more. An end is a read of 0 bytes.
            loop {
                match connection.try_read(&mut bytes) {
                    Ok(0) => return false,
                    Ok(_) => {}
                    Err(error) => return error.kind() == std::io::ErrorKind::WouldBlock,
                }
            }
        };
        self.accepted.lock().iter().filter(is_open).count()
    }
}

/// Returns a host that leads, with as many instances of `mirror` as writes are to hang.
async fn leader(cluster: &Cluster) -> anyhow::Result<HostProcess> {
    let folder: PathBuf = cluster.path("mirror");
    std::fs::create_dir(&folder)?;
    let file = json!({
        "name": "mirror",
        "component": component("mirror"),
        "serviceAccount": {"namespace": "default", "name": "mirror"},
        "concurrency": N_WRITES,
        "limits": {"callDeadline": "2m"},
    });
    std::fs::write(folder.join("plugin.yaml"), file.to_string())?;
    let plugins = [folder];
    let kubeconfig = cluster.provision(&plugins).await?;
    let mut host = cluster.run_candidate(&kubeconfig, &plugins)?;
    host.until_synced().await?;
    Ok(host)
}

/// Returns a webhook for the ConfigMaps that `mirror` writes.
fn webhook(port: u16) -> Value {
    json!({
        "metadata": {"name": "silent"},
        "webhooks": [{
            "name": "silent.tests.oarlock.dev",
            "clientConfig": {"url": format!("https://127.0.0.1:{port}/")},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}],
            "namespaceSelector": {"matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "In", "values": copies::TARGETS},
            ]},
            "failurePolicy": "Ignore",
            "timeoutSeconds": 30,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_hangs_does_not_cost_the_host_its_lease() -> anyhow::Result<()> {
    let control_plane = control_plane::start().await?;
    let cluster = Cluster::connect(Kubeconfig::from_yaml(&control_plane.kubeconfig())?).await?;
    copies::create_namespaces(&cluster).await?;
    let host = leader(&cluster).await?;
    let lost_lease = || host.printed().events("leadership-lost").next().is_some();
    let silent = Silent::start().await?;
    cluster.request("POST", WEBHOOKS, Some(&webhook(silent.port))).await?;
    // The API server learns of a webhook later than it stores it. A source whose copy hangs shows that.
    let mut n_sources = 0;
    wait_until("the webhook is called", async || {
        if silent.n_open() == 0 {
            copies::create(&cluster, n_sources).await.map_err(|error| format!("{error:#}"))?;
            n_sources += 1;
            return Err(format!("{n_sources} sources"));
        }
        Ok(())
    })
    .await?;
    for n in n_sources..n_sources + N_WRITES {
        copies::create(&cluster, n).await?;
    }
    let n_open = wait_until("writes that hang", async || {
        let n_open = silent.n_open();
        if n_open > ON_ONE_CONNECTION || lost_lease() { Ok(n_open) } else { Err(n_open) }
    })
    .await?;
    ensure!(n_open > ON_ONE_CONNECTION, "{n_open} writes hang: {}", host.printed().tail());

    let before = cluster.request("GET", LEASE, None).await?;
    let mut renewals = vec![before["spec"]["renewTime"].clone()];
    let n_open = wait_until("renewals while the writes hang", async || {
        let lease = cluster.request("GET", LEASE, None).await.map_err(|error| format!("{error:#}"))?;
        let renewal = &lease["spec"]["renewTime"];
        if renewals.last() != Some(renewal) {
            renewals.push(renewal.clone());
        }
        let n_open = silent.n_open();
        let is_over = renewals.len() > N_RENEWALS || n_open <= ON_ONE_CONNECTION || lost_lease();
        if is_over { Ok(n_open) } else { Err(format!("{renewals:?}")) }
    })
    .await?;
    let has_held = renewals.len() > N_RENEWALS && n_open > ON_ONE_CONNECTION;
    ensure!(has_held, "{n_open} writes hang; renewed at {renewals:?}: {}", host.printed().tail());
    let after = cluster.request("GET", LEASE, None).await?;
    for member in ["holderIdentity", "leaseTransitions"] {
        ensure!(after["spec"][member] == before["spec"][member], "{after}");
    }

    // The webhook is gone, and what hung is written.
    cluster.request("DELETE", &format!("{WEBHOOKS}/silent"), None).await?;
    silent.close().await;
    copies::until_right(&cluster).await?;
    let (ended, printed) = host.interrupt().await?;
    ensure!(ended.success() && printed.events("leadership-lost").next().is_none(), "{}", printed.tail());
    Ok(())
}
