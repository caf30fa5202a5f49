//! From a plugin's file and the bytes of its component to a generation that is ready to serve.
//!
//! Everything that can fail fails here, while the version before goes on: reading, compiling, describing, rights, the first lists, the
//! first instance. What can be waited for (a resource, a right, a ServiceAccount) is waited for and named.

mod compile;
mod describe;
mod wait;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use oarlock_informer::{BacklogAccount, GroupVersionResource};
use oarlock_plugin::{Component, DescribeError, GuestLog, InstanceConfig, component, contract};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(super) use self::describe::Asked;
use self::wait::Waiting;
use super::{Host, MadeOf, Slot};
use crate::access::AccountState;
use crate::account::Account;
use crate::config::PluginFile;
use crate::dispatch::{self, Generation, MakeInstance, Maker, RetryPolicy, View};
use crate::identity::{self, Identity};
use crate::informers::{InformerHandle, Purpose, Refused};
use crate::kube_access::{self, PluginAccess, Reader};
use crate::plan::{self, Exported, Plan, ReadPlan, SubscriptionPlan};
use crate::provision;
use crate::rbac::Needs;
use crate::regular_file;
use crate::report::{HostEvent, Reporter};
use crate::subscriptions::{self, Following};
use crate::tasks::Criticality;

/// How often it is looked whether the budget has room for what was refused.
const LOOK_FOR_ROOM: Duration = Duration::from_secs(5);

/// How long after a right was lost on the way the way is begun anew.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Why a version of a plugin is not switched to.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("the component {path} cannot be read: {source}")]
    Read { path: String, source: regular_file::Error },
    #[error("the component {path} cannot be used: {source}")]
    Component { path: String, source: component::Error },
    #[error(transparent)]
    Describe(#[from] DescribeError),
    #[error(transparent)]
    Plan(#[from] plan::Error),
    #[error(transparent)]
    Provision(#[from] provision::Error),
    #[error("its reads and indices cannot be set up: {}", said(.0))]
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
    Fresh { plan: Arc<SubscriptionPlan>, handle: InformerHandle, following: Following },
}

// === impl Error ===

impl Error {
    /// What to do about it, where the message does not say so already.
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            Self::Read { source, .. } if source.is_not_found() => Some(
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

    /// Whether it may be that the component is still being written. One that is not there is being replaced where a version
    /// of it serves.
    pub(super) fn may_be_half_written(&self, serves: bool) -> bool {
        match self {
            Self::Read { source, .. } => {
                (serves && source.is_not_found()) || matches!(source, regular_file::Error::Changing)
            }
            Self::Component { source, .. } => matches!(
                source,
                component::Error::Empty
                    | component::Error::NotWasm { .. }
                    | component::Error::Truncated { .. }
                    | component::Error::Compile(_)
            ),
            _ => false,
        }
    }
}

/// What an error of the contract says.
fn said(error: &contract::Error) -> &str {
    match error {
        contract::Error::Throttled(throttled) => &throttled.message,
        contract::Error::NotFound(text)
        | contract::Error::AlreadyExists(text)
        | contract::Error::Conflict(text)
        | contract::Error::Forbidden(text)
        | contract::Error::Invalid(text)
        | contract::Error::Unavailable(text)
        | contract::Error::Timeout(text)
        | contract::Error::Gone(text)
        | contract::Error::NotDeclared(text)
        | contract::Error::NotSynced(text)
        | contract::Error::LimitExceeded(text)
        | contract::Error::Suspended(text) => text,
    }
}

/// Makes a generation of what the file says now.
pub(super) async fn prepare(host: &Host, slot: &Arc<Slot>, file: &PluginFile) -> Result<Prepared, Error> {
    let began = Instant::now();
    let serving = slot.serving.view();
    let number = serving.as_ref().map_or(1, |it| it.number + 1);
    let reporter = host.reporter.about(&slot.name, number);
    let component = compile::compile(host, slot, file, &reporter).await?;
    if is_what_serves(host, slot, file, &component).await {
        return Err(Error::Unchanged);
    }
    let log = Arc::new(GuestLog::new(
        slot.name.clone(),
        number,
        file.limits.log_lines_per_second,
        Arc::new(super::guest_lines::GuestLines(host.reporter.clone())),
    ));
    let config = Arc::new(Value::Object(file.config.clone()));
    let description = describe::describe(host, slot, file, &component, &config, &log).await?;
    let plan = Plan::of(description.clone())?;
    plan.check_against(&host.prunings)?;
    if let Some(provision) = &host.provision {
        let needs = Needs {
            plugin: slot.name.to_string(),
            account: file.service_account.clone(),
            description,
            emits_events: component.imports().iter().any(|it| it.starts_with("oarlock:plugin/events")),
        };
        provision.provision(&needs).await?;
    }
    let maker = NewMaker { component, config, log };
    loop {
        let attempt = attempt(host, slot, file, &plan, &maker, &reporter, number, began);
        match Box::pin(attempt).await? {
            Attempt::Ready(prepared) => return Ok(*prepared),
            // The account or a right has gone meanwhile: what was taken in its name is given back, and waited for.
            Attempt::RightsLost => tokio::time::sleep(LOOK_AGAIN).await,
        }
    }
}

/// Whether the version that serves was made of the same, the account included.
async fn is_what_serves(host: &Host, slot: &Slot, file: &PluginFile, component: &Component) -> bool {
    let Some(MadeOf { file: made_of, digest, uid }) = slot.made_of.lock().clone() else { return false };
    if made_of != *file || digest != component.digest() || slot.has_lost_its_account() {
        return false;
    }
    match host.gate.account(&file.service_account).await {
        Ok(AccountState::Present { uid: now }) => *now == *uid,
        // While there is none there is nothing to make anew.
        Ok(AccountState::Missing) | Err(_) => true,
    }
}

/// What instances are made with, but for what they may reach.
struct NewMaker {
    component: Component,
    config: Arc<Value>,
    log: Arc<GuestLog>,
}

enum Attempt {
    Ready(Box<Prepared>),
    RightsLost,
}

/// Waits for the account and its rights, then for what it may see, and makes a generation that sees it.
#[expect(clippy::too_many_arguments, reason = "one caller, which has them all")]
async fn attempt(
    host: &Host,
    slot: &Arc<Slot>,
    file: &PluginFile,
    plan: &Plan,
    maker: &NewMaker,
    reporter: &Reporter,
    number: u64,
    began: Instant,
) -> Result<Attempt, Error> {
    let Plan { version, stateless, subscriptions, reads, indices } = plan;
    let NewMaker { component, config, log } = maker;
    let account = &file.service_account;
    let serving = slot.serving.view();
    let waiting = Waiting { host, slot, reporter };
    // Nothing is cached on behalf of an account that may not see it.
    let goes_on = |plan: &&Arc<SubscriptionPlan>| {
        // It is open or closed already, and stays so.
        let lends = |it: &Arc<View>| it.identity.account() == account && it.lends(plan, &it.identity);
        serving.as_ref().is_some_and(lends)
    };
    let new: Vec<_> = subscriptions.iter().filter(|it| !goes_on(it)).collect();
    let uid = waiting.rights(account, &new, reads).await;
    let identity = match &serving {
        Some(view) if view.identity.is_of(account, &uid) => view.identity.clone(),
        _ => follow_identity(host, slot, account.clone(), &uid),
    };
    let is_lent = |plan: &SubscriptionPlan| serving.as_ref().is_some_and(|it| it.lends(plan, &identity));
    let of_subscription =
        |plan: &Arc<SubscriptionPlan>| (!is_lent(plan)).then(|| (plan.resource.clone(), plan.content));
    let of_read = |read: &ReadPlan| Some((read.resource.clone(), plan::kept(read.content)));
    let wants: Vec<_> = subscriptions.iter().map(of_subscription).chain(reads.iter().map(of_read)).collect();
    let mut handles = acquire_handles(host, slot, file, &wants).await;
    let handles_of_reads = handles.split_off(subscriptions.len());
    let wanted: Vec<_> = subscriptions
        .iter()
        .cloned()
        .zip(handles)
        .map(|(plan, handle)| {
            let Some(handle) = handle else { return Wanted::GoesOn(plan) };
            let following = subscriptions::follow(
                &host.tasks,
                host.gate.clone(),
                identity.clone(),
                plan.resource.clone(),
                plan.namespaces.clone(),
                format!("access of {} to {}", slot.name, plan.name),
            );
            Wanted::Fresh { plan, handle, following }
        })
        .collect();
    let readers: BTreeMap<_, _> = reads
        .iter()
        .cloned()
        .zip(handles_of_reads)
        .filter_map(|(read, handle)| {
            let ReadPlan { name, resource, namespaces, content } = read;
            Some((name, Reader { target: resource, namespaces, content, handle: handle? }))
        })
        .collect();
    let read_handles: Vec<_> = readers.values().map(|reader| reader.handle.clone()).collect();
    if waiting.caches(&identity, &wanted, &read_handles).await.is_err() {
        return Ok(Attempt::RightsLost);
    }

    let (access, recorder) = PluginAccess::new(kube_access::Parts {
        plugin: slot.name.clone(),
        generation: number,
        identity: identity.clone(),
        client: host.client.clone(),
        gate: host.gate.clone(),
        discovery: host.discovery.clone(),
        readers,
        indices: indices.clone(),
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
            config: config.clone(),
            limits: file.limits.clone(),
            access: Arc::new(access),
            log: log.clone(),
            metrics: host.metrics.guest(&slot.name, &slot.host_bytes),
        },
    });
    let instance = maker.make().await.map_err(Error::Start)?;
    // What was there may have gone meanwhile; from here to the Listeners nothing is awaited.
    if waiting.caches(&identity, &wanted, &read_handles).await.is_err() {
        return Ok(Attempt::RightsLost);
    }
    // The Listeners come last: what they gather while nobody takes it off takes memory.
    let subscriptions = wanted.into_iter().map(|it| open(it, &slot.backlogs)).collect::<Result<_, _>>()?;
    let made_of = MadeOf { file: file.clone(), digest: component.digest(), uid: identity.uid().clone() };
    let generation = Generation {
        number,
        version: version.clone(),
        digest: component.digest().to_string(),
        identity,
        stateless: *stateless,
        exported: Exported {
            handler: component.exports_handler(),
            reconciler: component.exports_reconciler(),
        },
        retry: RetryPolicy {
            tries: file.limits.tries,
            loss_tries: file.limits.loss_tries,
            ..host.dispatch.retry.clone()
        },
        maker,
        instance,
        subscriptions,
        reporter: reporter.clone(),
        began,
        guards: vec![Box::new(recording)],
    };
    Ok(Attempt::Ready(Box::new(Prepared { generation, made_of })))
}

/// Makes the identity of an account, followed for as long as somebody acts as it.
fn follow_identity(host: &Host, slot: &Arc<Slot>, account: Account, uid: &str) -> Identity {
    let (identity, follower) = Identity::new(account.clone(), uid);
    let (gate, reporter, weak) = (host.gate.clone(), host.reporter.clone(), Arc::downgrade(slot));
    let says = move |state| {
        let Some(slot) = weak.upgrade() else { return };
        let waits_for = match state {
            identity::State::Good => Vec::new(),
            identity::State::Missing => vec![wait::no_account(&account)],
            identity::State::Another => {
                slot.again.store(true, Ordering::Release);
                vec![format!(
                    "a fresh start as the ServiceAccount {account}, which was deleted and made again"
                )]
            }
        };
        slot.status.update(|status| status.waits_for.clone_from(&waits_for));
        if !waits_for.is_empty() {
            let generation = slot.serving.view().map_or(1, |it| it.number);
            reporter.about(&slot.name, generation).report(HostEvent::PluginWaiting { waits_for });
        }
    };
    let name = format!("account of {}", slot.name);
    host.tasks.spawn(name, Criticality::Finite, |token| async move {
        tokio::select! {
            biased;
            () = token.cancelled() => {}
            () = follower.run(gate, says) => {}
        }
    });
    identity
}

/// Takes the handles that are wanted, all or none. For as long as the host's budget has no room for one of them the version is refused, and tried
/// again when others may have made room.
async fn acquire_handles(
    host: &Host,
    slot: &Slot,
    file: &PluginFile,
    wants: &[Option<(GroupVersionResource, oarlock_informer::Content)>],
) -> Vec<Option<InformerHandle>> {
    let mut told = None;
    loop {
        let purpose = || Purpose::Plugin(slot.name.clone());
        let handles: Result<Vec<_>, Refused> = wants
            .iter()
            .map(|want| {
                let handle =
                    |(resource, content): &(_, _)| host.informers.acquire(resource, purpose(), *content);
                want.as_ref().map(handle).transpose()
            })
            .collect();
        match handles {
            Ok(handles) => {
                if told.is_some() {
                    slot.status.update(|status| status.refused = None);
                }
                return handles;
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
    let (plan, handle, following) = match wanted {
        Wanted::GoesOn(plan) => return Ok(dispatch::Slot::GoesOn(plan)),
        Wanted::Fresh { plan, handle, following } => (plan, handle, following),
    };
    let stopped = || Error::Stopped { resource: plan.resource.to_string() };
    let informer = handle.informer().ok_or_else(stopped)?;
    let subscription = subscriptions::open(plan.clone(), &informer, following, handle, account.clone())
        .ok_or_else(stopped)?;
    Ok(dispatch::Slot::Open(Box::new(subscription)))
}
