//! A further host beside that of a test: with the same Plugin objects, without a folder for state, and on
//! standby until it may lead.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, Patch, PatchParams, PostParams};
use oarlock_controller::runtime::{Config, Election, Error, Runtime};
use oarlock_leader_election::Config as ElectionConfig;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::admin_pages::Pages;
use crate::plugin_objects::Objects;
use crate::rig::{self, LIMIT};

pub(crate) struct FurtherHost {
    pub(crate) pages: Pages,
    lines: watch::Receiver<Vec<Value>>,
    token: CancellationToken,
    tasks: JoinSet<Result<(), Error>>,
}

// === impl FurtherHost ===

impl FurtherHost {
    /// Starts a host with the same Plugin objects, while another one holds the Lease for an hour.
    pub(crate) async fn start(objects: &Objects) -> Self {
        let client = &objects.rig.client;
        let now = k8s_openapi::jiff::Timestamp::now().to_string();
        let lease = json!({
            "metadata": {"name": "hosts"},
            "spec": {"holderIdentity": "another", "leaseDurationSeconds": 3600, "renewTime": format!("{}.000000Z", &now[..19])},
        });
        let leases: Api<Lease> = Api::default_namespaced(client.clone());
        match leases.create(&PostParams::default(), &serde_json::from_value(lease).unwrap()).await {
            // That of a further host before.
            Err(kube::Error::Api(error)) if error.code == 409 => {}
            created => drop(created.unwrap()),
        }
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

    /// Waits until the host reports an event of a plugin, and returns it.
    pub(crate) async fn event(&self, plugin: &str, event: &str) -> Value {
        self.line(event, |line| line["plugin"] == plugin && line["event"] == event).await
    }

    /// Waits for a line.
    pub(crate) async fn line(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let mut lines = self.lines.clone();
        let found = lines.wait_for(|lines| lines.iter().any(&is_it));
        let found = tokio::time::timeout(LIMIT, found).await.map(|lines| lines.unwrap().clone());
        let Ok(lines) = found else { panic!("no {what} among {:#?}", *self.lines.borrow()) };
        lines.into_iter().find(is_it).unwrap()
    }

    /// Returns how many events of a kind the host has reported of a plugin.
    pub(crate) fn n_events(&self, plugin: &str, event: &str) -> usize {
        let lines = self.lines.borrow();
        lines.iter().filter(|line| line["plugin"] == plugin && line["event"] == event).count()
    }

    /// Makes the host lead.
    pub(crate) async fn lead(&self, objects: &Objects) {
        let leases: Api<Lease> = Api::default_namespaced(objects.rig.client.clone());
        let release = Patch::Merge(json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}));
        leases.patch("hosts", &PatchParams::default(), &release).await.unwrap();
        self.line("leading", |line| line["event"] == "leading").await;
    }

    /// Ends the host, and returns all its lines.
    pub(crate) async fn end(mut self) -> Vec<Value> {
        self.token.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap().unwrap();
        }
        self.lines.borrow().clone()
    }
}
