//! Collects rights by namespace and folds them into few policy rules with the same meaning.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::PolicyRule;
use oarlock_plugin::contract::Namespaces;

/// The scope of a right.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// All namespaces, and objects without one.
    Everywhere,
    /// One namespace.
    Namespace(String),
}

/// Verbs by scope and target.
#[derive(Debug, Default)]
pub(super) struct Rules {
    places: BTreeMap<Place, BTreeMap<Target, BTreeSet<String>>>,
}

/// A resource of a group, or one object of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
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
        let target = Target { group: group.to_owned(), resource: resource.to_owned(), name: None };
        self.add(place, target, verbs);
    }

    pub(super) fn allow_named(
        &mut self,
        namespace: &str,
        group: &str,
        resource: &str,
        name: &str,
        verbs: &[&str],
    ) {
        let target =
            Target { group: group.to_owned(), resource: resource.to_owned(), name: Some(name.to_owned()) };
        self.add(Place::Namespace(namespace.to_owned()), target, verbs);
    }

    /// Returns the rules by scope. Verbs that are allowed everywhere are left out of single namespaces;
    /// targets with the same group, verbs and names share a rule.
    pub(super) fn into_policy_rules(mut self) -> Vec<(Place, Vec<PolicyRule>)> {
        let everywhere = self.places.get(&Place::Everywhere).cloned().unwrap_or_default();
        for (place, allowed) in &mut self.places {
            if *place == Place::Everywhere {
                continue;
            }
            for (target, verbs) in allowed.iter_mut() {
                if let Some(already) = everywhere.get(target) {
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

    fn add(&mut self, place: Place, target: Target, verbs: &[&str]) {
        let allowed = self.places.entry(place).or_default().entry(target).or_default();
        allowed.extend(verbs.iter().map(|&verb| verb.to_owned()));
    }
}

fn fold(allowed: BTreeMap<Target, BTreeSet<String>>) -> Vec<PolicyRule> {
    // First merge the names of one resource, then the resources of one group.
    let mut named: BTreeMap<(String, String, bool, Vec<String>), BTreeSet<String>> = BTreeMap::new();
    for (target, verbs) in allowed {
        let names =
            named.entry((target.group, target.resource, target.name.is_some(), in_order(verbs))).or_default();
        names.extend(target.name);
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

/// Returns verbs in the usual order.
fn in_order(verbs: BTreeSet<String>) -> Vec<String> {
    const ORDER: [&str; 8] =
        ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
    let rank = |verb: &String| ORDER.iter().position(|it| it == verb).unwrap_or(ORDER.len());
    let mut verbs: Vec<String> = verbs.into_iter().collect();
    verbs.sort_by_key(rank);
    verbs
}
