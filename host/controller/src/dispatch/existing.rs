//! The command that has every existing object delivered again, as if the declaration of its subscription had
//! changed: for a stateless plugin that is to treat objects differently which do not change.
//!
//! The chains begin again, as they do for a fresh instance of a plugin with state, which gets one here too.

use oarlock_informer::listener::Replayed;
use serde::Serialize;

use super::Dispatcher;
use super::active_generation::ActiveGeneration;
use super::commands::RedeliverError;
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
        active.reporter.report(HostEvent::ExistingDelivered {
            subscription: subscription.map(str::to_owned),
            objects: existing.iter().map(|it| it.objects as u64).sum(),
        });
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
        // As at a switch to another version, what was parked for its losses gets one more try.
        self.crash_backoff.release_parked(&self.retry);
        if !self.is_stateless {
            // What the instance knows, it would receive a second time.
            self.lanes.replace_instances();
        }
        let mut existing = Vec::new();
        for (index, it) in self.subscriptions.iter_mut().enumerate() {
            if it.plan.wakes.is_some() || subscription.is_some_and(|chosen| it.plan.name != chosen) {
                continue;
            }
            // They are checked again among all other objects.
            self.crash_backoff.forget_waiting(|key| key.subscription() == Some(index));
            let Replayed { n_objects, is_exact } = it.deliver_existing();
            existing.push(ExistingOf { name: it.plan.name.clone(), objects: n_objects, at_most: !is_exact });
        }
        Ok(existing)
    }
}
