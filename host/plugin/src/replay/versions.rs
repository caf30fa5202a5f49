//! The versions of the plugin that made the calls of a record.

use std::collections::HashMap;

use super::MOST_INSTANCES;
use crate::record::Entry;

/// The maximum number of versions that a note lists.
const MOST_LISTED: usize = 8;

/// Collects which calls each version made.
#[derive(Default)]
pub(super) struct Versions {
    /// In the order of the record. A version that the host went back to is there twice.
    versions: Vec<Version>,
    /// The indices of the versions of generations and instances.
    generations: HashMap<u64, usize>,
    instances: HashMap<u64, usize>,
}

struct Version {
    digest: String,
    version: String,
    /// The first and the last call.
    calls: Option<(u64, u64)>,
}

// === impl Versions ===

impl Versions {
    /// Adds what an entry says. What is more than a host writes is left out.
    pub(super) fn add(&mut self, entry: &Entry) {
        match entry {
            Entry::Generation(generation) if self.generations.len() < MOST_INSTANCES => {
                let digest = short(&generation.digest);
                if self.versions.last().is_none_or(|last| last.digest != digest) {
                    let version = short(&generation.version);
                    self.versions.push(Version { digest, version, calls: None });
                }
                self.generations.insert(generation.generation, self.versions.len() - 1);
            }
            Entry::Start(start) if self.instances.len() < MOST_INSTANCES => {
                if let Some(version) = self.generations.get(&start.generation) {
                    self.instances.insert(start.call.instance, *version);
                }
            }
            Entry::Call(call) => {
                let version = self.instances.get(&call.instance).and_then(|it| self.versions.get_mut(*it));
                if let Some(version) = version {
                    let first = version.calls.map_or(call.number, |(first, _)| first);
                    version.calls = Some((first, call.number));
                }
            }
            Entry::Gone(gone) => {
                self.instances.remove(&gone.instance);
            }
            _ => {}
        }
    }

    /// Returns a note if the calls are those of several versions. `digest` is that of the replayed component.
    pub(super) fn note(&self, digest: &str) -> Option<String> {
        let digest = short(digest);
        let first = self.versions.first()?;
        if self.versions.iter().all(|version| version.digest == first.digest) {
            return None;
        }
        let mut listed: Vec<_> = self.versions.iter().take(MOST_LISTED).map(|it| it.shown(&digest)).collect();
        match self.versions.len() - listed.len() {
            0 => {}
            n => listed.push(format!("{n} more")),
        }
        let none = if self.versions.iter().any(|version| version.digest == digest) {
            ""
        } else {
            "; the component is none of them"
        };
        Some(format!("the record has calls of several versions: {}{none}", listed.join(", ")))
    }
}

// === impl Version ===

impl Version {
    fn shown(&self, given: &str) -> String {
        let Self { digest, version, calls } = self;
        let calls = match calls {
            None => "no call".to_owned(),
            Some((first, last)) if first == last => format!("call {first}"),
            Some((first, last)) => format!("calls {first} to {last}"),
        };
        let is_given = if digest == given { ", the component" } else { "" };
        format!("{calls} of {version} ({digest}{is_given})")
    }
}

fn short(text: &str) -> String {
    text.chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn generation(generation: u64, digest: &str, version: &str) -> Value {
        json!({
            "entry": "generation", "generation": generation, "digest": digest, "version": version,
            "stateless": false,
        })
    }

    fn call(number: u64, instance: u64) -> Value {
        json!({
            "number": number, "instance": instance, "time-ms": 0, "function": "reconcile",
            "argument": null, "imports": [], "ended": "cancelled",
        })
    }

    fn start(generation: u64, instance: u64) -> Value {
        json!({"entry": "start", "generation": generation, "limits": {}, "call": call(0, instance)})
    }

    fn calls(numbers: &[u64], instance: u64) -> Vec<Value> {
        let entry = |number: &u64| {
            let mut entry = call(*number, instance);
            entry["entry"] = "call".into();
            entry
        };
        numbers.iter().map(entry).collect()
    }

    fn of(entries: &[Value]) -> Versions {
        let mut versions = Versions::default();
        for entry in entries {
            versions.add(&serde_json::from_value(entry.clone()).unwrap());
        }
        versions
    }

    const OLD: &str = "1111111111111111";
    const NEW: &str = "2222222222222222";

    #[test]
    fn a_note_names_the_calls_of_each_version_and_the_given_component() {
        let entries = [
            vec![generation(1, OLD, "0.1.0"), start(1, 1)],
            calls(&[1, 2], 1),
            // The same component with another configuration, which is one version with the first.
            vec![generation(2, OLD, "0.1.0"), start(2, 2)],
            calls(&[3], 2),
            vec![generation(3, NEW, "0.2.0"), start(3, 3)],
            calls(&[4], 3),
            vec![generation(4, OLD, "0.1.0")],
        ]
        .concat();
        let versions = of(&entries);
        insta::assert_snapshot!(versions.note(NEW).unwrap(), @"the record has calls of several versions: calls 1 to 3 of 0.1.0 (111111111111), call 4 of 0.2.0 (222222222222, the component), no call of 0.1.0 (111111111111)");
        insta::assert_snapshot!(versions.note("3333").unwrap(), @"the record has calls of several versions: calls 1 to 3 of 0.1.0 (111111111111), call 4 of 0.2.0 (222222222222), no call of 0.1.0 (111111111111); the component is none of them");
    }

    #[test]
    fn one_version_needs_no_note() {
        assert_eq!(of(&[]).note(OLD), None);
        let entries = [generation(1, OLD, "0.1.0"), generation(2, OLD, "0.1.0")];
        assert_eq!(of(&entries).note(NEW), None);
    }

    #[test]
    fn a_note_of_many_versions_is_short() {
        let entries: Vec<_> =
            (0..2_000).map(|n| generation(n, &n.to_string().repeat(100), &"v".repeat(100))).collect();
        let versions = of(&entries);
        assert_eq!(versions.versions.len(), MOST_INSTANCES);
        let note = versions.note("none").unwrap();
        assert!(note.contains(", 1016 more; the component is none of them") && note.len() < 600, "{note}");
    }
}
