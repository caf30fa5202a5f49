//! The queries of deploy/monitoring, evaluated for hosts and for other controllers: the right alerts
//! fire, and the metrics of other controllers, which have the names of client-go and controller-runtime
//! too, change no result.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use oarlock_tests::host_process::checkout;
use serde_json::Value;

use super::{DASHBOARD, RULES, Rule, program, rules};

/// The page of a host for which each alert fires, with the metrics of all queries. A counter grows by its
/// value with each scrape.
const UNWELL: &str = r#"
oarlock_build_info{version="1.0.0",os="linux",arch="x86_64"} 1
process_cpu_seconds_total 1
process_resident_memory_bytes 1
leader_election_master_status{name="oarlock"} 0
rest_client_requests_total{code="200",method="GET",host="api"} 8
rest_client_requests_total{code="500",method="GET",host="api"} 1
rest_client_request_duration_seconds_bucket{verb="GET",host="api",le="1"} 1
rest_client_request_duration_seconds_bucket{verb="GET",host="api",le="+Inf"} 1
workqueue_depth{name="p",controller="p"} 200
workqueue_queue_duration_seconds_bucket{name="p",controller="p",le="1"} 1
workqueue_queue_duration_seconds_bucket{name="p",controller="p",le="+Inf"} 1
controller_runtime_reconcile_total{controller="p",result="error"} 1
oarlock_plugin_up{plugin="p"} 0
oarlock_plugin_refused{plugin="p"} 1
oarlock_plugin_object_unresolved{plugin="p",reason="NotFound"} 1
oarlock_plugin_generation_transitions_total{plugin="p",state="quarantined"} 1
oarlock_plugin_host_panics_total{plugin="p"} 1
oarlock_plugin_calls_total{plugin="p",function="on-add",outcome="retry"} 1
oarlock_plugin_call_duration_seconds_bucket{plugin="p",function="on-add",le="1"} 1
oarlock_plugin_call_duration_seconds_bucket{plugin="p",function="on-add",le="+Inf"} 1
oarlock_plugin_notification_wait_seconds_bucket{plugin="p",le="1"} 1
oarlock_plugin_notification_wait_seconds_bucket{plugin="p",le="+Inf"} 1
oarlock_plugin_restarts_total{plugin="p"} 1
oarlock_plugin_backlog{plugin="p",subscription="s"} 1
oarlock_plugin_backlog_oldest_seconds{plugin="p",subscription="s"} 600
oarlock_plugin_parked{plugin="p",subscription="s"} 1
oarlock_plugin_subscription_forbidden{plugin="p",subscription="s"} 1
oarlock_plugin_subscription_paused{plugin="p",subscription="s"} 1
oarlock_plugin_work_queue_oldest_seconds{plugin="p"} 600
oarlock_plugin_work_queue_parked{plugin="p"} 1
oarlock_plugin_cpu_seconds_total{plugin="p",in="guest"} 1
oarlock_plugin_writes_total{plugin="p",verb="create",code="201"} 1
oarlock_plugin_linear_memory_bytes{plugin="p"} 1
oarlock_plugin_host_bytes{plugin="p",for="events"} 95
oarlock_plugin_host_bytes_limit{plugin="p"} 100
oarlock_cache_objects{resource="pods"} 1
oarlock_cache_bytes{resource="pods",part="plain"} 1
oarlock_cache_bytes{resource="pods",part="compressed"} 2
oarlock_cache_over_budget{resource="pods"} 1
oarlock_cache_undecodable_objects{resource="pods"} 1
oarlock_watch_trouble_seconds{resource="pods"} 300
oarlock_budget_used_bytes 95
oarlock_budget_limit_bytes 100
oarlock_reports_dropped_total 1
"#;

/// The page of a leader for which no alert fires.
const WELL: &str = r#"
oarlock_build_info{version="1.0.0",os="linux",arch="x86_64"} 1
leader_election_master_status{name="oarlock"} 1
rest_client_requests_total{code="200",method="GET",host="api"} 8
workqueue_depth{name="p",controller="p"} 0
oarlock_plugin_up{plugin="p"} 1
oarlock_plugin_refused{plugin="p"} 0
oarlock_plugin_object_unresolved{plugin="p",reason="AsExpected"} 0
oarlock_plugin_calls_total{plugin="p",function="on-add",outcome="done"} 1
oarlock_plugin_host_bytes{plugin="p",for="events"} 5
oarlock_plugin_host_bytes_limit{plugin="p"} 100
oarlock_budget_used_bytes 5
oarlock_budget_limit_bytes 100
"#;

/// The page of the host on standby beside it.
const STANDBY: &str = r#"
oarlock_build_info{version="1.0.0",os="linux",arch="x86_64"} 1
leader_election_master_status{name="oarlock"} 0
oarlock_plugin_up{plugin="p"} 0
oarlock_plugin_object_unresolved{plugin="p",reason="AsExpected"} 0
oarlock_plugin_host_bytes{plugin="p",for="events"} 5
oarlock_plugin_host_bytes_limit{plugin="p"} 100
"#;

/// The page of another controller, in trouble, with labels that a host has and with others.
const OTHER: &str = r#"
process_cpu_seconds_total 9
process_resident_memory_bytes 9
leader_election_master_status{name="oarlock"} 1
leader_election_master_status{name="other"} 0
rest_client_requests_total{code="200",method="GET",host="api"} 1
rest_client_requests_total{code="500",method="PUT",host="api"} 99
rest_client_requests_total{code="500",method="PUT",host="other"} 99
rest_client_request_duration_seconds_bucket{verb="GET",host="api",le="1"} 1
rest_client_request_duration_seconds_bucket{verb="GET",host="api",le="+Inf"} 99
workqueue_depth{name="other",controller="other"} 1000
workqueue_queue_duration_seconds_bucket{name="p",controller="p",le="1"} 1
workqueue_queue_duration_seconds_bucket{name="p",controller="p",le="+Inf"} 99
controller_runtime_reconcile_total{controller="p",result="error"} 99
"#;

/// Returns the results of all queries, if Prometheus scrapes these pages from targets of these names.
fn results(program: &Path, targets: &[(&str, &str)]) -> anyhow::Result<Vec<String>> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(program);
    command.args(["evaluate", RULES, DASHBOARD]).current_dir(checkout());
    for (name, page) in targets {
        let path = folder.path().join(name);
        fs::write(&path, page.trim_start())?;
        command.arg(path);
    }
    let output = command.output()?;
    ensure!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}

/// Returns the names of the alerts with a result.
fn firing(results: &[String]) -> BTreeSet<&str> {
    results
        .iter()
        .filter_map(|line| line.strip_prefix(RULES)?.strip_prefix(": ")?.split(':').next())
        .collect()
}

/// Returns the names of the metrics of a page that are not the host's own.
fn common(page: &str) -> BTreeSet<&str> {
    let names = page.lines().filter_map(|line| line.split(['{', ' ']).next());
    names.filter(|name| !name.starts_with("oarlock_")).collect()
}

#[test]
fn other_controllers_change_no_alert_and_no_panel() -> anyhow::Result<()> {
    let program = program()?;
    let (one, two, other) = (("oarlock-1", UNWELL), ("oarlock-2", UNWELL), ("other-1", OTHER));
    let alone = results(&program, &[one, two])?;
    assert_eq!(results(&program, &[one, two, other])?, alone);
    // Nothing that a query selects is missing from the pages.
    assert_eq!(common(UNWELL), common(OTHER));
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(checkout().join(DASHBOARD))?)?;
    for panel in dashboard["panels"].as_array().context("a dashboard has panels")? {
        if panel["targets"].is_null() {
            continue;
        }
        let title = panel["title"].as_str().context("a panel has a title")?;
        let beginning = format!("{DASHBOARD}: {title}: ");
        assert!(alone.iter().any(|line| line.starts_with(&beginning)), "{title}: {alone:#?}");
    }
    Ok(())
}

#[test]
fn each_alert_fires_for_two_hosts_that_are_unwell_and_none_for_two_that_are_well() -> anyhow::Result<()> {
    let program = program()?;
    let rules = rules()?;
    let mut expected: BTreeSet<_> = rules.iter().map(|Rule { alert, .. }| &**alert).collect();
    assert!(expected.remove("OarlockDown"));
    let unwell = results(&program, &[("oarlock-1", UNWELL), ("oarlock-2", UNWELL)])?;
    assert_eq!(firing(&unwell), expected, "{unwell:#?}");
    // Once for a plugin or resource, not for each host.
    for (place, value) in [
        (format!("{RULES}: OarlockParked"), 4),
        (format!("{RULES}: OarlockPluginRefused"), 1),
        (format!("{RULES}: OarlockSubscriptionForbidden"), 1),
        (format!("{RULES}: OarlockSubscriptionPaused"), 1),
        (format!("{RULES}: OarlockCacheOverBudget"), 1),
        (format!("{DASHBOARD}: Memory of caches"), 3),
    ] {
        let found: Vec<_> = unwell.iter().filter(|line| line.starts_with(&place)).collect();
        let of_place = found.iter().filter(|line| !line.contains(": {} "));
        let values: Vec<_> = of_place.filter_map(|line| line.rsplit(' ').next()).collect();
        assert_eq!(values, [value.to_string()], "{place}: {found:#?}");
    }
    let other = ("other-1", OTHER);
    let well = results(&program, &[("oarlock-1", WELL), ("oarlock-2", STANDBY), other])?;
    assert_eq!(firing(&well), BTreeSet::new(), "{well:#?}");
    assert_eq!(firing(&results(&program, &[other])?), BTreeSet::from(["OarlockDown"]));
    Ok(())
}

#[test]
fn old_notifications_and_old_keys_fire_the_alert_each_by_themselves() -> anyhow::Result<()> {
    let program = program()?;
    let fires = |metrics: &[&str]| -> anyhow::Result<bool> {
        let ages = ["oarlock_plugin_backlog_oldest_seconds", "oarlock_plugin_work_queue_oldest_seconds"];
        let is_left_out = |line: &str| ages.iter().any(|age| line.starts_with(age) && !metrics.contains(age));
        let page: String =
            UNWELL.lines().filter(|line| !is_left_out(line)).map(|line| format!("{line}\n")).collect();
        Ok(firing(&results(&program, &[("oarlock-1", &page)])?).contains("OarlockBacklogOld"))
    };
    assert!(fires(&["oarlock_plugin_backlog_oldest_seconds"])?);
    assert!(fires(&["oarlock_plugin_work_queue_oldest_seconds"])?);
    assert!(!fires(&[])?);
    Ok(())
}
