//! `cargo xtask docs`: the pages and CustomResourceDefinitions that are generated, the links of all pages,
//! and the site.

mod cli;
mod configuration;
mod contract;
mod crds;
mod links;
mod markdown;
mod metrics;
mod site;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::{checkout, progress, tidy};

/// Writes the generated pages, checks the links of all pages, and builds the site into target/docs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Writes nothing: checks that the generated pages are up to date, and the links.
    #[arg(long)]
    check: bool,
}

const CONTRACT: &str = "docs/reference/contract.md";
const CLI: &str = "docs/reference/cli.md";
const CONFIGURATION: &str = "docs/reference/configuration.md";
const METRICS: &str = "docs/reference/metrics.md";

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { check } = self;
        if check {
            check_built()?;
        } else {
            write(CONTRACT, &contract::page(&checkout::wit())?)?;
            let oarlock = checkout::program("oarlock")?;
            write(CLI, &cli::page(&oarlock)?)?;
            write(CONFIGURATION, &configuration::page(&oarlock)?)?;
            for (path, text) in crds::files(&oarlock)? {
                write(&path, &text)?;
            }
            write(METRICS, &metrics::page(&oarlock)?)?;
        }
        let faults = faults()?;
        if !faults.is_empty() {
            bail!("the pages have {} faults:\n  {}", faults.len(), faults.join("\n  "));
        }
        if !check {
            progress::say(format!("{}", site::build()?.join("index.html").display()));
        }
        Ok(())
    }
}

/// Returns the faults that are found without the binary: links to nothing, and a stale page of the contract.
pub(crate) fn faults() -> Result<Vec<String>> {
    let mut pages = std::collections::BTreeMap::new();
    for file in tidy::tracked(&["*.md"])? {
        if links::is_checked(&file) {
            let text = fs::read_to_string(checkout::root().join(&file));
            pages.insert(file.clone(), text.with_context(|| format!("cannot read {}", file.display()))?);
        }
    }
    let mut faults = links::faults(&pages, |path| checkout::root().join(path).exists())?;
    faults.extend(site::faults(pages.keys()));
    faults.extend(stale(CONTRACT, &contract::page(&checkout::wit())?));
    Ok(faults)
}

/// Checks what is generated with the binary against the binary that was built.
pub(crate) fn check_built() -> Result<()> {
    let oarlock = checkout::program("oarlock")?;
    let faults = [
        stale(CLI, &cli::page(&oarlock)?),
        stale(CONFIGURATION, &configuration::page(&oarlock)?),
        stale(METRICS, &metrics::page(&oarlock)?),
    ];
    let crds = crds::files(&oarlock)?.into_iter().filter_map(|(path, text)| stale(&path, &text));
    match faults.into_iter().flatten().chain(crds).next() {
        Some(fault) => bail!(fault),
        None => Ok(()),
    }
}

fn stale(page: &str, text: &str) -> Option<String> {
    let is = fs::read_to_string(checkout::root().join(page)).unwrap_or_default();
    (is != text).then(|| format!("{page} is stale: run `cargo xtask docs`"))
}

fn write(page: &str, text: &str) -> Result<()> {
    let path: PathBuf = checkout::root().join(page);
    let write = || {
        fs::create_dir_all(path.parent().unwrap_or(&path))?;
        fs::write(&path, text)
    };
    write().with_context(|| format!("cannot write {page}"))
}
