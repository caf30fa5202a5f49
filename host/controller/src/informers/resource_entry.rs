//! One resource that somebody wants: found, listed and watched for as long as somebody does.

use std::sync::Arc;
use std::time::Duration;

use oarlock_informer::shared_informer::Config;
use oarlock_informer::{
    GroupVersionResource, SharedInformer,
    object::{Content, TypeMeta},
};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::budget::{Excess, Usage};
use super::resource_probe::{Probe, ResourceProbe};
use super::resource_state::{ResourceState, Trouble, TroubleKind};
use super::source_controller::SourceController;
use super::view::InformerView;
use super::{InformersShared, Purpose};
use crate::report::HostEvent;

/// How finely resyncs are timed: how often an informer looks whether a subscription's is due.
const RESYNC_CHECK: Duration = Duration::from_secs(15);

pub(super) struct ResourceEntry {
    pub(super) resource: GroupVersionResource,
    pub(super) informer: watch::Sender<Option<SharedInformer>>,
    /// How much of each object the cache holds at least.
    pub(super) held: watch::Sender<Content>,
    pub(super) state: Mutex<ResourceState>,
    /// Users came or went.
    pub(super) changed: Notify,
}

// === impl ResourceEntry ===

impl ResourceEntry {
    pub(super) fn new(resource: &GroupVersionResource) -> Self {
        Self {
            resource: resource.clone(),
            informer: watch::Sender::new(None),
            held: watch::Sender::new(Content::Metadata),
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    pub(super) async fn run(&self, shared: &Arc<InformersShared>, token: CancellationToken) {
        let type_meta = tokio::select! {
            biased;
            () = token.cancelled() => return,
            type_meta = self.find(shared) => type_meta,
        };
        let mut config = Config::new(self.resource.clone());
        config.resync_period = RESYNC_CHECK;
        config.reflector.type_meta = Some(type_meta.clone());
        config.reflector.consistency_check = shared.source.consistency_check();
        let (source_controller, list_watch) = SourceController::new(self, shared, type_meta);
        let informer = SharedInformer::new(list_watch, config);
        self.informer.send_replace(Some(informer.clone()));
        tokio::select! {
            biased;
            () = informer.run(token.clone()) => {}
            () = source_controller.run(informer.clone()) => {}
        }
    }

    /// Looks for the resource until it is served.
    async fn find(&self, shared: &InformersShared) -> TypeMeta {
        let mut probe = ResourceProbe::new();
        loop {
            match probe.check(shared, &self.resource).await {
                Probe::Served(type_meta) => {
                    self.recovered(shared);
                    return type_meta;
                }
                Probe::Absent { message, .. } => self.in_trouble(shared, TroubleKind::Absent, message),
                Probe::Unknown { message } => self.in_trouble(shared, TroubleKind::Unreachable, message),
            }
            probe.wait().await;
        }
    }

    /// Notes that something is wrong, and says so if it was not known.
    pub(super) fn in_trouble(&self, shared: &InformersShared, kind: TroubleKind, message: String) {
        let mut state = self.state.lock();
        let before = state.trouble.take();
        let since = before.as_ref().map_or_else(Instant::now, |it| it.since);
        state.trouble = Some(Trouble { since, kind, message: message.clone() });
        // A network has many ways to fail; of the others each says something else to do.
        let is_known = before
            .is_some_and(|it| it.kind == kind && (kind != TroubleKind::Absent || it.message == message));
        let wanted_by = state.wanted_by();
        drop(state);
        if is_known {
            return;
        }
        let resource = self.resource.to_string();
        shared.reporter.report(match kind {
            TroubleKind::Absent => HostEvent::ResourceAbsent { resource, message, wanted_by },
            TroubleKind::Forbidden => HostEvent::ResourceForbidden {
                resource,
                message,
                hint: "grant the host's own account what `oarlock rbac` prints for it".to_owned(),
            },
            TroubleKind::Unreachable => HostEvent::WatchTrouble { resource, message },
        });
    }

    pub(super) fn recovered(&self, shared: &InformersShared) {
        let Some(trouble) = self.state.lock().trouble.take() else { return };
        let resource = self.resource.to_string();
        shared.reporter.report(match trouble.kind {
            TroubleKind::Absent => HostEvent::ResourceServed { resource },
            TroubleKind::Forbidden | TroubleKind::Unreachable => HostEvent::WatchRecovered { resource },
        });
    }

    /// Notes that the budget has no room for what is wanted, and says so if it was not known.
    pub(super) fn is_over_budget(&self, shared: &InformersShared, excess: &Excess) {
        shared.ledger.refuse();
        let mut state = self.state.lock();
        let message = excess.to_string();
        let hint = excess.hint();
        let was_known = state.over_budget.replace(format!("{message}; {hint}")).is_some();
        let wanted_by = state.wanted_by();
        drop(state);
        if !was_known {
            let resource = self.resource.to_string();
            shared.reporter.report(HostEvent::ResourceOverBudget { resource, message, hint, wanted_by });
        }
    }

    /// Everything that is wanted is held.
    pub(super) fn is_within_budget(&self, shared: &InformersShared) {
        if self.state.lock().over_budget.take().is_some() {
            shared.reporter.report(HostEvent::ResourceWithinBudget { resource: self.resource.to_string() });
        }
    }

    /// What its cache takes up.
    pub(super) fn usage(&self) -> Usage {
        let status = self.informer.borrow().as_ref().map(SharedInformer::status);
        let (objects, bytes) = status.map_or((0, 0), |status| (status.objects, status.memory.total()));
        Usage { informers: 1, objects, bytes }
    }

    pub(super) fn view(&self) -> InformerView {
        let informer = self.informer.borrow().clone();
        let held = *self.held.borrow();
        InformerView::of(&self.resource, informer.as_ref(), &self.state.lock(), held)
    }

    /// Adds a user; answers its number.
    pub(super) fn enter(&self, purpose: Purpose, content: Content) -> u64 {
        let id = self.state.lock().enter(purpose, content);
        self.changed.notify_one();
        id
    }
}
