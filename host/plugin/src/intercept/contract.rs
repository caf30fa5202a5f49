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

/// Implements one import of an interface: shows it to the interceptor under its name in the contract, and
/// passes it on to [`crate::imports`].
macro_rules! import {
    ($interface:ident, $name:literal, async $function:ident($($argument:ident: $type:ty),*) -> $answer:ty) => {
        async fn $function(&mut self, $($argument: $type),*) -> $answer {
            pass!(self, $name, ($($argument),*) =>
                $interface::Host::$function(self.state, $($argument),*).await)
        }
    };
    ($interface:ident, $name:literal, $function:ident($($argument:ident: $type:ty),*) -> $answer:ty) => {
        fn $function(&mut self, $($argument: $type),*) -> $answer {
            pass!(self, $name, ($($argument),*) => $interface::Host::$function(self.state, $($argument),*))
        }
    };
}

type Answer<T> = Result<T, Error>;
type Target = GroupVersionResource;

impl types::Host for Intercepted<'_> {}

impl event::Host for Intercepted<'_> {
    import!(event, "event.field", field(which: Version, pointer: String) -> Answer<Option<String>>);
    import!(event, "event.fields", fields(which: Version, pointers: Vec<String>) -> Answer<Vec<Option<String>>>);
    import!(event, "event.json", json(which: Version) -> Answer<String>);
}

impl cache::Host for Intercepted<'_> {
    import!(cache, "cache.get",
        async get(lister: String, key: ObjectKey, projection: Projection) -> Answer<Row>);
    import!(cache, "cache.list",
        async list(lister: String, namespaces: Namespaces, label_selector: String, projection: Projection,
            page: PageRequest) -> Answer<Page>);
    import!(cache, "cache.by-index",
        async by_index(index: String, value: String, namespaces: Namespaces, projection: Projection,
            page: PageRequest) -> Answer<Page>);
    import!(cache, "cache.index-values", async index_values(index: String) -> Answer<Vec<String>>);
    import!(cache, "cache.has-synced", async has_synced(lister: String) -> Answer<bool>);
    import!(cache, "cache.wait-until-seen",
        async wait_until_seen(lister: String, resource_version: String, timeout_ms: u32) -> Answer<()>);
}

impl client::Host for Intercepted<'_> {
    import!(client, "client.get",
        async get(target: Target, key: ObjectKey, subresource: String) -> Answer<String>);
    import!(client, "client.list",
        async list(target: Target, namespaces: Namespaces, label_selector: String, field_selector: String,
            projection: Projection, page: PageRequest) -> Answer<Page>);
    import!(client, "client.create",
        async create(target: Target, namespace: String, json: String) -> Answer<Written>);
    import!(client, "client.apply",
        async apply(target: Target, key: ObjectKey, subresource: String, json: String, force: bool,
            preconditions: Preconditions) -> Answer<Written>);
    import!(client, "client.patch",
        async patch(target: Target, key: ObjectKey, subresource: String, kind: PatchKind, body: String,
            preconditions: Preconditions) -> Answer<Written>);
    import!(client, "client.replace",
        async replace(target: Target, key: ObjectKey, subresource: String, json: String) -> Answer<Written>);
    import!(client, "client.delete",
        async delete(target: Target, key: ObjectKey, propagation: Propagation,
            grace_period_seconds: Option<u32>, preconditions: Preconditions) -> Answer<()>);
}

impl work_queue::Host for Intercepted<'_> {
    import!(work_queue, "work-queue.add", add(key: WorkKey) -> Answer<()>);
    import!(work_queue, "work-queue.add-after", add_after(key: WorkKey, delay_ms: u32) -> Answer<()>);
}

impl events::Host for Intercepted<'_> {
    import!(events, "events.emit",
        emit(target: Target, regarding: ObjectRef, kind: String, event_type: EventType, reason: String,
            note: String) -> Answer<()>);
}

impl log::Host for Intercepted<'_> {
    import!(log, "log.log", log(level: Level, message: String, pairs: Vec<Entry>) -> ());
    import!(log, "log.enabled", enabled(level: Level) -> bool);
}

impl clock::Host for Intercepted<'_> {
    import!(clock, "clock.now", now() -> Datetime);
    import!(clock, "clock.elapsed-ms", elapsed_ms() -> f64);
}

impl config::Host for Intercepted<'_> {
    import!(config, "config.get", get(pointer: String) -> Answer<Option<String>>);
    import!(config, "config.json", json() -> String);
}

impl metrics::Host for Intercepted<'_> {
    import!(metrics, "metrics.counter-add",
        counter_add(name: String, by: f64, labels: Vec<Entry>) -> Answer<()>);
    import!(metrics, "metrics.gauge-set",
        gauge_set(name: String, value: f64, labels: Vec<Entry>) -> Answer<()>);
}
