//! Whether the host is ready: whether what *it* needs works.
//!
//! One plugin's resource that is gone, or that its account may not see, is that plugin's trouble, shown at `/plugins` and in the metrics.
//! The host is not ready while it has not looked at its plugins once, while a watch that it needs itself (the
//! namespaces, for the gate) is dead, or while no watch at all gets through. One that stands by, so that another may run the plugins, is
//! ready without having looked at any; a leader that has not noticed that its lease ran out is not even alive.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use oarlock_leader_election::HealthCheck;

use crate::informers::{InformerView, Informers};

/// A watch that has been in trouble this long is dead. Below it, it is the ordinary life of a network.
pub const DEAD_AFTER: Duration = Duration::from_secs(30);

/// Knows whether the host is ready. Cheap to clone.
#[derive(Clone)]
pub struct Health {
    plugins_looked_at: Arc<AtomicBool>,
    informers: Informers,
    election: Arc<OnceLock<HealthCheck>>,
}

/// One thing that has to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What it is called, in `?exclude=` too.
    pub name: &'static str,
    /// Why it does not hold; nothing when it does.
    pub failures: Vec<String>,
}

// === impl Health ===

impl Health {
    /// Makes one that is not ready yet.
    #[must_use]
    pub(crate) fn new(informers: Informers) -> Self {
        Self { plugins_looked_at: Arc::default(), informers, election: Arc::default() }
    }

    /// Notes that the plugin files have been looked at.
    pub(crate) fn plugins_looked_at(&self) {
        self.plugins_looked_at.store(true, Ordering::Release);
    }

    /// Notes that plugins are run only when this election is won.
    pub(crate) fn stands_by(&self, election: HealthCheck) {
        let _ = self.election.set(election);
        self.plugins_looked_at();
    }

    /// Returns what makes the host live. It should be started anew when one of these fails.
    #[must_use]
    pub fn live(&self) -> Vec<Check> {
        let election = self.election.get().map(|election| {
            Check::new("leader-election", election.check().err().map(|error| error.to_string()))
        });
        [Check::new("ping", None)].into_iter().chain(election).collect()
    }

    /// Returns what makes the host ready: all of these.
    #[must_use]
    pub fn ready(&self) -> Vec<Check> {
        checks(self.plugins_looked_at.load(Ordering::Acquire), &self.informers.views())
    }
}

// === impl Check ===

impl Check {
    fn new(name: &'static str, failures: impl IntoIterator<Item = String>) -> Self {
        Self { name, failures: failures.into_iter().collect() }
    }

    /// Whether it holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.failures.is_empty()
    }
}

fn checks(plugins_looked_at: bool, informers: &[InformerView]) -> Vec<Check> {
    let not_looked = "the plugin files have not been looked at yet".to_owned();
    let mut reasons = Vec::new();
    for view in informers.iter().filter(|view| view.needed_by_host) {
        match view.trouble_for {
            Some(trouble) if trouble >= DEAD_AFTER => reasons.push(format!(
                "the watch of {}, which the host needs, has been dead for {} s: {}",
                view.resource,
                trouble.as_secs(),
                view.last_error.as_deref().unwrap_or("no error known"),
            )),
            _ if !view.synced => {
                reasons.push(format!("{}, which the host needs, is not synced", view.resource));
            }
            _ => {}
        }
    }
    let informer_sync = Check::new("informer-sync", reasons);
    let is_cut_off =
        |view: &InformerView| view.unreachable && view.trouble_for.is_some_and(|it| it >= DEAD_AFTER);
    let cut_off = !informers.is_empty() && informers.iter().all(is_cut_off);
    let cut_off = cut_off.then(|| "no watch gets through to the API server".to_owned());
    vec![
        Check::new("ping", None),
        Check::new("plugin-files", (!plugins_looked_at).then_some(not_looked)),
        informer_sync,
        Check::new("api-server", cut_off),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons(plugins_looked_at: bool, informers: &[InformerView]) -> Vec<String> {
        checks(plugins_looked_at, informers).into_iter().flat_map(|check| check.failures).collect()
    }

    fn view(resource: &str) -> InformerView {
        InformerView {
            resource: resource.to_owned(),
            phase: "watching",
            synced: true,
            content: "full",
            over_budget: None,
            handles: 1,
            objects: 1,
            bytes: 1,
            plain_bytes: 1,
            compressed_bytes: 0,
            index_bytes: 0,
            dictionary_bytes: 0,
            incomplete_indices: Vec::new(),
            queued: 0,
            listeners: 0,
            last_sign_of_life: None,
            trouble_for: None,
            unreachable: false,
            last_error: None,
            relists: 0,
            watches: 1,
            undecodable: 0,
            undecodable_objects: Vec::new(),
            undecodable_events: 0,
            wanted_by: Vec::new(),
            needed_by_host: false,
        }
    }

    fn namespaces() -> InformerView {
        InformerView { needed_by_host: true, ..view("v1/namespaces") }
    }

    #[test]
    fn promise_8_a_dead_watch_that_the_host_needs_is_not_ready() {
        let dead = InformerView {
            trouble_for: Some(DEAD_AFTER),
            last_error: Some("connection refused".to_owned()),
            ..namespaces()
        };
        insta::assert_snapshot!(
            reasons(true, &[dead, view("v1/pods")]).join("\n"),
            @"the watch of v1/namespaces, which the host needs, has been dead for 30 s: connection refused"
        );
        let shaky = InformerView { trouble_for: Some(DEAD_AFTER / 2), ..namespaces() };
        assert!(reasons(true, &[shaky, view("v1/pods")]).is_empty());
    }

    #[test]
    fn promise_8_one_plugins_resource_that_is_gone_is_no_reason() {
        let gone = InformerView {
            phase: "absent",
            synced: false,
            trouble_for: Some(DEAD_AFTER * 100),
            ..view("example.com/v1/boats")
        };
        assert!(reasons(true, &[namespaces(), gone]).is_empty());
    }

    #[test]
    fn promise_8_no_watch_at_all_is_a_reason() {
        let cut_off = |view| InformerView { trouble_for: Some(DEAD_AFTER), unreachable: true, ..view };
        let reasons = reasons(true, &[cut_off(view("v1/pods"))]);
        assert_eq!(reasons, ["no watch gets through to the API server"]);
    }

    #[test]
    fn nothing_is_ready_before_the_first_look() {
        assert_eq!(reasons(false, &[namespaces()]), ["the plugin files have not been looked at yet"]);
        let unsynced = InformerView { synced: false, ..namespaces() };
        assert_eq!(reasons(true, &[unsynced]), ["v1/namespaces, which the host needs, is not synced"]);
    }
}
