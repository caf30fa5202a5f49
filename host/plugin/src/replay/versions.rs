//! The versions of the plugin that made the calls of a record.

use std::collections::HashMap;

use super::{MOST_INSTANCES, Options, ReplayError, Report};
use crate::record::{Call, Entry};

/// The maximum number of versions that a note lists.
const MOST_LISTED: usize = 8;

/// Collects which calls each version made, and says which of them are replayed.
#[derive(Default)]
pub(super) struct Versions {
    /// The beginning of the digest of the only version that is replayed, if it is only one.
    of: Option<String>,
    /// The whole digest.
    selected: Option<String>,
    /// Whether another version has a digest that begins so.
    are_several: bool,
    /// The call that is asked for, if another version made it.
    asked_for: Option<u64>,
    /// In the order of the record. A version that the host went back to is there twice.
    versions: Vec<Version>,
    /// The indices of the versions of generations and instances.
    generations: HashMap<u64, usize>,
    instances: HashMap<u64, usize>,
}

struct Version {
    digest: String,
    version: String,
    /// Whether its calls are replayed.
    is_selected: bool,
    /// The first and the last call.
    calls: Option<(u64, u64)>,
}

// === impl Versions ===

impl Versions {
    /// Returns no versions, of which those with these options will be replayed.
    pub(super) fn new(options: &Options) -> Self {
        Self { of: options.of.clone(), ..Self::default() }
    }

    /// Adds what an entry says. What is more than a host writes is left out.
    pub(super) fn add(&mut self, entry: &Entry) {
        match entry {
            Entry::Generation(generation) if self.generations.len() < MOST_INSTANCES => {
                let is_selected = self.selects(&generation.digest);
                let digest = short(&generation.digest);
                if self.versions.last().is_none_or(|last| last.digest != digest) {
                    let version = short(&generation.version);
                    self.versions.push(Version { digest, version, is_selected, calls: None });
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

    /// Returns whether the calls of the version with this digest are replayed.
    fn selects(&mut self, digest: &str) -> bool {
        let Some(of) = &self.of else { return true };
        if !digest.starts_with(of) {
            return false;
        }
        let selected = self.selected.get_or_insert_with(|| digest.to_owned());
        self.are_several |= selected != digest;
        true
    }

    /// Returns whether a start or call is one of a version that is not replayed.
    pub(super) fn is_other(&self, entry: &Entry) -> bool {
        let version = match entry {
            Entry::Start(start) => self.generations.get(&start.generation),
            Entry::Call(call) => self.instances.get(&call.instance),
            _ => return false,
        };
        let is_selected = |version: &usize| self.versions.get(*version).is_some_and(|it| it.is_selected);
        self.of.is_some() && !version.is_some_and(is_selected)
    }

    /// Passes over a call of a version that is not replayed. Returns whether it is the last call.
    pub(super) fn pass_over(&mut self, call: &Call, until: Option<u64>) -> bool {
        self.asked_for = until.filter(|until| *until == call.number);
        until.is_some_and(|until| call.number >= until)
    }

    /// Checks, at the end of the record, that it has calls of the version that is replayed.
    pub(super) fn check(&self, report: &Report, digest: &str) -> Result<(), ReplayError> {
        let Some(of) = self.of.clone() else { return Ok(()) };
        if self.selected.is_none() || self.are_several {
            let versions = match self.listed(&short(digest)) {
                none if none.is_empty() => "it names no version".to_owned(),
                listed => format!("it has {listed}"),
            };
            return Err(ReplayError::NoVersion { of, are_several: self.are_several, versions });
        }
        match self.asked_for {
            Some(call) => Err(ReplayError::OtherVersion { call, of }),
            None if report.calls + report.starts + report.skipped == 0 => Err(ReplayError::NoCalls { of }),
            None => Ok(()),
        }
    }

    /// Returns a note if the calls are those of several versions. `digest` is that of the replayed component.
    pub(super) fn note(&self, digest: &str) -> Option<String> {
        let digest = short(digest);
        let first = self.versions.first()?;
        if self.versions.iter().all(|version| version.digest == first.digest) {
            return None;
        }
        let none = if self.versions.iter().any(|version| version.digest == digest) {
            ""
        } else {
            "; the component is none of them"
        };
        Some(format!("the record has calls of several versions: {}{none}", self.listed(&digest)))
    }

    /// Returns a list of the versions. `given` is the beginning of the replayed component's digest.
    fn listed(&self, given: &str) -> String {
        let mut listed: Vec<_> = self.versions.iter().take(MOST_LISTED).map(|it| it.shown(given)).collect();
        match self.versions.len() - listed.len() {
            0 => {}
            n => listed.push(format!("{n} more")),
        }
        listed.join(", ")
    }
}

// === impl Version ===

impl Version {
    fn shown(&self, given: &str) -> String {
        let Self { digest, version, is_selected: _, calls } = self;
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
    fn the_beginning_of_a_digest_selects_one_version() {
        let check = |of: &str| {
            let options = Options { of: Some(of.to_owned()), ..Options::default() };
            let mut versions = Versions::new(&options);
            for entry in [generation(1, "1122", "0.1.0"), generation(2, "1133", "0.2.0"), start(2, 7)] {
                versions.add(&serde_json::from_value(entry).unwrap());
            }
            let call = serde_json::from_value(calls(&[1], 7).remove(0)).unwrap();
            let report = Report {
                plugin: String::new(),
                exact: true,
                calls: 1,
                starts: 1,
                imports: 0,
                skipped: 0,
                differences: Vec::new(),
                notes: Vec::new(),
            };
            (versions.is_other(&call), versions.check(&report, OLD).map_err(|error| error.to_string()))
        };
        assert_eq!(check("1133"), (false, Ok(())));
        assert_eq!(check("112"), (true, Ok(())));
        insta::assert_snapshot!(check("11").1.unwrap_err(), @"several versions in the record have a digest that begins with 11: it has no call of 0.1.0 (1122), no call of 0.2.0 (1133)");
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
