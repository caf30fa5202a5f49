//! Compiles components: for the execution profile of the compiler, whose child processes cannot write one,
//! and to measure it without the host.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use oarlock_measure::{Record, cpu};
use oarlock_plugin::compiler::compile_here;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How often each of them is compiled
    #[arg(long, default_value_t = 1)]
    rounds: u32,
    /// The components
    #[arg(required = true)]
    components: Vec<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<Record> {
    let Args { rounds, components } = args;
    let mut record = Record::default();
    for path in components {
        let component = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let before = cpu();
        let code = compile_here((0..*rounds).map(|_| component.as_slice()))
            .map_err(|error| anyhow!("cannot compile {}: {error}", path.display()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let took = (cpu() - before).checked_div(*rounds).unwrap_or_default();
        record.more.insert(format!("compile_cpu_ms_{name}"), took.as_secs_f64() * 1e3);
        let bytes = code.first().map_or(0, Vec::len);
        record.more.insert(format!("code_bytes_{name}"), bytes as f64);
    }
    Ok(record)
}
