//! `cargo xtask bench plugin-objects`: one host with many Plugin objects, on a real API server.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::soak::Record;
use crate::{cargo, checkout, control_plane, guests, progress};

/// Measures one host with many Plugin objects: the time until all are Ready, the memory for each, the rate of
/// status writes, and the CPU at rest.
#[derive(clap::Args)]
pub(crate) struct PluginObjects {
    /// The number of Plugins.
    #[arg(long, default_value_t = 1_000)]
    plugins: usize,
    /// The number of distinct components.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=256))]
    components: u16,
    /// Measures this binary of the host instead of building a release.
    #[arg(long, value_name = "FILE")]
    host: Option<PathBuf>,
}

// === impl PluginObjects ===

impl PluginObjects {
    pub(super) fn run(self) -> Result<()> {
        let Self { plugins, components, host } = self;
        let record = Record::begin("plugin-objects.jsonl")?;
        guests::build(&["hello-rust".to_owned()])?;
        progress::step("the measuring program", || cargo::build_some(&["oarlock-plugin-objects"], false))?;
        let host = match host {
            Some(host) => std::path::absolute(host)?,
            None => {
                progress::step("the host", || cargo::build_some(&["oarlock"], true))?;
                checkout::target()?.join("release/oarlock")
            }
        };
        let server = control_plane::start()?;
        let kubeconfig =
            server.first_line["kubeconfig"].as_str().context("the API server has no kubeconfig")?;
        let mut run = Command::new(checkout::program("oarlock-plugin-objects")?);
        run.args(["--kubeconfig", kubeconfig, "--plugins", &plugins.to_string()]);
        run.args(["--components", &components.to_string()]).env("OARLOCK_TESTS_HOST", host);
        let output = run.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("cannot measure")?;
        if !output.status.success() {
            bail!("oarlock-plugin-objects failed ({})", output.status);
        }
        let stdout = String::from_utf8_lossy(&output.stdout);
        let line = stdout.lines().last().context("oarlock-plugin-objects printed nothing")?;
        let line: Value = serde_json::from_str(line).context("oarlock-plugin-objects printed no JSON")?;
        record.append(line)
    }
}
