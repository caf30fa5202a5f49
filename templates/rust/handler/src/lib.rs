//! Logs the objects of a resource when they appear, change and go.

use oarlock_sdk::event::{self, Version};
use oarlock_sdk::{
    Added, Deleted, Description, Failure, Handler, Plugin, Subscription, Updated, gvr, info,
};

/// What the plugin keeps between calls: nothing, so `describe` may say that it is stateless.
struct MyPlugin;

impl Plugin for MyPlugin {
    /// Says what the plugin watches. The host asks when it loads the plugin.
    fn describe() -> Result<Description, String> {
        let objects = Subscription::new("objects", gvr("apps", "v1", "deployments"));
        Ok(Description::new("my-plugin", env!("CARGO_PKG_VERSION")).stateless().subscribe(objects))
    }

    fn start() -> Result<Self, Failure> {
        Ok(Self)
    }
}

/// After an error the host calls again with the same object, later.
impl Handler for MyPlugin {
    fn on_add(&mut self, added: &Added) -> Result<(), Failure> {
        // Fields are read by their JSON pointers.
        let created: Option<String> = event::field(Version::New, "/metadata/creationTimestamp")?;
        let created = created.unwrap_or_default();
        info!(
            "added",
            "namespace" = added.object.namespace,
            "name" = added.object.name,
            "created" = created
        );
        Ok(())
    }

    fn on_update(&mut self, updated: &Updated) -> Result<(), Failure> {
        info!("updated", "namespace" = updated.object.namespace, "name" = updated.object.name);
        Ok(())
    }

    fn on_delete(&mut self, deleted: &Deleted) -> Result<(), Failure> {
        info!("deleted", "namespace" = deleted.object.namespace, "name" = deleted.object.name);
        Ok(())
    }
}

oarlock_sdk::export_handler!(MyPlugin);
