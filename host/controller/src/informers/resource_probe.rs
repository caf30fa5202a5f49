//! Looking for a resource that is not served.

use std::time::Duration;

use oarlock_informer::{GroupVersionResource, object::TypeMeta};
use tokio::time::Instant;

use super::InformersShared;

/// The wait before a resource that is not served is looked for again; doubles up to [`LOOK_AT_MOST`].
const LOOK_FIRST: Duration = Duration::from_millis(500);
const LOOK_AT_MOST: Duration = Duration::from_secs(5);

/// A resource that no version of its group has had for this long is gone, and so are its objects. One that is deleted and created anew
/// is back sooner.
const GONE_AFTER: Duration = Duration::from_secs(10);

/// How long a resource has been looked for.
pub(super) struct ResourceProbe {
    /// Since when nothing of it has been served in any version.
    gone_since: Option<Instant>,
    wait: Duration,
}

/// What was found.
pub(super) enum Probe {
    Served(TypeMeta),
    Absent {
        message: String,
        /// Its objects are gone too, seen from wherever.
        is_gone: bool,
    },
    /// The API server cannot say.
    Unknown {
        message: String,
    },
}

// === impl ResourceProbe ===

impl ResourceProbe {
    pub(super) fn new() -> Self {
        Self { gone_since: None, wait: LOOK_FIRST }
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
                let message = "the API server does not serve it (yet)".to_owned();
                Probe::Absent { message, is_gone: gone_since.elapsed() >= GONE_AFTER }
            }
            Ok(versions) => {
                self.gone_since = None;
                let message = format!(
                    "the API server does not serve it in this version, but as {}: the plugin has to ask for one of these",
                    versions.join(", ")
                );
                Probe::Absent { message, is_gone: false }
            }
            Err(message) => Probe::Unknown { message },
        }
    }

    /// Waits until it is time for another look.
    pub(super) async fn wait(&mut self) {
        tokio::time::sleep(self.wait).await;
        self.wait = (self.wait * 2).min(LOOK_AT_MOST);
    }
}
