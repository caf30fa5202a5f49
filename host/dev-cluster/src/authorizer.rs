//! RBAC: authorizes a user by the stored Roles and Bindings.
//!
//! An `Authorizer` is an immutable snapshot of the four kinds; the cluster creates a new one when a Role or
//! Binding changes. A ClusterRole with an aggregation rule has the rules that are stored in it: on a real
//! cluster the controller-manager fills them in.

mod bootstrap;
mod escalation;
mod impersonation;
mod reviews;
mod rules;

use crate::status::{GroupResource, StatusError};
use crate::user::{MASTERS, UserInfo};
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) use bootstrap::objects as bootstrap_objects;
pub(crate) use impersonation::impersonated;
pub(crate) use reviews::answer;
pub(crate) use rules::Rule;

/// The action that a user asks for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes<'a> {
    pub verb: &'a str,
    pub group: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    /// Set for requests without a resource, such as `/healthz`.
    pub path: Option<&'a str>,
}

/// The decision, and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub allowed: bool,
    /// Empty where kube-apiserver gives no reason.
    pub reason: String,
}

/// A snapshot of all Roles and Bindings.
#[derive(Debug, Default)]
pub(crate) struct Authorizer {
    /// By namespace (empty for ClusterRoles) and name.
    roles: BTreeMap<(String, String), Vec<Rule>>,
    /// By namespace (empty for ClusterRoleBindings), in order of name.
    bindings: BTreeMap<String, Vec<Binding>>,
}

#[derive(Debug)]
struct Binding {
    name: String,
    role_kind: String,
    role_name: String,
    subjects: Vec<Subject>,
}

#[derive(Debug)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

// === impl Authorizer ===

impl Authorizer {
    /// Returns the authorizer over these objects, and ignores other kinds.
    pub(crate) fn new<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut this = Self::default();
        for object in objects {
            let namespace = text(object, "/metadata/namespace").to_owned();
            let name = text(object, "/metadata/name").to_owned();
            match text(object, "/kind") {
                "ClusterRole" => {
                    this.roles.insert((String::new(), name), rules::of(object));
                }
                "Role" => {
                    this.roles.insert((namespace, name), rules::of(object));
                }
                "ClusterRoleBinding" => {
                    this.bindings.entry(String::new()).or_default().push(binding(object, name));
                }
                "RoleBinding" => {
                    this.bindings.entry(namespace).or_default().push(binding(object, name));
                }
                _ => {}
            }
        }
        for bindings in this.bindings.values_mut() {
            bindings.sort_by(|a, b| a.name.cmp(&b.name));
        }
        this
    }

    /// Decides as kube-apiserver does: `system:masters` is allowed everything, RBAC decides the rest.
    pub(crate) fn authorize(&self, user: &UserInfo, attributes: &Attributes<'_>) -> Decision {
        if user.in_group(MASTERS) {
            return Decision { allowed: true, reason: String::new() };
        }
        let mut missing = Vec::new();
        for applied in self.applied(user, attributes.namespace) {
            match applied {
                Ok((source, rules)) if rules.iter().any(|rule| rule.allows(attributes)) => {
                    return Decision { allowed: true, reason: format!("RBAC: allowed by {source}") };
                }
                Ok(_) => {}
                Err(error) => missing.push(error),
            }
        }
        missing.dedup();
        Decision {
            allowed: false,
            reason: match missing.as_slice() {
                [] => String::new(),
                [one] => format!("RBAC: {one}"),
                several => format!("RBAC: [{}]", several.join(", ")),
            },
        }
    }

    /// Returns a 403 with kube-apiserver's message unless the action is allowed.
    pub(crate) fn require(&self, user: &UserInfo, attributes: &Attributes<'_>) -> Result<(), StatusError> {
        let decision = self.authorize(user, attributes);
        if decision.allowed {
            return Ok(());
        }
        Err(forbidden(user, attributes, &decision.reason))
    }

    /// Returns every rule that applies to the user in the namespace, with an error for each missing role.
    pub(crate) fn rules_for(&self, user: &UserInfo, namespace: &str) -> (Vec<&Rule>, Vec<String>) {
        let mut rules = Vec::new();
        let mut errors = Vec::new();
        for applied in self.applied(user, namespace) {
            match applied {
                Ok((_, of)) => rules.extend(of),
                Err(error) => errors.push(error),
            }
        }
        (rules, errors)
    }

    /// Returns the rules of the role that a binding refers to.
    pub(crate) fn rules_of(&self, kind: &str, name: &str, namespace: &str) -> Result<&[Rule], String> {
        let (namespace, resource) = match kind {
            "ClusterRole" => ("", "clusterrole"),
            "Role" => (namespace, "role"),
            other => return Err(format!("unsupported role reference kind: {other:?}")),
        };
        self.roles
            .get(&(namespace.to_owned(), name.to_owned()))
            .map(Vec::as_slice)
            .ok_or_else(|| format!("{resource}.rbac.authorization.k8s.io {name:?} not found"))
    }

    /// Visits the bindings of the user: first the cluster's, then the namespace's.
    fn applied<'s, 'u>(
        &'s self,
        user: &'u UserInfo,
        namespace: &'u str,
    ) -> impl Iterator<Item = Result<(String, &'s [Rule]), String>> + use<'s, 'u> {
        let scopes = if namespace.is_empty() { vec![""] } else { vec!["", namespace] };
        scopes.into_iter().flat_map(move |scope| {
            self.bindings.get(scope).into_iter().flatten().filter_map(move |binding| {
                let subject = binding.subjects.iter().find(|s| s.is(user, scope))?;
                Some(
                    self.rules_of(&binding.role_kind, &binding.role_name, scope)
                        .map(|rules| (binding.describe(subject, scope), rules)),
                )
            })
        })
    }
}

/// Returns the 403 of a denied request.
pub(crate) fn forbidden(user: &UserInfo, attributes: &Attributes<'_>, reason: &str) -> StatusError {
    let resource = match attributes.subresource {
        "" => attributes.resource.to_owned(),
        subresource => format!("{}/{subresource}", attributes.resource),
    };
    let mut message = match attributes {
        Attributes { path: Some(path), verb, .. } => {
            format!("User {:?} cannot {verb} path {path:?}", user.name)
        }
        Attributes { verb, group, namespace: "", .. } => format!(
            "User {:?} cannot {verb} resource {resource:?} in API group {group:?} at the cluster scope",
            user.name
        ),
        Attributes { verb, group, namespace, .. } => format!(
            "User {:?} cannot {verb} resource {resource:?} in API group {group:?} in the namespace {namespace:?}",
            user.name
        ),
    };
    message = message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    if !reason.is_empty() {
        message = format!("{message}: {reason}");
    }
    let resource = GroupResource::new(attributes.group, attributes.resource);
    StatusError::forbidden(&resource, attributes.name, message)
}

// === impl Binding ===

impl Binding {
    fn describe(&self, subject: &Subject, namespace: &str) -> String {
        let (kind, name) = match namespace {
            "" => ("ClusterRoleBinding", self.name.clone()),
            namespace => ("RoleBinding", format!("{}/{namespace}", self.name)),
        };
        let who = match (subject.kind.as_str(), subject.namespace.as_str()) {
            ("ServiceAccount", "") => format!("{}/{namespace}", subject.name),
            ("ServiceAccount", own) => format!("{}/{own}", subject.name),
            _ => subject.name.clone(),
        };
        format!("{kind} {name:?} of {} {:?} to {} {who:?}", self.role_kind, self.role_name, subject.kind)
    }
}

// === impl Subject ===

impl Subject {
    fn is(&self, user: &UserInfo, namespace: &str) -> bool {
        match self.kind.as_str() {
            "User" => user.name == self.name,
            "Group" => user.in_group(&self.name),
            "ServiceAccount" => {
                let namespace = if self.namespace.is_empty() { namespace } else { &self.namespace };
                !namespace.is_empty() && user.as_service_account() == Some((namespace, &self.name))
            }
            _ => false,
        }
    }
}

fn binding(object: &Value, name: String) -> Binding {
    Binding {
        name,
        role_kind: text(object, "/roleRef/kind").to_owned(),
        role_name: text(object, "/roleRef/name").to_owned(),
        subjects: object
            .get("subjects")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|subject| Subject {
                kind: text(subject, "/kind").to_owned(),
                name: text(subject, "/name").to_owned(),
                namespace: text(subject, "/namespace").to_owned(),
            })
            .collect(),
    }
}

pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
