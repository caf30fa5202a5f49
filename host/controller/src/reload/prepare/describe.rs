//! Asking a component what it is, and what that costs: a plugin whose `describe` computes for long waits before it is asked again.

use std::sync::Arc;
use std::time::Duration;

use oarlock_plugin::contract::Description;
use oarlock_plugin::{Component, DescribeError, GuestLog};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use crate::config::PluginFile;
use crate::reload::{Host, Slot};

/// A `describe` that computes for less costs nothing worth counting, however often a file changes.
const CHEAP: Duration = Duration::from_secs(1);

/// For each second that it computed a plugin waits so many before it is asked again.
const WAIT: u32 = 4;

/// When a plugin may be asked again what it is.
#[derive(Debug, Default)]
pub(in crate::reload) struct Asked {
    not_before: Mutex<Option<Instant>>,
}

/// Asks a component what it is.
pub(super) async fn describe(
    host: &Host,
    slot: &Slot,
    file: &PluginFile,
    component: &Component,
    config: &Arc<Value>,
    log: &Arc<GuestLog>,
) -> Result<Description, DescribeError> {
    let not_before = *slot.asked.not_before.lock();
    if let Some(not_before) = not_before.filter(|it| *it > Instant::now()) {
        let why = "its turn to describe itself: the last time took it long";
        slot.status.update(|status| status.waits_for = vec![why.to_owned()]);
        tokio::time::sleep_until(not_before).await;
    }
    let mut cost = Cost { host, slot, began: Instant::now(), computed: None };
    let (description, computed) =
        oarlock_plugin::describe_counted(component, config.clone(), file.limits.clone(), log.clone()).await;
    cost.computed = Some(computed);
    description
}

/// What one `describe` costs. Counted when it ends, and when the file changes meanwhile and nobody wants the answer any more.
struct Cost<'a> {
    host: &'a Host,
    slot: &'a Slot,
    began: Instant,
    computed: Option<Duration>,
}

// === impl Cost ===

impl Drop for Cost<'_> {
    fn drop(&mut self) {
        let computed = self.computed.unwrap_or_else(|| self.began.elapsed());
        self.host.metrics.described(&self.slot.name, computed);
        let not_before = (computed >= CHEAP).then(|| Instant::now() + computed * WAIT);
        *self.slot.asked.not_before.lock() = not_before;
    }
}
