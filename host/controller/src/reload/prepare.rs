//! From a plugin's file and the bytes of its component to a generation that is ready to serve.
//!
//! Everything that can fail fails here, while the version before goes on: reading, compiling, describing, rights, the first lists, the
//! first instance. What can be waited for (a resource, a right, a ServiceAccount) is waited for and named.

mod compile;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use oarlock_informer::{BacklogAccount, GroupVersionResource};
use oarlock_plugin::{DescribeError, GuestLog, InstanceConfig, component, contract};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Host, MadeOf, Slot};
use crate::access::AccountState;
use crate::account::Account;
use crate::config::PluginFile;
use crate::dispatch::{self, Generation, MakeInstance, Maker, RetryPolicy};
use crate::informers::{Lease, Purpose, Refused};
use crate::kube_access::{self, PluginAccess, Reader};
use crate::plan::{self, Exported, Plan, ReadPlan, SubscriptionPlan};
use crate::provision;
use crate::rbac::Needs;
use crate::report::{Event, Reporter};
use crate::subscriptions::{self, Access, Following};

/// How often it is looked whether what is waited for is there, and the wait explained if not.
const LOOK: Duration = Duration::from_secs(1);

/// How often it is looked whether the budget has room for what was refused.
const LOOK_FOR_ROOM: Duration = Duration::from_secs(5);

/// Why a version of a plugin is not switched to.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("the component {path} cannot be read: {source}")]
    Read { path: String, source: io::Error },
    #[error("the component {path} cannot be used: {source}")]
    Component { path: String, source: component::Error },
    #[error(transparent)]
    Describe(#[from] DescribeError),
    #[error(transparent)]
    Plan(#[from] plan::Error),
    #[error(transparent)]
    Provision(#[from] provision::Error),
    #[error("its reads and indices cannot be set up: {0:?}")]
    Access(contract::Error),
    #[error("its first instance cannot be made: {}", .0.in_full())]
    Start(oarlock_plugin::CallError),
    #[error(transparent)]
    Budget(Refused),
    #[error("the host panicked while it loaded this version: {0}; this is a bug of the host")]
    Panicked(String),
    #[error("nothing has changed")]
    Unchanged,
    /// The host is ending.
    #[error("the informer of {resource} has stopped")]
    Stopped { resource: String },
}

/// A generation, and what it was made of.
pub(super) struct Prepared {
    pub(super) generation: Generation,
    pub(super) made_of: MadeOf,
}

/// A subscription on its way: either the one before lends its Listener, or it gets one of its own.
enum Wanted {
    GoesOn(Arc<SubscriptionPlan>),
    Fresh { plan: Arc<SubscriptionPlan>, lease: Lease, following: Following },
}

// === impl Error ===

impl Error {
    /// What to do about it, where the message does not say so already.
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => Some(
                "build it, or correct `component` in the plugin's file (a path relative to that file)"
                    .to_owned(),
            ),
            Self::Describe(DescribeError::Refused(_)) => {
                Some("correct `config` in the plugin's file".to_owned())
            }
            Self::Budget(refused) => Some(refused.excess.hint()),
            _ => None,
        }
    }
}

/// Makes a generation of what the file says now.
pub(super) async fn prepare(host: &Host, slot: &Slot, file: &PluginFile) -> Result<Prepared, Error> {
    let began = Instant::now();
    let serving = slot.serving.view();
    let number = serving.as_ref().map_or(1, |it| it.number + 1);
    let reporter = host.reporter.about(&slot.name, number);
    let component = compile::compile(host, slot, file, &reporter).await?;
    let made_of = MadeOf { file: file.clone(), digest: component.digest() };
    if slot.made_of.lock().as_ref() == Some(&made_of) {
        return Err(Error::Unchanged);
    }
    let log = Arc::new(GuestLog::new(
        slot.name.clone(),
        number,
        file.limits.log_lines_per_second,
        Arc::new(super::guest_lines::GuestLines(host.reporter.clone())),
    ));
    let config = Arc::new(Value::Object(file.config.clone()));
    let description =
        oarlock_plugin::describe(&component, config.clone(), file.limits.clone(), log.clone()).await?;
    if let Some(provision) = &host.provision {
        let needs = Needs {
            plugin: slot.name.to_string(),
            account: file.service_account.clone(),
            description: description.clone(),
            emits_events: component.imports().iter().any(|it| it.starts_with("oarlock:plugin/events")),
        };
        provision.provision(&needs).await?;
    }
    let plan = Plan::of(description)?;
    plan.check_against(&host.prunings)?;
    let Plan { version, stateless, subscriptions, reads, indices } = plan;
    let exported =
        Exported { handler: component.exports_handler(), reconciler: component.exports_reconciler() };

    let account = &file.service_account;
    let is_lent = |plan: &SubscriptionPlan| serving.as_ref().is_some_and(|it| it.lends(plan, account));
    let of_subscription =
        |plan: &Arc<SubscriptionPlan>| (!is_lent(plan)).then(|| (plan.resource.clone(), plan.content));
    let of_read = |read: &ReadPlan| Some((read.resource.clone(), plan::kept(read.content)));
    let wants: Vec<_> = subscriptions.iter().map(of_subscription).chain(reads.iter().map(of_read)).collect();
    let mut leases = lease(host, slot, file, &wants).await;
    let leases_of_reads = leases.split_off(subscriptions.len());
    let wanted: Vec<_> = subscriptions
        .into_iter()
        .zip(leases)
        .map(|(plan, lease)| {
            let Some(lease) = lease else { return Wanted::GoesOn(plan) };
            let following = subscriptions::follow(
                &host.tasks,
                host.gate.clone(),
                account.clone(),
                plan.resource.clone(),
                plan.namespaces.clone(),
                format!("access of {} to {}", slot.name, plan.name),
            );
            Wanted::Fresh { plan, lease, following }
        })
        .collect();
    let readers: BTreeMap<_, _> = reads
        .into_iter()
        .zip(leases_of_reads)
        .filter_map(|(read, lease)| {
            let ReadPlan { name, resource, namespaces, content } = read;
            Some((name, Reader { target: resource, namespaces, content, lease: lease? }))
        })
        .collect();
    let read_leases: Vec<_> = readers.values().map(|reader| reader.lease.clone()).collect();
    wait(host, slot, &reporter, account, &wanted, &read_leases).await;

    let (access, recorder) = PluginAccess::new(kube_access::Parts {
        plugin: slot.name.clone(),
        generation: number,
        account: account.clone(),
        client: host.client.clone(),
        gate: host.gate.clone(),
        discovery: host.discovery.clone(),
        readers,
        indices,
        queue: slot.queue.clone(),
        rate: kube_access::DEFAULT_RATE,
        host_bytes: slot.host_bytes.clone(),
        writes: host.metrics.writes(&slot.name),
        suspended: file.suspend,
    })
    .map_err(Error::Access)?;
    access.build_indices().await;
    let recording = CancellationToken::new();
    let ended = recording.clone();
    let (panicked_host, name) = (host.clone(), slot.name.clone());
    let record = |token: CancellationToken| async move {
        let either = async {
            tokio::select! {
                () = token.cancelled() => {}
                () = ended.cancelled() => {}
            }
        };
        let end = CancellationToken::new();
        tokio::join!(recorder.run(end.clone()), async {
            either.await;
            end.cancel();
        });
    };
    host.tasks.spawn_contained(format!("events of {}#{number}", slot.name), record, move |message| {
        super::report_panic(&panicked_host, &name, "recording its Events", &message);
    });
    let recording = recording.drop_guard();
    let maker = Arc::new(Maker {
        component: component.clone(),
        config: InstanceConfig {
            config,
            limits: file.limits.clone(),
            access: Arc::new(access),
            log,
            metrics: host.metrics.guest(&slot.name, &slot.host_bytes),
        },
    });
    let instance = maker.make().await.map_err(Error::Start)?;
    // What was there may have gone meanwhile; from here to the Listeners nothing is awaited.
    wait(host, slot, &reporter, account, &wanted, &read_leases).await;
    // The Listeners come last: what they gather while nobody takes it off takes memory.
    let subscriptions = wanted.into_iter().map(|it| open(it, &slot.backlogs)).collect::<Result<_, _>>()?;
    let generation = Generation {
        number,
        version,
        digest: component.digest().to_string(),
        account: account.clone(),
        stateless,
        exported,
        retry: RetryPolicy {
            tries: file.limits.tries,
            loss_tries: file.limits.loss_tries,
            ..host.dispatch.retry.clone()
        },
        maker,
        instance,
        subscriptions,
        reporter,
        began,
        guards: vec![Box::new(recording)],
    };
    Ok(Prepared { generation, made_of })
}

/// Takes the leases that are wanted, all or none. For as long as the host's budget has no room for one of them the version is refused, and tried
/// again when others may have made room.
async fn lease(
    host: &Host,
    slot: &Slot,
    file: &PluginFile,
    wants: &[Option<(GroupVersionResource, oarlock_informer::Content)>],
) -> Vec<Option<Lease>> {
    let mut told = None;
    loop {
        let purpose = || Purpose::Plugin(slot.name.clone());
        let leases: Result<Vec<_>, Refused> = wants
            .iter()
            .map(|want| {
                let lease =
                    |(resource, content): &(_, _)| host.informers.lease(resource, purpose(), *content);
                want.as_ref().map(lease).transpose()
            })
            .collect();
        match leases {
            Ok(leases) => {
                if told.is_some() {
                    slot.board.update(|status| status.refused = None);
                }
                return leases;
            }
            Err(refused) if told.as_ref() == Some(&refused.what) => {}
            Err(refused) => {
                told = Some(refused.what.clone());
                super::refuse(host, slot, file, &Error::Budget(refused));
            }
        }
        tokio::time::sleep(LOOK_FOR_ROOM).await;
    }
}

fn open(wanted: Wanted, account: &BacklogAccount) -> Result<dispatch::Slot, Error> {
    let (plan, lease, following) = match wanted {
        Wanted::GoesOn(plan) => return Ok(dispatch::Slot::GoesOn(plan)),
        Wanted::Fresh { plan, lease, following } => (plan, lease, following),
    };
    let stopped = || Error::Stopped { resource: plan.resource.to_string() };
    let informer = lease.informer().ok_or_else(stopped)?;
    let subscription = subscriptions::open(plan.clone(), &informer, following, lease, account.clone())
        .ok_or_else(stopped)?;
    Ok(dispatch::Slot::Open(Box::new(subscription)))
}

/// Waits until the account exists, may see what it subscribes to, and every cache holds everything.
async fn wait(
    host: &Host,
    slot: &Slot,
    reporter: &Reporter,
    account: &Account,
    wanted: &[Wanted],
    reads: &[Lease],
) {
    let mut told: Vec<String> = Vec::new();
    let mut has_account = false;
    let mut is_long = false;
    loop {
        let mut waits_for = Vec::new();
        if !has_account {
            match host.gate.account_state(account).await {
                Ok(AccountState::Present) => has_account = true,
                Ok(AccountState::Missing) => waits_for.push(format!(
                    "the ServiceAccount {account}, which does not exist: create it, or apply what `oarlock rbac` prints"
                )),
                Err(error) => waits_for.push(crate::chain::text(&error)),
            }
        }
        for wanted in wanted {
            let Wanted::Fresh { plan, lease, following } = wanted else { continue };
            waits_for.extend(lease.waits_for());
            match &*following.access.borrow() {
                Access::Open(_) => {}
                Access::Forbidden(message) => waits_for.push(format!(
                    "the right to {}: {message}; {}",
                    plan.name,
                    subscriptions::forbidden_hint()
                )),
                Access::Unknown(message) => {
                    waits_for.push(format!("an answer about {}: {message}", plan.name))
                }
            }
        }
        waits_for.extend(reads.iter().filter_map(Lease::waits_for));
        waits_for.sort();
        waits_for.dedup();
        if waits_for.is_empty() {
            return;
        }
        slot.board.update(|status| status.waits_for.clone_from(&waits_for));
        // Most waits are over at once; only the others are worth a line.
        if is_long && told != waits_for {
            reporter.report(Event::PluginWaiting { waits_for: waits_for.clone() });
            told = waits_for;
        }
        let settled = settled(wanted, reads, has_account);
        is_long |= tokio::time::timeout(LOOK, settled).await.is_err();
    }
}

/// Waits until all but the account is there; for ever if that is what is missing.
async fn settled(wanted: &[Wanted], reads: &[Lease], has_account: bool) {
    if !has_account {
        return std::future::pending().await;
    }
    let fresh = wanted.iter().filter_map(|wanted| match wanted {
        Wanted::GoesOn(_) => None,
        Wanted::Fresh { lease, following, .. } => Some((lease, following)),
    });
    let opened = fresh.clone().map(|(_, following)| async {
        let mut access = following.access.clone();
        if access.wait_for(|access| matches!(access, Access::Open(_))).await.is_err() {
            std::future::pending::<()>().await;
        }
    });
    let synced = fresh.map(|(lease, _)| lease).chain(reads).map(|lease| async {
        lease.synced().await;
    });
    tokio::join!(join_all(opened), join_all(synced));
}
