//! Explains in one Event why a Pod does not run.
//!
//! The subscription declares the three fields that say so. The host calls the plugin only when one of them
//! changes, and passes their old and new values, so the plugin never reads a Pod.
//!
//! [`diagnosis`]: what is wrong, from the status of a Pod.

#![deny(unsafe_code)]

mod diagnosis;

use oarlock_sdk::events::{self, EventType};
use oarlock_sdk::{
    Added, Description, Failure, Fields, GroupVersionResource, Handler, ObjectRef, Plugin, Subscription,
    Updated, gvr, info,
};
use serde_json::Value;

use diagnosis::Diagnosis;

/// The fields that a diagnosis is made of.
#[derive(Fields)]
struct PodStatus {
    #[field("/status/initContainerStatuses", default)]
    init_containers: Value,
    #[field("/status/containerStatuses", default)]
    containers: Value,
    #[field("/status/conditions", default)]
    conditions: Value,
}

struct PodDoctor;

// === impl PodDoctor ===

impl Plugin for PodDoctor {
    fn describe() -> Result<Description, String> {
        Ok(Description::new("pod-doctor", env!("CARGO_PKG_VERSION"))
            .stateless()
            .subscribe(Subscription::new("pods", pods()).fields::<PodStatus>()))
    }

    fn start() -> Result<Self, Failure> {
        Ok(Self)
    }
}

impl Handler for PodDoctor {
    fn on_add(&mut self, added: &Added) -> Result<(), Failure> {
        explain(&added.object, &Diagnosis::default(), &diagnose(&added.fields()?))
    }

    fn on_update(&mut self, updated: &Updated) -> Result<(), Failure> {
        explain(&updated.object, &diagnose(&updated.old_fields()?), &diagnose(&updated.fields()?))
    }
}

fn pods() -> GroupVersionResource {
    gvr("", "v1", "pods")
}

fn diagnose(PodStatus { init_containers, containers, conditions }: &PodStatus) -> Diagnosis {
    Diagnosis::of(init_containers, containers, conditions)
}

/// Records an Event, if the diagnosis has changed and something is wrong.
fn explain(pod: &ObjectRef, before: &Diagnosis, now: &Diagnosis) -> Result<(), Failure> {
    let Some(reason) = now.reason().filter(|_| now != before) else { return Ok(()) };
    info!("explained", "namespace" = pod.namespace, "name" = pod.name, "reason" = reason);
    Ok(events::record(&pods(), "Pod", pod, EventType::Warning, reason, &now.to_string())?)
}

oarlock_sdk::export_handler!(PodDoctor);

#[cfg(test)]
mod tests {
    use oarlock_sdk::testing::Host;
    use serde_json::json;

    use super::*;

    fn pod(reason: &str, message: &str, restarts: u32) -> Value {
        let state = json!({"waiting": {"reason": reason, "message": message}});
        let status =
            json!([{"name": "web", "image": "nginx:nope", "restartCount": restarts, "state": state}]);
        json!({"metadata": {"namespace": "home", "name": "web"}, "status": {"containerStatuses": status}})
    }

    #[test]
    fn a_problem_is_explained_when_it_appears_and_not_again_while_it_stays() {
        let host = Host::new();
        let mut plugin = host.start::<PodDoctor>();
        plugin.add("pods", &pod("ContainerCreating", "", 0)).unwrap();
        assert_eq!(host.events(), []);

        plugin.update("pods", &pod("ErrImagePull", "nginx:nope: not found", 0)).unwrap();
        plugin.update("pods", &pod("ImagePullBackOff", "nginx:nope: not found", 0)).unwrap();
        let events = host.events();
        assert_eq!(events.len(), 1, "{events:?}");
        let text = events[0].to_string();
        assert!(text.starts_with("Warning ImageNotPulled Pod home/web: container web: the image"), "{text}");

        plugin.update("pods", &pod("CrashLoopBackOff", "back-off", 1)).unwrap();
        plugin.update("pods", &pod("CrashLoopBackOff", "back-off", 2)).unwrap();
        let reasons: Vec<_> = host.events().into_iter().map(|event| event.reason).collect();
        assert_eq!(reasons, ["ImageNotPulled", "CrashLoop"]);
    }

    #[test]
    fn a_pod_without_status_is_well() {
        let host = Host::new();
        host.start::<PodDoctor>().add("pods", &json!({"metadata": {"name": "web"}})).unwrap();
        assert_eq!(host.events(), []);
    }
}
