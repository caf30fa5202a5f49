//! Rust: a crate of the type `cdylib`. Cargo detects changes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Outcome, install};
use crate::toolchain::command;
use crate::toolchain::rust::{TARGET, Toolchain};
use crate::{Project, progress};

/// The first line of a configuration that this file has written, and may write again.
const WRITTEN: &str = "# Written by `oarlock plugin build`. It names the SDK of this version of oarlock.";

/// Crates that need sockets, files, threads or random numbers of an operating system. They are the usual
/// reason for which a crate does not compile for WebAssembly.
const OF_A_SYSTEM: [&str; 11] = [
    "async-io",
    "getrandom",
    "mio",
    "native-tls",
    "openssl-sys",
    "polling",
    "ring",
    "rustix",
    "socket2",
    "tokio",
    "zstd-sys",
];

/// Builds the crate.
pub(super) fn build(project: &Project) -> Result<Outcome> {
    let toolchain = Toolchain::find(&project.folder)?;
    let target_dir = project.build_folder.join(toolchain.id()?);
    let library = library(&project.folder.join("Cargo.toml"))?;
    let first =
        if target_dir.exists() { "" } else { " (the first build compiles the SDK too: about a minute)" };
    progress::step(&format!("Rust: {}{first}", project.name), || {
        let mut cargo = toolchain.cargo();
        cargo.current_dir(&project.folder).args(["build", "--quiet", "--release", "--target", TARGET]);
        cargo.arg("--target-dir").arg(&target_dir);
        cargo.arg("--config").arg(name_sdk(project, &project.sdk.join("rust"))?);
        let warnings = command::compile("cargo build", &mut cargo).map_err(explain)?;
        if !warnings.is_empty() {
            progress::say(warnings.trim_end());
        }
        install(&target_dir.join(format!("{TARGET}/release/{library}.wasm")), &project.component)
    })
}

/// Adds the cause to errors of crates that cannot work in a component.
fn explain(error: anyhow::Error) -> anyhow::Error {
    let text = error.to_string();
    let fails = |name: &&&str| {
        [format!("could not compile `{name}`"), format!("custom build command for `{name} ")]
            .iter()
            .any(|it| text.contains(it))
    };
    match OF_A_SYSTEM.iter().find(fails) {
        None => error,
        Some(name) => error.context(format!(
            "the crate {name} needs an operating system, which a plugin does not have: no sockets, files, \
             threads or random numbers; `cargo tree --target {TARGET} --invert {name}` says which package \
             brings it: leave that out, or its feature. The client of the SDK talks to the API server"
        )),
    }
}

/// Writes configurations of cargo that say where the SDK is, as long as it is not published: one for the
/// build, which is returned, and one for cargo without arguments, such as an editor's.
fn name_sdk(project: &Project, sdk: &Path) -> Result<PathBuf> {
    let text = format!("{WRITTEN}\n[patch.crates-io]\noarlock-sdk = {{ path = {:?} }}\n", sdk.display());
    for path in [project.folder.join(".cargo/config.toml"), project.build_folder.join("cargo.toml")] {
        let there = fs::read_to_string(&path).ok();
        let is_users = there.as_ref().is_some_and(|there| !there.starts_with(WRITTEN));
        if !is_users && there.as_ref() != Some(&text) {
            crate::embedded::write(&path, text.as_bytes())?;
        }
    }
    Ok(project.build_folder.join("cargo.toml"))
}

/// Returns the name of the crate's library, as its file has it.
fn library(manifest: &Path) -> Result<String> {
    let text = fs::read_to_string(manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let parsed: toml::Table =
        toml::from_str(&text).with_context(|| format!("{} is not TOML", manifest.display()))?;
    let name = |table: &str| parsed.get(table).and_then(|it| it.get("name")).and_then(toml::Value::as_str);
    let name = name("lib").or_else(|| name("package"));
    let name = name.with_context(|| format!("{} has no package name", manifest.display()))?;
    Ok(name.replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_has_its_own_name_or_that_of_the_package() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = folder.path().join("Cargo.toml");
        fs::write(&manifest, "[package]\nname = \"a-b\"\n").unwrap();
        assert_eq!(library(&manifest).unwrap(), "a_b");
        fs::write(&manifest, "[package]\nname = \"a-b\"\n[lib]\nname = \"c\"\n").unwrap();
        assert_eq!(library(&manifest).unwrap(), "c");
    }

    #[test]
    fn a_crate_that_needs_an_operating_system_is_named() {
        let of = |output: &str| format!("{:#}", explain(anyhow::anyhow!("{output}")));
        let explained =
            of("cargo build failed:\nerror[E0432]: …\nerror: could not compile `mio` (lib) due to 48 errors");
        assert!(explained.contains("the crate mio needs an operating system"), "{explained}");
        assert!(explained.contains("--invert mio`"), "{explained}");
        let explained = of("error: failed to run custom build command for `ring v0.17.14`");
        assert!(explained.contains("the crate ring needs"), "{explained}");
        let own = "error: could not compile `mioco` (lib) due to 1 previous error";
        assert_eq!(of(own), own);
    }

    #[test]
    fn a_configuration_of_the_user_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let project = Project {
            name: "a".to_owned(),
            language: crate::Language::Rust,
            component: path.join("a.wasm"),
            build_folder: path.join("build"),
            wit: path.join("wit"),
            sdk: path.join("guest-sdk"),
            folder: path.clone(),
        };
        let config = path.join(".cargo/config.toml");
        name_sdk(&project, Path::new("/old")).unwrap();
        let for_build = name_sdk(&project, Path::new("/new")).unwrap();
        for written in [&config, &for_build] {
            assert!(fs::read_to_string(written).unwrap().contains("\"/new\""));
        }
        fs::write(&config, "[build]\njobs = 1\n").unwrap();
        name_sdk(&project, Path::new("/newest")).unwrap();
        assert_eq!(fs::read_to_string(&config).unwrap(), "[build]\njobs = 1\n");
    }
}
