//! `cargo xtask guests`: builds plugins and test fixtures into `target/guests/NAME.wasm`.
//!
//! Each folder in `plugins/`, `tests/fixtures/` or `bench/guests/` is a guest, named after the folder. The
//! project file in the folder determines the language. Components that did not change are not written, so
//! that a running host reloads only the changed ones.

mod c;
mod go;
mod js;
mod python;
mod rust;
mod stamp;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::checkout;
use crate::progress;
use crate::toolchain::cache;

/// The world of guests in languages other than Rust; Rust guests name it in their sources.
const WORLD: &str = "handler-plugin";

/// Builds guests into target/guests/NAME.wasm.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The guests, by folder name; all if none is named.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

/// A folder whose project becomes a component.
struct Guest {
    name: String,
    folder: PathBuf,
    language: Language,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Language {
    Rust,
    C,
    Go,
    Js,
    Python,
}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { names } = self;
        build(&names)
    }
}

/// Builds the named guests, or all if none is named. Builds the others too if one fails.
pub(crate) fn build(names: &[String]) -> Result<()> {
    let guests = select(find()?, names)?;
    let mut by_language: BTreeMap<Language, Vec<Guest>> = BTreeMap::new();
    for guest in guests {
        by_language.entry(guest.language).or_default().push(guest);
    }
    let mut failed = vec![];
    for (language, guests) in by_language {
        let what = format!("{language:?} guests");
        let _lock = cache::lock(&checkout::guest_build(&format!("{language:?}.lock").to_lowercase()), &what)?;
        let mut note = |name: &str, result: Result<()>| {
            if let Err(error) = result {
                progress::say(format!("{error:#}"));
                failed.push(name.to_owned());
            }
        };
        let build_one = match language {
            Language::Rust => {
                note("the Rust guests", rust::build(&guests));
                continue;
            }
            Language::C => c::build,
            Language::Go => go::build,
            Language::Js => js::build,
            Language::Python => python::build,
        };
        for guest in &guests {
            note(&guest.name, build_one(guest));
        }
    }
    ensure!(failed.is_empty(), "these guests were not built: {}", failed.join(", "));
    Ok(())
}

/// Returns all guests of this checkout, by name.
fn find() -> Result<BTreeMap<String, Guest>> {
    let mut guests = BTreeMap::new();
    for place in ["plugins", "tests/fixtures", "bench/guests"] {
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
            let guest = Guest { name: name.clone(), folder: folder.clone(), language };
            if let Some(other) = guests.insert(name, guest) {
                bail!("two guests have the same name: {} and {}", other.folder.display(), folder.display());
            }
        }
    }
    Ok(guests)
}

fn select(mut guests: BTreeMap<String, Guest>, names: &[String]) -> Result<Vec<Guest>> {
    if names.is_empty() {
        return Ok(guests.into_values().collect());
    }
    let known = guests.keys().cloned().collect::<Vec<_>>().join(", ");
    let mut selected = vec![];
    for name in names {
        selected.push(
            guests.remove(name).with_context(|| format!("unknown guest {name}; the guests are {known}"))?,
        );
    }
    Ok(selected)
}

/// Creates an empty folder, and removes its old content.
fn fresh_folder(path: &Path) -> Result<PathBuf> {
    if path.exists() {
        fs::remove_dir_all(path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
    Ok(path.to_owned())
}

/// Copies a guest's folder without the files of package managers.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        if path.ends_with("node_modules") || path.ends_with("__pycache__") {
            continue;
        }
        let copy_path = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &copy_path)?;
        } else {
            fs::copy(&path, &copy_path).with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    Ok(())
}

/// Writes a component to its place, unless the place has the same bytes.
fn install(name: &str, component: &Path) -> Result<()> {
    let bytes = fs::read(component).with_context(|| format!("cannot read {}", component.display()))?;
    ensure!(bytes.starts_with(b"\0asm\x0d\0\x01\0"), "{} is not a component", component.display());
    let place = checkout::guests().join(format!("{name}.wasm"));
    if fs::read(&place).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let partial = checkout::guests().join(format!("{name}.wasm.partial"));
    fs::write(&partial, &bytes).with_context(|| format!("cannot write {}", partial.display()))?;
    fs::rename(&partial, &place).with_context(|| format!("cannot write {}", place.display()))?;
    progress::say(format!("{name}.wasm: {} KiB", bytes.len() / 1024));
    Ok(())
}

// === impl Language ===

impl Language {
    /// Returns the language of the project in this folder, if it contains one.
    fn of(folder: &Path) -> Option<Self> {
        let has = |name: &str| folder.join(name).is_file();
        if has("Cargo.toml") {
            return Some(Self::Rust);
        }
        if has("go.mod") {
            return Some(Self::Go);
        }
        if has("package.json") {
            return Some(Self::Js);
        }
        if has("requirements.txt") {
            return Some(Self::Python);
        }
        let mut files = fs::read_dir(folder).into_iter().flatten().flatten();
        files.any(|file| file.path().extension().is_some_and(|extension| extension == "c")).then_some(Self::C)
    }
}
