//! One resource with at least one user: probed until it is served, then listed and watched.

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
use super::resource_state::{Problem, ProblemKind, ResourceState};
use super::source_controller::SourceController;
use super::view::InformerView;
use super::{InformersShared, Purpose};
use crate::report::HostEvent;

/// The interval at which an informer checks whether a resync of a subscription is due.
const RESYNC_CHECK: Duration = Duration::from_secs(15);

/// One resource of the host's informers.
pub(super) struct ResourceEntry {
    pub(super) resource: GroupVersionResource,
    /// None until the resource is served for the first time.
    pub(super) informer: watch::Sender<Option<SharedInformer>>,
    /// The content that every cached object has at least.
    pub(super) content: watch::Sender<Content>,
    pub(super) state: Mutex<ResourceState>,
    /// Notified when a user is added or removed.
    pub(super) changed: Notify,
}

// === impl ResourceEntry ===

impl ResourceEntry {
    pub(super) fn new(resource: &GroupVersionResource) -> Self {
        Self {
            resource: resource.clone(),
            informer: watch::Sender::new(None),
            content: watch::Sender::new(Content::Metadata),
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Waits until the resource is served, then runs its informer until the token is cancelled.
    pub(super) async fn run(&self, shared: &Arc<InformersShared>, token: CancellationToken) {
        let type_meta = tokio::select! {
            biased;
            () = token.cancelled() => return,
            type_meta = self.wait_until_served(shared) => type_meta,
        };
        let mut config = Config::new(self.resource.clone());
        config.resync_period = RESYNC_CHECK;
        config.reflector.type_meta = Some(type_meta.clone());
        config.reflector.outages = Some(shared.source.outages());
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

    /// Probes the resource until it is served.
    async fn wait_until_served(&self, shared: &InformersShared) -> TypeMeta {
        let mut probe = ResourceProbe::new();
        loop {
            match probe.check(shared, &self.resource).await {
                Probe::Served(type_meta) => {
                    self.clear_problem(shared);
                    return type_meta;
                }
                Probe::Absent { message, hint, .. } => {
                    self.record_problem(shared, ProblemKind::Absent { hint }, message)
                }
                Probe::Unknown { message } => self.record_problem(shared, ProblemKind::Unreachable, message),
            }
            probe.wait().await;
        }
    }

    /// Records a problem, and reports it if it is new.
    pub(super) fn record_problem(&self, shared: &InformersShared, kind: ProblemKind, message: String) {
        let mut state = self.state.lock();
        let before = state.problem.take();
        let since = before.as_ref().map_or_else(Instant::now, |it| it.since);
        state.problem = Some(Problem { since, kind, message: message.clone() });
        // The messages of network errors differ from try to try. Each message of an absent resource needs
        // another fix.
        let is_known =
            before.is_some_and(|it| it.kind == kind && (!kind.is_absent() || it.message == message));
        let wanted_by = state.wanted_by();
        drop(state);
        if is_known {
            return;
        }
        let resource = self.resource.to_string();
        shared.reporter.report(match kind {
            ProblemKind::Absent { hint } => HostEvent::ResourceAbsent { resource, message, hint, wanted_by },
            ProblemKind::Forbidden => HostEvent::ResourceForbidden {
                resource,
                message,
                hint: "grant the host's own account what `oarlock rbac` prints for it".to_owned(),
            },
            ProblemKind::Unreachable => HostEvent::WatchTrouble { resource, message },
        });
    }

    /// Clears the problem, and reports that if there was one.
    pub(super) fn clear_problem(&self, shared: &InformersShared) {
        let Some(problem) = self.state.lock().problem.take() else { return };
        let resource = self.resource.to_string();
        shared.reporter.report(match problem.kind {
            ProblemKind::Absent { .. } => HostEvent::ResourceServed { resource },
            ProblemKind::Forbidden | ProblemKind::Unreachable => HostEvent::WatchRecovered { resource },
        });
    }

    /// Records that the budget has no room for the wanted content, and reports it if it is new.
    pub(super) fn record_over_budget(&self, shared: &InformersShared, excess: &Excess) {
        shared.ledger.count_refusal();
        let mut state = self.state.lock();
        let message = excess.to_string();
        let hint = excess.hint();
        let was_known = state.over_budget.replace(format!("{message}. Fix: {hint}")).is_some();
        let wanted_by = state.wanted_by();
        drop(state);
        if !was_known {
            let resource = self.resource.to_string();
            shared.reporter.report(HostEvent::ResourceOverBudget { resource, message, hint, wanted_by });
        }
    }

    /// Clears [`Self::record_over_budget`], and reports that if it was recorded.
    pub(super) fn clear_over_budget(&self, shared: &InformersShared) {
        if self.state.lock().over_budget.take().is_some() {
            shared.reporter.report(HostEvent::ResourceWithinBudget { resource: self.resource.to_string() });
        }
    }

    /// Returns the usage of the informer.
    pub(super) fn usage(&self) -> Usage {
        let status = self.informer.borrow().as_ref().map(SharedInformer::status);
        let (objects, bytes) = status.map_or((0, 0), |status| (status.objects, status.memory.total()));
        Usage { informers: 1, objects, bytes }
    }

    pub(super) fn view(&self) -> InformerView {
        let informer = self.informer.borrow().clone();
        let content = *self.content.borrow();
        InformerView::of(&self.resource, informer.as_ref(), &self.state.lock(), content)
    }

    /// Adds a user; returns its id.
    pub(super) fn add_user(&self, purpose: Purpose, content: Content) -> u64 {
        let id = self.state.lock().add_user(purpose, content);
        self.changed.notify_one();
        id
    }
}
