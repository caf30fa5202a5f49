//! Counts the objects of one resource by namespace.
//!
//! A plugin with state: it keeps what the notifications contained, and a new instance receives every object
//! again.

#![deny(unsafe_code)]

use std::collections::BTreeMap;

use oarlock_sdk::{
    Added, Deleted, Description, Failure, GroupVersionResource, Handler, ObjectRef, Plugin, Subscription,
    Synced, Updated, config, gvr, metrics,
};

struct Census {
    /// Objects by namespace: name and resourceVersion.
    objects: BTreeMap<String, BTreeMap<String, String>>,
}

// === impl Census ===

impl Plugin for Census {
    fn describe() -> Result<Description, String> {
        let objects = Subscription::new("objects", resource()?).metadata_only();
        Ok(Description::new("census", env!("CARGO_PKG_VERSION")).subscribe(objects))
    }

    fn start() -> Result<Self, Failure> {
        Ok(Self { objects: BTreeMap::new() })
    }
}

impl Handler for Census {
    fn on_add(&mut self, added: &Added) -> Result<(), Failure> {
        self.store(&added.object)?;
        added.log(&[("total", &self.total())]);
        Ok(())
    }

    fn on_update(&mut self, updated: &Updated) -> Result<(), Failure> {
        self.store(&updated.object)?;
        updated.log(&[("total", &self.total())]);
        Ok(())
    }

    fn on_delete(&mut self, deleted: &Deleted) -> Result<(), Failure> {
        let object = &deleted.object;
        if let Some(names) = self.objects.get_mut(&object.namespace) {
            names.remove(&object.name);
        }
        self.show(&object.namespace)?;
        deleted.log(&[("total", &self.total())]);
        Ok(())
    }

    fn on_synced(&mut self, synced: &Synced) -> Result<(), Failure> {
        synced.log(&[("total", &self.total())]);
        Ok(())
    }
}

impl Census {
    fn store(&mut self, object: &ObjectRef) -> Result<(), Failure> {
        let names = self.objects.entry(object.namespace.clone()).or_default();
        names.insert(object.name.clone(), object.resource_version.clone());
        self.show(&object.namespace)
    }

    fn total(&self) -> usize {
        self.objects.values().map(BTreeMap::len).sum()
    }

    fn show(&self, namespace: &str) -> Result<(), Failure> {
        let count = self.objects.get(namespace).map_or(0, BTreeMap::len);
        Ok(metrics::set("objects", count as f64, &[("namespace", namespace)])?)
    }
}

/// Returns the resource that the configuration names; the default is Pods.
fn resource() -> Result<GroupVersionResource, oarlock_sdk::Error> {
    let part = |name: &str, or: &str| -> Result<String, oarlock_sdk::Error> {
        Ok(config::get(&format!("/resource/{name}"))?.unwrap_or_else(|| or.to_owned()))
    };
    Ok(gvr(&part("group", "")?, &part("version", "v1")?, &part("plural", "pods")?))
}

oarlock_sdk::export_handler!(Census);

#[cfg(test)]
mod tests {
    use oarlock_sdk::testing::Host;
    use serde_json::{Value, json};

    use super::*;

    fn object(namespace: &str, name: &str) -> Value {
        json!({"metadata": {"namespace": namespace, "name": name}})
    }

    #[test]
    fn the_metric_is_the_number_of_objects_in_each_namespace() {
        let host = Host::new();
        host.configure(json!({"resource": {"group": "apps", "version": "v1", "plural": "deployments"}}));
        let mut plugin = host.start::<Census>();
        for (namespace, name) in [("home", "a"), ("home", "b"), ("away", "a")] {
            plugin.add("objects", &object(namespace, name)).unwrap();
        }
        plugin.update("objects", &object("home", "a")).unwrap();
        plugin.delete("objects", "home", "b").unwrap();
        plugin.delete("objects", "away", "a").unwrap();
        assert_eq!(host.metric("objects", &[("namespace", "home")]), Some(1.0));
        assert_eq!(host.metric("objects", &[("namespace", "away")]), Some(0.0));
    }

    #[test]
    fn a_resource_that_is_no_text_is_refused_with_its_pointer() {
        let host = Host::new();
        host.configure(json!({"resource": {"plural": 7}}));
        let error = Census::describe().unwrap_err();
        assert!(error.starts_with("the value at /resource/plural has an unexpected form"), "{error}");
        drop(host);
    }
}
