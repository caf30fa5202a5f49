//! `cargo xtask profile`: makes the execution profile with which the image's binary is compiled
//! (profile-guided optimisation).
//!
//! A host that counts how often each part of its code runs handles the load of the benchmark, and
//! `oarlock-bench` compiles components, since a host's child processes cannot write counts. The compiler
//! then chooses what it inlines, and where it places code, by these counts. They are in a file of the
//! repository, so that two builds of one commit make the same binary. They fit one version of rustc, since
//! it gives functions other symbols in each version, and they lose effect slowly as the code changes.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::toolchain::command;
use crate::{cargo, checkout, guests, image, progress};

/// The folder of the profiles, in the checkout.
const FOLDER: &str = "host/profile";

/// The groups of `cargo xtask bench plugin` that the profile is of.
const GROUPS: [&str; 3] = ["path", "reads", "paced"];

/// The components that are compiled for it. They are few and small, since code is hot only in comparison with
/// the other code: the counts of the compiler must not exceed those of the host.
const COMPONENTS: [&str; 2] = ["hello-rust", "mirror"];

/// How often each is compiled.
const ROUNDS: &str = "4";

/// Makes the execution profile with which the image's binary is compiled.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// The compiler of this machine.
struct Rustc {
    version: String,
    host: String,
    llvm: String,
    sysroot: PathBuf,
}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self {} = self;
        let rustc = Rustc::find()?;
        let merger = rustc.merger()?;
        let [host, bench_of_parts] =
            progress::step("a host that counts what it executes", image::counting_binaries)?;
        let counts = tempfile::Builder::new().prefix("oarlock-profile-").tempdir()?;
        let mut bench = Command::new(env::current_exe()?);
        bench.args(["bench", "plugin", "--quick", "--only"]).args(GROUPS).arg("--host").arg(&host);
        // One file for each process.
        let pattern = counts.path().join("%p.profraw");
        cargo::run(bench.env("LLVM_PROFILE_FILE", &pattern))?;
        guests::build(&COMPONENTS.map(String::from))?;
        // A host's child processes compile, and may not write files.
        let mut compile = Command::new(bench_of_parts);
        compile.args(["compile", "--rounds", ROUNDS]).args(COMPONENTS.map(oarlock_built_guests::component));
        cargo::run(compile.env("LLVM_PROFILE_FILE", &pattern))?;
        let files: Vec<_> =
            fs::read_dir(counts.path())?.map(|file| Ok(file?.path())).collect::<Result<_>>()?;
        ensure!(!files.is_empty(), "no host has written its counts");
        let file = checkout::root().join(rustc.file());
        fs::create_dir_all(checkout::root().join(FOLDER))?;
        command::run(Command::new(merger).args(["merge", "--sparse", "-o"]).arg(&file).args(files))?;
        progress::say(format!(
            "{} is written; `cargo xtask image` uses it from now on. Commit it",
            rustc.file().display()
        ));
        Ok(())
    }
}

/// Returns the path of the profile for the compiler of this machine, relative to the checkout `root`. Says
/// so, and returns none, if there is none.
pub(crate) fn find(root: &Path) -> Result<Option<PathBuf>> {
    let rustc = Rustc::find()?;
    let file = rustc.file();
    if root.join(&file).is_file() {
        return Ok(Some(file));
    }
    progress::say(format!(
        "{FOLDER} has no execution profile for rustc {} on {}, so the host will be slower than it could be. Fix: build with the rustc of a profile that it has, or make one with `cargo xtask profile`",
        rustc.version, rustc.host
    ));
    Ok(None)
}

// === impl Rustc ===

impl Rustc {
    fn find() -> Result<Self> {
        let rustc = || Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        let text = command::output(rustc().arg("-vV"))?;
        let value = |key: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
            value.map(str::to_owned).with_context(|| format!("`rustc -vV` prints no {key}:\n{text}"))
        };
        let sysroot = command::output(rustc().args(["--print", "sysroot"]))?;
        Ok(Self {
            version: value("release")?,
            host: value("host")?,
            llvm: value("LLVM version")?,
            sysroot: sysroot.trim().into(),
        })
    }

    /// Returns the path of the profile in a checkout.
    fn file(&self) -> PathBuf {
        Path::new(FOLDER).join(format!("rustc-{}-{}.profdata", self.version, self.host))
    }

    /// Returns the program that merges counts, of this compiler's version of LLVM.
    fn merger(&self) -> Result<PathBuf> {
        let major = self.llvm.split('.').next().unwrap_or_default();
        let own = self.sysroot.join("lib/rustlib").join(&self.host).join("bin/llvm-profdata");
        let candidates = [own, format!("llvm-profdata-{major}").into(), "llvm-profdata".into()];
        let is_of_version = |program: &PathBuf| {
            let version = command::output(Command::new(program).arg("--version"));
            version.is_ok_and(|version| version.contains(&format!("LLVM version {major}.")))
        };
        candidates.into_iter().find(is_of_version).with_context(|| {
            format!(
                "llvm-profdata of LLVM {major} is missing\nFix: `rustup component add llvm-tools`, or install the package llvm-{major}"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_fits_one_version_of_rustc_on_one_kind_of_machine() {
        let root = tempfile::tempdir().unwrap();
        let rustc = Rustc::find().unwrap();
        let newer = Rustc { version: format!("{}1", rustc.version), ..Rustc::find().unwrap() };
        let other = Rustc { host: "other-unknown-linux-gnu".into(), ..Rustc::find().unwrap() };
        fs::create_dir_all(root.path().join(FOLDER)).unwrap();
        for rustc in [newer, other] {
            fs::write(root.path().join(rustc.file()), "counts").unwrap();
        }
        assert_eq!(find(root.path()).unwrap(), None);
        fs::write(root.path().join(rustc.file()), "counts").unwrap();
        assert_eq!(find(root.path()).unwrap(), Some(rustc.file()));
    }
}
