//! `cargo xtask bench`: measures the informer, and the host with plugins, and their peers in one run on one
//! machine.

pub(crate) mod build;
mod corpus;
mod figures;
mod languages;
mod plan;
mod plugin;
mod plugin_objects;
pub(crate) mod process;
mod real;
mod table;

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Subcommand;

use crate::{checkout, progress};

use build::Programs;
use figures::Figures;
use plan::{Run, Server};

/// The number of readings of each repeated run; the figure is their median.
const ROUNDS: usize = 5;

/// The file with the figures of the last complete run, relative to the root.
const RESULTS: &str = "bench/results/informer.jsonl";

/// Measures this project and its peers.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand)]
enum BenchCommand {
    /// Measures memory and CPU of our informer, kube-rs and client-go on the same stream of bytes.
    Informer(Informer),
    /// Measures CPU time, memory and latency of the host with plugins, and of client-go beside it.
    Plugin(plugin::Plugin),
    /// Measures one host with many Plugin objects, on a real API server.
    PluginObjects(plugin_objects::PluginObjects),
    /// Measures one plugin in each language: size, build, start, memory, time for each notification.
    Languages(languages::Languages),
}

#[derive(clap::Args)]
struct Informer {
    /// Prints one figure per line as JSON instead of the table.
    #[arg(long)]
    json: bool,
    /// Takes one reading per run, with fewer events, no large caches and no real API server.
    #[arg(long)]
    quick: bool,
    /// Runs only these subjects.
    #[arg(long, num_args = 1.., value_name = "SUBJECT")]
    only: Vec<String>,
}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        match self.command {
            BenchCommand::Informer(args) => args.run(),
            BenchCommand::Plugin(args) => args.run(),
            BenchCommand::PluginObjects(args) => args.run(),
            BenchCommand::Languages(args) => args.run(),
        }
    }
}

// === impl Informer ===

impl Informer {
    fn run(self) -> Result<()> {
        let Self { json, quick, only } = self;
        let known = plan::subjects();
        let unknown: Vec<_> = only.iter().filter(|name| !known.contains(&name.as_str())).collect();
        ensure!(unknown.is_empty(), "unknown subjects {unknown:?}; the subjects are {known:?}");
        let is_wanted = |run: &Run| only.is_empty() || only.iter().any(|name| name == run.subject);

        let wants_kube_rs = only.is_empty() || only.iter().any(|name| name.starts_with("kube-rs"));
        let programs = Programs::build(wants_kube_rs)?;
        let begun = Instant::now();
        let mut figures = Figures::default();
        for line in corpus::describe(&programs)? {
            progress::say(line);
        }
        for stage in plan::stages(quick) {
            let runs: Vec<_> = stage.runs.into_iter().filter(is_wanted).collect();
            if runs.is_empty() {
                continue;
            }
            let rounds = if quick || stage.is_once { 1 } else { ROUNDS };
            let server = Server::start(&programs, &stage.server)?;
            // One run of each subject per round, so that other load on the machine affects all subjects
            // alike.
            for round in 1..=rounds {
                for run in &runs {
                    let record = run.take(&programs, server.url())?;
                    progress::say(format!("{} {round}/{rounds}: {}", run.title(), record.summary()));
                    figures.add(run, &record);
                }
            }
        }
        if !quick {
            real::measure(&programs, &only, &mut figures)?;
        }
        progress::say(format!("the benchmark took {} s", begun.elapsed().as_secs()));
        if !quick && only.is_empty() {
            let results = checkout::root().join(RESULTS);
            std::fs::write(&results, figures.json()).with_context(|| format!("cannot write {RESULTS}"))?;
            progress::say(format!("the figures are also in {RESULTS}"));
        }
        print(&if json { figures.json() } else { table::of(&figures) });
        Ok(())
    }
}

#[expect(clippy::print_stdout, reason = "the figures are the output of this command")]
fn print(text: &str) {
    println!("{}", text.trim_end());
}
