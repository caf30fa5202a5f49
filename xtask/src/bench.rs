//! `cargo xtask bench`: measures the informer beside its peers, in one run on one machine.

pub(crate) mod build;
mod corpus;
mod figures;
mod plan;
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

/// How many readings are taken of what is compared; their median counts.
const ROUNDS: usize = 5;

/// Where the figures of the last whole run are kept, relative to the root.
const RESULTS: &str = "bench/results/informer.jsonl";

/// Measures something beside its peers.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Memory and CPU of our informer, kube-rs' and client-go's over the same stream of bytes.
    Informer(Informer),
}

#[derive(clap::Args)]
struct Informer {
    /// Prints one figure a line, as JSON, in place of the table.
    #[arg(long)]
    json: bool,
    /// One reading of each, fewer events, nothing large, no real API server.
    #[arg(long)]
    quick: bool,
    /// Only these subjects.
    #[arg(long, num_args = 1.., value_name = "SUBJECT")]
    only: Vec<String>,
}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        match self.what {
            What::Informer(args) => args.run(),
        }
    }
}

// === impl Informer ===

impl Informer {
    fn run(self) -> Result<()> {
        let Self { json, quick, only } = self;
        let known = plan::subjects();
        let unknown: Vec<_> = only.iter().filter(|name| !known.contains(&name.as_str())).collect();
        ensure!(unknown.is_empty(), "no such subjects: {unknown:?}; there are {known:?}");
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
            // Round by round, so that what else the machine does meets all of them alike.
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
        progress::say(format!("measured in {} s", begun.elapsed().as_secs()));
        if !quick && only.is_empty() {
            let results = checkout::root().join(RESULTS);
            std::fs::write(&results, figures.json()).with_context(|| format!("cannot write {RESULTS}"))?;
            progress::say(format!("the figures are in {RESULTS}, too"));
        }
        print(&if json { figures.json() } else { table::of(&figures) });
        Ok(())
    }
}

#[expect(clippy::print_stdout, reason = "the figures are what is asked for")]
fn print(text: &str) {
    println!("{}", text.trim_end());
}
