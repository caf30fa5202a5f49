//! One rule of a Role: the requests that it allows, and the rules that it covers.

use super::Attributes;
use serde_json::{Map, Value, json};

/// A `rbac/v1` PolicyRule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    pub verbs: Vec<String>,
    pub groups: Vec<String>,
    pub resources: Vec<String>,
    pub names: Vec<String>,
    pub urls: Vec<String>,
}

/// Returns the rules of a Role or ClusterRole.
pub(super) fn of(role: &Value) -> Vec<Rule> {
    role.get("rules").and_then(Value::as_array).into_iter().flatten().map(Rule::from).collect()
}

// === impl Rule ===

impl Rule {
    pub(super) fn allows(&self, wanted: &Attributes<'_>) -> bool {
        if !any(&self.verbs, "*", wanted.verb) {
            return false;
        }
        if let Some(path) = wanted.path {
            return self.urls.iter().any(|url| url == "*" || path_matches(url, path));
        }
        any(&self.groups, "*", wanted.group)
            && self.matches_resource(wanted.resource, wanted.subresource)
            && (self.names.is_empty() || self.names.iter().any(|name| name == wanted.name))
    }

    fn matches_resource(&self, resource: &str, subresource: &str) -> bool {
        self.resources.iter().any(|rule| match subresource {
            "" => rule == "*" || rule == resource,
            // `*` includes every subresource, `*/scale` is this subresource of every resource.
            _ => {
                rule == "*"
                    || rule
                        .split_once('/')
                        .is_some_and(|(of, sub)| sub == subresource && (of == "*" || of == resource))
            }
        })
    }

    /// Returns the rule as rules with one verb, group, resource and name each.
    pub(super) fn break_down(&self) -> Vec<Self> {
        let mut parts = Vec::new();
        let names: Vec<Vec<String>> = match self.names.as_slice() {
            [] => vec![Vec::new()],
            names => names.iter().map(|name| vec![name.clone()]).collect(),
        };
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    for names in &names {
                        parts.push(Self {
                            verbs: vec![verb.clone()],
                            groups: vec![group.clone()],
                            resources: vec![resource.clone()],
                            names: names.clone(),
                            urls: Vec::new(),
                        });
                    }
                }
            }
        }
        for url in &self.urls {
            for verb in &self.verbs {
                parts.push(Self { verbs: vec![verb.clone()], urls: vec![url.clone()], ..Self::default() });
            }
        }
        parts
    }

    /// Returns whether this rule allows everything that a broken-down rule allows.
    pub(super) fn covers(&self, part: &Self) -> bool {
        let has_all = |set: &[String], wanted: &[String]| wanted.iter().all(|one| set.contains(one));
        let star = |set: &[String]| set.iter().any(|one| one == "*");
        let resources = star(&self.resources)
            || part.resources.iter().all(|wanted| {
                self.resources.contains(wanted)
                    || wanted
                        .split_once('/')
                        .is_some_and(|(_, sub)| self.resources.contains(&format!("*/{sub}")))
            });
        let names = self.names.is_empty() || !part.names.is_empty() && has_all(&self.names, &part.names);
        (star(&self.verbs) || has_all(&self.verbs, &part.verbs))
            && (star(&self.groups) || has_all(&self.groups, &part.groups))
            && resources
            && names
            && part.urls.iter().all(|wanted| self.urls.iter().any(|url| path_matches(url, wanted)))
    }

    /// Returns the rule as in a SelfSubjectRulesReview and in the escalation error.
    pub(super) fn to_value(&self) -> Value {
        let mut out = Map::new();
        let mut put = |key: &str, list: &[String]| {
            if !list.is_empty() {
                out.insert(key.into(), json!(list));
            }
        };
        put("verbs", &self.verbs);
        put("apiGroups", &self.groups);
        put("resources", &self.resources);
        put("resourceNames", &self.names);
        put("nonResourceURLs", &self.urls);
        Value::Object(out)
    }
}

impl From<&Value> for Rule {
    fn from(rule: &Value) -> Self {
        let list = |key: &str| -> Vec<String> {
            rule.get(key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        };
        Self {
            verbs: list("verbs"),
            groups: list("apiGroups"),
            resources: list("resources"),
            names: list("resourceNames"),
            urls: list("nonResourceURLs"),
        }
    }
}

fn any(set: &[String], all: &str, wanted: &str) -> bool {
    set.iter().any(|one| one == all || one == wanted)
}

fn path_matches(url: &str, path: &str) -> bool {
    url == path || url.ends_with('*') && path.starts_with(url.trim_end_matches('*'))
}
