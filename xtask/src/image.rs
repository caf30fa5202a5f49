//! `cargo xtask image`: the container image of the host, as an OCI image layout, built without a container
//! engine.
//!
//! The image has one layer: the binary `oarlock`, the dynamic libraries that it needs, CA certificates, and a
//! user. No shell, no package manager. Two builds from one commit have one digest, on machines with the same
//! compilers and system libraries: paths are left out of the binary, entries are sorted, and every time is
//! that of `SOURCE_DATE_EPOCH`, or of the last commit.
//!
//! ```text
//! build.rs: the binary ────────┐
//! root.rs: files → tar, gzip ──┐
//! sbom.rs: cargo metadata ─────┼─→ layout.rs: blobs, manifests, index
//! source.rs: commit, time ─────┘
//! ```

mod build;
mod layout;
mod libraries;
mod root;
mod sbom;
mod source;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use flate2::Compression;
use serde_json::json;

use crate::soak::Record;
use crate::tool::Tool;
use crate::toolchain::command;
use crate::{cargo, checkout, progress};

use layout::Layout;
use source::Source;

/// Builds the container image of the host, as an OCI image layout.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How the binary is built, and how well the image is compressed.
    #[arg(long, value_enum, default_value_t = Profile::Release)]
    profile: Profile,

    /// Builds the last commit a second time in another folder, fails if the image is not the same, and
    /// records the result in bench/results.
    #[arg(long, conflicts_with_all = ["binary", "profile"])]
    verify: bool,

    /// A binary that is built already, for this machine's system and processor.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,

    /// The folder of the layout. Images for other processors that it has stay, so that one image index can
    /// have them all [default: target/image].
    #[arg(long, value_name = "FOLDER")]
    layout: Option<PathBuf>,

    /// The time of all files and of the image, in seconds since 1970. Otherwise that of the last commit.
    #[arg(long, env = "SOURCE_DATE_EPOCH", value_name = "SECONDS")]
    source_date_epoch: Option<u64>,

    /// Pushes the image to a registry, with crane and its credentials.
    #[arg(long, value_name = "IMAGE")]
    push: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Profile {
    /// Optimised, for use.
    Release,
    /// The binary of tests, for development.
    Dev,
}

// === impl Args ===

impl Args {
    #[expect(clippy::print_stdout, reason = "the command's output")]
    pub(crate) fn run(self) -> Result<()> {
        let Self { profile, verify, binary, layout, source_date_epoch, push } = self;
        if verify {
            build::ensure_committed()?;
        }
        let record = verify.then(|| Record::begin("image.jsonl")).transpose()?;
        let binary = match binary {
            Some(binary) => binary,
            None => built(profile)?,
        };
        let folder = layout.unwrap_or_else(|| checkout::root().join("target/image"));
        let source = Source::find(source_date_epoch)?;
        let digest = progress::step("the image", || write(&source, &binary, profile, &folder))?;
        println!("{} {digest}", folder.display());
        if let Some(record) = record {
            // In empty folders: the layout may have images for other processors.
            let digest_of = |binary: &Path| write(&source, binary, profile, tempfile::tempdir()?.path());
            let first = digest_of(&binary)?;
            build::elsewhere(|other| {
                let second = digest_of(other)?;
                record.append(json!({"first": first, "second": second, "equal": first == second}))?;
                if first != second {
                    // The folder of the second build is removed.
                    let kept = binary.with_extension("second");
                    fs::copy(other, &kept).with_context(|| format!("cannot write {}", kept.display()))?;
                    bail!(
                        "the first build makes an image {first}, the second one {second}\nFix: compare the binaries {} and {}, such as with diffoscope",
                        binary.display(),
                        kept.display()
                    );
                }
                Ok(())
            })?;
            println!("a second build in another folder has the same digest");
        }
        if let Some(image) = push {
            progress::step(&format!("pushing {image}"), || {
                command::run(Command::new(Tool::Crane.build()?).arg("push").arg(&folder).arg(&image))
            })?;
        }
        Ok(())
    }
}

fn built(profile: Profile) -> Result<PathBuf> {
    match profile {
        Profile::Release => progress::step("the host", build::release),
        Profile::Dev => {
            cargo::build_some(&["oarlock"], false)?;
            Ok(checkout::target()?.join("debug/oarlock"))
        }
    }
}

/// Builds a host and `oarlock-bench` for `cargo xtask profile`.
pub(crate) fn counting_binaries() -> Result<[PathBuf; 2]> {
    build::counting()
}

/// Builds the binary of an image, for measurements of it.
pub(crate) fn release_binary() -> Result<PathBuf> {
    build::release()
}

/// Writes the image of a binary of tests into a folder that is removed first.
pub(crate) fn write_for_tests(binary: &Path, folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    progress::step("the image", || write(&Source::find(None)?, binary, Profile::Dev, folder).map(drop))
}

/// Writes the image of this binary into a layout. Returns the digest of the image index.
fn write(source: &Source, binary: &Path, profile: Profile, folder: &Path) -> Result<String> {
    let program = fs::read(binary).with_context(|| format!("cannot read {}", binary.display()))?;
    source::check(&program)
        .with_context(|| format!("{} is not a binary of this machine", binary.display()))?;
    let libraries = libraries::of(binary)?;
    let sbom = sbom::cyclone_dx(source, &libraries)?;
    let layer = root::layer(program, libraries, source, level(profile))?;
    let mut layout = Layout::open(folder)?;
    layout.add(source, &layer, &sbom)?;
    layout.finish(source)
}

/// Returns the level of the compression.
fn level(profile: Profile) -> Compression {
    match profile {
        Profile::Release => Compression::best(),
        Profile::Dev => Compression::fast(),
    }
}
