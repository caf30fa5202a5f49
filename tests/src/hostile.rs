//! Hostile plugins in one host process beside good ones.
//!
//! [`cases`] lists the hostile plugins, [`handwritten`] makes the components that no compiler makes, and
//! [`Stage`] runs a host with three good plugins, whose notifications [`crate::chain_check`] compares with
//! the recorded history. [`run`] puts these together: good plugins alone, good plugins beside hostile ones,
//! and good plugins alone again.
//!
//! ```text
//!   API server in this process ◀──changes── run
//!        │  └──watch──▶ recorder ──▶ chain_check ◀── notifications of good-1, good-2, good-3
//!        ▼                                              ▲
//!   host process: good-1, good-2, good-3, hostile ones ─┘   /proc/PID ──▶ memory ≤ bound
//! ```

pub mod bound;
pub mod cases;
pub mod handwritten;
pub mod mutants;
pub mod process;
mod stage;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::process::Command;

use self::bound::Bound;
use self::cases::Case;
use self::process::Resources;
pub use self::stage::{GOOD, Latencies, Plugin, Stage};

/// How long and with how many changes to run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Changes of objects in each of the two measured parts.
    pub changes: usize,
    /// The time between two changes; zero writes as fast as the server answers.
    pub pace: Duration,
    /// Whether the host records all plugins.
    pub records: bool,
}

/// What a run saw.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The number of hostile plugins.
    pub hostile: usize,
    /// From a write until a good plugin reports it, without hostile plugins.
    pub alone: Latencies,
    /// The same beside the hostile plugins.
    pub beside: Latencies,
    /// The good plugins' p99 beside the hostile ones, divided by the p99 without them.
    pub hostile_p99_ratio: f64,
    /// The host's resources with the good plugins alone, before the hostile ones came.
    pub before: Resources,
    /// The maximum of each while hostile plugins ran.
    pub peak: Resources,
    /// The host's resources after the hostile plugins were removed.
    pub after: Resources,
    /// The stated bound of the host's memory, in bytes.
    pub bound: Bound,
    /// The reason that the status names for each hostile plugin.
    pub reasons: BTreeMap<String, String>,
}

/// Runs a host with three good plugins, first alone, then beside the hostile ones, then alone again. `host`
/// is the program.
///
/// # Errors
///
/// When a good plugin misses anything, when the host's memory exceeds its bound, when the status does not
/// name a hostile plugin's reason, or when the host keeps resources of plugins that were removed.
pub async fn run(host: Command, settings: Settings, cases: &[Case]) -> anyhow::Result<Outcome> {
    let records = tempfile::tempdir()?;
    let folder = format!("{}/", records.path().display());
    let flags: &[&str] = if settings.records { &["--record", &folder] } else { &[] };
    let mut stage = Stage::start_program(host, flags).await?;
    // The first changes compile code, fill caches and open connections.
    stage.change(settings.changes / 4, Duration::ZERO).await?;
    let alone = stage.measure(settings.changes, settings.pace).await?;
    let before = stage.resources()?;
    say("measured without hostile plugins");

    stage.load(cases).await?;
    let reasons = stage.reasons(cases).await?;
    say("the status names every reason");
    let beside = stage.measure(settings.changes, settings.pace).await?;
    say("measured beside hostile plugins");
    stage.expect_health().await?;
    let peak = stage.peak();
    let mut bound = bound::of(cases, &stage.page("/metrics").await?.1);
    if settings.records {
        bound.anonymous += bound::RECORDS;
        stage.expect_records(cases).await?;
    }

    stage.unload(cases).await?;
    say("unloaded");
    stage.change(settings.changes / 4, Duration::ZERO).await?;
    stage.judge().await?;
    let after = stage.released(&before).await?;
    bound.check(&peak)?;
    let hostile_p99_ratio = beside.p99_ms / alone.p99_ms.max(0.001);
    let hostile = cases.len();
    stage.end().await?;
    Ok(Outcome { hostile, alone, beside, hostile_p99_ratio, before, peak, after, bound, reasons })
}

/// Tells the progress of a run that takes minutes.
fn say(what: &str) {
    eprintln!("hostile: {what}");
}

/// Returns the texts of a plugin's status that say why it does not work.
fn troubles(plugin: &Value) -> String {
    let texts = ["/refused/message", "/last-error/message", "/waits-for"];
    let mut troubles: Vec<String> =
        texts.iter().filter_map(|pointer| plugin.pointer(pointer)).map(Value::to_string).collect();
    if plugin["host-bytes"]["refused"].as_u64().is_some_and(|refused| refused > 0) {
        troubles.push("host-bytes refused".to_owned());
    }
    troubles.join("; ")
}
