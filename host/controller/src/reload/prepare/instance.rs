//! The maker of a new generation's instances: their access to the cluster, and the task that records their
//! Events.

use std::sync::Arc;

use oarlock_plugin::{
    Component, Configuration, InstanceConfig, contract::Description, guest::GuestLog, kube_access::KubeAccess,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Error, Preparation};
use crate::dispatch::Maker;
use crate::identity::Identity;
use crate::kube_access::{self, PluginAccess, Rate, Readers, StartRecording, Waking};
use crate::plan::Plan;
use crate::reload::load;
use crate::write_settings::WriteSettings;

/// The parts of an instance, without its access to the cluster.
pub(super) struct InstanceParts {
    pub(super) component: Component,
    pub(super) config: Configuration,
    pub(super) log: Arc<GuestLog>,
    pub(super) description: Description,
}

// === impl Preparation ===

impl Preparation<'_> {
    /// Creates the maker of the generation's instances, and the guard that ends the recording of its Events.
    pub(super) async fn instance_maker(
        &self,
        parts: &InstanceParts,
        plan: &Plan,
        identity: &Identity,
        readers: Readers,
    ) -> Result<(Arc<Maker>, DropGuard), Error> {
        let Self { host, slot, file, number, .. } = self;
        let recording = CancellationToken::new();
        let access = PluginAccess::new(kube_access::Parts {
            plugin: slot.name.clone(),
            generation: *number,
            identity: identity.clone(),
            client: host.client.clone(),
            gate: host.gate.clone(),
            discovery: host.discovery.clone(),
            readers,
            indices: plan.indices.clone(),
            queue: slot.queue.clone(),
            rate: Rate::of(&file.limits),
            host_bytes: slot.host_bytes.clone(),
            writes: host.metrics.writes(&slot.name),
            leadership: host.dispatch.leadership.clone(),
            own_writes: slot.own_writes.clone(),
            record: self.start_recording(recording.clone()),
            settings: WriteSettings::of(file, &slot.newest_file),
        })
        .map_err(Error::Access)?;
        access.build_indices().await;
        let listers: Arc<[_]> = plan.subscriptions.iter().filter_map(|it| it.wakes.clone()).collect();
        let mut access = KubeAccess::of(Arc::new(access));
        if !listers.is_empty() {
            let sets = slot.queue.read_sets().clone();
            access.cache = Arc::new(Waking::new(access.cache, listers, sets, *number));
        }
        let InstanceParts { component, config, log, description } = parts;
        let secret_config = file.config_version.as_ref().map(|_| config.clone());
        let maker = Maker {
            component: component.clone(),
            config: InstanceConfig {
                config: config.clone(),
                limits: file.limits.clone(),
                access: host.shadows.compare(&slot.name, access),
                log: log.clone(),
                interception: slot
                    .recorder
                    .as_ref()
                    .map(|it| it.generation(*number, component.digest(), description, secret_config))
                    .or_else(|| host.interception.clone()),
                metrics: host.metrics.guest(&slot.name, &slot.host_bytes),
                usage: slot.usage.clone(),
                share: slot.share.clone(),
            },
            is_in_controlled_time: host.dispatch.wall_clock.is_controlled(),
        };
        Ok((Arc::new(maker), recording.drop_guard()))
    }

    /// Returns what starts the recording of the generation's Events, until the token is cancelled.
    fn start_recording(&self, ended: CancellationToken) -> StartRecording {
        let (host, plugin, number) = (self.host.clone(), self.slot.name.clone(), self.number);
        Box::new(move |recorder| {
            let ended = ended.clone();
            let record = |token: CancellationToken| async move {
                tokio::select! {
                    biased;
                    () = token.cancelled() => {}
                    () = recorder.run(ended) => {}
                }
            };
            let (panicked_host, name) = (host.clone(), plugin.clone());
            host.tasks.spawn_contained(format!("events of {plugin}#{number}"), record, move |message| {
                load::report_panic(&panicked_host, &name, "recording its Events", &message);
            });
        })
    }
}
