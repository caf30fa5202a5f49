//! `cargo xtask soak clients`: tests of other projects against the embedded and the real API server.
//!
//! Runs controller-runtime's suites in existing-cluster mode, and the client-go checks in `tests/clients`.
//! Each suite gets a new server of each kind. A test that passes on the real server only fails the soak,
//! unless `KNOWN` lists it with a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Record;
use crate::bench::process::Running;
use crate::toolchain::command;
use crate::toolchain::go::Toolchain;
use crate::toolchain::versions::SERVER_GO;
use crate::{cargo, checkout, control_plane, progress};

const MODULE: &str = "sigs.k8s.io/controller-runtime";
const SUITES: &[&str] = &["client", "cache", "source", "controller", "manager", "builder"];
const CHECKS: &str = "checks";

/// Tests that pass on the real server only, with the reasons.
const KNOWN: &[(&str, &str)] = &[
    (
        "checks (json): webhook configurations",
        "the embedded server does not serve them: it calls no webhooks",
    ),
    (
        "checks (protobuf): webhook configurations",
        "the embedded server does not serve them: it calls no webhooks",
    ),
    (
        "pkg/cache: It Cache with selectors > Should list serviceaccounts and find exactly one in namespace test-namespace-1",
        "a new namespace has the ServiceAccount `default` on the embedded server, as on a cluster with controllers",
    ),
];

/// Runs controller-runtime's suites and client-go checks against both API servers, and records the results.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Runs only these: client, cache, source, controller, manager, builder, checks.
    #[arg(value_name = "SUITE")]
    suites: Vec<String>,
    /// Runs only against the embedded server.
    #[arg(long)]
    embedded: bool,
}

/// The result of one suite on one server.
#[derive(Clone, Debug, Default)]
struct Outcome {
    passed: usize,
    total: usize,
    failed: BTreeSet<String>,
}

/// The programs of the suites.
struct Programs {
    folder: PathBuf,
    /// The sources of controller-runtime: its suites read files from their folders.
    sources: PathBuf,
    embedded: PathBuf,
}

#[derive(Clone, Copy, PartialEq)]
enum Server {
    Embedded,
    Real,
}

/// The fields of ginkgo's report that this command reads.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Report {
    spec_reports: Vec<SpecReport>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SpecReport {
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_type: String,
    leaf_node_text: String,
    state: String,
}

#[derive(Deserialize)]
struct Checked {
    passed: usize,
    total: usize,
    failed: BTreeMap<String, String>,
}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { suites, embedded } = self;
        let record = Record::begin("soak-clients.jsonl")?;
        let all: Vec<&str> = SUITES.iter().copied().chain([CHECKS]).collect();
        if let Some(unknown) = suites.iter().find(|suite| !all.contains(&suite.as_str())) {
            bail!("unknown suite {unknown}; the suites are {}", all.join(", "));
        }
        let wanted: Vec<&str> = all
            .into_iter()
            .filter(|suite| suites.is_empty() || suites.iter().any(|it| it == suite))
            .collect();
        let programs = Programs::build(&wanted)?;
        let servers = if embedded { &[Server::Embedded][..] } else { &[Server::Embedded, Server::Real] };
        let mut columns: BTreeMap<String, BTreeMap<&str, Outcome>> = BTreeMap::new();
        for suite in wanted {
            for server in servers {
                for (name, outcome) in programs.attempt(suite, *server)? {
                    progress::say(format!(
                        "{name}, {}: {} of {}",
                        server.name(),
                        outcome.passed,
                        outcome.total
                    ));
                    columns.entry(name).or_default().insert(server.name(), outcome);
                }
            }
        }
        let missing = missing(&columns);
        let shown: BTreeMap<&String, Value> =
            columns.iter().map(|(name, outcomes)| (name, shown(outcomes))).collect();
        record.append(json!({"module": programs.version(), "suites": shown, "real_alone": missing}))?;
        let unexpected: Vec<&String> =
            missing.iter().filter(|name| !KNOWN.iter().any(|(known, _)| known == name)).collect();
        if !unexpected.is_empty() {
            bail!("these tests pass on the real API server only: {unexpected:#?}");
        }
        Ok(())
    }
}

fn shown(outcomes: &BTreeMap<&str, Outcome>) -> Value {
    outcomes
        .iter()
        .map(|(server, outcome)| ((*server).to_owned(), json!([outcome.passed, outcome.total])))
        .collect()
}

/// Returns the tests that failed on the embedded server and passed on the real one.
fn missing(columns: &BTreeMap<String, BTreeMap<&str, Outcome>>) -> BTreeSet<String> {
    let mut missing = BTreeSet::new();
    for (name, outcomes) in columns {
        let (Some(embedded), Some(real)) = (outcomes.get("embedded"), outcomes.get("real")) else { continue };
        missing.extend(embedded.failed.difference(&real.failed).map(|test| format!("{name}: {test}")));
    }
    missing
}

// === impl Server ===

impl Server {
    fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Real => "real",
        }
    }
}

// === impl Programs ===

impl Programs {
    fn build(suites: &[&str]) -> Result<Self> {
        let program = std::env::current_exe()?;
        let target = program.parent().and_then(Path::parent).context("xtask is not in a target directory")?;
        let folder = target.join("clients");
        fs::create_dir_all(&folder)?;
        let toolchain = Toolchain::find(SERVER_GO)?;
        let go = || {
            let mut go = toolchain.go();
            go.current_dir(checkout::root().join("tests/clients")).env("CGO_ENABLED", "0");
            go
        };
        progress::step("controller-runtime's suites and the checks", || {
            command::run(go().args(["mod", "download", MODULE]))?;
            let suites = suites.iter().filter(|suite| **suite != CHECKS);
            let packages: Vec<String> = suites.map(|suite| format!("{MODULE}/pkg/{suite}")).collect();
            if !packages.is_empty() {
                // With a trailing slash it is a folder, for any number of packages.
                let to = format!("{}/", folder.display());
                command::run(go().args(["test", "-c", "-o", &to]).args(&packages))?;
            }
            command::run(go().args(["build", "-trimpath", "-o"]).arg(folder.join(CHECKS)).arg("./checks"))
        })?;
        progress::step("the embedded API server", || cargo::build_example("dev_cluster"))?;
        control_plane::build()?;
        let sources = command::output(go().args(["list", "-m", "-f", "{{.Dir}}", MODULE]))?;
        let embedded = target.join("debug/examples/dev_cluster");
        Ok(Self { folder, sources: sources.trim().into(), embedded })
    }

    /// Returns the module and its version.
    fn version(&self) -> String {
        let name = self.sources.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn attempt(&self, suite: &str, server: Server) -> Result<Vec<(String, Outcome)>> {
        let running = match server {
            Server::Real => control_plane::start()?,
            Server::Embedded => {
                let kubeconfig = self.folder.join("embedded.kubeconfig");
                Running::start(Command::new(&self.embedded).arg(kubeconfig))?
            }
        };
        let kubeconfig =
            running.first_line["kubeconfig"].as_str().context("a server did not report its kubeconfig")?;
        match suite {
            CHECKS => self.checks(kubeconfig),
            suite => Ok(vec![(format!("pkg/{suite}"), self.suite(suite, server, kubeconfig)?)]),
        }
    }

    fn suite(&self, suite: &str, server: Server, kubeconfig: &str) -> Result<Outcome> {
        let report = self.folder.join(format!("{suite}-{}.json", server.name()));
        let log = report.with_extension("log");
        let _ = fs::remove_file(&report);
        let mut run = Command::new(self.folder.join(format!("{suite}.test")));
        run.current_dir(self.sources.join("pkg").join(suite))
            .env("USE_EXISTING_CLUSTER", "true")
            .env("KUBECONFIG", kubeconfig)
            .arg("-ginkgo.no-color")
            .arg(format!("-ginkgo.json-report={}", report.display()))
            .arg("-test.timeout=30m")
            .stdin(Stdio::null());
        let out = fs::File::create(&log)?;
        run.stdout(out.try_clone()?).stderr(out);
        // The report has the result, so the exit code does not matter.
        run.status().with_context(|| format!("cannot run the suite {suite}"))?;
        let text = fs::read(&report).with_context(|| {
            format!("the suite {suite} wrote no report; its output is in {}", log.display())
        })?;
        let reports: Vec<Report> =
            serde_json::from_slice(&text).context("ginkgo's report has an unknown format")?;
        Ok(Outcome::read(&reports))
    }

    fn checks(&self, kubeconfig: &str) -> Result<Vec<(String, Outcome)>> {
        let mut checks = Command::new(self.folder.join(CHECKS));
        let output = checks
            .args(["--kubeconfig", kubeconfig])
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run the checks")?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        let line = stdout.lines().last().context("the checks printed no result; see the output above")?;
        let checked: BTreeMap<String, Checked> = serde_json::from_str(line)?;
        let outcome = |(content_type, checked): (String, Checked)| {
            let Checked { passed, total, failed } = checked;
            (
                format!("{CHECKS} ({content_type})"),
                Outcome { passed, total, failed: failed.into_keys().collect() },
            )
        };
        Ok(checked.into_iter().map(outcome).collect())
    }
}

// === impl Outcome ===

impl Outcome {
    fn read(reports: &[Report]) -> Self {
        let mut outcome = Self::default();
        let specs = reports.iter().flat_map(|report| &report.spec_reports);
        for spec in specs.filter(|spec| !matches!(spec.state.as_str(), "pending" | "skipped")) {
            let is_test = spec.leaf_node_type == "It";
            let passed = spec.state == "passed";
            outcome.total += usize::from(is_test);
            outcome.passed += usize::from(is_test && passed);
            if !passed {
                let mut name = spec.container_hierarchy_texts.clone().unwrap_or_default();
                name.push(spec.leaf_node_text.clone());
                outcome.failed.insert(format!("{} {}", spec.leaf_node_type, name.join(" > ")));
            }
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_pass_on_the_real_server_only_are_named() {
        let spec = |name: &str, state: &str| {
            json!({
                "ContainerHierarchyTexts": ["Client"], "LeafNodeType": "It", "LeafNodeText": name, "State": state,
            })
        };
        let read = |states: [&str; 3]| {
            let specs = [spec("a", states[0]), spec("b", states[1]), spec("c", states[2])];
            let reports: Vec<Report> = serde_json::from_value(json!([{"SpecReports": specs}])).unwrap();
            Outcome::read(&reports)
        };
        let (embedded, real) = (read(["failed", "failed", "pending"]), read(["passed", "failed", "pending"]));
        assert_eq!((embedded.passed, embedded.total, real.passed), (0, 2, 1));
        let columns = BTreeMap::from([(
            "pkg/client".to_owned(),
            BTreeMap::from([("embedded", embedded), ("real", real)]),
        )]);
        assert_eq!(missing(&columns), BTreeSet::from(["pkg/client: It Client > a".to_owned()]));
    }
}
