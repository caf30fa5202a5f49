//! The functions that a plugin imports, answered by the host of the test. Their signatures are the generated
//! ones.

pub(crate) mod cache;
pub(crate) mod client;

use oarlock_sdk_bindings::oarlock::plugin::types::{Page, PageRequest, Projection, Row};
use serde_json::Value;

use super::cluster::id;
use super::host::{State, with_current};
use crate::{Error, GroupVersionResource};

/// Calls a function with the state of this thread's host.
fn with<R>(call: impl FnOnce(&mut State) -> R) -> R {
    with_current(call).unwrap_or_else(|| {
        panic!("no testing::Host on this thread: a plugin runs in a component, or in a test that makes one")
    })
}

fn row(object: &Value, projection: &Projection) -> Row {
    let fields = match projection {
        Projection::Fields(pointers) => {
            pointers.iter().map(|pointer| object.pointer(pointer).map(Value::to_string)).collect()
        }
        Projection::Keys | Projection::Json => vec![],
    };
    let json = matches!(projection, Projection::Json).then(|| object.to_string());
    Row { object: id(object), fields, json }
}

/// Returns one page of rows. A token is the number of rows before it.
fn page<'a>(
    objects: impl Iterator<Item = &'a Value>,
    projection: &Projection,
    request: &PageRequest,
    page_size: usize,
) -> Page {
    let n_before: usize = request.continue_token.parse().unwrap_or_default();
    let limit = match request.limit as usize {
        0 => page_size,
        limit => limit.min(page_size),
    };
    let mut rest = objects.skip(n_before);
    let rows: Vec<Row> = rest.by_ref().take(limit).map(|object| row(object, projection)).collect();
    let continue_token =
        if rest.next().is_some() { (n_before + rows.len()).to_string() } else { String::new() };
    Page { rows, continue_token }
}

/// Returns the resource of a declared lister.
fn target(state: &State, lister: &str) -> Result<GroupVersionResource, Error> {
    let mut reads = state.description.iter().flat_map(|description| &description.reads);
    let found = reads.find(|read| read.name == lister);
    found.map(|read| read.target.clone()).ok_or_else(|| Error::NotDeclared(format!("the lister {lister}")))
}

fn text(result: Result<&Value, Error>) -> Result<String, Error> {
    result.map(Value::to_string)
}

fn parse(json: &str) -> Result<Value, Error> {
    serde_json::from_str(json).map_err(|error| Error::Invalid(format!("the body is not JSON: {error}")))
}

pub(crate) mod event {
    use super::{Error, Value, text, with};
    use crate::event::Version;

    fn object<R>(which: Version, call: impl FnOnce(&Value) -> R) -> Result<R, Error> {
        with(|state| {
            let current = state.event.as_ref().and_then(|event| event.version(which));
            let missing = || Error::NotFound(format!("the notification has no {which:?} state"));
            current.map(call).ok_or_else(missing)
        })
    }

    pub(crate) fn field(which: Version, pointer: &str) -> Result<Option<String>, Error> {
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return Err(Error::Invalid(format!("malformed pointer {pointer:?}")));
        }
        object(which, |object| object.pointer(pointer).map(Value::to_string))
    }

    pub(crate) fn fields(which: Version, pointers: &[String]) -> Result<Vec<Option<String>>, Error> {
        pointers.iter().map(|pointer| field(which, pointer)).collect()
    }

    pub(crate) fn json(which: Version) -> Result<String, Error> {
        object(which, |object| text(Ok(object)))?
    }
}

pub(crate) mod work_queue {
    use std::time::Duration;

    use super::{Error, with};
    use crate::WorkKey;

    pub(crate) fn add(key: &WorkKey) -> Result<(), Error> {
        add_after(key, 0)
    }

    pub(crate) fn add_after(key: &WorkKey, delay_ms: u32) -> Result<(), Error> {
        with(|state| {
            state.fail("queue")?;
            state.queue.push((key.clone(), Duration::from_millis(delay_ms.into())));
            Ok(())
        })
    }
}

pub(crate) mod events {
    use super::super::recorded::RecordedEvent;
    use super::{Error, GroupVersionResource, with};
    use crate::ObjectRef;
    use crate::events::EventType;

    pub(crate) fn emit(
        _: &GroupVersionResource,
        regarding: &ObjectRef,
        kind: &str,
        event_type: EventType,
        reason: &str,
        note: &str,
    ) -> Result<(), Error> {
        with(|state| {
            state.fail("event")?;
            state.events.push(RecordedEvent {
                event_type,
                reason: reason.to_owned(),
                kind: kind.to_owned(),
                regarding: regarding.clone(),
                note: note.to_owned(),
            });
            Ok(())
        })
    }
}

pub(crate) mod log {
    use oarlock_sdk_bindings::oarlock::plugin::types::Entry;

    use super::super::recorded::Line;
    use super::with_current;
    use crate::log::Level;

    /// A function that logs can be tested without a host.
    pub(crate) fn enabled(_: Level) -> bool {
        with_current(|_| ()).is_some()
    }

    pub(crate) fn log(level: Level, message: &str, pairs: &[Entry]) {
        let pairs = pairs.iter().map(|pair| (pair.name.clone(), pair.value.clone())).collect();
        with_current(|state| state.lines.push(Line { level, message: message.to_owned(), pairs }));
    }
}

pub(crate) mod clock {
    use oarlock_sdk_bindings::oarlock::plugin::clock::Datetime;

    use super::with;

    pub(crate) fn now() -> Datetime {
        let now = with(|state| state.now);
        let seconds = now.as_secs().try_into().unwrap_or(u32::MAX);
        Datetime { seconds, nanoseconds: now.subsec_millis() * 1_000_000 }
    }

    pub(crate) fn elapsed_ms() -> f64 {
        with(|state| state.elapsed().as_secs_f64() * 1_000.0).trunc()
    }
}

pub(crate) mod config {
    use super::{Error, Value, with};

    pub(crate) fn get(pointer: &str) -> Result<Option<String>, Error> {
        Ok(with(|state| state.config.pointer(pointer).map(Value::to_string)))
    }

    pub(crate) fn json() -> String {
        with(|state| state.config.to_string())
    }
}

pub(crate) mod metrics {
    use oarlock_sdk_bindings::oarlock::plugin::types::Entry;

    use super::super::host::series;
    use super::{Error, with};

    fn name_of(name: &str, labels: &[Entry]) -> String {
        series(name, labels.iter().map(|label| (&*label.name, &*label.value)))
    }

    pub(crate) fn counter_add(name: &str, by: f64, labels: &[Entry]) -> Result<(), Error> {
        if by < 0.0 {
            return Err(Error::Invalid(format!("the counter {name} cannot decrease")));
        }
        with(|state| *state.metrics.entry(name_of(name, labels)).or_default() += by);
        Ok(())
    }

    pub(crate) fn gauge_set(name: &str, value: f64, labels: &[Entry]) -> Result<(), Error> {
        with(|state| state.metrics.insert(name_of(name, labels), value));
        Ok(())
    }
}
