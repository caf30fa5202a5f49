//! Checks of a description that hold for every cluster: names that Kubernetes refuses, verbs that it does not
//! know, indices over fields that the declared content does not include.

use oarlock_json::PointerPattern;
use oarlock_label_selector::LabelSelector;

use oarlock_plugin::contract::{Description, Enqueue, GroupVersionResource, Index, IndexSource, Namespaces};

use super::{Error, covers};
use crate::config::names;

/// The verbs of requests, then the verbs that only RBAC knows.
const VERBS: [&str; 13] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "bind",
    "escalate",
    "impersonate",
    "approve",
    "sign",
];

/// Words that people write instead of a verb, with that verb.
const MISTAKES: [(&str, &str); 10] = [
    ("remove", "delete"),
    ("destroy", "delete"),
    ("add", "create"),
    ("insert", "create"),
    ("post", "create"),
    ("put", "update"),
    ("replace", "update"),
    ("write", "update"),
    ("apply", "patch"),
    ("read", "get"),
];

/// Returns the first part that can never work as an error.
pub(super) fn check(description: &Description) -> Result<(), Error> {
    for it in &description.subscriptions {
        let part = || format!("subscription {:?}", it.name);
        place(&part, &it.target, &it.namespaces)?;
        if let Enqueue::Label(named) = &it.enqueue {
            label_key(&part, &named.at)?;
        }
    }
    for it in &description.reads {
        place(&|| format!("read {:?}", it.name), &it.target, &it.namespaces)?;
    }
    for it in &description.indices {
        index(description, it)?;
    }
    for it in &description.requests {
        let part = || format!("request for {}", it.target.plural);
        place(&part, &it.target, &it.namespaces)?;
        if !it.subresource.is_empty() {
            let plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
            if !it.subresource.chars().all(plain) {
                return refuse(&part, format!("{:?} is no subresource, such as `status`", it.subresource));
            }
        }
        for verb in &it.verbs {
            if !VERBS.contains(&verb.as_str()) {
                let meant = MISTAKES.iter().find(|(wrong, _)| wrong == verb);
                let meant = meant.map(|(_, right)| format!("; did you mean `{right}`?")).unwrap_or_default();
                let known = VERBS.join(", ");
                return refuse(&part, format!("{verb:?} is no verb of Kubernetes{meant} (verbs: {known})"));
            }
        }
    }
    Ok(())
}

fn index(description: &Description, index: &Index) -> Result<(), Error> {
    let part = || format!("index {:?}", index.name);
    match &index.source {
        IndexSource::OwnerUid => Ok(()),
        IndexSource::Label(label) => label_key(&part, label),
        IndexSource::Pointer(pointer) => {
            if let Err(error) = pointer.parse::<PointerPattern>() {
                return refuse(&part, error.to_string());
            }
            let read = description.reads.iter().find(|read| read.name == index.lister);
            if read.is_some_and(|read| !covers(read.content, pointer)) {
                return refuse(
                    &part,
                    format!(
                        "{pointer} is not part of the metadata, which is all that the read {:?} declares: declare \
                         `content: full`, or name something else",
                        index.lister
                    ),
                );
            }
            Ok(())
        }
    }
}

fn place(
    part: &impl Fn() -> String,
    target: &GroupVersionResource,
    namespaces: &Namespaces,
) -> Result<(), Error> {
    let GroupVersionResource { group, version, plural } = target;
    let bad = |what: &str, name: &str, why: names::Invalid| {
        refuse(part, format!("{what} {name:?} is no valid name: {why}"))
    };
    if !group.is_empty()
        && let Err(why) = names::dns_subdomain(group)
    {
        return bad("the API group", group, why);
    }
    for (what, name) in [("the API version", version), ("the resource", plural)] {
        if let Err(why) = names::dns_label(name) {
            return bad(what, name, why);
        }
    }
    if let Namespaces::One(namespace) = namespaces
        && let Err(why) = names::dns_label(namespace)
    {
        return bad("the namespace", namespace, why);
    }
    Ok(())
}

/// Checks the key of a label.
fn label_key(part: &impl Fn() -> String, label: &str) -> Result<(), Error> {
    let is_one_word = !label.is_empty() && !label.contains([' ', ',', '(', ')', '!', '=', '<', '>']);
    // A key alone is a valid selector.
    if is_one_word && label.parse::<LabelSelector>().is_ok() {
        return Ok(());
    }
    refuse(part, format!("{label:?} cannot be the key of a label"))
}

fn refuse(part: &impl Fn() -> String, message: String) -> Result<(), Error> {
    Err(Error::Part { part: part(), message })
}

#[cfg(test)]
mod tests {
    use oarlock_plugin::contract::{Content, NamedAt, Read, Request, Scope, Subscription};

    use super::super::Plan;
    use super::*;

    fn target() -> GroupVersionResource {
        GroupVersionResource {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            plural: "deployments".to_owned(),
        }
    }

    fn good() -> Description {
        Description {
            name: "p".to_owned(),
            version: "1".to_owned(),
            subscriptions: vec![Subscription {
                name: "apps".to_owned(),
                target: target(),
                namespaces: Namespaces::One("team-a".to_owned()),
                label_selector: "app=web".to_owned(),
                conditions: Vec::new(),
                fields: vec!["/spec/replicas".to_owned()],
                content: Content::Full,
                resync_seconds: 0,
                enqueue: label("example.com/owner"),
                ignore_own_writes: false,
            }],
            reads: vec![Read {
                name: "apps".to_owned(),
                target: target(),
                namespaces: Namespaces::All,
                content: Content::Metadata,
                wakes: false,
            }],
            indices: vec![Index {
                name: "by-owner".to_owned(),
                lister: "apps".to_owned(),
                source: IndexSource::Pointer("/metadata/annotations/owner".to_owned()),
            }],
            schedules: vec![],
            requests: vec![Request {
                target: target(),
                namespaces: Namespaces::All,
                verbs: vec!["get".to_owned(), "patch".to_owned()],
                subresource: "status".to_owned(),
            }],
            stateless: true,
        }
    }

    fn label(name: &str) -> Enqueue {
        Enqueue::Label(NamedAt { at: name.to_owned(), scope: Scope::SameNamespace })
    }

    fn refused(change: impl FnOnce(&mut Description)) -> String {
        let mut description = good();
        change(&mut description);
        Plan::of(description).unwrap_err().to_string()
    }

    #[test]
    fn a_description_that_no_cluster_can_satisfy_is_refused() {
        Plan::of(good()).unwrap();
        let messages = [
            refused(|it| it.subscriptions[0].label_selector = "app in (web".to_owned()),
            refused(|it| it.subscriptions[0].target.plural = "deploy.ments".to_owned()),
            refused(|it| it.subscriptions[0].target.group = "-apps".to_owned()),
            refused(|it| it.subscriptions[0].target.version = "v1-".to_owned()),
            refused(|it| it.subscriptions[0].namespaces = Namespaces::One("Team_A".to_owned())),
            refused(|it| it.subscriptions[0].enqueue = label("a b")),
            refused(|it| it.subscriptions[0].fields = vec!["/a".repeat(65)]),
            refused(|it| it.reads[0].namespaces = Namespaces::One("a/b".to_owned())),
            refused(|it| it.indices[0].source = IndexSource::Pointer("/spec/replicas".to_owned())),
            refused(|it| it.indices[0].source = IndexSource::Pointer("/metadata".repeat(65))),
            refused(|it| it.indices[0].source = IndexSource::Label("-app-".to_owned())),
            refused(|it| it.requests[0].verbs = vec!["remove".to_owned()]),
            refused(|it| it.requests[0].verbs = vec!["frobnicate".to_owned()]),
            refused(|it| it.requests[0].subresource = "*".to_owned()),
            refused(|it| it.requests[0].subresource = "sta/tus".to_owned()),
        ];
        insta::assert_snapshot!(messages.join("\n"), @r#"
        subscription "apps": unable to parse requirement: found '', expected: ',' or ')'
        subscription "apps": the resource "deploy.ments" is no valid name: '.' is not allowed (lower-case letters, digits and '-' are)
        subscription "apps": the API group "-apps" is no valid name: it must begin and end with a letter or digit
        subscription "apps": the API version "v1-" is no valid name: it must begin and end with a letter or digit
        subscription "apps": the namespace "Team_A" is no valid name: 'T' is not allowed (lower-case letters, digits and '-' are)
        subscription "apps": "a b" cannot be the key of a label
        subscription "apps": a JSON pointer may have at most 64 segments, this one has 65
        read "apps": the namespace "a/b" is no valid name: '/' is not allowed (lower-case letters, digits and '-' are)
        index "by-owner": /spec/replicas is not part of the metadata, which is all that the read "apps" declares: declare `content: full`, or name something else
        index "by-owner": a JSON pointer may have at most 64 segments, this one has 65
        index "by-owner": "-app-" cannot be the key of a label
        request for deployments: "remove" is no verb of Kubernetes; did you mean `delete`? (verbs: get, list, watch, create, update, patch, delete, deletecollection, bind, escalate, impersonate, approve, sign)
        request for deployments: "frobnicate" is no verb of Kubernetes (verbs: get, list, watch, create, update, patch, delete, deletecollection, bind, escalate, impersonate, approve, sign)
        request for deployments: "*" is no subresource, such as `status`
        request for deployments: "sta/tus" is no subresource, such as `status`
        "#);
    }
}
