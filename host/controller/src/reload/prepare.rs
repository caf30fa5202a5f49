//! From a plugin's file and the bytes of its component to a generation that is ready to serve.
//!
//! Every step that can fail happens here, while the version before keeps serving: reading, compiling,
//! describing, rights, the first lists, the first instance. For what may come later (a resource, a right, a
//! ServiceAccount) the version waits, and reports what it waits for.

mod compile;
mod describe;
mod error;
mod identity;
mod instance;
mod subscriptions;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use oarlock_plugin::{Component, component::ComponentFile, guest::GuestLog};
use tokio::time::Instant;

pub(super) use self::describe::DescribeLimit;
pub(super) use self::error::Error;
use self::instance::InstanceParts;
use self::subscriptions::{Acquired, PendingSubscription};
use super::plugin_slot::MadeOf;
use super::{Host, PluginSlot};
use crate::access::AccountState;
use crate::config::PluginFile;
use crate::dispatch::{Generation, GenerationView, LaneConfig, MakeInstance};
use crate::generations::{GenerationHandle, Purpose};
use crate::plan::{Exported, Plan, SubscriptionPlan};
use crate::rbac::Needs;
use crate::report::Reporter;
use crate::shadow;
use crate::state_folder::VersionId;
use crate::write_settings::WriteSettings;

/// How long after it lost a right the version waits before it asks for its rights again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// A generation, and what it was made of.
pub(super) struct Prepared {
    pub(super) generation: Generation,
    pub(super) made_of: MadeOf,
    pub(super) component: Component,
    pub(super) id: VersionId,
}

/// Where a version comes from.
pub(super) enum Origin {
    /// The component that the plugin's file names.
    Newest,
    /// The component of a version that served before, whose code is mapped.
    Before(Component),
    /// The component of the last good version.
    LastGood(Vec<u8>),
}

/// A component before and after it is compiled.
enum Fetched {
    Bytes {
        bytes: Vec<u8>,
        /// The file that they were read from, if it did not change meanwhile.
        file: Option<ComponentFile>,
    },
    Compiled(Component),
}

/// One version on its way.
struct Preparation<'a> {
    host: &'a Arc<Host>,
    slot: &'a Arc<PluginSlot>,
    file: &'a Arc<PluginFile>,
    number: u64,
    began: Instant,
    reporter: Reporter,
}

enum Attempt {
    Ready(Box<Prepared>),
    /// The account or a right was removed meanwhile.
    RightsLost,
}

/// Makes a generation of the current file and component.
pub(super) async fn prepare(
    host: &Arc<Host>,
    slot: &Arc<PluginSlot>,
    file: &Arc<PluginFile>,
    origin: Origin,
) -> Result<Prepared, Error> {
    let number = slot.next_number();
    let reporter = host.reporter.about(&slot.name, number);
    let preparation = Preparation { host, slot, file, number, began: Instant::now(), reporter };
    let (fetched, purpose) = match origin {
        Origin::Newest => (preparation.fetch().await?, Purpose::Newest),
        Origin::Before(component) => (Fetched::Compiled(component), Purpose::Before),
        Origin::LastGood(bytes) => (Fetched::Bytes { bytes, file: None }, Purpose::LastGood),
    };
    let progress = slot.generations.begin(purpose);
    let made = preparation.make(fetched, purpose, &progress).await;
    if made.is_err() {
        progress.leave();
    }
    made
}

/// Refuses settings that only a stateless plugin may have.
fn check_stateless(file: &PluginFile, is_stateless: bool) -> Result<(), Error> {
    match () {
        () if is_stateless => Ok(()),
        () if file.concurrency > 1 => Err(Error::HasState { key: "concurrency" }),
        () if file.instances.recycle_after_calls > 0 => {
            Err(Error::HasState { key: "instances.recycleAfterCalls" })
        }
        () if file.instances.recycle_above_memory > 0 => {
            Err(Error::HasState { key: "instances.recycleAboveMemory" })
        }
        () => Ok(()),
    }
}

// === impl Preparation ===

impl Preparation<'_> {
    async fn make(
        &self,
        fetched: Fetched,
        purpose: Purpose,
        progress: &GenerationHandle,
    ) -> Result<Prepared, Error> {
        let (plan, parts) = self.read(fetched, purpose, progress).await?;
        loop {
            match Box::pin(self.attempt(&plan, &parts, progress)).await? {
                Attempt::Ready(prepared) => return Ok(*prepared),
                // Everything that was taken in the account's name is released. The next attempt waits for the
                // rights.
                Attempt::RightsLost => tokio::time::sleep(ASK_AGAIN).await,
            }
        }
    }

    /// Compiles the component, asks it to describe itself, and provides for its rights where the host does
    /// that.
    async fn read(
        &self,
        fetched: Fetched,
        purpose: Purpose,
        progress: &GenerationHandle,
    ) -> Result<(Plan, InstanceParts), Error> {
        let Self { host, slot, file, .. } = self;
        let component = match fetched {
            Fetched::Bytes { bytes, file } => self.compile(bytes, file).await?,
            Fetched::Compiled(component) => component,
        };
        progress.compiled(component.digest().to_string());
        if purpose == Purpose::Newest {
            let id = VersionId::of(component.digest(), file);
            let quarantined = slot.quarantine.lock().as_ref().and_then(|it| it.find(id).cloned());
            quarantined.map_or(Ok(()), |entry| Err(Error::Quarantined(entry)))?;
        }
        if self.is_active_version(&component).await {
            progress.withdraw();
            return Err(Error::Unchanged);
        }
        let log = Arc::new(GuestLog::new(
            slot.name.clone(),
            self.number,
            file.limits.log_lines_per_second,
            Arc::new(super::guest_lines::GuestLines(host.reporter.clone())),
        ));
        let config = file.config.clone();
        let description = self.describe(&component, &config, &log).await?;
        let plan = Plan::of(description.clone())?;
        plan.check_against(&host.prunings)?;
        check_stateless(file, plan.stateless)?;
        // A shadow acts with the rights of its plugin.
        if let Some(provision) = &host.provision
            && shadow::serving_of(&slot.name).is_none()
        {
            let needs = Needs {
                plugin: slot.name.to_string(),
                account: file.service_account.clone(),
                description: description.clone(),
                emits_events: component.imports().iter().any(|it| it.starts_with("oarlock:plugin/events")),
            };
            // On standby the host writes nothing.
            host.dispatch.leadership.led().await;
            provision.provision(&needs).await?;
        }
        progress.checked(plan.version.clone());
        Ok((plan, InstanceParts { component, config, log, description }))
    }

    /// Returns whether the active generation was made of the same, the account included.
    async fn is_active_version(&self, component: &Component) -> bool {
        let Self { host, slot, file, .. } = self;
        let Some(MadeOf { file: made_of, digest, account_uid }) = slot.made_of.lock().clone() else {
            return false;
        };
        if !made_of.is_same_version(file) || digest != component.digest() || slot.has_lost_its_account() {
            return false;
        }
        match host.gate.account(&file.service_account).await {
            Ok(AccountState::Present { uid }) => *uid == *account_uid,
            // Without an account there is no other version to make.
            Ok(AccountState::Missing) | Err(_) => true,
        }
    }

    /// Waits for the account and its rights, then for the caches, and makes a generation.
    ///
    /// The order matters: nothing is cached on behalf of an account that may not see it.
    async fn attempt(
        &self,
        plan: &Plan,
        parts: &InstanceParts,
        progress: &GenerationHandle,
    ) -> Result<Attempt, Error> {
        let Self { host, slot, file, .. } = self;
        let account = &file.service_account;
        let active = slot.active.get();
        let inherits = |plan: &&Arc<SubscriptionPlan>| {
            let can_inherit = |it: &Arc<GenerationView>| {
                it.identity.account() == account && it.can_inherit_listener(plan, &it.identity)
            };
            active.as_ref().is_some_and(can_inherit)
        };
        // An inherited subscription follows its access already, and may be forbidden.
        let new: Vec<_> = plan.subscriptions.iter().filter(|it| !inherits(it)).collect();
        let uid = self.wait_for_rights(account, &new, &plan.reads, progress).await;
        progress.warming();
        let identity = match &active {
            Some(active) if active.identity.is_of(account, &uid) => active.identity.clone(),
            _ => self.follow_identity(account.clone(), &uid),
        };
        let Acquired { subscriptions, readers } = self.acquire(plan, active.as_deref(), &identity).await;
        let read_handles: Vec<_> = readers.values().map(|reader| reader.handle.clone()).collect();
        if self.wait_for_caches(&identity, &subscriptions, &read_handles).await.is_err() {
            return Ok(Attempt::RightsLost);
        }
        let (maker, recording) = self.instance_maker(parts, plan, &identity, readers).await?;
        let starting = {
            let maker = maker.clone();
            async move { maker.make().await }
        };
        let instance = host.tasks.run_guest(&slot.share, starting).await.map_err(Error::Start)?;
        // A right or a cache may be gone by now. From here to the listeners nothing is awaited.
        if self.wait_for_caches(&identity, &subscriptions, &read_handles).await.is_err() {
            return Ok(Attempt::RightsLost);
        }
        // A shadow writes nothing: what it has of its plugin says which writes are known.
        if shadow::serving_of(&slot.name).is_none() {
            slot.own_writes.set_informers(
                plan.subscriptions
                    .iter()
                    .filter(|it| it.ignores_own_writes)
                    .filter_map(|it| Some((it.resource.clone(), host.informers.informer(&it.resource)?))),
            );
        }
        // The listeners come last: their backlogs take memory until the generation serves.
        let open = |it: PendingSubscription| it.open(&slot.backlogs);
        let subscriptions = subscriptions.into_iter().map(open).collect::<Result<_, _>>()?;
        let digest = parts.component.digest();
        self.at_switch(progress, digest.to_string());
        let account_uid = identity.uid().clone();
        let generation = Generation {
            number: self.number,
            version: plan.version.clone(),
            digest: digest.to_string(),
            writes: WriteSettings::of(file, &slot.newest_file),
            identity,
            stateless: plan.stateless,
            exported: Exported {
                handler: parts.component.exports_handler(),
                reconciler: parts.component.exports_reconciler(),
            },
            retry: host.dispatch.retry.of(file),
            health: Arc::default(),
            maker,
            instance,
            lanes: LaneConfig::of(file, plan.stateless),
            subscriptions,
            schedules: plan.schedules.clone(),
            reporter: self.reporter.clone(),
            began: self.began,
            progress: progress.clone(),
            guards: vec![Box::new(recording)],
        };
        let made_of = MadeOf { file: Arc::clone(file), digest, account_uid };
        let component = parts.component.clone();
        let id = VersionId::of(digest, file);
        Ok(Attempt::Ready(Box::new(Prepared { generation, made_of, component, id })))
    }

    /// Has what is said of the version that serves, and its share, changed by the switch alone: this version
    /// may never serve.
    fn at_switch(&self, progress: &GenerationHandle, digest: String) {
        let Self { host, slot, file, .. } = self;
        let (name, share, weight) = (slot.name.clone(), slot.share.clone(), file.weight);
        let shadows = host.shadows.clone();
        progress.at_switch(move || {
            share.set_weight(weight);
            shadows.begin(&name, &digest);
        });
    }
}
