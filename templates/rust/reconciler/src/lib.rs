//! Reconciles the objects of a resource: compares what is with what should be, and logs it.

use oarlock_sdk::cache::{self, RowExt as _, Select};
use oarlock_sdk::{
    Description, Enqueue, Failure, Outcome, Plugin, Reconciler, Subscription, WorkKey, gvr, info,
};

/// What the plugin keeps between calls: nothing, so `describe` may say that it is stateless.
struct MyPlugin;

impl Plugin for MyPlugin {
    /// Says what the plugin watches and reads. The host asks when it loads the plugin.
    fn describe() -> Result<Description, String> {
        let resource = gvr("apps", "v1", "deployments");
        let objects = Subscription::new("objects", resource.clone()).enqueue(Enqueue::Itself);
        Ok(Description::new("my-plugin", env!("CARGO_PKG_VERSION"))
            .stateless()
            .subscribe(objects)
            .read("objects", resource))
    }

    fn start() -> Result<Self, Failure> {
        Ok(Self)
    }
}

impl Reconciler for MyPlugin {
    /// Is called for an object after it appeared, changed or went. After an error the host calls
    /// again, later.
    fn reconcile(&mut self, key: &WorkKey) -> Result<Outcome, Failure> {
        let object = &key.object;
        let fields = Select::Fields(&["/metadata/creationTimestamp"]);
        let Some(row) = cache::get("objects", object, fields)? else {
            info!("gone", "namespace" = object.namespace, "name" = object.name);
            return Ok(Outcome::Done);
        };
        let created: String = row.field(0)?.unwrap_or_default();
        info!(
            "reconciled",
            "namespace" = object.namespace,
            "name" = object.name,
            "created" = created
        );
        Ok(Outcome::Done)
    }
}

oarlock_sdk::export_reconciler!(MyPlugin);
