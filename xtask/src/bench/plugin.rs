//! `cargo xtask bench plugin`: measures the whole host with plugins: CPU time, memory, latency, swaps.
//!
//! The host is the released binary, pinned to one core; the synthetic API server has the other. Each run
//! starts a host of its own. CPU time and memory are those of the host's process, read from the kernel.

mod host;
mod hostile;
mod peers;
mod runs;
mod scale;
mod swaps;
mod table;
mod writes;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::build::Programs;
use super::figures::Figures;
use crate::{checkout, guests, progress};

use host::Paths;

/// The file with the figures of the last complete run, relative to the root.
const RESULTS: &str = "bench/results/plugin.jsonl";

/// The guest that every group measures, and those that some groups measure beside it.
const GUEST: &str = "measured";
const MORE_GUESTS: [(&str, &[&str]); 2] =
    [("load", &["hello-ts", "hello-python"]), ("start", &["hello-rust"])];

/// A group of runs.
type Group = (&'static str, fn(&Bench, &mut Figures) -> Result<()>);

/// All groups, in order.
const GROUPS: [Group; 13] = [
    ("path", runs::path),
    ("reads", runs::reads),
    ("load", runs::load),
    ("traps", runs::traps),
    ("memory", runs::memory),
    ("idle", runs::idle),
    ("start", runs::start),
    ("paced", runs::paced),
    ("writes", writes::writes),
    ("swaps", swaps::swaps),
    ("hostile", hostile::hostile),
    ("scale", scale::scale),
    ("controllers", peers::controllers),
];

/// Measures the host with plugins.
#[derive(clap::Args)]
pub(super) struct Plugin {
    /// Prints one figure per line as JSON instead of the table.
    #[arg(long)]
    json: bool,
    /// Takes one reading per run, with fewer events and shorter runs.
    #[arg(long)]
    quick: bool,
    /// Runs only these groups.
    #[arg(long, num_args = 1.., value_name = "GROUP")]
    only: Vec<String>,
    /// Measures this binary of the host instead of building one, to compare two versions.
    #[arg(long, value_name = "FILE")]
    host: Option<PathBuf>,
}

/// The programs and settings of all runs.
struct Bench {
    paths: Paths,
    programs: Programs,
    is_quick: bool,
    /// Readings of each repeated run.
    rounds: usize,
}

// === impl Plugin ===

impl Plugin {
    pub(super) fn run(self) -> Result<()> {
        let Self { json, quick, only, host } = self;
        let known = GROUPS.map(|(name, _)| name);
        let unknown: Vec<_> = only.iter().filter(|name| !known.contains(&name.as_str())).collect();
        ensure!(unknown.is_empty(), "unknown groups {unknown:?}; the groups are {known:?}");
        let is_wanted = |group: &str| only.is_empty() || only.iter().any(|it| it == group);
        let more = MORE_GUESTS.iter().filter(|(group, _)| is_wanted(group)).flat_map(|(_, guests)| *guests);
        guests::build(&more.chain([&GUEST]).map(|it| (*it).to_owned()).collect::<Vec<_>>())?;
        let programs = Programs::build_for_plugins(host)?;
        let folder = tempfile::Builder::new().prefix("oarlock-bench-").tempdir()?;
        let paths = Paths { oarlock: programs.host.clone(), folder: folder.path().to_owned() };
        let bench = Bench { paths, programs, is_quick: quick, rounds: if quick { 1 } else { 3 } };
        let begun = Instant::now();
        let mut figures = Figures::default();
        for (name, group) in GROUPS {
            if is_wanted(name) {
                progress::say(format!("group {name}"));
                group(&bench, &mut figures).with_context(|| format!("group {name}"))?;
            }
        }
        progress::say(format!("the benchmark took {} s", begun.elapsed().as_secs()));
        if !quick && only.is_empty() {
            let results = checkout::root().join(RESULTS);
            std::fs::write(&results, figures.json()).with_context(|| format!("cannot write {RESULTS}"))?;
            progress::say(format!("the figures are also in {RESULTS}"));
        }
        super::print(&if json { figures.json() } else { table::of(&figures) });
        Ok(())
    }
}

// === impl Bench ===

impl Bench {
    /// Returns the path of a component.
    fn component(name: &str) -> PathBuf {
        checkout::guests().join(format!("{name}.wasm"))
    }

    /// Adds a reading of the host.
    fn note(figures: &mut Figures, metric: &str, value: f64) {
        progress::say(format!("  {metric}: {value:.3}"));
        figures.note("oarlock", metric, value);
    }
}
