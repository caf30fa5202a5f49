//! Logs the objects of a resource when they appear, change and go.

use oarlock_sdk::event::{self, Version};
use oarlock_sdk::{
    Added, Deleted, Description, Failure, Fields, Handler, Plugin, Subscription, Updated, gvr, info,
};

/// The part of an object that the plugin reads, by JSON pointers. With
/// `Subscription::fields::<Seen>()` the host would call only when one of these fields changes.
#[derive(Fields)]
struct Seen {
    #[field("/metadata/creationTimestamp", default)]
    created: String,
}

/// What the plugin keeps between calls: nothing, so `describe` may say that it is stateless.
struct MyPlugin;

impl Plugin for MyPlugin {
    /// Says what the plugin watches. The host asks when it loads the plugin.
    fn describe() -> Result<Description, String> {
        let objects = Subscription::new("objects", gvr("apps", "v1", "deployments"));
        Ok(Description::new("my-plugin", env!("CARGO_PKG_VERSION"))
            .stateless()
            .subscribe(objects))
    }

    fn start() -> Result<Self, Failure> {
        Ok(Self)
    }
}

/// After an error the host calls again with the same object, later.
impl Handler for MyPlugin {
    fn on_add(&mut self, added: &Added) -> Result<(), Failure> {
        let object = &added.object;
        let Seen { created } = event::fields(Version::New)?;
        info!(
            "added",
            "namespace" = object.namespace,
            "name" = object.name,
            "created" = created
        );
        Ok(())
    }

    fn on_update(&mut self, updated: &Updated) -> Result<(), Failure> {
        info!(
            "updated",
            "namespace" = updated.object.namespace,
            "name" = updated.object.name
        );
        Ok(())
    }

    fn on_delete(&mut self, deleted: &Deleted) -> Result<(), Failure> {
        info!(
            "deleted",
            "namespace" = deleted.object.namespace,
            "name" = deleted.object.name
        );
        Ok(())
    }
}

oarlock_sdk::export_handler!(MyPlugin);

#[cfg(test)]
mod tests {
    use oarlock_sdk::testing::Host;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_change_is_logged() {
        let host = Host::new();
        let mut plugin = host.start::<MyPlugin>();
        let created = "2026-01-01T00:00:00Z";
        let metadata = json!({"namespace": "home", "name": "web", "creationTimestamp": created});
        plugin
            .add("objects", &json!({"metadata": metadata}))
            .unwrap();
        plugin
            .update("objects", &json!({"metadata": metadata, "spec": {}}))
            .unwrap();
        plugin.delete("objects", "home", "web").unwrap();
        let lines: Vec<_> = host.logs().iter().map(ToString::to_string).collect();
        let added = "info added namespace=home name=web created=2026-01-01T00:00:00Z";
        assert_eq!(
            lines,
            [
                added,
                "info updated namespace=home name=web",
                "info deleted namespace=home name=web"
            ]
        );
    }
}
