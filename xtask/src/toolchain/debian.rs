//! Takes Debian packages apart into a folder. Nothing is installed, and root is not needed.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::command;

/// Unpacks these packages, without their dependencies, below `folder`.
pub(crate) fn unpack(packages: &[String], folder: &Path) -> Result<()> {
    if !(command::exists("apt-get") && command::exists("dpkg")) {
        bail!(
            "this machine has no apt-get and dpkg to fetch the Debian packages {} with",
            packages.join(", ")
        );
    }
    let apt = folder.join("apt");
    download(packages, &apt)?;
    for file in fs::read_dir(&apt)? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            command::run(Command::new("dpkg").arg("-x").arg(&path).arg(folder))?;
        }
    }
    fs::remove_dir_all(&apt).with_context(|| format!("cannot remove {}", apt.display()))
}

/// Downloads with the machine's package lists; if those are missing or out of date, with fresh ones of our own.
fn download(packages: &[String], into: &Path) -> Result<()> {
    let lists = into.join("state/lists/partial");
    let archives = into.join("cache/archives/partial");
    for folder in [&lists, &archives] {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let apt_get = || {
        let mut apt_get = Command::new("apt-get");
        apt_get
            .current_dir(into)
            .arg("--quiet")
            .args(["-o", "APT::Sandbox::User=root"]);
        apt_get
    };
    if command::run(apt_get().arg("download").args(packages)).is_ok() {
        return Ok(());
    }
    let own = [
        format!("Dir::State={}", into.join("state").display()),
        format!("Dir::Cache={}", into.join("cache").display()),
        "Dir::State::status=/var/lib/dpkg/status".to_owned(),
    ];
    let apt_get = || {
        let mut apt_get = apt_get();
        apt_get.args(own.iter().flat_map(|option| ["-o", option]));
        apt_get
    };
    // A source that does not answer matters only if a package is missing then.
    let updated = command::run(apt_get().arg("update"));
    match command::run(apt_get().arg("download").args(packages)) {
        Ok(()) => Ok(()),
        Err(error) => Err(updated.err().unwrap_or(error))
            .with_context(|| format!("cannot fetch the Debian packages {}", packages.join(", "))),
    }
}
