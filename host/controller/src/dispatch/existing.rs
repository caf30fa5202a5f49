//! The command that has every existing object delivered again, as if the declaration of its subscription had
//! changed: for a stateless plugin that is to treat objects differently which do not change.
//!
//! The chains begin again, as they do for a fresh instance of a plugin with state, which gets one here too.

use oarlock_informer::listener::Replayed;
use serde::Serialize;

use super::Dispatcher;
use super::active_generation::{ActiveGeneration, DeliveryState};
use super::commands::RedeliverError;
use super::due_call::CallKey;
use crate::report::HostEvent;

/// How many objects a subscription delivers again.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ExistingOf {
    pub(crate) name: String,
    pub(crate) objects: usize,
    /// There may be fewer: the selection of the subscription is still applied to them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) at_most: bool,
    /// The account may not watch them: none is delivered.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) forbidden: bool,
    /// Whether the account may watch them is unknown: they wait.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) paused: bool,
}

// === impl ExistingOf ===

impl ExistingOf {
    /// Returns how many objects all these subscriptions deliver again, and whether there may be fewer.
    pub(crate) fn total(existing: &[Self]) -> (u64, bool) {
        let objects = existing.iter().map(|it| it.objects as u64).sum();
        (objects, existing.iter().any(|it| it.at_most))
    }
}

// === impl Dispatcher ===

impl Dispatcher {
    /// Delivers every existing object again, of one subscription or of all.
    pub(super) fn deliver_existing(
        &self,
        active: Option<&mut ActiveGeneration>,
        subscription: Option<&str>,
    ) -> Result<Vec<ExistingOf>, RedeliverError> {
        let active = active.ok_or(RedeliverError::NotServing)?;
        if self.is_suspended() {
            return Err(RedeliverError::Suspended);
        }
        let existing = active.deliver_existing(subscription)?;
        self.status.update(|status| {
            for (shown, subscription) in status.subscriptions.iter_mut().zip(&active.subscriptions) {
                shown.synced = subscription.is_synced();
            }
        });
        let (objects, at_most) = ExistingOf::total(&existing);
        let subscription = subscription.map(str::to_owned);
        active.reporter.report(HostEvent::ExistingDelivered { subscription, objects, at_most });
        Ok(existing)
    }
}

// === impl ActiveGeneration ===

impl ActiveGeneration {
    fn deliver_existing(&mut self, subscription: Option<&str>) -> Result<Vec<ExistingOf>, RedeliverError> {
        // Without those of listers that wake, which the plugin does not declare.
        let declared = self.subscriptions.iter().filter(|it| it.plan.wakes.is_none());
        let names: Vec<_> = declared.map(|it| it.plan.name.clone()).collect();
        match subscription {
            _ if names.is_empty() => return Err(RedeliverError::NoSubscription),
            Some(chosen) if !names.iter().any(|name| name == chosen) => {
                return Err(RedeliverError::UnknownSubscription(names));
            }
            Some(_) if !self.is_stateless && names.len() > 1 => return Err(RedeliverError::KeepsState),
            _ => {}
        }
        if !self.is_stateless {
            // What the instance knows, it would receive a second time.
            self.lanes.replace_instances();
        }
        let mut existing = Vec::new();
        for (index, it) in self.subscriptions.iter_mut().enumerate() {
            if it.plan.wakes.is_some() || subscription.is_some_and(|chosen| it.plan.name != chosen) {
                continue;
            }
            // As at a switch to another version, what was parked for its losses gets one more try.
            self.crash_backoff.release_those(|key| match key {
                CallKey::Object(of, _) | CallKey::Synced(of) => *of == index,
                CallKey::Work(key) => it.plan.enqueue.has_kind(&key.kind),
            });
            // They are checked again among all other objects.
            self.crash_backoff.forget_waiting(|key| key.subscription() == Some(index));
            let Replayed { n_objects, is_exact } = it.deliver_existing();
            existing.push(ExistingOf {
                name: it.plan.name.clone(),
                objects: n_objects,
                at_most: !is_exact,
                forbidden: it.state == DeliveryState::Forbidden,
                paused: it.state == DeliveryState::Closed,
            });
        }
        Ok(existing)
    }
}
