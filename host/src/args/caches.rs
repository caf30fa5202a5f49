//! The content and the budget of the caches.

use std::str::FromStr;

use anyhow::{Result, anyhow, bail};
use clap::Args as ClapArgs;
use oarlock_controller::informers::{GroupResource, Limits, Prunings};
use oarlock_informer::object::Fields;
use oarlock_json::{JsonPointer, PointerPattern};

use crate::size::Size;

/// The fields that the host itself reads: for selectors, owners and listeners.
const READ_BY_HOST: [[&str; 2]; 3] =
    [["metadata", "labels"], ["metadata", "ownerReferences"], ["metadata", "deletionTimestamp"]];

/// Beyond the budget the host refuses new subscriptions. Existing ones continue.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Caches")]
pub(crate) struct CacheArgs {
    /// The maximum number of watched resources.
    #[arg(long, default_value_t = Limits::default().informers, value_name = "N")]
    pub(crate) max_informers: usize,

    /// The maximum number of cached objects.
    #[arg(long, default_value_t = Limits::default().objects, value_name = "N")]
    pub(crate) max_objects: usize,

    /// The maximum memory of cached objects, such as 512Mi. The host itself and its plugins need more.
    #[arg(long, default_value_t = Size(Limits::default().bytes), value_name = "SIZE")]
    pub(crate) max_cache_bytes: Size,

    /// Fields that are not cached, since no plugin needs them, such as
    /// `pods=/spec/volumes,/status/conditions`. In a pointer, `*` means every element of a list. May be given
    /// several times.
    #[arg(long, value_name = "RESOURCE=POINTER,…")]
    pub(crate) cache_drop: Vec<Choice>,

    /// The only fields of a resource that are cached, such as `pods=/metadata/annotations,/status/phase`,
    /// besides the identity of objects, their labels, owners and deletionTimestamp. May be given several
    /// times.
    #[arg(long, value_name = "RESOURCE=POINTER,…")]
    pub(crate) cache_keep: Vec<Choice>,

    /// A resource whose metadata.managedFields and last applied configuration are cached as well. May be
    /// given several times.
    #[arg(long, value_name = "RESOURCE")]
    pub(crate) cache_managed_fields: Vec<GroupResource>,
}

/// Fields of one resource.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    resource: GroupResource,
    pointers: Vec<PointerPattern>,
}

// === impl CacheArgs ===

impl CacheArgs {
    pub(crate) fn limits(&self) -> Limits {
        let Size(bytes) = self.max_cache_bytes;
        Limits { informers: self.max_informers, objects: self.max_objects, bytes }
    }

    /// Returns the fields to prune, by resource.
    ///
    /// # Errors
    ///
    /// When two settings contradict each other, or would prune a field that the host itself reads.
    pub(crate) fn prunings(&self) -> Result<Prunings> {
        let mut prunings = Prunings::default();
        let is_kept =
            |resource: &GroupResource| self.cache_keep.iter().any(|kept| kept.resource == *resource);
        for resource in &self.cache_managed_fields {
            if is_kept(resource) {
                bail!(
                    "--cache-managed-fields and --cache-keep both name {resource}: --cache-keep drops every other field"
                );
            }
            let pruning = prunings.entry(resource.clone());
            (pruning.managed_fields, pruning.last_applied) = (false, false);
        }
        for Choice { resource, pointers } in &self.cache_drop {
            if is_kept(resource) {
                bail!(
                    "--cache-drop and --cache-keep both name {resource}: --cache-keep drops every other field, so use one of them"
                );
            }
            if let Some(needed) = pointers.iter().find(|pointer| is_read_by_host(&pointer.to_string())) {
                bail!(
                    "--cache-drop {resource}={needed}: labels, owners and deletionTimestamp cannot be left out, since the host itself reads them"
                );
            }
            prunings.entry(resource.clone()).fields = Fields::without(all_of(&self.cache_drop, resource))
                .map_err(|error| anyhow!("--cache-drop {resource}: {error}"))?;
        }
        let read_by_host = READ_BY_HOST.map(|names| PointerPattern::from(JsonPointer::from(names)));
        for Choice { resource, .. } in &self.cache_keep {
            let kept = all_of(&self.cache_keep, resource).chain(&read_by_host);
            prunings.entry(resource.clone()).fields =
                Fields::only(kept).map_err(|error| anyhow!("--cache-keep {resource}: {error}"))?;
        }
        Ok(prunings)
    }
}

/// Returns whether a pointer selects a field that the host reads, or a part of one.
fn is_read_by_host(pointer: &str) -> bool {
    READ_BY_HOST.iter().any(|names| {
        let within = pointer.strip_prefix(&format!("/{}", names.join("/")));
        within.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Returns all pointers for a resource.
fn all_of<'c>(choices: &'c [Choice], resource: &GroupResource) -> impl Iterator<Item = &'c PointerPattern> {
    choices.iter().filter(move |choice| choice.resource == *resource).flat_map(|choice| &choice.pointers)
}

// === impl Choice ===

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (resource, pointers) = text
            .split_once('=')
            .ok_or("write a resource and JSON pointers, such as pods=/spec/volumes,/status/conditions")?;
        let pointers = pointers.split(',').map(|pointer| {
            if pointer.is_empty() {
                return Err(format!("{text:?} has an empty pointer: remove a comma"));
            }
            pointer.parse().map_err(|error| format!("{pointer:?} is not a JSON pointer: {error}"))
        });
        Ok(Self { resource: resource.parse()?, pointers: pointers.collect::<Result<_, String>>()? })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use oarlock_informer::{GroupVersionResource, Object};

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        caches: CacheArgs,
    }

    fn prunings(arguments: &[&str]) -> Result<Prunings, String> {
        let command = Command::try_parse_from([&["oarlock"], arguments].concat());
        let command = command.map_err(|error| error.to_string())?;
        command.caches.prunings().map_err(|error| error.to_string())
    }

    #[test]
    fn fields_are_dropped_or_kept_resource_by_resource() {
        let all = prunings(&[
            "--cache-drop=pods=/spec,/status/conditions",
            "--cache-drop=pods=/metadata/annotations",
            "--cache-keep=deployments.apps=/spec/replicas",
            "--cache-managed-fields=secrets",
        ])
        .unwrap();
        let kept = |group: &str, resource: &str| {
            let text = r#"{"kind":"X","apiVersion":"v1","metadata":{"name":"a","labels":{"l":"m"},"annotations":{"b":"c"},"managedFields":[]},"spec":{"replicas":1,"d":2},"status":{"phase":"e","conditions":[]}}"#;
            let pruning = all.of(&GroupVersionResource::new(group, "v1", resource));
            Object::parse_pruned(text.as_bytes(), None, &pruning).unwrap().json().to_string()
        };
        insta::assert_snapshot!(kept("", "pods"), @r#"{"kind":"X","apiVersion":"v1","metadata":{"name":"a","labels":{"l":"m"}},"status":{"phase":"e"}}"#);
        insta::assert_snapshot!(kept("apps", "deployments"), @r#"{"kind":"X","apiVersion":"v1","metadata":{"name":"a","labels":{"l":"m"}},"spec":{"replicas":1}}"#);
        assert!(kept("", "secrets").contains("managedFields"));
        insta::assert_snapshot!(kept("", "configmaps"), @r#"{"kind":"X","apiVersion":"v1","metadata":{"name":"a","labels":{"l":"m"},"annotations":{"b":"c"}},"spec":{"replicas":1,"d":2},"status":{"phase":"e","conditions":[]}}"#);
    }

    #[test]
    fn contradictory_settings_are_refused_with_the_reason() {
        for (arguments, reason) in [
            (vec!["--cache-drop=pods"], "pods=/spec/volumes"),
            (vec!["--cache-drop=pods=spec"], "is not a JSON pointer"),
            (vec!["--cache-drop=Pods=/spec"], "is not a resource"),
            (vec!["--cache-drop=pods=/metadata/uid"], "cannot be left out"),
            (vec!["--cache-drop=pods=/spec", "--cache-keep=pods=/status"], "use one of them"),
            (vec!["--cache-drop=pods=/metadata/labels/app"], "the host itself reads them"),
            (vec!["--cache-managed-fields=pods", "--cache-keep=pods=/status"], "both name pods"),
            (vec!["--cache-managed-fields=pods/status"], "is not a resource"),
            (vec!["--cache-drop=pods=/spec,"], "an empty pointer"),
        ] {
            let refused = prunings(&arguments).unwrap_err();
            assert!(refused.contains(reason), "{arguments:?}: {refused}");
        }
    }
}
