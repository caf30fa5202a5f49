//! `cargo xtask fuzz`: runs the decoders of external input on inputs from libFuzzer.
//!
//! The targets are in `host/informer/fuzz` and `host/record-format/fuzz`, in the layout of cargo-fuzz, which
//! runs them with a nightly compiler and a sanitizer. This command uses the stable compiler; only the fuzzed
//! crates and the targets are instrumented for coverage.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo;
use crate::{checkout, progress};

/// The folders with targets, each a workspace of its own.
const FOLDERS: [&str; 2] = ["host/informer/fuzz", "host/record-format/fuzz"];

/// A fuzz target, and its folder.
struct Target {
    name: String,
    folder: &'static str,
}

/// Fuzzes the decoders of external input: watch streams, list pages, objects, selectors, pointers, records.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The duration per target.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// The targets; all if none is named.
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
}

/// The compiler's wrapper, which adds instrumentation to the fuzzed crates and the targets.
const COMPILER: &str = r#"#!/bin/sh
case " $* " in
    *" --crate-name oarlock_informer "* | *" --crate-name oarlock_record_format "* | *" --crate-name "*" fuzz_targets/"*)
        exec "$@" --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
            -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
            -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 ;;
    *) exec "$@" ;;
esac
"#;

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { seconds, targets } = self;
        let known = all_targets()?;
        let names: Vec<_> = known.iter().map(|target| target.name.clone()).collect();
        if let Some(unknown) = targets.iter().find(|target| !names.contains(target)) {
            bail!("unknown fuzz target {unknown}; the targets are {}", names.join(", "));
        }
        let is_wanted = |target: &Target| targets.is_empty() || targets.contains(&target.name);
        let wanted: Vec<_> = known.into_iter().filter(is_wanted).collect();
        let programs = progress::step("the fuzz targets", || build(&wanted))?;
        for target in &wanted {
            let what = format!("fuzzing {} for {seconds} s", target.name);
            progress::step(&what, || run(&programs, target, seconds))?;
        }
        Ok(())
    }
}

fn all_targets() -> Result<Vec<Target>> {
    let mut targets = Vec::new();
    for folder in FOLDERS {
        let programs = checkout::root().join(folder).join("fuzz_targets");
        for file in fs::read_dir(programs).context("cannot list the fuzz targets")? {
            let path = file?.path();
            let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            targets.extend(name.map(|name| Target { name, folder }));
        }
    }
    targets.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(targets)
}

/// Builds targets, and returns the folder with the programs. Other dependencies are compiled as for the host,
/// so that they are shared with it.
fn build(targets: &[Target]) -> Result<PathBuf> {
    let target_folder = checkout::target()?;
    let compiler = target_folder.join("fuzz-rustc");
    if fs::read_to_string(&compiler).unwrap_or_default() != COMPILER {
        fs::write(&compiler, COMPILER).context("cannot write the compiler's wrapper")?;
        make_executable(&compiler)?;
    }
    for folder in FOLDERS.into_iter().filter(|folder| targets.iter().any(|it| it.folder == *folder)) {
        let mut cargo = cargo::cargo("build");
        cargo.current_dir(checkout::root().join(folder));
        cargo
            .args(["--bins", "--locked", "--target-dir"])
            .arg(&target_folder)
            .env("RUSTC_WRAPPER", &compiler);
        cargo::run(&mut cargo)?;
    }
    Ok(target_folder.join("debug"))
}

#[cfg(unix)]
fn make_executable(file: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;

    Ok(fs::set_permissions(file, fs::Permissions::from_mode(0o755))?)
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<()> {
    bail!("fuzzing needs Linux or another Unix")
}

/// Runs one target, starting from its committed corpus. New inputs go to target/fuzz; the error names an
/// input that breaks the target.
fn run(programs: &Path, target: &Target, seconds: u32) -> Result<()> {
    let Target { name: target, folder } = target;
    let found = checkout::root().join("target/fuzz").join(target);
    fs::create_dir_all(&found)?;
    let corpus = checkout::root().join(folder).join("corpus").join(target);
    let mut command = Command::new(programs.join(target));
    command.arg(&found).arg(corpus);
    command.arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-artifact_prefix={}/broken-", found.display()));
    command.args(["-timeout=10", "-rss_limit_mb=2048", "-max_len=16384", "-print_final_stats=1"]);
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {target}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let tail: Vec<_> = stderr.lines().rev().take(40).collect();
        bail!("fuzz target {target} failed:\n{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
    }
    for line in stderr.lines().filter(|line| line.contains("number_of_executed_units")) {
        progress::say(format!("{target}: {line}"));
    }
    Ok(())
}
