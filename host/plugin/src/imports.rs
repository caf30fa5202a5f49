//! The imports of guests, one file for each interface of the contract.
//!
//! These files check sizes, counts and syntax, which does not require Kubernetes, so that every
//! implementation of [`KubeAccess`](crate::kube_access::KubeAccess) can rely on them. A wrong argument
//! returns an error and never traps.

mod cache;
mod client;
pub(crate) mod clock;
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
    state::StoreState,
};

/// The maximum length of a name, selector, index value or token of a guest.
const MAX_NAME_BYTES: usize = 4 << 10;

/// The maximum length of a JSON pointer of a guest.
const MAX_POINTER_BYTES: usize = 4 << 10;

impl types::Host for StoreState {}

/// Formats an object's name for people.
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

/// Refuses a text that exceeds the maximum length.
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

/// Checks the syntax of a JSON pointer, and returns what is wrong with it. The informer looks pointers up.
pub(crate) fn check_pointer(pointer: &str) -> Result<(), String> {
    let shown = || format!("{:?}", &pointer[..pointer.floor_char_boundary(80)]);
    if pointer.len() > MAX_POINTER_BYTES {
        return Err(format!("the JSON pointer {} has more than {MAX_POINTER_BYTES} bytes", shown()));
    }
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(format!("the JSON pointer {} does not begin with /, such as /metadata/name", shown()));
    }
    let mut bytes = pointer.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'~' && !matches!(bytes.next(), Some(b'0' | b'1')) {
            return Err(format!("the JSON pointer {} has a ~ without 0 or 1 after it", shown()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_pointer as check;

    #[test]
    fn the_syntax_of_pointers_is_that_of_rfc_6901() {
        for good in ["", "/", "/a/b", "/a~1b/~0", "/metadata/labels/app.kubernetes.io~1name", "/a//b", "/ä"]
        {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        insta::assert_snapshot!(check("metadata").unwrap_err(), @r#"the JSON pointer "metadata" does not begin with /, such as /metadata/name"#);
        insta::assert_snapshot!(check("/a~b").unwrap_err(), @r#"the JSON pointer "/a~b" has a ~ without 0 or 1 after it"#);
        insta::assert_snapshot!(check("/a~").unwrap_err(), @r#"the JSON pointer "/a~" has a ~ without 0 or 1 after it"#);
        assert!(check(&format!("/{}", "a".repeat(5000))).is_err());
    }
}
