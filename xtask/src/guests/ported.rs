//! Sources of others, which are fetched before their guests are built.

use std::fs;

use anyhow::{Context, Result, bail};
use oarlock_guest_build::{Language, Project};

use crate::{checkout, sdk};

/// The folder of the guests with sources of others.
pub(super) const FOLDER: &str = "tests/ported";

/// Returns whether a guest has sources of others.
pub(super) fn is_ported(guest: &Project) -> bool {
    guest.folder.starts_with(checkout::root().join(FOLDER))
}

/// Fetches the sources of a guest that has some of others.
pub(super) fn fetch(guest: &Project) -> Result<()> {
    if !is_ported(guest) {
        return Ok(());
    }
    match guest.language {
        Language::Go => sdk::go::generate(&guest.folder),
        Language::Python => kopf_example(guest),
        other => bail!("{}: no sources in {other} are fetched", guest.name),
    }
}

/// Copies one of kopf's examples, which the guest's name names, and the definition of their resource.
fn kopf_example(guest: &Project) -> Result<()> {
    let name = guest.name.strip_prefix("kopf-");
    let name = name.with_context(|| format!("{} is not named kopf-EXAMPLE", guest.name))?;
    let examples = sdk::python::kopf_examples()?;
    for path in [examples.join(name).join("example.py"), examples.join("crd.yaml")] {
        let copy = guest.folder.join(path.file_name().unwrap_or_default());
        fs::copy(&path, copy).with_context(|| format!("cannot copy {}", path.display()))?;
    }
    Ok(())
}
