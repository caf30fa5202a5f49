//! Collecting what is allowed where, and folding it into as few policy rules as say the same.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::PolicyRule;
use oarlock_plugin::contract::Namespaces;

/// Where something is allowed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// In the whole cluster.
    Everywhere,
    /// In one namespace.
    Namespace(String),
}

/// What is allowed where.
#[derive(Debug, Default)]
pub(super) struct Rules {
    places: BTreeMap<Place, BTreeMap<What, BTreeSet<String>>>,
}

/// A resource of a group, or one object of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct What {
    group: String,
    resource: String,
    name: Option<String>,
}

// === impl Place ===

impl From<&Namespaces> for Place {
    fn from(namespaces: &Namespaces) -> Self {
        match namespaces {
            Namespaces::All => Self::Everywhere,
            Namespaces::One(namespace) => Self::Namespace(namespace.clone()),
        }
    }
}

// === impl Rules ===

impl Rules {
    pub(super) fn allow(&mut self, place: Place, group: &str, resource: &str, verbs: &[&str]) {
        let what = What { group: group.to_owned(), resource: resource.to_owned(), name: None };
        self.add(place, what, verbs);
    }

    pub(super) fn allow_named(
        &mut self,
        namespace: &str,
        group: &str,
        resource: &str,
        name: &str,
        verbs: &[&str],
    ) {
        let what =
            What { group: group.to_owned(), resource: resource.to_owned(), name: Some(name.to_owned()) };
        self.add(Place::Namespace(namespace.to_owned()), what, verbs);
    }

    /// Folds: verbs that are allowed everywhere are not repeated for a namespace, and what has the same group, verbs and
    /// names shares a rule.
    pub(super) fn into_policy_rules(mut self) -> Vec<(Place, Vec<PolicyRule>)> {
        let everywhere = self.places.get(&Place::Everywhere).cloned().unwrap_or_default();
        for (place, allowed) in &mut self.places {
            if *place == Place::Everywhere {
                continue;
            }
            for (what, verbs) in allowed.iter_mut() {
                if let Some(already) = everywhere.get(what) {
                    verbs.retain(|verb| !already.contains(verb));
                }
            }
            allowed.retain(|_, verbs| !verbs.is_empty());
        }
        self.places
            .into_iter()
            .filter(|(_, allowed)| !allowed.is_empty())
            .map(|(place, allowed)| (place, fold(allowed)))
            .collect()
    }

    fn add(&mut self, place: Place, what: What, verbs: &[&str]) {
        let allowed = self.places.entry(place).or_default().entry(what).or_default();
        allowed.extend(verbs.iter().map(|&verb| verb.to_owned()));
    }
}

fn fold(allowed: BTreeMap<What, BTreeSet<String>>) -> Vec<PolicyRule> {
    // First the names of one resource, then the resources of one group.
    let mut named: BTreeMap<(String, String, bool, Vec<String>), BTreeSet<String>> = BTreeMap::new();
    for (what, verbs) in allowed {
        let names =
            named.entry((what.group, what.resource, what.name.is_some(), in_order(verbs))).or_default();
        names.extend(what.name);
    }
    let mut rules: BTreeMap<(String, BTreeSet<String>, Vec<String>), Vec<String>> = BTreeMap::new();
    for ((group, resource, _, verbs), names) in named {
        rules.entry((group, names, verbs)).or_default().push(resource);
    }
    rules
        .into_iter()
        .map(|((group, names, verbs), resources)| PolicyRule {
            api_groups: Some(vec![group]),
            resources: Some(resources),
            resource_names: (!names.is_empty()).then(|| names.into_iter().collect()),
            verbs,
            non_resource_urls: None,
        })
        .collect()
}

/// Verbs in the order in which people write them.
fn in_order(verbs: BTreeSet<String>) -> Vec<String> {
    const ORDER: [&str; 8] =
        ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
    let rank = |verb: &String| ORDER.iter().position(|it| it == verb).unwrap_or(ORDER.len());
    let mut verbs: Vec<String> = verbs.into_iter().collect();
    verbs.sort_by_key(rank);
    verbs
}
