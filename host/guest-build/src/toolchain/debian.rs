//! Unpacks Debian packages into a folder, without installing them and without root.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::command;

/// Unpacks these packages below `folder`, together with those dependencies that this machine lacks.
///
/// # Errors
///
/// When this machine has no apt-get or no dpkg, or a download fails.
pub fn unpack_with_dependencies(packages: &[String], folder: &Path) -> Result<()> {
    Apt::new(packages, folder)?.with_lists(|apt| {
        let mut all = apt.missing_dependencies(packages)?;
        all.extend(packages.iter().cloned());
        apt.download(all)
    })?;
    unpack_downloaded(folder)
}

/// Returns the unpacked folders with shared libraries, in the format of LD_LIBRARY_PATH.
///
/// # Errors
///
/// When a folder cannot be read.
pub fn library_folders(folder: &Path) -> Result<String> {
    let mut found = vec![];
    for parent in ["usr/lib", "lib"] {
        let Ok(entries) = fs::read_dir(folder.join(parent)) else {
            continue;
        };
        for entry in entries {
            let path = entry?.path();
            if path.to_string_lossy().ends_with("-linux-gnu") {
                found.push(path.display().to_string());
            }
        }
    }
    Ok(found.join(":"))
}

fn unpack_downloaded(folder: &Path) -> Result<()> {
    let apt = folder.join("apt");
    for file in fs::read_dir(&apt)? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            command::run(Command::new("dpkg").arg("-x").arg(&path).arg(folder))?;
        }
    }
    fs::remove_dir_all(&apt).with_context(|| format!("cannot remove {}", apt.display()))
}

/// apt-get with a folder of its own.
struct Apt {
    folder: PathBuf,
    /// It uses its own package lists instead of the machine's.
    own_lists: bool,
}

// === impl Apt ===

impl Apt {
    fn new(packages: &[String], folder: &Path) -> Result<Self> {
        ensure!(
            command::exists("apt-get") && command::exists("dpkg"),
            "cannot download the Debian packages {}: this machine has no apt-get or no dpkg",
            packages.join(", ")
        );
        let folder = folder.join("apt");
        for name in ["state/lists/partial", "cache/archives/partial"] {
            let path = folder.join(name);
            fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        }
        Ok(Self { folder, own_lists: false })
    }

    /// Calls `work` with the machine's package lists. If these are missing or out of date, calls it again
    /// with updated lists.
    fn with_lists(mut self, work: impl Fn(&Self) -> Result<()>) -> Result<()> {
        if work(&self).is_ok() {
            return Ok(());
        }
        self.own_lists = true;
        // A source that does not respond matters only if a package is then missing.
        let updated = command::run(self.command().arg("update"));
        work(&self).map_err(|error| updated.err().unwrap_or(error))
    }

    fn download(&self, packages: impl IntoIterator<Item = impl AsRef<str>>) -> Result<()> {
        let mut apt = self.command();
        apt.arg("download");
        for package in packages {
            apt.arg(package.as_ref());
        }
        command::run(&mut apt)
    }

    /// Returns the dependencies that installing these packages would install.
    fn missing_dependencies(&self, packages: &[String]) -> Result<BTreeSet<String>> {
        let mut apt = self.command();
        apt.args(["--no-install-recommends", "-o", "Debug::NoLocking=1", "--print-uris", "install"])
            .args(packages);
        let uris = command::output(&mut apt)?;
        // 'http://host/pool/main/n/name/name_1.2_amd64.deb' name_1%3a1.2_amd64.deb 1234 SHA256:0123
        let files =
            uris.lines().filter(|line| line.starts_with('\'')).filter_map(|line| line.split(' ').nth(1));
        let names = files.filter_map(|file| file.split('_').next()).map(str::to_owned);
        // A second C library must not be unpacked beside the machine's own.
        Ok(names.filter(|name| name != "libc6" && name != "libc-bin").collect())
    }

    fn command(&self) -> Command {
        let mut apt = Command::new("apt-get");
        apt.current_dir(&self.folder).args(["-q", "-o", "APT::Sandbox::User=root"]);
        if self.own_lists {
            apt.arg("-o").arg(format!("Dir::State={}", self.folder.join("state").display()));
            apt.arg("-o").arg(format!("Dir::Cache={}", self.folder.join("cache").display()));
            apt.args(["-o", "Dir::State::status=/var/lib/dpkg/status"]);
        }
        apt
    }
}
