//! A plugin that a unit test calls.

use serde::Serialize;
use serde_json::Value;

use super::cluster::key_of;
use super::host::{Host, notified, to_value};
use crate::export::__private::{handler, metadata};
use crate::{Failure, Handler, ObjectKey, ObjectRef, Outcome, Plugin, Reconciler, key, work_key};

/// A plugin that was started. Each method changes the cluster and calls the plugin once.
pub struct Instance<P> {
    /// The plugin's state.
    pub plugin: P,
    host: Host,
}

/// The object of the notification in progress.
pub(super) struct Current {
    pub(super) old: Option<Value>,
    pub(super) new: Option<Value>,
}

// === impl Instance ===

impl<P: Plugin> Instance<P> {
    pub(super) fn new(host: Host, plugin: P) -> Self {
        Self { plugin, host }
    }

    /// Returns a subscription that the plugin declares.
    fn subscription(&self, name: &str) -> metadata::Subscription {
        self.host.with(|state| {
            let declared = state.description.iter().flat_map(|description| &description.subscriptions);
            let found = declared.clone().find(|subscription| subscription.name == name).cloned();
            found.unwrap_or_else(|| {
                let names: Vec<_> = declared.map(|subscription| &*subscription.name).collect();
                panic!("the plugin declares no subscription {name}; it declares {}", names.join(", "))
            })
        })
    }
}

impl<P: Handler> Instance<P> {
    /// Creates an object, and calls [`Handler::on_add`].
    ///
    /// # Errors
    ///
    /// Those of the handler.
    ///
    /// # Panics
    ///
    /// When the plugin declares no such subscription.
    pub fn add(&mut self, subscription: &str, object: &impl Serialize) -> Result<(), Failure> {
        self.added(subscription, object, false)
    }

    /// As [`add`](Self::add), for an object that existed when the plugin started.
    ///
    /// # Errors
    ///
    /// Those of the handler.
    pub fn add_initial(&mut self, subscription: &str, object: &impl Serialize) -> Result<(), Failure> {
        self.added(subscription, object, true)
    }

    fn added(&mut self, name: &str, object: &impl Serialize, is_initial: bool) -> Result<(), Failure> {
        let declared = self.subscription(name);
        let id = self.host.insert(&declared.target, object);
        let new = self.stored(&declared, &id);
        let (object, fields) = notified(&new, &declared.fields);
        let subscription = name.to_owned();
        let added = handler::Added { subscription, object, is_in_initial_list: is_initial, fields };
        self.call(None, Some(new), |plugin| plugin.on_add(&added.into()))
    }

    /// Replaces an object that exists, and calls [`Handler::on_update`].
    ///
    /// # Errors
    ///
    /// Those of the handler.
    ///
    /// # Panics
    ///
    /// When the plugin declares no such subscription, or there is no such object.
    pub fn update(&mut self, subscription: &str, object: &impl Serialize) -> Result<(), Failure> {
        let declared = self.subscription(subscription);
        let new = to_value(object);
        let old = self.existing(&declared, &key_of(&new));
        let id = self.host.insert(&declared.target, &new);
        let new = self.stored(&declared, &id);
        let (object, fields) = notified(&new, &declared.fields);
        let (old_object, old_fields) = notified(&old, &declared.fields);
        let updated = handler::Updated {
            subscription: subscription.to_owned(),
            old_resource_version: old_object.resource_version,
            old_uid: (old_object.uid != object.uid).then_some(old_object.uid),
            object,
            fields,
            old_fields,
        };
        self.call(Some(old), Some(new), |plugin| plugin.on_update(&updated.into()))
    }

    /// Deletes an object that exists, and calls [`Handler::on_delete`].
    ///
    /// # Errors
    ///
    /// Those of the handler.
    ///
    /// # Panics
    ///
    /// When the plugin declares no such subscription, or there is no such object.
    pub fn delete(&mut self, subscription: &str, namespace: &str, name: &str) -> Result<(), Failure> {
        let declared = self.subscription(subscription);
        let old = self.existing(&declared, &key(namespace, name));
        self.host.remove(&declared.target, &key(namespace, name));
        let (object, fields) = notified(&old, &declared.fields);
        let subscription = subscription.to_owned();
        let deleted = handler::Deleted { subscription, object, final_state_unknown: false, fields };
        self.call(Some(old), None, |plugin| plugin.on_delete(&deleted.into()))
    }

    /// Calls [`Handler::on_synced`]: so many subscriptions have not synced yet.
    ///
    /// # Errors
    ///
    /// Those of the handler.
    pub fn synced(&mut self, subscription: &str, remaining: u32) -> Result<(), Failure> {
        let synced = handler::Synced { subscription: self.subscription(subscription).name, remaining };
        self.call(None, None, |plugin| plugin.on_synced(&synced.into()))
    }

    fn call<R>(&mut self, old: Option<Value>, new: Option<Value>, call: impl FnOnce(&mut P) -> R) -> R {
        self.host.with(|state| state.event = Some(Current { old, new }));
        let result = call(&mut self.plugin);
        self.host.with(|state| state.event = None);
        result
    }

    fn existing(&self, declared: &metadata::Subscription, key: &ObjectKey) -> Value {
        let found = self.host.object(&declared.target, key);
        found.unwrap_or_else(|| {
            panic!("there is no object {}/{} of {}", key.namespace, key.name, declared.name)
        })
    }

    fn stored(&self, declared: &metadata::Subscription, id: &ObjectRef) -> Value {
        self.existing(declared, &key(&id.namespace, &id.name))
    }
}

impl<P: Reconciler> Instance<P> {
    /// Calls [`Reconciler::reconcile`] with a key.
    ///
    /// # Errors
    ///
    /// Those of the reconciler.
    pub fn reconcile(&mut self, kind: &str, namespace: &str, name: &str) -> Result<Outcome, Failure> {
        self.plugin.reconcile(&work_key(kind, key(namespace, name)))
    }
}

// === impl Current ===

impl Current {
    /// Returns the state, if this notification has it.
    pub(super) fn version(&self, which: crate::event::Version) -> Option<&Value> {
        match which {
            crate::event::Version::Old => self.old.as_ref(),
            crate::event::Version::New => self.new.as_ref(),
        }
    }
}
