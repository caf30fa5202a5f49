//! The liveness and readiness of the host.
//!
//! The host is not ready until it has read its plugin files once, while it cannot read a path of its command
//! line (the plugins that it has loaded go on), while a watch that it needs itself (the
//! namespaces, for the gate) is dead, or while all watches fail because the API server is unreachable. A
//! resource that is absent, or that a plugin's account may not see, does not count: `/plugins` and the
//! metrics show it. A host in an election is ready when it has also loaded its plugins once, or knows what
//! they wait for: only then can it take over at once. A leader that did not notice that its Lease expired is
//! not live.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use oarlock_leader_election::HealthCheck;
use parking_lot::Mutex;

use crate::informers::{InformerView, Informers};
use crate::status::{Phase, PluginStatus, StatusRegistry};

/// A watch that has failed for this long is dead. Shorter failures are normal in a network.
pub(crate) const DEAD_AFTER: Duration = Duration::from_secs(30);

/// Computes the checks for liveness and readiness. Cheap to clone: clones share the state.
#[derive(Clone)]
pub(crate) struct Health {
    /// The paths of the command line that could not be read; none before the plugin files have been read.
    unreadable: Arc<Mutex<Option<Vec<String>>>>,
    informers: Informers,
    election: Arc<OnceLock<Candidacy>>,
}

/// What counts for a host in an election.
struct Candidacy {
    check: HealthCheck,
    statuses: StatusRegistry,
    /// It has loaded its plugins once.
    has_loaded: AtomicBool,
}

/// One check of liveness or readiness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    /// Its name, also for `?exclude=`.
    pub(crate) name: &'static str,
    /// Why it fails; empty when it passes.
    pub(crate) failures: Vec<String>,
}

// === impl Health ===

impl Health {
    /// Makes the checks of a host that is not ready yet.
    #[must_use]
    pub(crate) fn new(informers: Informers) -> Self {
        Self { unreadable: Arc::default(), informers, election: Arc::default() }
    }

    /// Notes that the plugin files have been read, except these paths of the command line.
    pub(crate) fn plugin_files_read(&self, unreadable: Vec<String>) {
        *self.unreadable.lock() = Some(unreadable);
    }

    /// Notes that the host takes part in this election.
    pub(crate) fn takes_part(&self, check: HealthCheck, statuses: StatusRegistry) {
        let _ = self.election.set(Candidacy { check, statuses, has_loaded: AtomicBool::new(false) });
    }

    /// Returns the checks of liveness. If one fails, the host should be restarted.
    #[must_use]
    pub(crate) fn live(&self) -> Vec<Check> {
        let election = self.election.get().map(|election| {
            Check::new("leader-election", election.check.check().err().map(|error| error.to_string()))
        });
        [Check::new("ping", None)].into_iter().chain(election).collect()
    }

    /// Returns the checks of readiness. The host is ready if all pass.
    #[must_use]
    pub(crate) fn ready(&self) -> Vec<Check> {
        let unreadable = self.unreadable.lock().clone();
        let loads = self.election.get().filter(|_| unreadable.is_some()).map(Candidacy::loads);
        checks(unreadable, &self.informers.views()).into_iter().chain(loads).collect()
    }
}

// === impl Candidacy ===

impl Candidacy {
    /// Checks that no plugin is being loaded for the first time since the host was started.
    fn loads(&self) -> Check {
        let is_loading = |it: &PluginStatus| it.phase == Phase::Loading && it.waits_for.is_empty();
        let mut failures = Vec::new();
        if !self.has_loaded.load(Ordering::Acquire) {
            let loading = self.statuses.snapshot().into_iter().filter(is_loading);
            failures.extend(loading.map(|it| format!("plugin {} is being loaded", it.name)));
            self.has_loaded.store(failures.is_empty(), Ordering::Release);
        }
        Check::new("plugins-loaded", failures)
    }
}

// === impl Check ===

impl Check {
    fn new(name: &'static str, failures: impl IntoIterator<Item = String>) -> Self {
        Self { name, failures: failures.into_iter().collect() }
    }

    /// Returns whether the check passes.
    #[must_use]
    pub(crate) fn passes(&self) -> bool {
        self.failures.is_empty()
    }
}

fn checks(unreadable: Option<Vec<String>>, informers: &[InformerView]) -> Vec<Check> {
    let not_read = || vec!["the host has not read the plugin files yet".to_owned()];
    let mut reasons = Vec::new();
    for view in informers.iter().filter(|view| view.needed_by_host) {
        match view.trouble_for {
            Some(trouble) if trouble >= DEAD_AFTER => reasons.push(format!(
                "the host needs the watch of {}, which has failed for {} s: {}",
                view.resource,
                trouble.as_secs(),
                view.last_error.as_deref().unwrap_or("unknown error"),
            )),
            _ if !view.synced => {
                reasons.push(format!("the host needs {}, which is not synced", view.resource));
            }
            _ => {}
        }
    }
    let informer_sync = Check::new("informer-sync", reasons);
    let is_cut_off =
        |view: &InformerView| view.unreachable && view.trouble_for.is_some_and(|it| it >= DEAD_AFTER);
    let cut_off = !informers.is_empty() && informers.iter().all(is_cut_off);
    let cut_off = cut_off.then(|| "all watches fail: the API server is unreachable".to_owned());
    vec![
        Check::new("ping", None),
        Check::new("plugin-files", unreadable.unwrap_or_else(not_read)),
        informer_sync,
        Check::new("api-server", cut_off),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons(has_read_plugin_files: bool, informers: &[InformerView]) -> Vec<String> {
        let unreadable = has_read_plugin_files.then(Vec::new);
        checks(unreadable, informers).into_iter().flat_map(|check| check.failures).collect()
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
    fn promise_8_the_host_is_not_ready_while_a_watch_that_it_needs_is_dead() {
        let dead = InformerView {
            trouble_for: Some(DEAD_AFTER),
            last_error: Some("connection refused".to_owned()),
            ..namespaces()
        };
        insta::assert_snapshot!(
            reasons(true, &[dead, view("v1/pods")]).join("\n"),
            @"the host needs the watch of v1/namespaces, which has failed for 30 s: connection refused"
        );
        let briefly_failing = InformerView { trouble_for: Some(DEAD_AFTER / 2), ..namespaces() };
        assert!(reasons(true, &[briefly_failing, view("v1/pods")]).is_empty());
    }

    #[test]
    fn promise_8_the_host_is_ready_while_a_resource_of_one_plugin_is_absent() {
        let gone = InformerView {
            phase: "absent",
            synced: false,
            trouble_for: Some(DEAD_AFTER * 100),
            ..view("example.com/v1/boats")
        };
        assert!(reasons(true, &[namespaces(), gone]).is_empty());
    }

    #[test]
    fn promise_8_the_host_is_not_ready_while_all_watches_fail() {
        let cut_off = |view| InformerView { trouble_for: Some(DEAD_AFTER), unreachable: true, ..view };
        let reasons = reasons(true, &[cut_off(view("v1/pods"))]);
        assert_eq!(reasons, ["all watches fail: the API server is unreachable"]);
    }

    #[test]
    fn the_host_is_not_ready_while_a_path_of_the_command_line_cannot_be_read() {
        let checks = checks(Some(vec!["plugins: cannot be read".to_owned()]), &[namespaces()]);
        let failed: Vec<_> = checks.iter().filter(|check| !check.passes()).collect();
        assert_eq!((failed.len(), failed[0].name), (1, "plugin-files"));
        assert_eq!(failed[0].failures, ["plugins: cannot be read"]);
    }

    #[test]
    fn the_host_is_not_ready_before_it_read_the_plugin_files_and_synced() {
        assert_eq!(reasons(false, &[namespaces()]), ["the host has not read the plugin files yet"]);
        let unsynced = InformerView { synced: false, ..namespaces() };
        assert_eq!(reasons(true, &[unsynced]), ["the host needs v1/namespaces, which is not synced"]);
    }
}
