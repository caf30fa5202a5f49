//! The imports of the contract, each shown to the interceptor.

use super::{Intercepted, pass};
use crate::{
    bindings::oarlock::plugin::{
        cache, client, clock, config, event, events, log, metrics, types, work_queue,
    },
    contract::{
        Datetime, Entry, Error, EventType, GroupVersionResource, Level, Namespaces, ObjectKey, ObjectRef,
        Page, PageRequest, PatchKind, Preconditions, Projection, Propagation, Row, Version, WorkKey, Written,
    },
};

impl types::Host for Intercepted<'_> {}

impl event::Host for Intercepted<'_> {
    fn field(&mut self, which: Version, pointer: String) -> Result<Option<String>, Error> {
        pass!(self, "event.field", (which, pointer) => event::Host::field(self.state, which, pointer))
    }

    fn fields(&mut self, which: Version, pointers: Vec<String>) -> Result<Vec<Option<String>>, Error> {
        pass!(self, "event.fields", (which, pointers) => event::Host::fields(self.state, which, pointers))
    }

    fn json(&mut self, which: Version) -> Result<String, Error> {
        pass!(self, "event.json", (which) => event::Host::json(self.state, which))
    }
}

impl cache::Host for Intercepted<'_> {
    async fn get(&mut self, lister: String, key: ObjectKey, projection: Projection) -> Result<Row, Error> {
        pass!(self, "cache.get", (lister, key, projection) =>
            cache::Host::get(self.state, lister, key, projection).await)
    }

    async fn list(
        &mut self,
        lister: String,
        namespaces: Namespaces,
        label_selector: String,
        projection: Projection,
        page: PageRequest,
    ) -> Result<Page, Error> {
        pass!(self, "cache.list", (lister, namespaces, label_selector, projection, page) =>
            cache::Host::list(self.state, lister, namespaces, label_selector, projection, page).await)
    }

    async fn by_index(
        &mut self,
        index: String,
        value: String,
        namespaces: Namespaces,
        projection: Projection,
        page: PageRequest,
    ) -> Result<Page, Error> {
        pass!(self, "cache.by-index", (index, value, namespaces, projection, page) =>
            cache::Host::by_index(self.state, index, value, namespaces, projection, page).await)
    }

    async fn index_values(&mut self, index: String) -> Result<Vec<String>, Error> {
        pass!(self, "cache.index-values", (index) => cache::Host::index_values(self.state, index).await)
    }

    async fn has_synced(&mut self, lister: String) -> Result<bool, Error> {
        pass!(self, "cache.has-synced", (lister) => cache::Host::has_synced(self.state, lister).await)
    }

    async fn wait_until_seen(
        &mut self,
        lister: String,
        resource_version: String,
        timeout_ms: u32,
    ) -> Result<(), Error> {
        pass!(self, "cache.wait-until-seen", (lister, resource_version, timeout_ms) =>
            cache::Host::wait_until_seen(self.state, lister, resource_version, timeout_ms).await)
    }
}

impl client::Host for Intercepted<'_> {
    async fn get(
        &mut self,
        target: GroupVersionResource,
        key: ObjectKey,
        subresource: String,
    ) -> Result<String, Error> {
        pass!(self, "client.get", (target, key, subresource) =>
            client::Host::get(self.state, target, key, subresource).await)
    }

    async fn list(
        &mut self,
        target: GroupVersionResource,
        namespaces: Namespaces,
        label_selector: String,
        field_selector: String,
        projection: Projection,
        page: PageRequest,
    ) -> Result<Page, Error> {
        pass!(self, "client.list", (target, namespaces, label_selector, field_selector, projection, page) =>
            client::Host::list(
                self.state, target, namespaces, label_selector, field_selector, projection, page
            ).await)
    }

    async fn create(
        &mut self,
        target: GroupVersionResource,
        namespace: String,
        json: String,
    ) -> Result<Written, Error> {
        pass!(self, "client.create", (target, namespace, json) =>
            client::Host::create(self.state, target, namespace, json).await)
    }

    async fn apply(
        &mut self,
        target: GroupVersionResource,
        key: ObjectKey,
        subresource: String,
        json: String,
        force: bool,
        preconditions: Preconditions,
    ) -> Result<Written, Error> {
        pass!(self, "client.apply", (target, key, subresource, json, force, preconditions) =>
            client::Host::apply(self.state, target, key, subresource, json, force, preconditions).await)
    }

    async fn patch(
        &mut self,
        target: GroupVersionResource,
        key: ObjectKey,
        subresource: String,
        kind: PatchKind,
        body: String,
        preconditions: Preconditions,
    ) -> Result<Written, Error> {
        pass!(self, "client.patch", (target, key, subresource, kind, body, preconditions) =>
            client::Host::patch(self.state, target, key, subresource, kind, body, preconditions).await)
    }

    async fn replace(
        &mut self,
        target: GroupVersionResource,
        key: ObjectKey,
        subresource: String,
        json: String,
    ) -> Result<Written, Error> {
        pass!(self, "client.replace", (target, key, subresource, json) =>
            client::Host::replace(self.state, target, key, subresource, json).await)
    }

    async fn delete(
        &mut self,
        target: GroupVersionResource,
        key: ObjectKey,
        propagation: Propagation,
        grace_period_seconds: Option<u32>,
        preconditions: Preconditions,
    ) -> Result<(), Error> {
        pass!(self, "client.delete", (target, key, propagation, grace_period_seconds, preconditions) =>
            client::Host::delete(
                self.state, target, key, propagation, grace_period_seconds, preconditions
            ).await)
    }
}

impl work_queue::Host for Intercepted<'_> {
    fn add(&mut self, key: WorkKey) -> Result<(), Error> {
        pass!(self, "work-queue.add", (key) => work_queue::Host::add(self.state, key))
    }

    fn add_after(&mut self, key: WorkKey, delay_ms: u32) -> Result<(), Error> {
        pass!(self, "work-queue.add-after", (key, delay_ms) =>
            work_queue::Host::add_after(self.state, key, delay_ms))
    }
}

impl events::Host for Intercepted<'_> {
    fn emit(
        &mut self,
        target: GroupVersionResource,
        regarding: ObjectRef,
        kind: String,
        event_type: EventType,
        reason: String,
        note: String,
    ) -> Result<(), Error> {
        pass!(self, "events.emit", (target, regarding, kind, event_type, reason, note) =>
            events::Host::emit(self.state, target, regarding, kind, event_type, reason, note))
    }
}

impl log::Host for Intercepted<'_> {
    fn log(&mut self, level: Level, message: String, pairs: Vec<Entry>) {
        pass!(self, "log.log", (level, message, pairs) => log::Host::log(self.state, level, message, pairs));
    }

    fn enabled(&mut self, level: Level) -> bool {
        pass!(self, "log.enabled", (level) => log::Host::enabled(self.state, level))
    }
}

impl clock::Host for Intercepted<'_> {
    fn now(&mut self) -> Datetime {
        pass!(self, "clock.now", () => clock::Host::now(self.state))
    }

    fn elapsed_ms(&mut self) -> f64 {
        pass!(self, "clock.elapsed-ms", () => clock::Host::elapsed_ms(self.state))
    }
}

impl config::Host for Intercepted<'_> {
    fn get(&mut self, pointer: String) -> Result<Option<String>, Error> {
        pass!(self, "config.get", (pointer) => config::Host::get(self.state, pointer))
    }

    fn json(&mut self) -> String {
        pass!(self, "config.json", () => config::Host::json(self.state))
    }
}

impl metrics::Host for Intercepted<'_> {
    fn counter_add(&mut self, name: String, by: f64, labels: Vec<Entry>) -> Result<(), Error> {
        pass!(self, "metrics.counter-add", (name, by, labels) =>
            metrics::Host::counter_add(self.state, name, by, labels))
    }

    fn gauge_set(&mut self, name: String, value: f64, labels: Vec<Entry>) -> Result<(), Error> {
        pass!(self, "metrics.gauge-set", (name, value, labels) =>
            metrics::Host::gauge_set(self.state, name, value, labels))
    }
}
