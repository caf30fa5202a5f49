//! What a guest may call, one file per interface of the contract.
//!
//! Here is checked what needs no Kubernetes: sizes, counts and forms, so that every implementation of
//! [`KubeAccess`](crate::KubeAccess) can rely on them. A guest's mistake is answered, never punished with a trap.

mod cache;
mod client;
mod clock;
mod config;
mod event;
mod events;
mod log;
mod metrics;
pub(crate) mod wasi;
mod work_queue;

use crate::{
    bindings::oarlock::plugin::types,
    contract::{Error, GroupVersionResource, ObjectKey},
    state::State,
};

/// Longest name, selector, index value or token that is taken from a guest.
const MAX_NAME_BYTES: usize = 4 << 10;

impl types::Host for State {}

/// Shows an object the way people name it.
pub(crate) fn show_key(target: &GroupVersionResource, key: &ObjectKey) -> String {
    let cut = |text: &str| text[..text.floor_char_boundary(253)].to_owned();
    let (plural, name) = (cut(&target.plural), cut(&key.name));
    let resource = match target.group.as_str() {
        "" => plural,
        group => format!("{plural}.{}", cut(group)),
    };
    match key.namespace.as_str() {
        "" => format!("{resource} {name}"),
        namespace => format!("{resource} {}/{name}", cut(namespace)),
    }
}

/// Refuses a text that is longer than any sensible one of its kind.
fn check_short(what: &str, text: &str) -> Result<(), Error> {
    if text.len() <= MAX_NAME_BYTES {
        return Ok(());
    }
    Err(Error::LimitExceeded(format!("the {what} has {} bytes, more than {MAX_NAME_BYTES}", text.len())))
}

fn check_key(key: &ObjectKey) -> Result<(), Error> {
    check_short("namespace", &key.namespace)?;
    check_short("object's name", &key.name)
}

fn check_target(target: &GroupVersionResource) -> Result<(), Error> {
    check_short("group", &target.group)?;
    check_short("version", &target.version)?;
    check_short("resource", &target.plural)
}
