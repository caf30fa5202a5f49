//! docs/reference/metrics.md: every metric of a host, from the list that the host's page is checked against.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::toolchain::command;

const HEAD: &str = "\
<!-- Generated from the types of `oarlock` by `cargo xtask docs`. -->

# Metrics

A host serves its metrics at `/metrics` of the address of `--admin-addr`, in the text format of Prometheus and in OpenMetrics.
[Operating a host](../operating.md) says who may read them, and [the runbooks](../runbooks.md) what to do when an alert fires.

Metrics that client-go, controller-runtime or Prometheus' client libraries have too have the same names, labels and meaning here. There a
plugin is a controller: the labels `controller` and `name` are the plugin's name. A plugin whose notifications are handled by
`on-add`, `on-update` and `on-delete` has no work queue, and no `workqueue_` and `controller_runtime_` series. The bounds of the buckets are
the host's own: from 50 µs to 14 min, each four times the one before.

The name of a namespaced Plugin is `NAMESPACE.NAME`. Every label has few values: names of plugins, of their subscriptions and of resources, and
fixed words. The series of a plugin end with the plugin.

A guest's own metrics have the names `oarlock_guest_NAME`, the label `plugin`, and the labels that the guest gives them. Their number is
[limited](../limits.md).
";

/// The groups of metrics: the heading and the beginnings of names. The last group takes all others.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Plugins", &["oarlock_plugin_"]),
    ("Work queues and reconcilers", &["workqueue_", "controller_runtime_"]),
    ("Caches and watches", &["oarlock_cache_", "oarlock_watch_", "oarlock_budget_"]),
    ("Requests to the API server", &["rest_client_"]),
    ("Leader election", &["leader_election_"]),
    ("The process", &[""]),
];

#[derive(Deserialize)]
struct Reference {
    metrics: Vec<Metric>,
}

#[derive(Deserialize)]
struct Metric {
    name: String,
    kind: String,
    labels: Vec<String>,
    help: String,
}

/// Returns the page. `program` is the binary `oarlock`.
pub(super) fn page(program: &Path) -> Result<String> {
    let printed = command::output(Command::new(program).arg("reference"))?;
    let reference: Reference =
        serde_json::from_str(&printed).context("`oarlock reference` prints no metrics")?;
    Ok(page_of(reference.metrics)?)
}

fn page_of(mut metrics: Vec<Metric>) -> Result<String, std::fmt::Error> {
    let mut page = String::from(HEAD);
    for (heading, beginnings) in GROUPS {
        let is_in = |it: &Metric| beginnings.iter().any(|beginning| it.name.starts_with(beginning));
        let (group, others) = metrics.into_iter().partition(is_in);
        let group: Vec<Metric> = group;
        metrics = others;
        write!(
            page,
            "\n## {heading}\n\n| metric | type | labels | unit | meaning |\n|---|---|---|---|---|\n"
        )?;
        for Metric { name, kind, labels, help } in &group {
            let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
            let help = help.replace('<', "&lt;");
            writeln!(page, "| `{name}` | {kind} | {} | {} | {help} |", labels.join(", "), unit(name))?;
        }
    }
    Ok(page)
}

/// Returns the unit in a name, as the rules of Prometheus put it there.
fn unit(name: &str) -> &'static str {
    let name = name.strip_suffix("_total").unwrap_or(name);
    match () {
        () if name.ends_with("_seconds") => "seconds",
        () if name.ends_with("_bytes") || name.ends_with("_bytes_limit") => "bytes",
        () => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_is_in_one_group_with_its_unit() {
        let metric = |name: &str| Metric {
            name: name.to_owned(),
            kind: "counter".to_owned(),
            labels: vec!["plugin".to_owned()],
            help: "Codes such as <error>.".to_owned(),
        };
        let names = ["oarlock_plugin_cpu_seconds_total", "oarlock_build_info", "workqueue_depth"];
        let page = page_of(names.map(metric).into()).unwrap();
        let row = "| `oarlock_plugin_cpu_seconds_total` | counter | `plugin` | seconds | Codes such as &lt;error>. |";
        assert!(page.contains(row), "{page}");
        for name in names {
            assert_eq!(page.matches(&format!("| `{name}` |")).count(), 1, "{name}");
        }
        assert!(page.find("## The process") < page.find("oarlock_build_info"), "{page}");
    }
}
