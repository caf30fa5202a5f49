//! The names of Events.

use std::sync::atomic::{AtomicI64, Ordering};

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use uuid::Uuid;

/// The longest name of an object.
const LONGEST_NAME: usize = 253;

/// Gives each Event of a recorder a unique time, so that the names are unique.
#[derive(Debug, Default)]
pub(crate) struct Names {
    last: AtomicI64,
}

/// Returns the name of an Event: the name of the object and the time, or a UUID if that is not a valid name
/// (ER-02).
#[must_use]
pub(crate) fn event_name(about: &str, nanoseconds: i128) -> String {
    let name = format!("{about}.{nanoseconds:x}");
    if is_dns_subdomain(&name) { name } else { Uuid::new_v4().to_string() }
}

// === impl Names ===

impl Names {
    /// Returns a unique time, and the name and namespace of an Event about an object at that time.
    pub(crate) fn metadata(&self, regarding: &ObjectReference) -> (Timestamp, ObjectMeta) {
        let now = self.now();
        let about = regarding.name.as_deref().unwrap_or_default();
        // Events about cluster-scoped objects are in the namespace `default`.
        let namespace = regarding.namespace.as_deref().filter(|it| !it.is_empty()).unwrap_or("default");
        let metadata = ObjectMeta {
            name: Some(event_name(about, now.as_nanosecond())),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        };
        (now, metadata)
    }

    /// Returns the current time, or a little later than the last one.
    fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        let nanoseconds = i64::try_from(now.as_nanosecond()).unwrap_or(i64::MAX);
        let later = |last: i64| Some(nanoseconds.max(last.saturating_add(1)));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
        let own = last.ok().and_then(later).unwrap_or(nanoseconds);
        Timestamp::from_nanosecond(own.into()).unwrap_or(now)
    }
}

fn is_dns_subdomain(name: &str) -> bool {
    let is_alphanumeric = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.first().copied().is_some_and(is_alphanumeric)
            && bytes.last().copied().is_some_and(is_alphanumeric)
            && bytes.iter().all(|&it| is_alphanumeric(it) || it == b'-')
    };
    name.len() <= LONGEST_NAME && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Conformance: 48.1
    #[test]
    fn generate_event_name() {
        let nanoseconds = 0x0178_959f_726d_80ec;
        assert_eq!(event_name("test-pod", nanoseconds), "test-pod.178959f726d80ec");
        let long = "a".repeat(254);
        for about in [long.as_str(), "TestPod", "test pod!@#", "--test-pod", ""] {
            let name = event_name(about, nanoseconds);
            assert!(is_dns_subdomain(&name), "{about:?}: {name:?}");
            assert!(Uuid::parse_str(&name).is_ok(), "{about:?}: {name:?}");
        }
        assert_eq!(event_name(&"a".repeat(237), nanoseconds).len(), 253);
        assert!(Uuid::parse_str(&event_name(&"a".repeat(238), nanoseconds)).is_ok());
    }

    #[test]
    fn every_event_has_a_unique_time() {
        let names = Names::default();
        let mut times: Vec<_> = (0..10_000).map(|_| names.now()).collect();
        times.dedup();
        assert_eq!(times.len(), 10_000);
        assert!(times.is_sorted());
    }
}
