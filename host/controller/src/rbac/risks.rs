//! Warnings about rights with which an account can gain further rights, after Kubernetes' "RBAC Good
//! Practices".

use oarlock_plugin::contract::{Namespaces, Request};

use super::Needs;

/// Returns one sentence for each dangerous right that a plugin declares.
pub(super) fn of(needs: &Needs) -> Vec<String> {
    let mut risks = Vec::new();
    for request in &needs.description.requests {
        let Request { target, namespaces, verbs, subresource } = request;
        let resource = match subresource.as_str() {
            "" => target.plural.clone(),
            subresource => format!("{}/{subresource}", target.plural),
        };
        for verb in verbs {
            if let Some(why) = why(verb, &target.group, &resource) {
                risks.push(format!("`{verb}` of {resource} {}: {why}", place(namespaces)));
            }
        }
    }
    let watched = needs.watched().filter(|(target, _)| target.group.is_empty() && target.plural == "secrets");
    for (_, namespaces) in watched {
        risks.push(format!(
            "reading secrets {}: with the token in a Secret, the account can act as that ServiceAccount",
            place(namespaces)
        ));
    }
    risks.sort();
    risks.dedup();
    risks
}

fn why(verb: &str, group: &str, resource: &str) -> Option<&'static str> {
    const WRITES: [&str; 3] = ["create", "update", "patch"];
    let writes = WRITES.contains(&verb);
    match (verb, group, resource) {
        ("escalate", ..) => {
            Some("the account can write roles with rights that it does not have itself, up to all rights")
        }
        ("bind", ..) => Some("the account can bind roles whose rights it does not have, also to itself"),
        ("impersonate", ..) => Some("the account can act as other users and accounts, with all their rights"),
        ("approve" | "sign", ..) => {
            Some("the account can get certificates issued with which it logs in as any user")
        }
        ("create", "", "serviceaccounts/token") => {
            Some("the account can get tokens of the ServiceAccounts there")
        }
        (_, "", "pods/exec" | "pods/attach" | "pods/portforward" | "pods/ephemeralcontainers") => {
            Some("the account can run commands in containers of other users")
        }
        (_, "", "nodes/proxy" | "services/proxy" | "pods/proxy") => Some(
            "the account can reach network addresses through the API server, without admission and audit",
        ),
        (
            _,
            "admissionregistration.k8s.io",
            "mutatingwebhookconfigurations" | "validatingwebhookconfigurations",
        ) if writes => Some("the account can read and change the objects that other users write"),
        _ => None,
    }
}

fn place(namespaces: &Namespaces) -> String {
    match namespaces {
        Namespaces::All => "in all namespaces".to_owned(),
        Namespaces::One(namespace) => format!("in the namespace {namespace}"),
    }
}
