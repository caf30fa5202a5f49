//! A host on standby beside that of a test.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, PostParams};
use oarlock_controller::runtime::{Config, Election, Error, Runtime};
use oarlock_leader_election::Config as ElectionConfig;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::admin_pages::Pages;
use crate::plugin_objects::Objects;
use crate::rig::{self, LIMIT};

pub(super) struct Standby {
    pub(super) pages: Pages,
    lines: watch::Receiver<Vec<Value>>,
    token: CancellationToken,
    tasks: JoinSet<Result<(), Error>>,
}

// === impl Standby ===

impl Standby {
    /// Starts a host with the same Plugin objects, while another one holds the Lease for an hour.
    pub(super) async fn start(objects: &Objects) -> Self {
        let client = &objects.rig.client;
        let now = k8s_openapi::jiff::Timestamp::now().to_string();
        let lease = json!({
            "metadata": {"name": "hosts"},
            "spec": {"holderIdentity": "another", "leaseDurationSeconds": 3600, "renewTime": format!("{}.000000Z", &now[..19])},
        });
        let leases: Api<Lease> = Api::default_namespaced(client.clone());
        leases.create(&PostParams::default(), &serde_json::from_value(lease).unwrap()).await.unwrap();
        let election = ElectionConfig {
            lease_duration: Duration::from_secs(3600),
            renew_deadline: Duration::from_secs(40),
            retry_period: Duration::from_secs(1),
            longest_wait: None,
            release_on_cancel: true,
        };
        let (listener, pages) = Pages::bind().await;
        let (reporter, mut reports) = rig::reports();
        let runtime = Runtime::new(Config {
            admin: Some(listener),
            plugin_resources: Some(objects.further_host()),
            provision: None,
            election: Some(Election::new("default", "hosts", "standby", election).unwrap()),
            ..rig::config(&objects.rig.cluster, client, reporter)
        })
        .unwrap();
        let token = CancellationToken::new();
        let (sender, lines) = watch::channel(Vec::new());
        let mut tasks = JoinSet::new();
        let ended = token.clone();
        tasks.spawn(async move { runtime.run(ended).await });
        tasks.spawn(async move {
            while let Some(line) = reports.next().await {
                sender.send_modify(|lines| lines.push(serde_json::to_value(&line).unwrap()));
            }
            Ok(())
        });
        Self { pages, lines, token, tasks }
    }

    pub(super) async fn event(&self, plugin: &str, event: &str) {
        let mut lines = self.lines.clone();
        let is_it = |line: &Value| line["plugin"] == plugin && line["event"] == event;
        let found = lines.wait_for(|lines| lines.iter().any(is_it));
        let found = tokio::time::timeout(LIMIT, found).await.is_ok();
        assert!(found, "no {event} of {plugin} among {:#?}", *self.lines.borrow());
    }

    /// Ends the host, and returns all its lines.
    pub(super) async fn end(mut self) -> Vec<Value> {
        self.token.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap().unwrap();
        }
        self.lines.borrow().clone()
    }
}
