//! `cargo xtask guests`: builds plugins and test fixtures into `target/guests/NAME.wasm`.
//!
//! Each folder in `plugins/`, `tests/fixtures/`, `tests/ported/` or `bench/guests/` is a guest, named after
//! the folder. The project file in the folder determines the language. Components that did not change are not
//! written, so that a running host reloads only the changed ones.

mod ported;
mod rust;

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use oarlock_built_guests::set_missing;
use oarlock_guest_build::{Language, Project};

use crate::checkout;
use crate::missing::Missing;
use crate::progress;
use crate::toolchain::cache;

/// Builds guests into target/guests/NAME.wasm.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The guests, by folder name; all if none is named.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

/// Whether the guests with sources of others are built, which takes longest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ported {
    Build,
    Skip,
}

/// Why a guest with sources of others is missing.
const LEFT_OUT: &str = "left out with --skip-ported; cargo xtask guests builds it";

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { names } = self;
        if names.is_empty() { build_all(&Missing::find()?, Ported::Build) } else { build(&names) }
    }
}

/// Builds the named guests. Builds the others too if one fails.
pub(crate) fn build(names: &[String]) -> Result<()> {
    build_each(select(find()?, names)?)
}

/// Builds all guests, except those that are left out and those whose toolchain is missing. The components of
/// the latter are removed, so that no test uses an old one.
pub(crate) fn build_all(missing: &Missing, ported: Ported) -> Result<()> {
    let lack = |guest: &Project| match missing.of(guest.language) {
        Some(lack) => Some(format!("{}: {lack}", guest.language)),
        None if ported == Ported::Skip && ported::is_ported(guest) => Some(LEFT_OUT.to_owned()),
        None => None,
    };
    let (guests, skipped): (Vec<_>, Vec<_>) = find()?.into_values().partition(|guest| lack(guest).is_none());
    for guest in &skipped {
        let Project { name, language, component, .. } = guest;
        set_missing(&checkout::guests(), name, lack(guest).as_deref())?;
        if !missing.has(*language) && component.exists() {
            fs::remove_file(component).with_context(|| format!("cannot remove {}", component.display()))?;
        }
    }
    if !skipped.is_empty() {
        let names: Vec<_> = skipped.iter().map(|guest| guest.name.as_str()).collect();
        progress::say(format!("SKIPPED guests: {}", names.join(", ")));
    }
    build_each(guests)
}

fn build_each(guests: Vec<Project>) -> Result<()> {
    let mut by_language: BTreeMap<Language, Vec<Project>> = BTreeMap::new();
    for guest in guests {
        set_missing(&checkout::guests(), &guest.name, None)?;
        by_language.entry(guest.language).or_default().push(guest);
    }
    let mut failed = vec![];
    for (language, guests) in by_language {
        let lock = checkout::guest_build(&format!("{}.lock", language.short_name()));
        let _lock = cache::lock(&lock, &format!("{language} guests"))?;
        let mut note = |name: &str, result: Result<()>| {
            if let Err(error) = result {
                progress::say(format!("{error:#}"));
                failed.push(name.to_owned());
            }
        };
        if language == Language::Go {
            crate::sdk::go::write_bindings()?;
        }
        if language == Language::Rust {
            note("the Rust guests", rust::build(&guests));
            continue;
        }
        for guest in &guests {
            let built = ported::fetch(guest).and_then(|()| oarlock_guest_build::build(guest));
            note(&guest.name, built.map(drop));
        }
    }
    ensure!(failed.is_empty(), "these guests were not built: {}", failed.join(", "));
    Ok(())
}

/// Builds a guest as after a change of a source, and returns how long that took.
pub(crate) fn build_again(name: &str) -> Result<Duration> {
    let guests = select(find()?, &[name.to_owned()])?;
    let guest = guests.first().with_context(|| format!("there is no guest {name}"))?;
    if guest.language == Language::Rust {
        // Cargo compares times.
        let source = fs::File::options().append(true).open(guest.folder.join("src/lib.rs"))?;
        source.set_modified(SystemTime::now())?;
    } else {
        let _ = fs::remove_file(guest.build_folder.join("stamp"));
    }
    let began = Instant::now();
    build(&[name.to_owned()])?;
    Ok(began.elapsed())
}

/// Returns all guests of this checkout, by name.
fn find() -> Result<BTreeMap<String, Project>> {
    let mut guests = BTreeMap::new();
    for place in ["plugins", "tests/fixtures", ported::FOLDER, "bench/guests"] {
        let place = checkout::root().join(place);
        let Ok(folders) = fs::read_dir(&place) else {
            continue;
        };
        for folder in folders {
            let folder = folder?.path();
            let Some(language) = Language::of(&folder) else {
                continue;
            };
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let guest = Project {
                name: name.clone(),
                folder: folder.clone(),
                language,
                component: checkout::guests().join(format!("{name}.wasm")),
                build_folder: checkout::guest_build(&name),
                wit: checkout::wit(),
                sdk: checkout::guest_sdk(),
            };
            if let Some(other) = guests.insert(name, guest) {
                bail!("two guests have the same name: {} and {}", other.folder.display(), folder.display());
            }
        }
    }
    Ok(guests)
}

fn select(mut guests: BTreeMap<String, Project>, names: &[String]) -> Result<Vec<Project>> {
    let known = guests.keys().cloned().collect::<Vec<_>>().join(", ");
    let mut selected = vec![];
    for name in names {
        selected.push(
            guests.remove(name).with_context(|| format!("unknown guest {name}; the guests are {known}"))?,
        );
    }
    Ok(selected)
}
