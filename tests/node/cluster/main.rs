//! What only a cluster can show: the host as Pods of a real node, with a real kubelet.
//!
//! The node starts once, and the tests run on it one after the other, each with a host that is Ready.
//! `cargo xtask test --node` runs them; without it each is skipped. With `OARLOCK_NODE_FAULTS=N` the faults
//! are injected N times each instead of once, and the times are printed as lines of JSON: `cargo xtask soak
//! cluster`.

mod cluster;
mod faults;
mod harness;
mod install;
mod kubectl_plugin;
mod lifecycle;
mod load;
mod pods;
mod uninstall;
mod upgrades;

use std::process::ExitCode;

fn main() -> ExitCode {
    harness::run(&[
        ("the_host_runs_twice_under_restricted_pod_security", |cluster| Box::pin(pods::restricted(cluster))),
        ("kubectl_logs_shows_what_the_host_prints", |cluster| Box::pin(pods::logs(cluster))),
        ("kubectl_oarlock_finds_the_host_by_its_lease", |cluster| {
            Box::pin(kubectl_plugin::commands(cluster))
        }),
        ("a_rotated_token_is_used_without_a_restart", |cluster| Box::pin(pods::token(cluster))),
        ("a_host_that_hangs_fails_its_probe_and_is_restarted", |cluster| Box::pin(lifecycle::hang(cluster))),
        ("a_rolling_update_under_load_loses_nothing", |cluster| Box::pin(upgrades::rolling(cluster))),
        ("an_upgrade_from_the_version_before_loses_nothing", |cluster| Box::pin(upgrades::upgrade(cluster))),
        ("a_drain_leaves_the_replica_that_the_budget_protects", |cluster| {
            Box::pin(lifecycle::drain(cluster))
        }),
        ("faults_lose_nothing", |cluster| Box::pin(faults::all(cluster))),
        // The last one: there is no host after it.
        ("an_uninstallation_leaves_nothing", |cluster| Box::pin(uninstall::uninstall(cluster))),
    ])
}
