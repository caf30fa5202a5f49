//! Prevents privilege escalation: the check on writes of Roles and Bindings.

use super::{Attributes, Authorizer, Rule, rules, text};
use crate::status::{GroupResource, StatusError};
use crate::user::{MASTERS, UserInfo};
use serde_json::Value;
use std::collections::BTreeMap;

const GROUP: &str = "rbac.authorization.k8s.io";

impl Authorizer {
    /// Refuses a write of `object` (one of the four RBAC kinds) that grants rights which the writer does not
    /// have.
    pub(crate) fn check_escalation(
        &self,
        user: &UserInfo,
        resource: &str,
        namespace: &str,
        object: &Value,
    ) -> Result<(), StatusError> {
        if user.in_group(MASTERS) {
            return Ok(());
        }
        let ask = |verb: &str, resource: &str, namespace: &str, name: &str| {
            let attributes =
                Attributes { verb, group: GROUP, resource, namespace, name, ..Attributes::default() };
            self.authorize(user, &attributes).allowed
        };
        let name = text(object, "/metadata/name");
        let granted: Vec<Rule> = match resource {
            "roles" | "clusterroles" => {
                if ask("escalate", resource, namespace, name) {
                    return Ok(());
                }
                rules::of(object)
            }
            "rolebindings" | "clusterrolebindings" => {
                let kind = text(object, "/roleRef/kind");
                let role = text(object, "/roleRef/name");
                let (roles, scope) = if kind == "Role" { ("roles", namespace) } else { ("clusterroles", "") };
                if ask("bind", roles, if kind == "Role" { scope } else { namespace }, role) {
                    return Ok(());
                }
                match self.rules_of(kind, role, scope) {
                    Ok(rules) => rules.to_vec(),
                    Err(_) => {
                        return Err(StatusError::not_found(
                            &GroupResource::new(GROUP, roles_singular(kind)),
                            role,
                        ));
                    }
                }
            }
            _ => return Ok(()),
        };
        let (held, errors) = self.rules_for(user, namespace);
        let missing: Vec<Rule> = granted
            .iter()
            .flat_map(Rule::break_down)
            .filter(|part| !held.iter().any(|rule| rule.covers(part)))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let mut message = format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            user.name,
            go_syntax(&user.groups),
            described(missing)
        );
        if !errors.is_empty() {
            message = format!("{message}; resolution errors: [{}]", errors.join(" "));
        }
        Err(StatusError::forbidden(&GroupResource::new(GROUP, resource), name, message))
    }
}

/// kube-apiserver finds roles through a lister, whose not-found error has the singular.
fn roles_singular(kind: &str) -> &'static str {
    if kind == "Role" { "role" } else { "clusterrole" }
}

/// Merges the verbs of each resource, and writes one line per resource.
fn described(missing: Vec<Rule>) -> String {
    let mut lines = Vec::new();
    let mut by_resource: BTreeMap<(String, String, Vec<String>), Rule> = BTreeMap::new();
    for rule in missing {
        if !rule.urls.is_empty() {
            lines.push(compact(&rule));
            continue;
        }
        let key = (rule.groups.concat(), rule.resources.concat(), rule.names.clone());
        match by_resource.get_mut(&key) {
            Some(known) => known.verbs.extend(rule.verbs),
            None => {
                by_resource.insert(key, rule);
            }
        }
    }
    lines.extend(by_resource.values().map(compact));
    lines.sort();
    lines.dedup();
    lines.join("\n")
}

fn compact(rule: &Rule) -> String {
    let mut parts = Vec::new();
    let mut put = |name: &str, list: &[String]| {
        if !list.is_empty() {
            parts.push(format!("{name}:{}", go_syntax(list)));
        }
    };
    put("APIGroups", &rule.groups);
    put("Resources", &rule.resources);
    put("NonResourceURLs", &rule.urls);
    put("ResourceNames", &rule.names);
    put("Verbs", &rule.verbs);
    format!("{{{}}}", parts.join(", "))
}

/// Writes a list as Go's `%q` does.
fn go_syntax(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|one| format!("{one:?}")).collect();
    format!("[{}]", quoted.join(" "))
}
