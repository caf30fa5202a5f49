//! Logs every notification about ConfigMaps.
//!
//! The same plugin exists in five languages. Each uses the contract in `wit/` directly, without an SDK, and
//! shows one example of each kind: declared fields of a notification, a field that it reads itself, a read of
//! the cache, the configuration and the log.

mod bindings;
mod json;

use std::sync::{LazyLock, Once};

use bindings::exports::oarlock::plugin::{handler, metadata};
use bindings::oarlock::plugin::types::{
    Entry, Error, Failure, GroupVersionResource, Namespaces, ObjectKey, ObjectRef, Projection,
};
use bindings::oarlock::plugin::{cache, config, event, log};
use handler::{Added, Deleted, Synced, Updated};
use metadata::{Content, Description, Enqueue, Read, Subscription};

/// Its code is 7 KiB smaller than that of the standard library's. `oarlock-sdk` sets it by itself.
#[cfg(target_family = "wasm")]
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

const NAME: &str = "configmaps";

/// The fields that every notification carries. The host skips updates that change none of them. Every update
/// changes the resourceVersion, so the host skips none.
const FIELDS: [&str; 2] = ["/metadata/resourceVersion", GREETING];
const GREETING: &str = "/data/greeting";

/// `quiet: true` in the configuration turns the log off, for tests with many notifications.
static QUIET: LazyLock<bool> =
    LazyLock::new(|| matches!(config::get("/quiet"), Ok(Some(json)) if json == "true"));

struct Hello;

// === impl Hello ===

impl metadata::Guest for Hello {
    fn describe() -> Result<Description, String> {
        log_panics();
        let configmaps =
            GroupVersionResource { group: String::new(), version: "v1".into(), plural: "configmaps".into() };
        let label_selector = match config::get("/labelSelector").map_err(message)? {
            Some(text) => json::string(&text).ok_or("labelSelector in the configuration is not a string")?,
            None => "app=hello".into(),
        };
        Ok(Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            subscriptions: vec![Subscription {
                name: NAME.into(),
                target: configmaps.clone(),
                namespaces: Namespaces::All,
                label_selector,
                conditions: vec![],
                fields: FIELDS.map(String::from).into(),
                content: Content::Full,
                resync_seconds: 0,
                enqueue: Enqueue::Nothing,
                ignore_own_writes: false,
            }],
            reads: vec![Read {
                name: NAME.into(),
                target: configmaps,
                namespaces: Namespaces::All,
                content: Content::Full,
                wakes: false,
            }],
            indices: vec![],
            requests: vec![],
            schedules: vec![],
            stateless: false,
        })
    }
}

impl handler::Guest for Hello {
    fn on_add(added: Added) -> Result<(), Failure> {
        log_panics();
        let mut notice = Notice::new("add", &added.subscription, &added.object);
        notice.pair("initial", added.is_in_initial_list);
        notice.finish(event::Version::New, &added.object, &added.fields)
    }

    fn on_update(updated: Updated) -> Result<(), Failure> {
        log_panics();
        let mut notice = Notice::new("update", &updated.subscription, &updated.object);
        notice.pair("old-resource-version", &updated.old_resource_version);
        notice.text_pair("old-greeting", updated.old_fields[1].as_deref());
        notice.finish(event::Version::New, &updated.object, &updated.fields)
    }

    fn on_delete(deleted: Deleted) -> Result<(), Failure> {
        log_panics();
        let mut notice = Notice::new("delete", &deleted.subscription, &deleted.object);
        notice.pair("unknown", deleted.final_state_unknown);
        notice.finish(event::Version::Old, &deleted.object, &deleted.fields)
    }

    fn on_synced(synced: Synced) -> Result<(), Failure> {
        log_panics();
        let mut notice = Notice(vec![]);
        notice.pair("type", "synced");
        notice.pair("subscription", synced.subscription);
        notice.pair("remaining", synced.remaining);
        notice.log();
        Ok(())
    }
}

/// Has panics logged: this target has no standard error, so the host would only see the trap. The host shows
/// the last lines of level error together with the trap.
fn log_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|panic| log::log(log::Level::Error, &panic.to_string(), &[])));
    });
}

/// The pairs of the log line.
struct Notice(Vec<Entry>);

// === impl Notice ===

impl Notice {
    fn new(r#type: &str, subscription: &str, object: &ObjectRef) -> Self {
        let mut notice = Self(vec![]);
        notice.pair("type", r#type);
        notice.pair("subscription", subscription);
        notice.pair("namespace", &object.namespace);
        notice.pair("name", &object.name);
        notice.pair("uid", &object.uid);
        notice.pair("resource-version", &object.resource_version);
        notice
    }

    /// Adds values from the declared fields, the event and the cache, and logs the line.
    fn finish(
        mut self,
        which: event::Version,
        object: &ObjectRef,
        fields: &[Option<String>],
    ) -> Result<(), Failure> {
        self.text_pair("greeting", fields[1].as_deref());
        let created = event::field(which, "/metadata/creationTimestamp").map_err(retry)?;
        self.text_pair("created", created.as_deref());
        self.pair("cached", is_cached(object)?);
        self.log();
        Ok(())
    }

    fn pair(&mut self, name: &str, value: impl ToString) {
        self.0.push(Entry { name: name.into(), value: value.to_string() });
    }

    /// Adds the string value of a field, if it has one.
    fn text_pair(&mut self, name: &str, json: Option<&str>) {
        if let Some(value) = json.and_then(json::string) {
            self.pair(name, value);
        }
    }

    fn log(self) {
        if !*QUIET {
            log::log(log::Level::Info, "notified", &self.0);
        }
    }
}

/// Returns whether the cache has the object with this uid, and not a later object of the same name.
fn is_cached(object: &ObjectRef) -> Result<bool, Failure> {
    let key = ObjectKey { namespace: object.namespace.clone(), name: object.name.clone() };
    match cache::get(NAME, &key, &Projection::Fields(vec!["/metadata/uid".into()])) {
        Ok(row) => Ok(row.fields[0].as_deref().and_then(json::string).as_ref() == Some(&object.uid)),
        Err(Error::NotFound(_)) => Ok(false),
        Err(error) => Err(retry(error)),
    }
}

fn retry(error: Error) -> Failure {
    Failure::Retry(message(error))
}

/// Returns the text of an error.
fn message(error: Error) -> String {
    match error {
        Error::Throttled(info) => info.message,
        Error::NotFound(text)
        | Error::AlreadyExists(text)
        | Error::Conflict(text)
        | Error::Forbidden(text)
        | Error::Invalid(text)
        | Error::Unavailable(text)
        | Error::Timeout(text)
        | Error::Gone(text)
        | Error::NotDeclared(text)
        | Error::NotSynced(text)
        | Error::LimitExceeded(text)
        | Error::Suspended(text) => text,
    }
}
