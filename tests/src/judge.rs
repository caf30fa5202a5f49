//! Holds what guests were told against what happened.
//!
//! For each plugin, subscription and object the notifications must be a chain (add, updates whose old state is the one told
//! before, delete), the chain a subsequence of the object's history, and its end the object's end. A fresh instance
//! begins the chain anew with initial adds.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::recorder::{History, Version};
use crate::told::{Kind, Told};

/// One subscription of one plugin, as somebody outside of the host understands it.
#[derive(Clone, Copy)]
pub struct Watcher<'a> {
    /// The plugin's name.
    pub plugin: &'a str,
    /// The plugin's name for the subscription.
    pub subscription: &'a str,
    /// Which objects it is told of.
    pub matches: &'a dyn Fn(&Value) -> bool,
    /// A stateless plugin's chain goes on over a swap; any other's begins anew.
    pub stateless: bool,
}

/// Where one chain stands.
#[derive(Default)]
struct Chain<'a> {
    generation: u64,
    /// Index into the history of the version that the plugin knows, if it believes the object to exist.
    known: Option<usize>,
    /// Index of the newest version it was ever told of.
    newest: Option<usize>,
    last: Option<&'a Told>,
}

/// Returns everything that is wrong, in words; nothing is what one hopes for.
#[must_use]
pub fn judge(watcher: &Watcher<'_>, history: &History, told: &[Told]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut chains: BTreeMap<&str, Chain<'_>> = BTreeMap::new();
    let of_watcher =
        |told: &&Told| told.plugin == watcher.plugin && told.subscription == watcher.subscription;
    let newest_generation = told.iter().filter(of_watcher).map(|told| told.generation).max().unwrap_or(0);
    for told in told.iter().filter(of_watcher) {
        let chain = chains.entry(&told.key).or_default();
        let versions = history.get(&told.key).map(Vec::as_slice).unwrap_or_default();
        if let Err(fault) = chain.follow(watcher, versions, told) {
            faults.push(format!("{}: {fault}", name(watcher, &told.key)));
        }
    }
    for (key, versions) in history {
        let chain = chains.remove(key.as_str()).unwrap_or_default();
        let end = versions.last().filter(|end| !end.deleted && (watcher.matches)(&end.object));
        let current = watcher.stateless || chain.generation == newest_generation;
        let known = chain.known.filter(|_| current).and_then(|index| versions.get(index));
        match (end, known) {
            (None, None) => {}
            (Some(end), Some(known)) if end.resource_version() == known.resource_version() => {}
            (end, known) => faults.push(format!(
                "{}: ended at {}, was last told {}",
                name(watcher, key),
                describe(end),
                describe(known)
            )),
        }
    }
    for key in chains.keys() {
        faults.push(format!("{}: told of an object that never was", name(watcher, key)));
    }
    faults
}

// === impl Chain ===

impl<'a> Chain<'a> {
    fn follow(&mut self, watcher: &Watcher<'_>, versions: &[Version], told: &'a Told) -> Result<(), String> {
        if self.generation != told.generation && !watcher.stateless {
            self.known = None;
        }
        self.generation = told.generation;
        let before = self.last.replace(told);
        let here = self.find(versions, told)?;
        let matches =
            versions.get(here).is_some_and(|version| !version.deleted && (watcher.matches)(&version.object));
        let known_rv = self.known.and_then(|index| versions.get(index)).map(Version::resource_version);
        match told.kind {
            Kind::Add { initial } if self.known.is_some() && !initial => {
                return Err(format!("add of {} after {before:?}", told.resource_version));
            }
            Kind::Update if told.old_resource_version.as_deref() != known_rv => {
                return Err(format!(
                    "update from {:?} to {}, but {known_rv:?} was told before",
                    told.old_resource_version, told.resource_version
                ));
            }
            Kind::Delete if self.known.is_none() && !self.may_be_left_over(before, told) => {
                return Err(format!("delete at {} of what it did not know", told.resource_version));
            }
            Kind::Add { .. } | Kind::Update if !matches => {
                return Err(format!("told of {}, which does not match", told.resource_version));
            }
            Kind::Add { .. } | Kind::Update => self.known = Some(here),
            Kind::Delete => self.known = None,
        }
        self.newest = Some(here);
        Ok(())
    }

    /// Whether a delete, of what this generation was never told, is one that waited for an older generation.
    fn may_be_left_over(&self, before: Option<&Told>, told: &Told) -> bool {
        self.newest.is_some() && before.is_some_and(|before| before.generation != told.generation)
    }

    /// Finds the version that was told, not before the newest one told so far.
    fn find(&self, versions: &[Version], told: &Told) -> Result<usize, String> {
        let from = self.newest.unwrap_or(0);
        let is_it = |version: &Version| {
            version.resource_version() == told.resource_version && version.uid() == told.uid
        };
        match versions.iter().skip(from).position(is_it) {
            Some(offset) => Ok(from + offset),
            None if versions.iter().any(is_it) => Err(format!("{} came out of order", told.resource_version)),
            None => Err(format!("told of version {}, which never was", told.resource_version)),
        }
    }
}

fn name(watcher: &Watcher<'_>, key: &str) -> String {
    format!("{} ({}) {key}", watcher.plugin, watcher.subscription)
}

fn describe(version: Option<&Version>) -> String {
    version.map_or_else(|| "nothing".to_owned(), |version| format!("version {}", version.resource_version()))
}

#[cfg(test)]
mod tests;
