//! Whether the host is ready: whether what *it* needs works.
//!
//! One plugin's resource that is gone, or that its account may not see, is that plugin's trouble, shown at `/plugins` and in the metrics.
//! The host is not ready while it has not looked at its plugins once, while a watch that it needs itself (the
//! namespaces, for the gate) is dead, or while no watch at all gets through.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::informers::{InformerView, Informers};

/// A watch that has been in trouble this long is dead. Below it, it is the ordinary life of a network.
pub const DEAD_AFTER: Duration = Duration::from_secs(30);

/// Knows whether the host is ready. Cheap to clone.
#[derive(Clone)]
pub struct Health {
    plugins_looked_at: Arc<AtomicBool>,
    informers: Informers,
}

// === impl Health ===

impl Health {
    /// Makes one that is not ready yet.
    #[must_use]
    pub(crate) fn new(informers: Informers) -> Self {
        Self { plugins_looked_at: Arc::default(), informers }
    }

    /// Notes that the plugin files have been looked at.
    pub(crate) fn plugins_looked_at(&self) {
        self.plugins_looked_at.store(true, Ordering::Release);
    }

    /// Returns why the host is not ready; nothing when it is.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        reasons(self.plugins_looked_at.load(Ordering::Acquire), &self.informers.views())
    }
}

fn reasons(plugins_looked_at: bool, informers: &[InformerView]) -> Vec<String> {
    let mut reasons = Vec::new();
    if !plugins_looked_at {
        reasons.push("the plugin files have not been looked at yet".to_owned());
    }
    for view in informers.iter().filter(|view| view.needed_by_host) {
        match view.trouble_for {
            Some(trouble) if trouble >= DEAD_AFTER => reasons.push(format!(
                "the watch of {}, which the host needs, has been dead for {} s: {}",
                view.resource,
                trouble.as_secs(),
                view.last_error.as_deref().unwrap_or("no error known"),
            )),
            _ if !view.synced => {
                reasons.push(format!("{}, which the host needs, is not synced", view.resource));
            }
            _ => {}
        }
    }
    let is_cut_off =
        |view: &InformerView| view.unreachable && view.trouble_for.is_some_and(|it| it >= DEAD_AFTER);
    if !informers.is_empty() && informers.iter().all(is_cut_off) {
        reasons.push("no watch gets through to the API server".to_owned());
    }
    reasons
}
