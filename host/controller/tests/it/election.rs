//! Leader election by a Lease in an API server.

use std::fmt::Debug;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use oarlock_controller::runtime::{self, Election, Runtime, WallClock};
use oarlock_controller::{admin, report};
use oarlock_event_recorder::reference::field_selector;
use oarlock_event_recorder::{Broadcaster, EventRecorder, EventType, KubeSink, Recording, RecordingConfig};
use oarlock_informer::reflector::ConsistencyCheck;
use oarlock_leader_election::{Callbacks, Config, Ended, LeaderElector, LeaseLock};
use oarlock_plugin::EngineConfig;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::rig;

/// A candidate that records whether it leads, and which leader it observes.
struct Candidate {
    leads: watch::Sender<bool>,
    leader: watch::Sender<String>,
}

#[async_trait]
impl Callbacks for Candidate {
    async fn on_started_leading(&self, leading: CancellationToken) {
        self.leads.send_replace(true);
        leading.cancelled().await;
        self.leads.send_replace(false);
    }

    fn on_stopped_leading(&self) {}

    fn on_new_leader(&self, identity: &str) {
        self.leader.send_replace(identity.to_owned());
    }
}

/// Waits until a candidate has observed this.
async fn until<T: Debug>(observed: &watch::Sender<T>, is_so: impl FnMut(&T) -> bool) {
    let mut receiver = observed.subscribe();
    let waited = tokio::time::timeout(rig::LIMIT, receiver.wait_for(is_so)).await;
    assert!(waited.is_ok(), "waited {:?}; the candidate has observed {:?}", rig::LIMIT, observed.borrow());
}

#[tokio::test]
async fn a_leader_acquires_renews_and_releases_its_lease_and_the_next_candidate_acquires_it() {
    let (cluster, client) = rig::cluster().await;
    let broadcaster = Broadcaster::new();
    let events =
        Recording::new(broadcaster.watch(), KubeSink::new(client.clone()), RecordingConfig::default());
    let mut tasks = JoinSet::new();
    tasks.spawn(events.run(CancellationToken::new()));
    let config = Config {
        lease_duration: Duration::from_secs(60),
        renew_deadline: Duration::from_secs(40),
        retry_period: Duration::from_millis(50),
        longest_wait: None,
        release_on_cancel: true,
    };
    let candidates = ["one", "two"].map(|identity| {
        let recorder = EventRecorder::new(broadcaster.clone(), "oarlock", identity);
        let lock = LeaseLock::new(client.clone(), "default", "host", identity)
            .with_labels([("app".to_owned(), "oarlock".to_owned())].into())
            .with_recorder(move |lease, reason, message| {
                recorder.event(lease, EventType::Normal, reason, message).unwrap();
            });
        let elector = LeaderElector::new(lock, config.clone(), SmallRng::seed_from_u64(1)).unwrap();
        let candidate =
            Arc::new(Candidate { leads: watch::channel(false).0, leader: watch::channel(String::new()).0 });
        (elector, candidate)
    });
    let leases: Api<Lease> = Api::namespaced(client.clone(), "default");
    let spec = || async { leases.get("host").await.unwrap().spec.unwrap() };
    let mut runs = JoinSet::new();
    let [one, two] =
        candidates.map(|(elector, candidate)| (Arc::new(elector), candidate, CancellationToken::new()));
    let mut start =
        |(elector, candidate, token): &(Arc<LeaderElector<LeaseLock>>, Arc<Candidate>, CancellationToken)| {
            let (elector, candidate, token) = (elector.clone(), candidate.clone(), token.clone());
            runs.spawn(async move { elector.run(&*candidate, token).await });
        };

    start(&one);
    until(&one.1.leads, |leads| *leads).await;
    start(&two);
    until(&two.1.leader, |leader| leader == "one").await;
    let LeaseSpec { holder_identity, lease_duration_seconds, lease_transitions, renew_time, .. } =
        spec().await;
    assert_eq!(holder_identity.as_deref(), Some("one"));
    assert_eq!((lease_duration_seconds, lease_transitions), (Some(60), Some(0)));
    rig::until_ok("the Lease to be renewed", async || match spec().await {
        spec if spec.renew_time == renew_time => Err(spec),
        _ => Ok(()),
    })
    .await;
    assert!(!*two.1.leads.borrow());

    // Long before the lease expires.
    one.2.cancel();
    until(&two.1.leads, |leads| *leads).await;
    assert!(!*one.1.leads.borrow());
    let lease = leases.get("host").await.unwrap();
    assert_eq!(lease.spec.unwrap().lease_transitions, Some(1));
    assert_eq!(lease.metadata.labels.unwrap()["app"], "oarlock");

    // The leader creates a deleted Lease again.
    leases.delete("host", &DeleteParams::default()).await.unwrap();
    rig::until_ok("the Lease to be created again", async || {
        leases.get_opt("host").await.unwrap().map(drop).ok_or("no Lease")
    })
    .await;
    assert!(*two.1.leads.borrow());
    two.2.cancel();
    let mut ended = [runs.join_next().await.unwrap().unwrap(), runs.join_next().await.unwrap().unwrap()];
    ended.sort_by_key(|ended| format!("{ended:?}"));
    assert_eq!(ended, [Ended::Stopped, Ended::Stopped]);
    assert_eq!(spec().await.holder_identity.unwrap_or_default(), "");

    broadcaster.shut_down();
    tasks.join_all().await;
    let selector = field_selector("v1", "Lease", "host", "default", "").unwrap();
    let events: Api<Event> = Api::namespaced(client, "default");
    let events = events.list(&ListParams::default().fields(&selector)).await.unwrap();
    let mut messages: Vec<_> = events.items.into_iter().map(|event| event.message.unwrap()).collect();
    messages.sort();
    assert_eq!(
        messages,
        ["one became leader", "one stopped leading", "two became leader", "two stopped leading"]
    );
    cluster.shut_down().await;
}

/// A host that takes part in the election, and the lines that it reports.
struct Host {
    lines: watch::Receiver<Vec<Value>>,
    admin: SocketAddr,
    token: CancellationToken,
    run: JoinSet<Result<(), runtime::Error>>,
    printed: JoinSet<()>,
}

impl Host {
    async fn start(client: &kube::Client, plugins: &Path, machine: &str) -> Self {
        let listener = admin::bind("127.0.0.1:0".parse().unwrap(), None).await.unwrap();
        let admin = listener.address();
        let config = Config {
            lease_duration: Duration::from_secs(60),
            renew_deadline: Duration::from_secs(40),
            retry_period: Duration::from_millis(50),
            longest_wait: None,
            release_on_cancel: true,
        };
        let (reporter, mut reports) = report::channel(report::Config::default());
        let runtime = Runtime::new(runtime::Config {
            client: client.clone(),
            client_metrics: runtime::ClientMetrics::default(),
            outages: oarlock_informer::list_watch::transport::Outages::default(),
            server: String::new(),
            plugin_resources: None,
            sources: vec![plugins.to_owned()],
            admin: Some(listener),
            control: None,
            reporter,
            engine: EngineConfig::default(),
            state_dir: None,
            retry: Default::default(),
            restart: Default::default(),
            provision: None,
            limits: Default::default(),
            prunings: Default::default(),
            drain_timeout: Duration::from_secs(5),
            election: Some(Election::new("default", "hosts", machine, config).unwrap()),
            record: None,
            traces: None,
            interception: None,
            wall_clock: WallClock::system(),
            fault_swallow: None,
            consistency_check: ConsistencyCheck::Panic,
        })
        .unwrap();
        let token = CancellationToken::new();
        let (sender, lines) = watch::channel(Vec::new());
        let (mut run, mut printed) = (JoinSet::new(), JoinSet::new());
        let ended = token.clone();
        run.spawn(async move { runtime.run(ended).await });
        printed.spawn(async move {
            while let Some(line) = reports.next().await {
                sender.send_modify(|lines| lines.push(serde_json::to_value(&line).unwrap()));
            }
        });
        Self { lines, admin, token, run, printed }
    }

    async fn event(&self, event: &str) -> Value {
        let mut lines = self.lines.clone();
        let is_it = |line: &&Value| line["event"] == event;
        let found = lines.wait_for(|lines| lines.iter().any(|line| is_it(&line)));
        let lines = match tokio::time::timeout(rig::LIMIT, found).await {
            Ok(lines) => lines.unwrap(),
            Err(_) => panic!("no {event} among {:#?}", *self.lines.borrow()),
        };
        lines.iter().find(is_it).unwrap().clone()
    }

    /// Returns the line of its metrics that shows whether it leads.
    async fn leader_metric(&self) -> String {
        let mut connection = TcpStream::connect(self.admin).await.unwrap();
        let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut page = String::new();
        connection.read_to_string(&mut page).await.unwrap();
        let line = page.lines().find(|line| line.starts_with("leader_election_master_status{"));
        line.unwrap_or(&page).to_owned()
    }

    fn has(&self, event: &str) -> bool {
        self.lines.borrow().iter().any(|line| line["event"] == event)
    }

    async fn ended(mut self) -> Result<(), runtime::Error> {
        let ended = self.run.join_next().await.unwrap().unwrap();
        self.printed.join_all().await;
        ended
    }
}

#[tokio::test]
async fn a_standby_loads_plugins_leads_after_a_release_and_a_host_that_loses_its_lease_ends() {
    let (cluster, client) = rig::cluster().await;
    let folder = tempfile::tempdir().unwrap();
    // A host that reads this file reports an error. The test needs no guest.
    fs::write(folder.path().join("bad.yaml"), "name: [").unwrap();
    let one = Host::start(&client, folder.path(), "one").await;
    one.event("plugin-refused").await;
    one.event("leading").await;
    let two = Host::start(&client, folder.path(), "two").await;
    let leader = two.event("other-leads").await;
    assert!(leader["identity"].as_str().unwrap().starts_with("one_"), "{leader}");
    two.event("plugin-refused").await;
    assert!(!two.has("leading"), "it reads the files on standby");
    assert_eq!(one.leader_metric().await, r#"leader_election_master_status{name="hosts"} 1"#);
    assert_eq!(two.leader_metric().await, r#"leader_election_master_status{name="hosts"} 0"#);

    one.token.cancel();
    assert_eq!(one.event("host-stopping").await["asked"], true);
    one.ended().await.unwrap();
    two.event("leading").await;

    // Another candidate takes the Lease by force.
    let leases: Api<Lease> = Api::namespaced(client, "default");
    let patch = json!({"spec": {"holderIdentity": "three", "leaseTransitions": 7}});
    leases.patch("hosts", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    assert_eq!(two.event("host-stopping").await["asked"], false);
    let error = two.ended().await.unwrap_err();
    assert_eq!(error.to_string(), "the host lost the Lease default/hosts: start it again, and it stands by");
    let lease = leases.get("hosts").await.unwrap().spec.unwrap();
    assert_eq!(lease.holder_identity.as_deref(), Some("three"), "the host that lost it does not change it");
    cluster.shut_down().await;
}
