//! Impersonation: the user that a request acts as, and whether the requester has the right to impersonate.
//!
//! As in kube-apiserver 1.36 two kinds of rights allow it: the constrained ones (`impersonate:serviceaccount`
//! or `impersonate:user-info` on the identity, and `impersonate-on:…:VERB` on the requested resource), and
//! the older verb `impersonate`. For nodes only the older verb is supported.

use super::{Attributes, Authorizer};
use crate::status::StatusError;
use crate::user::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, UserInfo};
use http::HeaderMap;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";

/// Returns the impersonated user if the request impersonates one.
pub(crate) fn impersonated(
    authorizer: &Authorizer,
    requester: &UserInfo,
    headers: &HeaderMap,
    request: &Attributes<'_>,
) -> Result<Option<UserInfo>, StatusError> {
    let Some(wanted) = wanted(headers)? else {
        return Ok(None);
    };
    let mut refused = None;
    if let Some(mode) = constrained_mode(&wanted) {
        let verb = format!("impersonate-on:{mode}:{}", request.verb);
        let on_request = Attributes { verb: &verb, ..*request };
        let answer = authorizer.require(requester, &on_request).and_then(|()| {
            let verb = format!("impersonate:{mode}");
            identity(authorizer, requester, &wanted, &verb, "authentication.k8s.io")
        });
        match answer {
            Ok(()) => return Ok(Some(completed(wanted))),
            Err(error) => refused = Some(error),
        }
    }
    match identity(authorizer, requester, &wanted, "impersonate", "") {
        Ok(()) => Ok(Some(completed(wanted))),
        Err(error) => Err(refused.unwrap_or(error)),
    }
}

/// Reads the headers, without adding groups.
fn wanted(headers: &HeaderMap) -> Result<Option<UserInfo>, StatusError> {
    let one =
        |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let mut user = UserInfo {
        name: one(USER),
        uid: one(UID),
        groups: headers
            .get_all(GROUP)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .map(str::to_owned)
            .collect(),
        ..UserInfo::default()
    };
    for (name, value) in headers {
        let Some(key) = name.as_str().strip_prefix(EXTRA) else {
            continue;
        };
        if let Ok(value) = value.to_str() {
            user.extra.entry(unescaped(key)).or_default().push(value.to_owned());
        }
    }
    if user.name.is_empty() {
        if user == UserInfo::default() {
            return Ok(None);
        }
        return Err(StatusError::bad_request(format!(
            "requested {} without impersonating a user name",
            go_syntax(&user)
        )));
    }
    Ok(Some(user))
}

fn constrained_mode(wanted: &UserInfo) -> Option<&'static str> {
    if wanted.name.starts_with("system:node:") {
        return None;
    }
    if wanted.as_service_account().is_none() {
        return Some("user-info");
    }
    let only_name = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
    only_name.then_some("serviceaccount")
}

/// Checks the right to impersonate each part of the identity.
fn identity(
    authorizer: &Authorizer,
    requester: &UserInfo,
    wanted: &UserInfo,
    verb: &str,
    group: &str,
) -> Result<(), StatusError> {
    let ask = |attributes: Attributes<'_>| authorizer.require(requester, &attributes);
    let base = Attributes { verb, group, ..Attributes::default() };
    let authentication = Attributes { group: "authentication.k8s.io", ..base };
    match wanted.as_service_account() {
        Some((namespace, name)) => ask(Attributes { resource: "serviceaccounts", namespace, name, ..base })?,
        None => ask(Attributes { resource: "users", name: &wanted.name, ..base })?,
    }
    if !wanted.uid.is_empty() {
        ask(Attributes { resource: "uids", name: &wanted.uid, ..authentication })?;
    }
    for name in &wanted.groups {
        ask(Attributes { resource: "groups", name, ..base })?;
    }
    for (key, values) in &wanted.extra {
        for name in values {
            ask(Attributes { resource: "userextras", subresource: key, name, ..authentication })?;
        }
    }
    Ok(())
}

/// Adds the groups that the name implies.
fn completed(mut user: UserInfo) -> UserInfo {
    if user.groups.is_empty()
        && let Some((namespace, _)) = user.as_service_account()
    {
        user.groups =
            vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    }
    let group = if user.name == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
    if !user.in_group(group) && !user.in_group(UNAUTHENTICATED) {
        user.groups.push(group.to_owned());
    }
    user
}

/// Writes a user as Go's `%#v` does, since kube-apiserver's error has that form.
fn go_syntax(user: &UserInfo) -> String {
    let strings = |list: &[String]| {
        let quoted: Vec<String> = list.iter().map(|one| format!("{one:?}")).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };
    let groups = match user.groups.as_slice() {
        [] => "[]string(nil)".to_owned(),
        groups => strings(groups),
    };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let pairs: Vec<String> =
            user.extra.iter().map(|(key, values)| format!("{key:?}:{}", strings(values))).collect();
        format!("map[string][]string{{{}}}", pairs.join(", "))
    };
    format!("&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:{groups}, Extra:{extra}}}", user.name, user.uid)
}

/// Decodes percent encoding; text that cannot be decoded stays.
fn unescaped(key: &str) -> String {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = tail;
            continue;
        }
        let decoded = tail
            .get(..2)
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let Some(byte) = decoded else {
            return key.to_owned();
        };
        bytes.push(byte);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).unwrap_or_else(|_| key.to_owned())
}
