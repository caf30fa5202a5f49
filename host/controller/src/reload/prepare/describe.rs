//! Asks a component to describe itself. A plugin whose `describe` computes for long waits before it is asked
//! again.

use std::sync::Arc;
use std::time::Duration;

use oarlock_plugin::contract::Description;
use oarlock_plugin::{Component, Configuration, describe::DescribeError, guest::GuestLog};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Preparation;
use crate::reload::{Host, PluginSlot};

/// A shorter `describe` does not delay the next one, however often a file changes.
const CHEAP: Duration = Duration::from_secs(1);

/// For each second that its `describe` computed, the plugin waits for so many.
const WAIT_FACTOR: u32 = 4;

/// When a plugin may be asked to describe itself again.
#[derive(Debug, Default)]
pub(in crate::reload) struct DescribeLimit {
    not_before: Mutex<Option<Instant>>,
}

/// Counts the cost of one `describe` when it is dropped: when the call ends, and when the file changes
/// meanwhile, so that the call is cancelled.
struct DescribeCost<'a> {
    host: &'a Host,
    slot: &'a PluginSlot,
    began: Instant,
    computed: Option<Duration>,
}

// === impl Preparation ===

impl Preparation<'_> {
    /// Asks the component to describe itself.
    pub(super) async fn describe(
        &self,
        component: &Component,
        config: &Configuration,
        log: &Arc<GuestLog>,
    ) -> Result<Description, DescribeError> {
        let Self { host, slot, file, .. } = self;
        let not_before = *slot.describe_limit.not_before.lock();
        if let Some(not_before) = not_before.filter(|it| *it > Instant::now()) {
            let why = "its next `describe`: the last one took long";
            slot.status.update(|status| status.waits_for = vec![why.to_owned()]);
            tokio::time::sleep_until(not_before).await;
        }
        let mut cost = DescribeCost { host, slot, began: Instant::now(), computed: None };
        let (description, computed) = oarlock_plugin::describe::describe_counted(
            component,
            config.clone(),
            file.limits.clone(),
            log.clone(),
        )
        .await;
        cost.computed = Some(computed);
        description
    }
}

// === impl DescribeCost ===

impl Drop for DescribeCost<'_> {
    fn drop(&mut self) {
        let computed = self.computed.unwrap_or_else(|| self.began.elapsed());
        self.host.metrics.described(&self.slot.name, computed);
        let not_before = (computed >= CHEAP).then(|| Instant::now() + computed * WAIT_FACTOR);
        *self.slot.describe_limit.not_before.lock() = not_before;
    }
}
