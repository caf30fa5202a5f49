//! The rights that plugins' accounts and the host's own account need, as Kubernetes objects.
//!
//! The resources that a plugin declares in `describe` become a Role or ClusterRole for its account. The
//! host's account gets the rights to list and watch those resources, to create SubjectAccessReviews, and to
//! impersonate exactly the named accounts. No rule contains a `*`. Printing a manifest grants nothing: the
//! operator reviews and applies it.

mod apply;
mod opt_in;
mod risks;
mod rules;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use k8s_openapi::{
    api::{
        core::v1::{Namespace, ServiceAccount},
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding, RoleRef, Subject},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use oarlock_plugin::contract::{Description, Namespaces};

pub use self::apply::ApplyError;
pub use self::opt_in::{CONSTRAINED_IMPERSONATOR, IMPERSONATOR, Impersonation, opt_in};
use self::rules::{Place, Rules};
use crate::{account::Account, plugin_resource, report::OneLine};

/// The name of the host's own roles and bindings.
const HOST_ROLE: &str = "oarlock-host";

/// The namespaces that every cluster has.
const BUILT_IN: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// The facts about a plugin from which its rights are derived.
#[derive(Debug, Clone)]
pub struct Needs {
    /// The plugin's name.
    pub plugin: String,
    /// The account that it acts as.
    pub account: Account,
    /// The result of its `describe`.
    pub description: Description,
    /// Whether it records Kubernetes Events.
    pub emits_events: bool,
}

/// Objects to apply, in the order in which they can be applied.
#[derive(Debug, Clone, Default)]
pub struct Manifest {
    sections: Vec<Section>,
}

/// Why the rights of a plugin cannot be derived.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plugin declares a wildcard.
    #[error(
        "plugin {plugin} declares `*` as {what}. Rights are granted by name only. Fix: name each {what} that the plugin needs"
    )]
    Wildcard {
        /// The plugin's name.
        plugin: String,
        /// `group`, `resource` and so on.
        what: &'static str,
    },
}

#[derive(Debug, Clone)]
struct Section {
    comment: String,
    /// The risks of applying it.
    warnings: Vec<String>,
    items: Vec<Item>,
}

#[derive(Debug, Clone, serde::Serialize)]
#[serde(untagged)]
enum Item {
    ServiceAccount(ServiceAccount),
    ClusterRole(ClusterRole),
    ClusterRoleBinding(ClusterRoleBinding),
    Role(Role),
    RoleBinding(RoleBinding),
}

/// Returns the rights that the plugins' accounts need.
pub fn for_plugins(plugins: &[Needs]) -> Result<Manifest, Error> {
    let mut manifest = Manifest::default();
    let mut made = BTreeSet::new();
    for needs in plugins {
        let rules = plugin_rules(needs)?;
        let Needs { plugin, account, .. } = needs;
        let mut items = Vec::new();
        if made.insert(account.clone()) {
            items.push(Item::ServiceAccount(service_account(account)));
        }
        items.extend(roles(&format!("oarlock-plugin-{plugin}"), account, rules));
        let comment = format!("The plugin {plugin}, which acts as the ServiceAccount {account}.");
        manifest.sections.push(Section { comment, warnings: risks::of(needs), items });
    }
    Ok(manifest)
}

/// Returns the rights that the host's own account needs for these plugins.
pub fn for_host(host: &Account, plugins: &[Needs]) -> Result<Manifest, Error> {
    let mut rules = Rules::default();
    rules.allow(Place::Everywhere, "", "namespaces", &["list", "watch"]);
    rules.allow(Place::Everywhere, "authorization.k8s.io", "subjectaccessreviews", &["create"]);
    for needs in plugins {
        check(needs)?;
        for (target, _) in needs.watched() {
            rules.allow(Place::Everywhere, &target.group, &target.plural, &["list", "watch"]);
        }
        let Account { namespace, name } = &needs.account;
        rules.allow_named(namespace, "", "serviceaccounts", name, &["get", "impersonate"]);
    }
    let mut items = vec![Item::ServiceAccount(service_account(host))];
    items.extend(roles(HOST_ROLE, host, rules));
    let comment = format!("The host itself, which runs as the ServiceAccount {host}.");
    let warnings = wider_than_named(plugins);
    Ok(Manifest { sections: vec![Section { comment, warnings, items }] })
}

/// Returns a warning for each resource that the host watches everywhere although the plugins name single
/// namespaces.
fn wider_than_named(plugins: &[Needs]) -> Vec<String> {
    let mut named: BTreeMap<(&str, &str), Option<BTreeSet<&str>>> = BTreeMap::new();
    for (target, namespaces) in plugins.iter().flat_map(Needs::watched) {
        let places = named.entry((&target.group, &target.plural)).or_insert_with(|| Some(BTreeSet::new()));
        match (namespaces, places.as_mut()) {
            (Namespaces::One(namespace), Some(places)) => _ = places.insert(namespace),
            (Namespaces::One(_), None) => {}
            (Namespaces::All, _) => *places = None,
        }
    }
    named
        .into_iter()
        .filter_map(|((group, plural), places)| {
            let places: Vec<_> = places?.into_iter().collect();
            let dot = if group.is_empty() { "" } else { "." };
            Some(format!(
                "the host lists and watches {plural}{dot}{group} in all namespaces, although the plugins name only {}: one watch \
                 serves all plugins, and each plugin reads only what its own account may read",
                places.join(", ")
            ))
        })
        .collect()
}

/// Returns the rights that the host's own account needs to run Plugin objects of every namespace, whether the
/// namespace has opted in or not: to act as any ServiceAccount. For `oarlock dev`.
#[must_use]
pub fn for_plugin_objects(host: &Account) -> Manifest {
    let mut rules = Rules::default();
    let group = plugin_resource::GROUP;
    for resource in ["plugins", "clusterplugins"] {
        rules.allow(Place::Everywhere, group, resource, &["list", "watch"]);
        rules.allow(Place::Everywhere, group, &format!("{resource}/status"), &["patch"]);
    }
    rules.allow(Place::Everywhere, "", "events", &["create", "patch"]);
    rules.allow(Place::Everywhere, "", "serviceaccounts", &["get", "impersonate"]);
    let review = "selfsubjectaccessreviews";
    rules.allow(Place::Everywhere, "authorization.k8s.io", review, &["create"]);
    let items = roles("oarlock-plugin-objects", host, rules);
    let comment = "The host as the one that runs Plugin objects, of every namespace.".to_owned();
    Manifest { sections: vec![Section { comment, warnings: Vec::new(), items }] }
}

/// Returns the rights that the host's own account needs for a leader election: to hold a Lease and record
/// Events about it.
#[must_use]
pub fn for_election(host: &Account, namespace: &str, lease: &str) -> Manifest {
    let mut rules = Rules::default();
    let here = Place::Namespace(namespace.to_owned());
    // A rule with a name does not allow `create`, because the API server does not know the name then.
    rules.allow(here.clone(), "coordination.k8s.io", "leases", &["create"]);
    rules.allow_named(namespace, "coordination.k8s.io", "leases", lease, &["get", "update"]);
    rules.allow(here, "", "events", &["create", "patch"]);
    let items = roles("oarlock-election", host, rules);
    let comment = format!("The host as a candidate for the Lease {namespace}/{lease}.");
    Manifest { sections: vec![Section { comment, warnings: Vec::new(), items }] }
}

// === impl Needs ===

impl Needs {
    /// Returns each resource that the plugin watches or reads, with its namespaces.
    fn watched(
        &self,
    ) -> impl Iterator<Item = (&oarlock_plugin::contract::GroupVersionResource, &Namespaces)> {
        let Description { subscriptions, reads, .. } = &self.description;
        let subscriptions = subscriptions.iter().map(|it| (&it.target, &it.namespaces));
        subscriptions.chain(reads.iter().map(|it| (&it.target, &it.namespaces)))
    }
}

// === impl Manifest ===

impl Manifest {
    /// Appends another manifest.
    #[must_use]
    pub fn then(mut self, other: Self) -> Self {
        self.sections.extend(other.sections);
        self
    }

    /// Returns the namespaces of the objects.
    #[must_use]
    pub fn namespaces(&self) -> BTreeSet<String> {
        self.items().filter_map(|item| item.metadata().namespace.clone()).collect()
    }

    /// Returns the risks of applying the manifest.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.sections.iter().flat_map(|section| section.warnings.clone()).collect()
    }

    /// Returns one stream of YAML documents with comments, for `kubectl apply -f -`. Namespaces come first,
    /// except those that every cluster has.
    pub fn to_yaml(&self) -> Result<String, serde_norway::Error> {
        let mut yaml = String::new();
        let namespaces = self.namespaces();
        let namespaces: Vec<_> = namespaces.iter().filter(|it| !BUILT_IN.contains(&it.as_str())).collect();
        // Writing into a String cannot fail.
        if !namespaces.is_empty() {
            yaml.push_str(
                "# The namespaces of the objects below. Existing ones are not changed. Leave this part out of `kubectl delete`:\n\
                 # deleting a namespace deletes everything in it.\n",
            );
        }
        for name in namespaces {
            let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
            let namespace = Namespace { metadata, ..Namespace::default() };
            let _ = write!(yaml, "---\n{}", crate::yaml::to_string(&namespace)?);
        }
        for section in &self.sections {
            let _ = writeln!(yaml, "\n# {}", OneLine(&section.comment));
            for warning in &section.warnings {
                let _ = writeln!(yaml, "# WARNING: {}.", OneLine(warning));
            }
            for item in &section.items {
                let _ = write!(yaml, "---\n{}", crate::yaml::to_string(item)?);
            }
        }
        Ok(yaml)
    }

    fn items(&self) -> impl Iterator<Item = &Item> {
        self.sections.iter().flat_map(|section| &section.items)
    }
}

// === impl Item ===

impl Item {
    fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::ServiceAccount(it) => &it.metadata,
            Self::ClusterRole(it) => &it.metadata,
            Self::ClusterRoleBinding(it) => &it.metadata,
            Self::Role(it) => &it.metadata,
            Self::RoleBinding(it) => &it.metadata,
        }
    }
}

fn plugin_rules(needs: &Needs) -> Result<Rules, Error> {
    check(needs)?;
    let mut rules = Rules::default();
    // Live reads use `get`, which reveals no more than `list`.
    for (target, namespaces) in needs.watched() {
        rules.allow(namespaces.into(), &target.group, &target.plural, &["get", "list", "watch"]);
    }
    for request in &needs.description.requests {
        let resource = match request.subresource.as_str() {
            "" => request.target.plural.clone(),
            subresource => format!("{}/{subresource}", request.target.plural),
        };
        let verbs: Vec<&str> = request.verbs.iter().map(String::as_str).collect();
        rules.allow((&request.namespaces).into(), &request.target.group, &resource, &verbs);
    }
    if needs.emits_events {
        let places: BTreeSet<Place> = needs
            .watched()
            .map(|(_, namespaces)| namespaces)
            .chain(needs.description.requests.iter().map(|request| &request.namespaces))
            .map(Place::from)
            .collect();
        for place in places {
            rules.allow(place, "", "events", &["create", "patch"]);
        }
    }
    Ok(rules)
}

fn check(needs: &Needs) -> Result<(), Error> {
    let refuse = |what| Err(Error::Wildcard { plugin: needs.plugin.clone(), what });
    let requests = &needs.description.requests;
    let requested = requests.iter().map(|request| (&request.target, &request.namespaces));
    for (target, namespaces) in needs.watched().chain(requested) {
        if target.group.contains('*') {
            return refuse("group");
        }
        if target.plural.contains('*') {
            return refuse("resource");
        }
        if matches!(namespaces, Namespaces::One(namespace) if namespace.contains('*')) {
            return refuse("namespace");
        }
    }
    if requests.iter().any(|request| request.subresource.contains('*')) {
        return refuse("subresource");
    }
    if requests.iter().any(|request| request.verbs.iter().any(|verb| verb.contains('*'))) {
        return refuse("verb");
    }
    Ok(())
}

fn service_account(account: &Account) -> ServiceAccount {
    ServiceAccount {
        metadata: metadata(&account.name, Some(&account.namespace)),
        ..ServiceAccount::default()
    }
}

/// Makes one role and one binding for each place that has rules.
fn roles(name: &str, account: &Account, rules: Rules) -> Vec<Item> {
    let subject = Subject {
        kind: "ServiceAccount".to_owned(),
        name: account.name.clone(),
        namespace: Some(account.namespace.clone()),
        ..Subject::default()
    };
    let role_ref = |kind: &str| RoleRef {
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        kind: kind.to_owned(),
        name: name.to_owned(),
    };
    let mut items = Vec::new();
    for (place, rules) in rules.into_policy_rules() {
        match place {
            Place::Everywhere => {
                items.push(Item::ClusterRole(ClusterRole {
                    metadata: metadata(name, None),
                    rules: Some(rules),
                    ..ClusterRole::default()
                }));
                items.push(Item::ClusterRoleBinding(ClusterRoleBinding {
                    metadata: metadata(name, None),
                    role_ref: role_ref("ClusterRole"),
                    subjects: Some(vec![subject.clone()]),
                }));
            }
            Place::Namespace(namespace) => {
                items.push(Item::Role(Role {
                    metadata: metadata(name, Some(&namespace)),
                    rules: Some(rules),
                }));
                items.push(Item::RoleBinding(RoleBinding {
                    metadata: metadata(name, Some(&namespace)),
                    role_ref: role_ref("Role"),
                    subjects: Some(vec![subject.clone()]),
                }));
            }
        }
    }
    items
}

fn metadata(name: &str, namespace: Option<&str>) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: namespace.map(str::to_owned),
        labels: Some([("app.kubernetes.io/managed-by".to_owned(), "oarlock".to_owned())].into()),
        ..ObjectMeta::default()
    }
}

#[cfg(test)]
mod tests;
