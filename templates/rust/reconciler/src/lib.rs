//! Reconciles the objects of a resource: compares what is with what should be, and logs it.

use oarlock_sdk::{
    Description, Enqueue, Failure, Fields, Lister, Outcome, Plugin, Reconciler, Subscription,
    WorkKey, info,
};

/// Reads the objects from the host's cache.
const OBJECTS: Lister = Lister::new("objects", "apps", "v1", "deployments");

/// The part of an object that the plugin reads, by JSON pointers.
#[derive(Fields)]
struct Seen {
    #[field("/metadata/creationTimestamp", default)]
    created: String,
}

/// What the plugin keeps between calls: nothing, so `describe` may say that it is stateless.
struct MyPlugin;

impl Plugin for MyPlugin {
    /// Says what the plugin watches and reads. The host asks when it loads the plugin.
    fn describe() -> Result<Description, String> {
        let objects = Subscription::new("objects", OBJECTS.gvr()).enqueue(Enqueue::Itself);
        Ok(Description::new("my-plugin", env!("CARGO_PKG_VERSION"))
            .stateless()
            .subscribe(objects)
            .read(OBJECTS))
    }

    fn start() -> Result<Self, Failure> {
        Ok(Self)
    }
}

impl Reconciler for MyPlugin {
    /// Is called for an object after it appeared, changed or went. After an error the host calls
    /// again, later.
    fn reconcile(&mut self, key: &WorkKey) -> Result<Outcome, Failure> {
        let at = &key.object;
        let Some(Seen { created }) = OBJECTS.get(at)? else {
            info!("gone", "namespace" = at.namespace, "name" = at.name);
            return Ok(Outcome::Done);
        };
        info!(
            "reconciled",
            "namespace" = at.namespace,
            "name" = at.name,
            "created" = created
        );
        Ok(Outcome::Done)
    }
}

oarlock_sdk::export_reconciler!(MyPlugin);

#[cfg(test)]
mod tests {
    use oarlock_sdk::testing::Host;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_reconciled_while_it_exists() {
        let host = Host::new();
        let mut plugin = host.start::<MyPlugin>();
        let created = "2026-01-01T00:00:00Z";
        let metadata = json!({"namespace": "home", "name": "web", "creationTimestamp": created});
        host.insert(&OBJECTS.gvr(), &json!({"metadata": metadata}));
        for name in ["web", "other"] {
            assert_eq!(plugin.reconcile("objects", "home", name), Ok(Outcome::Done));
        }
        let lines: Vec<_> = host.logs().iter().map(ToString::to_string).collect();
        let reconciled = "info reconciled namespace=home name=web created=2026-01-01T00:00:00Z";
        assert_eq!(lines, [reconciled, "info gone namespace=home name=other"]);
    }
}
