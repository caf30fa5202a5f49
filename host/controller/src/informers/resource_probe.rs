//! Probes by discovery whether the API server serves a resource.

use std::time::Duration;

use oarlock_informer::{GroupVersionResource, object::TypeMeta};
use tokio::time::Instant;

use super::InformersShared;

/// The first wait between two probes. It doubles up to [`LONGEST_WAIT`].
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// After no version of its group has served a resource for this long, its objects count as deleted. A
/// CustomResourceDefinition that is deleted and created again is back sooner.
const GONE_AFTER: Duration = Duration::from_secs(10);

/// Probes one resource until it is served.
pub(super) struct ResourceProbe {
    /// Since when no version has served it.
    gone_since: Option<Instant>,
    wait: Duration,
}

/// The result of one probe.
pub(super) enum Probe {
    /// The resource is served.
    Served(TypeMeta),
    /// The resource is not served in this version.
    Absent {
        message: String,
        /// What the operator can do.
        hint: &'static str,
        /// Whether no version has served it for so long that its objects count as deleted.
        is_gone: bool,
    },
    /// Discovery failed.
    Unknown { message: String },
}

// === impl ResourceProbe ===

impl ResourceProbe {
    pub(super) fn new() -> Self {
        Self { gone_since: None, wait: FIRST_WAIT }
    }

    pub(super) async fn check(&mut self, shared: &InformersShared, resource: &GroupVersionResource) -> Probe {
        match shared.source.type_of(resource).await {
            Ok(Some(type_meta)) => return Probe::Served(type_meta),
            Ok(None) => {}
            Err(message) => return Probe::Unknown { message },
        }
        match shared.source.other_versions(resource).await {
            Ok(versions) if versions.is_empty() => {
                let gone_since = *self.gone_since.get_or_insert_with(Instant::now);
                let similar = shared.source.similar(resource);
                let meant = similar.map(|it| format!(" (did you mean {it}?)")).unwrap_or_default();
                let message = format!("the API server does not serve it{meant}");
                let is_gone = gone_since.elapsed() >= GONE_AFTER;
                let hint = "apply the CustomResourceDefinition, or correct the resource in the plugin";
                Probe::Absent { message, hint, is_gone }
            }
            Ok(versions) => {
                self.gone_since = None;
                let message =
                    format!("the API server does not serve this version, but {}", versions.join(", "));
                let hint = "declare one of these versions in the plugin";
                Probe::Absent { message, hint, is_gone: false }
            }
            Err(message) => Probe::Unknown { message },
        }
    }

    /// Waits until the next probe is due.
    pub(super) async fn wait(&mut self) {
        tokio::time::sleep(self.wait).await;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
    }
}
