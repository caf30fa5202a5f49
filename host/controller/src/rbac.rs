//! The rights that a plugin's account and the host's own account need, as Kubernetes objects.
//!
//! What a plugin declares in `describe` becomes a Role or ClusterRole for its account, and the host gets what it takes to
//! serve it: to list and watch those resources, to ask what accounts may do, and to impersonate exactly the accounts that
//! were named. Nothing here is ever a `*`, and printing grants nothing: an operator applies it, or trims it first.

mod apply;
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
use self::rules::{Place, Rules};
use crate::{account::Account, report::OneLine};

/// The name of the host's own roles and bindings.
const HOST_ROLE: &str = "oarlock-host";

/// Namespaces that every cluster has.
const BUILT_IN: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// What rights are derived from.
#[derive(Debug, Clone)]
pub struct Needs {
    /// The plugin's name.
    pub plugin: String,
    /// Whom it acts as.
    pub account: Account,
    /// What it says of itself.
    pub description: Description,
    /// Whether it records Kubernetes Events.
    pub emits_events: bool,
}

/// Objects to apply, in an order in which they can be.
#[derive(Debug, Clone, Default)]
pub struct Manifest {
    sections: Vec<Section>,
}

/// Why no rights are printed for a plugin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It asks for everything of a kind.
    #[error(
        "plugin {plugin} declares `*` as {what}: rights are given by name only, so declare what it needs"
    )]
    Wildcard {
        /// The plugin's name.
        plugin: String,
        /// `a group`, `a resource` and so on.
        what: &'static str,
    },
}

#[derive(Debug, Clone)]
struct Section {
    comment: String,
    /// What whoever applies it should know of.
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

/// Returns what the plugins' accounts need.
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

/// Returns what the host's own account needs in order to serve these plugins.
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

/// Says where the host gets a right everywhere although the plugins name single namespaces.
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
                 serves all plugins, and each sees only what its own account may",
                places.join(", ")
            ))
        })
        .collect()
}

/// Returns what the host's own account needs in order to compete for a Lease, and to tell of it in Events.
#[must_use]
pub fn for_election(host: &Account, namespace: &str, lease: &str) -> Manifest {
    let mut rules = Rules::default();
    let here = Place::Namespace(namespace.to_owned());
    // What is made has no name yet, as far as the API server's rules go.
    rules.allow(here.clone(), "coordination.k8s.io", "leases", &["create"]);
    rules.allow_named(namespace, "coordination.k8s.io", "leases", lease, &["get", "update"]);
    rules.allow(here, "", "events", &["create", "patch"]);
    let items = roles("oarlock-election", host, rules);
    let comment = format!("The host as a candidate for the Lease {namespace}/{lease}.");
    Manifest { sections: vec![Section { comment, warnings: Vec::new(), items }] }
}

// === impl Needs ===

impl Needs {
    /// Everything that the plugin watches or reads, and where.
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
    /// Puts another manifest behind this one.
    #[must_use]
    pub fn then(mut self, other: Self) -> Self {
        self.sections.extend(other.sections);
        self
    }

    /// The namespaces that objects of this manifest live in.
    #[must_use]
    pub fn namespaces(&self) -> BTreeSet<String> {
        self.items().filter_map(|item| item.metadata().namespace.clone()).collect()
    }

    /// What whoever applies this should know of before.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.sections.iter().flat_map(|section| section.warnings.clone()).collect()
    }

    /// Returns it as one stream of YAML documents with comments, for `kubectl apply -f -`. Its namespaces come first, but for
    /// those that every cluster has.
    pub fn to_yaml(&self) -> Result<String, serde_norway::Error> {
        let mut yaml = String::new();
        let namespaces = self.namespaces();
        let namespaces: Vec<_> = namespaces.iter().filter(|it| !BUILT_IN.contains(&it.as_str())).collect();
        // Writing into a String cannot fail.
        if !namespaces.is_empty() {
            yaml.push_str(
                "# The namespaces of the objects below. Those that exist stay as they are. To take the rights away again,\n\
                 # leave this part out: `kubectl delete` of a namespace deletes everything in it.\n",
            );
        }
        for name in namespaces {
            let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
            let namespace = Namespace { metadata, ..Namespace::default() };
            let _ = write!(yaml, "---\n{}", serde_norway::to_string(&namespace)?);
        }
        for section in &self.sections {
            let _ = writeln!(yaml, "\n# {}", OneLine(&section.comment));
            for warning in &section.warnings {
                let _ = writeln!(yaml, "# WARNING: {}.", OneLine(warning));
            }
            for item in &section.items {
                let _ = write!(yaml, "---\n{}", serde_norway::to_string(item)?);
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
    // `get` shows nothing that `list` does not, and live reads use it.
    for (target, namespaces) in needs.watched() {
        rules.allow(namespaces.into(), &target.group, &target.plural, &["get", "list", "watch"]);
    }
    for write in &needs.description.writes {
        let resource = match write.subresource.as_str() {
            "" => write.target.plural.clone(),
            subresource => format!("{}/{subresource}", write.target.plural),
        };
        let verbs: Vec<&str> = write.verbs.iter().map(String::as_str).collect();
        rules.allow((&write.namespaces).into(), &write.target.group, &resource, &verbs);
    }
    if needs.emits_events {
        let places: BTreeSet<Place> = needs
            .watched()
            .map(|(_, namespaces)| namespaces)
            .chain(needs.description.writes.iter().map(|write| &write.namespaces))
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
    let writes = &needs.description.writes;
    let written = writes.iter().map(|write| (&write.target, &write.namespaces));
    for (target, namespaces) in needs.watched().chain(written) {
        if target.group.contains('*') {
            return refuse("a group");
        }
        if target.plural.contains('*') {
            return refuse("a resource");
        }
        if matches!(namespaces, Namespaces::One(namespace) if namespace.contains('*')) {
            return refuse("a namespace");
        }
    }
    if writes.iter().any(|write| write.subresource.contains('*')) {
        return refuse("a subresource");
    }
    if writes.iter().any(|write| write.verbs.iter().any(|verb| verb.contains('*'))) {
        return refuse("a verb");
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
