//! Builds programs of Kubernetes from Go modules, with the version that they report.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use oarlock_guest_build::toolchain::command;
use oarlock_guest_build::toolchain::go::Toolchain;
use oarlock_guest_build::toolchain::versions::SERVER_GO;
use sha2::{Digest, Sha256};

/// The version that the programs report; without one, clients take it for a 0.0.
const VERSION: (&str, &str, &str) = ("1", "36", "v1.36.2");

/// Builds a package of a module, as a static executable.
///
/// # Errors
///
/// When there is no Go, or the build fails.
pub fn build(module: &Path, package: &str, program: &Path) -> Result<()> {
    let (major, minor, version) = VERSION;
    let variable = "k8s.io/component-base/version";
    let ldflags = format!(
        "-s -w -X {variable}.gitVersion={version} -X {variable}.gitMajor={major} -X {variable}.gitMinor={minor}"
    );
    let mut go = Toolchain::find(SERVER_GO)?.go();
    go.current_dir(module).env("CGO_ENABLED", "0").args(["build", "-trimpath", "-ldflags", &ldflags, "-o"]);
    command::run(go.arg(program).arg(package))
}

/// Returns a digest of the Go sources in some folders of a module, of its requirements, and of the version.
///
/// # Errors
///
/// When a file cannot be read.
pub fn digest(module: &Path, folders: &[PathBuf]) -> Result<String> {
    let mut files = vec![module.join("go.mod"), module.join("go.sum")];
    for folder in folders {
        for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "go") {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut digest = Sha256::new();
    for file in files {
        digest.update(file.strip_prefix(module)?.to_string_lossy().as_bytes());
        digest.update(fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?);
    }
    digest.update(VERSION.2);
    Ok(digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}
